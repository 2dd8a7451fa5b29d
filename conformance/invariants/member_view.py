"""A consumer's view of itself: id and generation, owned partitions by its callbacks, pending requests.

A value is None, or open, where releases differ or where it depends on time.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.models.assignment import Partition
from kipcheck.conformance.models.group.messages import NO_GENERATION, Blob, Joined
from kipcheck.conformance.models.member.client import BACKOFF_MS, OFFERED, Open
from kipcheck.conformance.models.member.messages import Request
from kipcheck.conformance.models.member.rules import Rules
from kipcheck.conformance.models.membership import COOPERATIVE, EAGER, Assigned

SOONEST_MS: Final = BACKOFF_MS * 8 // 10
LATEST_MS: Final = BACKOFF_MS * 12 // 10
"""The bounds of a back-off: newer consumers draw it at random around the configured value."""
Owned: TypeAlias = frozenset[Partition]


class Identity(NamedTuple):
    """The member id and generation that requests have to carry."""

    member: str = ""
    generation: int = NO_GENERATION

    @property
    def is_out(self) -> bool:
        return self.generation == NO_GENERATION or not self.member


NO_IDENTITY: Final = Identity()


class Round(Enum):
    OUT = "out"
    """No rebalance is in progress, and the consumer is not in the group."""
    JOINING = "joining"
    SYNCING = "syncing"
    FAILED = "failed"
    """The last rebalance failed; the consumer may still be in the group."""
    STABLE = "stable"


class Sent(NamedTuple):
    """A pending request, and the identity it was sent with."""

    request: Request
    identity: Identity
    protocol: str | None
    """The assignor of the generation that was known then."""


@dataclass(slots=True)
class View:
    """The view at one point of the conversation; None stands for an unknown value. Treated as immutable once shared."""

    now_ms: int = 0
    opened: Open | None = None
    """None here means that there is no consumer."""
    topics: tuple[str, ...] = ()
    owned: Owned = frozenset()
    join: Sent | None = None
    sync: Sent | None = None
    beat: Sent | None = None
    commit: Sent | None = None
    commits: bool = False
    """The user waits for a commit."""
    who: Identity | None = NO_IDENTITY
    round: Round = Round.OUT
    joined: Joined | None = None
    """The JoinGroup response that started the generation."""
    topics_told: tuple[str, ...] | None = None
    """The topics in its last JoinGroup."""
    due: bool | None = True
    """Does the consumer have to join?"""
    cluster_changed: bool = False
    """Did metadata arrive since it joined? Only a leader acts on that."""
    taking: Blob | None = None
    """The assignment that was received and not adopted yet."""
    waits_from: int | None = None
    """The start of a back-off, or of the search for the coordinator."""
    unsure_till: int = 0
    """Until this time the consumer may or may not be waiting."""
    raises: str = ""
    """The error that the next poll has to raise."""
    alive_ms: int = 0
    """The time of the last successful response from the coordinator."""
    polled_ms: int = 0
    metric: int = 0

    @property
    def waits(self) -> bool | None:
        if self.now_ms < self.unsure_till:
            return None
        if self.waits_from is None:
            return False
        waited = self.now_ms - self.waits_from
        return None if SOONEST_MS <= waited < LATEST_MS else waited < SOONEST_MS

    def is_current(self, sent: Sent) -> bool:
        """Are member id, generation and protocol still those that the request was sent with?"""
        return (sent.identity, sent.protocol) == (self.who, self.protocol)

    @property
    def protocol(self) -> str | None:
        return self.joined.protocol if self.joined is not None else None

    @property
    def join_pending(self) -> bool:
        return self.join is not None or self.sync is not None

    @property
    def can_take(self) -> bool:
        """Can a poll adopt the pending assignment?"""
        return self.round is Round.STABLE and self.waits is False and not self.raises

    @property
    def fits(self) -> bool:
        """Is the consumer subscribed to every topic of the assignment?"""
        return isinstance(self.taking, Assigned) and all(topic in self.topics for topic, _ in self.taking.partitions)

    @property
    def must_join(self) -> bool | None:
        """Does a poll have to send a JoinGroup? None if both are right."""
        if not self.topics or self.raises or self.join_pending or self.waits:
            return False
        changed = self.topics_told is not None and self.topics_told != self.topics
        if changed or self.due:
            return True if self.waits is False else None
        return self.due


def is_incompatible(rules: Rules, taking: Blob | None) -> bool:
    """Does the assignment carry the error of the draft?"""
    return rules.draft and isinstance(taking, Assigned) and taking.error != 0


def is_cooperative(rules: Rules, opened: Open | None) -> bool:
    return opened is not None and protocol_of(rules, opened) == COOPERATIVE


def protocol_of(rules: Rules, opened: Open) -> str | None:
    """The highest protocol that all assignors support, in the draft the configured one; None if there is none."""
    if rules.draft:
        return opened.protocol or EAGER
    if not rules.incremental:
        return EAGER
    common = [each for each in (COOPERATIVE, EAGER) if all(each in OFFERED[a].supports for a in opened.assignors)]
    return common[0] if common else None
