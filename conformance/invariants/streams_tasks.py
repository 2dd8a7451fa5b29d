"""Who runs which task of a Streams application, in every mix of releases and after every failure."""

from collections.abc import Iterator

from conformance.core.case import Role
from conformance.core.history import History
from conformance.core.verdict import Grade, Violation
from conformance.invariants.registry import invariant


@invariant("streams/one-owner", "268-28", role=Role.OPERATOR_TOOL)
def one_owner(history: History) -> Iterator[Violation]:
    """No task is active in two members in one generation."""
    yield from ()


@invariant("streams/shared-while-probing", "268-43", role=Role.OPERATOR_TOOL, grade=Grade.INFO)
def shared_while_probing(history: History) -> Iterator[Violation]:
    """Threads of one instance get the same partitions while somebody is probed."""
    yield from ()


@invariant("streams/handed-over", "268-38", "268-28", role=Role.OPERATOR_TOOL)
def handed_over(history: History) -> Iterator[Violation]:
    """Nobody takes up what a member in place has not given up."""
    yield from ()


@invariant("streams/all-owned", "268-28", "268-13", "268-31", role=Role.OPERATOR_TOOL)
def all_owned(history: History) -> Iterator[Violation]:
    """In a group that rests every task is active in some member."""
    yield from ()


@invariant("streams/tasks-match", "268-44", role=Role.OPERATOR_TOOL)
def tasks_match(history: History) -> Iterator[Violation]:
    """What the task manager runs is what the consumer owns; up to 2.3.1 it keeps its old tasks while it is probed."""
    yield from ()


@invariant("streams/pairs", "268-51", "268-28", role=Role.OPERATOR_TOOL)
def pairs(history: History) -> Iterator[Violation]:
    """Active tasks pair with partitions: one for each, in the order of topics and numbers."""
    yield from ()


@invariant("streams/standbys", "268-51", "268-28", role=Role.OPERATOR_TOOL)
def standbys(history: History) -> Iterator[Violation]:
    """Standby tasks are as many as asked for, where instances suffice, and never where the task runs."""
    yield from ()


@invariant("streams/hosts", "268-03", "268-02", role=Role.OPERATOR_TOOL)
def hosts(history: History) -> Iterator[Violation]:
    """The map of hosts has every end point, and what its members were given."""
    yield from ()
