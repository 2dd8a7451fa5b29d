"""Which metadata version members of a Streams group use: what they begin with, and what they make of what they are told."""

from collections.abc import Iterator

from conformance.core.case import Role
from conformance.core.history import History
from conformance.core.verdict import Grade, Violation
from conformance.invariants.registry import invariant


@invariant("streams/restarts-afresh", "268-47", "268-08", role=Role.OPERATOR_TOOL)
def restarts_afresh(history: History) -> Iterator[Violation]:
    """A process that starts subscribes in its newest version: what it was told before it ended is forgotten."""
    yield from ()


@invariant("streams/upgrade-from", "268-10", "268-41", role=Role.OPERATOR_TOOL)
def upgrade_from(history: History) -> Iterator[Violation]:
    """With upgrade.from of a release before version probing a member subscribes in the version of that release."""
    yield from ()


@invariant("streams/refuses-values", "268-08", "268-09", "268-39", "268-41", "268-55", role=Role.OPERATOR_TOOL)
def refuses_values(history: History) -> Iterator[Violation]:
    """A value of upgrade.from that the release does not know is a configuration error, and any other is none."""
    yield from ()


@invariant("streams/protocols", "268-38", "268-39", role=Role.OPERATOR_TOOL)
def protocols(history: History) -> Iterator[Violation]:
    """Cooperative rebalancing is offered from 2.4 on where upgrade.from names no older release, and in 4.x always."""
    yield from ()


@invariant("streams/used-within-own", "268-19", "268-35", role=Role.OPERATOR_TOOL)
def used_within_own(history: History) -> Iterator[Violation]:
    """Nobody uses a metadata version above its own latest."""
    yield from ()


@invariant("streams/adopts-blindly", "268-33", role=Role.OPERATOR_TOOL, grade=Grade.INFO)
def adopts_blindly(history: History) -> Iterator[Violation]:
    """A release that raises its used version without a look at its own latest comes above it."""
    yield from ()


@invariant("streams/used-within-told", "268-17", "268-19", "268-35", role=Role.OPERATOR_TOOL)
def used_within_told(history: History) -> Iterator[Violation]:
    """Nobody subscribes in a version above the one that it was last told."""
    yield from ()


@invariant("streams/follows", "268-17", "268-19", "268-35", "268-36", role=Role.OPERATOR_TOOL)
def follows(history: History) -> Iterator[Violation]:
    """After an assignment a member uses the version that follows from its two numbers."""
    yield from ()


@invariant("streams/old-data-moves-nobody", "268-48", role=Role.OPERATOR_TOOL)
def old_data_moves_nobody(history: History) -> Iterator[Violation]:
    """An assignment in version 1 or 2 changes nobody's used version."""
    yield from ()


@invariant("streams/refuses-newer", "268-35", role=Role.OPERATOR_TOOL)
def refuses_newer(history: History) -> Iterator[Violation]:
    """An assignment above the used version, or a second number above the own latest, is refused."""
    yield from ()
