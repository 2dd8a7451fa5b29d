"""When threads of a Streams application end by themselves."""

from collections.abc import Iterator

from conformance.core.case import Role
from conformance.core.history import History
from conformance.core.verdict import Violation
from conformance.invariants.registry import invariant


@invariant("streams/lives", "268-26", "268-28", role=Role.OPERATOR_TOOL)
def lives(history: History) -> Iterator[Violation]:
    """No thread ends with an exception but where it has to."""
    yield from ()


@invariant("streams/assigns", "268-26", "grp-09", role=Role.OPERATOR_TOOL)
def assigns(history: History) -> Iterator[Violation]:
    """An assignment comes to an end."""
    yield from ()
