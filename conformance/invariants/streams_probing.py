"""Version probing as a whole: it ends, and the group comes to the newest version that all support."""

from collections.abc import Iterator

from conformance.core.case import Role
from conformance.core.history import History
from conformance.core.verdict import Violation
from conformance.invariants.registry import invariant


@invariant("streams/probing-ends", "268-24", "268-37", role=Role.OPERATOR_TOOL)
def probing_ends(history: History) -> Iterator[Violation]:
    """A group that is left alone comes to rest, after few rebalances for each thing that befell it."""
    yield from ()


@invariant("streams/last-rebalance", "268-17", "268-18", "268-21", "268-36", "268-37", role=Role.OPERATOR_TOOL)
def last_rebalance(history: History) -> Iterator[Violation]:
    """Who asks for one more rebalance: whose version has to fall; whose version rises, in silence up to 2.3.0; in the draft the leader alone."""
    yield from ()


@invariant("streams/rejoins", "268-18", "268-24", role=Role.OPERATOR_TOOL)
def rejoins(history: History) -> Iterator[Violation]:
    """Who asked for a rebalance at once gets one before the group rests."""
    yield from ()


@invariant("streams/successive-differ", "268-45", role=Role.OPERATOR_TOOL)
def successive_differ(history: History) -> Iterator[Violation]:
    """Two subscriptions of a member, one after the other, differ."""
    yield from ()


@invariant("streams/upgraded", "268-12", "268-13", "268-22", "268-23", "268-26", role=Role.OPERATOR_TOOL)
def upgraded(history: History) -> Iterator[Violation]:
    """A group that rests has all its members and speaks the newest version that all support."""
    yield from ()


@invariant("streams/no-probing", "268-46", role=Role.OPERATOR_TOOL)
def no_probing(history: History) -> Iterator[Violation]:
    """Between releases with the same latest version nobody changes its version, nor asks for a rebalance because of it."""
    yield from ()
