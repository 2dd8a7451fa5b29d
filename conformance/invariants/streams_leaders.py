"""What the leader of a Streams group owes to members of older and newer metadata."""

from collections.abc import Iterator

from conformance.core.case import Role
from conformance.core.history import History
from conformance.core.verdict import Grade, Violation
from conformance.invariants.registry import invariant


@invariant("streams/decodable", "268-07", "268-11", "268-12", role=Role.OPERATOR_TOOL)
def decodable(history: History) -> Iterator[Violation]:
    """Every member can decode what it is sent."""
    yield from ()


@invariant("streams/errors-decodable", "268-42", role=Role.OPERATOR_TOOL, grade=Grade.INFO)
def errors_decodable(history: History) -> Iterator[Violation]:
    """Every member can decode the error that it is sent."""
    yield from ()


@invariant("streams/leads-the-future", "268-06", "268-15", "268-31", role=Role.OPERATOR_TOOL)
def leads_the_future(history: History) -> Iterator[Violation]:
    """A leader with version probing has an assignment for subscriptions newer than it knows."""
    yield from ()


@invariant("streams/old-leader-fails", "268-14", role=Role.OPERATOR_TOOL)
def old_leader_fails(history: History) -> Iterator[Violation]:
    """A leader from before version probing fails on a version that it does not know."""
    yield from ()


@invariant("streams/lowest-version", "268-11", "268-12", role=Role.OPERATOR_TOOL)
def lowest_version(history: History) -> Iterator[Violation]:
    """Whom the leader understands is answered in the lowest used version."""
    yield from ()


@invariant("streams/second-int", "268-20", "268-34", role=Role.OPERATOR_TOOL)
def second_int(history: History) -> Iterator[Violation]:
    """The second number of an assignment is the leader's latest version, or the lowest supported one, by release."""
    yield from ()


@invariant("streams/future-gets", "268-15", "268-29", "268-31", role=Role.OPERATOR_TOOL)
def future_gets(history: History) -> Iterator[Violation]:
    """What a member from the leader's future is sent: nothing up to 2.3.1 and in the draft, its share from 2.4 on."""
    yield from ()


@invariant("streams/others-get", "268-16", "268-30", role=Role.OPERATOR_TOOL)
def others_get(history: History) -> Iterator[Violation]:
    """While somebody is from the leader's future the others get a regular assignment in the draft, and up to 2.3.1 what they claimed."""
    yield from ()


@invariant("streams/hard-mix", "268-32", role=Role.OPERATOR_TOOL)
def hard_mix(history: History) -> Iterator[Violation]:
    """A member from the leader's future beside one of version 1 or 2 is an error: thrown up to 2.6, sent to all as code 3 from 2.7 on."""
    yield from ()
