"""What a consumer can know of itself: what it was told last, what it owns by its callbacks, what it has under way.

Where releases of its kind may differ, or time decides, it is left open.
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
"""The end of a back-off, which newer consumers draw by chance around what is configured."""
Owned: TypeAlias = frozenset[Partition]


class Who(NamedTuple):
    """How it has to call itself."""

    member: str = ""
    generation: int = NO_GENERATION

    @property
    def is_out(self) -> bool:
        return self.generation == NO_GENERATION or not self.member


NOBODY: Final = Who()


class Round(Enum):
    OUT = "out"
    """It is in no round, and not in the group."""
    JOINING = "joining"
    SYNCING = "syncing"
    FAILED = "failed"
    """Its last one came to nothing; it is not out of the group for that."""
    STABLE = "stable"


class Sent(NamedTuple):
    """A request that is under way, and who sent it."""

    request: Request
    who: Who
    protocol: str | None
    """The assignor of the generation that it knew of."""


@dataclass(slots=True)
class View:
    """What is known before a step. None stands for what is open. Nobody changes it any more who sees it."""

    now_ms: int = 0
    opened: Open | None = None
    """None, here: there is no consumer."""
    topics: tuple[str, ...] = ()
    owned: Owned = frozenset()
    join: Sent | None = None
    sync: Sent | None = None
    beat: Sent | None = None
    commit: Sent | None = None
    commits: bool = False
    """The user waits for a commit."""
    who: Who | None = NOBODY
    round: Round = Round.OUT
    joined: Joined | None = None
    """The answer that began the generation."""
    topics_told: tuple[str, ...] | None = None
    """Of its last join."""
    due: bool | None = True
    """Has it to join?"""
    cluster_changed: bool = False
    """Were topics told anew since it joined? A leader looks after that."""
    taking: Blob | None = None
    """What it was assigned and has not taken up."""
    waits_from: int | None = None
    """The beginning of a back-off, or of the search for the coordinator."""
    unsure_till: int = 0
    """Until then it may be waiting, or not."""
    raises: str = ""
    """What the next poll has to raise."""
    alive_ms: int = 0
    """When it last heard of the coordinator."""
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

    def is_news(self, sent: Sent) -> bool:
        """Is it still who it was when it sent that?"""
        return (sent.who, sent.protocol) == (self.who, self.protocol)

    @property
    def protocol(self) -> str | None:
        return self.joined.protocol if self.joined is not None else None

    @property
    def is_asking(self) -> bool:
        return self.join is not None or self.sync is not None

    @property
    def can_take(self) -> bool:
        """Is it there to be taken up by a poll, and still good for it?"""
        return self.round is Round.STABLE and self.waits is False and not self.raises

    @property
    def fits(self) -> bool:
        """Is it subscribed to all that it was assigned?"""
        return isinstance(self.taking, Assigned) and all(topic in self.topics for topic, _ in self.taking.partitions)

    @property
    def owes_join(self) -> bool | None:
        """Has the poll to send one?"""
        if not self.topics or self.raises or self.is_asking or self.waits:
            return False
        changed = self.topics_told is not None and self.topics_told != self.topics
        if changed or self.due:
            return True if self.waits is False else None
        return self.due


def is_incompatible(rules: Rules, taking: Blob | None) -> bool:
    """Is it the error of the draft?"""
    return rules.draft and isinstance(taking, Assigned) and taking.error != 0


def is_cooperative(rules: Rules, opened: Open | None) -> bool:
    return opened is not None and protocol_of(rules, opened) == COOPERATIVE


def protocol_of(rules: Rules, opened: Open) -> str | None:
    """The highest that all its assignors support; in the draft, what is configured. None: there is none."""
    if rules.draft:
        return opened.protocol or EAGER
    if not rules.incremental:
        return EAGER
    common = [each for each in (COOPERATIVE, EAGER) if all(each in OFFERED[a].supports for a in opened.assignors)]
    return common[0] if common else None
