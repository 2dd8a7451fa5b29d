"""A consumer's view of itself: id and generation, owned partitions by its callbacks, pending requests.

A value is None, or open, where no document decides or where it depends on time.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER, Assigned
from kipcheck.conformance.protocols.group.model.messages import Blob, Joined
from kipcheck.conformance.protocols.group.request_rules import NO_IDENTITY, Identity
from kipcheck.conformance.protocols.member.model.client import BACKOFF_MS, OFFERED
from kipcheck.conformance.protocols.member.model.rules import Rules
from kipcheck.conformance.protocols.member.ops import Open, Request

SOONEST_MS: Final = BACKOFF_MS * 8 // 10
LATEST_MS: Final = BACKOFF_MS * 12 // 10
"""The bounds of a back-off: newer consumers draw it at random around the configured value."""
START: Final = "the beginning"
Owned: TypeAlias = frozenset[Partition]


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
    sent_ms: int = 0
    left: bool = False
    """Whether the consumer left the group since it sent the request."""


@dataclass(slots=True)
class View:
    """The view at one point of the conversation. Treated as immutable once shared.

    It follows what the consumer did, also where that was wrong: one defect is one violation.
    """

    now_ms: int = 0
    opened: Open | None = None
    """None here means that there is no consumer."""
    topics: tuple[str, ...] = ()
    owned: Owned = frozenset()
    moved_by: str = START
    """The event in which the owned partitions changed last."""
    join: Sent | None = None
    sync: Sent | None = None
    beat: Sent | None = None
    commit: Sent | None = None
    commits: bool = False
    """The user waits for a commit."""
    offsets: tuple[tuple[str, int, int], ...] = ()
    """Those of the commit that the user waits for."""
    who: Identity = NO_IDENTITY
    or_else: frozenset[Identity] = frozenset()
    """Identities that are right too, where no document decides."""
    who_since: str = START
    """The event that set the identity."""
    loose: bool = False
    """A timeout that only the consumer knows may have ended a request, or its membership: nothing is certain until it
    joins again."""
    round: Round = Round.OUT
    joined: Joined | None = None
    """The JoinGroup response that started the generation."""
    topics_told: tuple[str, ...] | None = None
    """The topics in its last JoinGroup."""
    due: bool | None = True
    """Does the consumer have to join? None: it may."""
    due_since: str = START
    """The event that made the join due."""
    cluster_changed: bool = False
    """Did metadata arrive since it joined? Only a leader acts on that."""
    taking: Blob | None = None
    """The assignment that was received and not adopted yet."""
    taking_ended: str = "none came"
    """What became of the last assignment."""
    later: bool = False
    """Whether another event came between the pending assignment, or the error to raise, and the next poll."""
    joins_since: str = START
    """The event that made its last JoinGroup due."""
    dropped: bool = False
    """A poll dropped an assignment that did not fit, and no join followed yet."""
    revoked: bool = False
    """A poll revoked what was not assigned again, and no join followed yet."""
    waits_from: int | None = None
    """The start of a back-off, or of the search for the coordinator: the consumer need not send anything."""
    searches: bool = False
    """Whether it waits because it does not know the coordinator."""
    unsure_till: int = 0
    """Until this time the consumer may or may not be waiting."""
    backs_off_from: int | None = None
    """The start of a back-off after the error of the draft: the consumer must not join."""
    raises: str = ""
    """The error that the next poll has to raise."""
    raises_since: str = ""
    may_raise: bool = False
    """The next poll may raise any error, or none."""
    alive_ms: int = 0
    """The time of the last successful response from the coordinator."""
    unanswered: bool = False
    """Whether no heartbeat was answered for a session timeout in this generation."""
    polled_ms: int = 0
    begun_ms: int = 0
    """The time of the last poll, or the later one at which the consumer entered its generation."""
    beat_from_ms: int | None = None
    """The earliest time at which the last heartbeat was sent; None where the next one may come at any time."""
    metric: int = 0

    @property
    def identities(self) -> frozenset[Identity]:
        return self.or_else | {self.who}

    @property
    def is_out(self) -> bool | None:
        """Whether the consumer is out of the group; None where that is not certain."""
        found = {each.is_out for each in self.identities}
        return None if self.loose or len(found) > 1 else self.who.is_out

    @property
    def waits(self) -> bool | None:
        if self.now_ms < self.unsure_till:
            return None
        return self._waiting(self.waits_from)

    @property
    def backs_off(self) -> bool | None:
        return self._waiting(self.backs_off_from)

    def _waiting(self, since: int | None) -> bool | None:
        if since is None:
            return False
        waited = self.now_ms - since
        return None if SOONEST_MS <= waited < LATEST_MS else waited < SOONEST_MS

    def is_current(self, sent: Sent) -> bool:
        """Are member id, generation and protocol still those that the request was sent with?"""
        return sent.identity in self.identities and sent.protocol == self.protocol

    @property
    def protocol(self) -> str | None:
        return self.joined.protocol if self.joined is not None else None

    @property
    def is_static(self) -> bool:
        return self.opened is not None and self.opened.instance is not None

    @property
    def join_pending(self) -> bool:
        return self.join is not None or self.sync is not None

    @property
    def is_idle(self) -> bool:
        """Can a poll do what is due?"""
        free = not self.raises and not self.may_raise and not self.join_pending
        return bool(self.topics) and free and self.waits is False and not self.loose

    @property
    def can_take(self) -> bool:
        """Does a poll have to adopt the pending assignment?"""
        return self.round is Round.STABLE and self.is_idle

    @property
    def fits(self) -> bool:
        """Is the consumer subscribed to every topic of the assignment?"""
        return isinstance(self.taking, Assigned) and all(topic in self.topics for topic, _ in self.taking.partitions)

    @property
    def subscription_changed(self) -> bool:
        return self.topics_told is not None and self.topics_told != self.topics

    @property
    def join_reason(self) -> str:
        """The event that makes a join due; a join that failed has the reason of that join."""
        if self.subscription_changed:
            return "subscribe"
        failed = self.due_since.startswith(("joined", "synced", "disconnected"))
        return f"a failed join (due since {self.joins_since})" if failed else self.due_since

    @property
    def must_join(self) -> bool | None:
        """Does a poll have to send a JoinGroup? None if both are right."""
        waiting = self.join or self.sync
        if self.loose or self.may_raise or (waiting is not None and waiting.left):
            return None
        if not self.topics or self.raises or self.join_pending or self.waits:
            return False
        if self.subscription_changed or self.due:
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
