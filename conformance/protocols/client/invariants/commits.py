"""Laws of commits: which offsets a client commits, as whom, and how soon."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import premises, terms
from kipcheck.conformance.protocols.client.events import Event, Launched, Restarted, Signalled
from kipcheck.conformance.protocols.client.invariants.law import breach, law, timed
from kipcheck.conformance.protocols.client.invariants.partitions import hindered_ms
from kipcheck.conformance.protocols.client.log_ops import Records
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.trace import (
    STARTS,
    Membership,
    TracedEvent,
    generation_of,
    is_answer,
    is_request,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 75

COMMITS_BY_ITSELF: Final = ("auto", "sync", "revoked")
"""How a program commits whose every position is committed, also before it gives a partition up."""
SHOWN: Final = 5
"""So many pauses show at what pace a program commits a partition."""
PACES: Final = 3
"""So many of the longest of the pauses between them a commit may take."""


@dataclass(slots=True)
class _Committed:
    """What the group has committed, as far as a client knows, and which partitions the client has a position of."""

    offsets: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By partition: the offset, and since when the client knows it."""
    unplaced: dict[str, int] = field(default_factory=dict)
    """The partitions of which the program never had a position, and since when it has each."""
    placed: set[str] = field(default_factory=set)
    last: Membership | None = None

    def read(self, traced: TracedEvent[Event]) -> None:
        now, event = traced.now, traced.event
        if isinstance(event, STARTS):
            self.offsets.clear()
            self.placed.clear()
        if now is None:
            self.last, self.unplaced = None, {}
        elif now.synced_ms is not None and now is not self.last:
            had = self.last.partitions if self.last is not None else frozenset[str]()
            kept = {name: ms for name, ms in self.unplaced.items() if name in now.partitions}
            self.unplaced = dict.fromkeys(now.partitions - had - self.placed, traced.ms) | kept
            self.last = now
        if is_answer(traced, "OffsetFetch"):
            committed = traced.event.committed or {}
            self._place(committed)
            self.offsets |= {name: (offset, traced.ms) for name, offset in committed.items()}
        elif is_answer(traced, "ListOffsets"):
            self._place(traced.event.offsets or {})
            for name in traced.event.offsets or {}:
                self.offsets.pop(name, None)
        elif is_answer(traced, "OffsetForLeaderEpoch") or (is_answer(traced, "Fetch") and traced.error):
            self.offsets.clear()
        elif is_request(traced, "Fetch"):
            self._place(dict(traced.event.placed))
            for name, offset in traced.event.placed:  # whether it may go back there is judged by client/reads-on
                if offset < self.offsets.get(name, (0, 0))[0]:
                    self.offsets[name] = offset, traced.ms
        elif is_request(traced, "OffsetCommit") and traced.answered == 0:
            for name, offset in traced.event.placed:
                self.offsets[name] = max(offset, self.offsets.get(name, (0, 0))[0]), traced.ms

    def _place(self, names: Mapping[str, int]) -> None:
        self.placed |= names.keys()
        self.unplaced = {name: ms for name, ms in self.unplaced.items() if name not in names}


@impact(
    "A consumer commits an offset below what its group has committed: records are read twice", "double processing",
    "ownership", "lost-offsets", links=("KAFKA-4081",),
)  # fmt: skip
@timed("client/commits-its-position", "grp-170", premise=(premises.ASSIGNED, premises.COMMITS))
def commits_its_position(history: History) -> Iterator[Violation]:
    """A client commits positions: none of a partition before it has one, and none below what the group has committed.

    A position goes back only if an answer takes it back, and is known once an offset was fetched, looked up, or sent to
    the client as committed.
    """
    committed, is_judged = _Committed(), True
    for traced in trace(history):
        if isinstance(traced.event, Launched):
            is_judged = traced.event.commit != "late"  # whose user names the offsets
        if is_request(traced, "OffsetCommit") and is_judged:
            for name, offset in traced.event.placed:
                right, known_ms = committed.offsets.get(name, (0, 0))
                assigned_ms = committed.unplaced.get(name, terms.NEVER)
                is_now = traced.now is not None and traced.now.carried == traced.event.carried
                if offset < 0:
                    why = f"the client commits {name} at {offset}, which is no offset"
                    yield breach(traced, why, "an offset from 0 on", f"offset {offset}", "negative", since_ms=traced.ms)
                elif offset < right and traced.earliest_ms > known_ms + terms.RACE_MS:
                    why = f"the client commits {name} at {offset}; its group has committed {right}"
                    owed = f"offset {right} or later"
                    yield breach(traced, why, owed, f"offset {offset}", "back", since_ms=known_ms)
                elif is_now and traced.earliest_ms > assigned_ms + terms.RACE_MS:
                    why = f"the client commits {name} at {offset}, and has no position of it yet"
                    yield breach(traced, why, "no commit", f"offset {offset}", "no position", since_ms=assigned_ms)
        committed.read(traced)


@impact(
    "A consumer commits as if it were in no group: the coordinator refuses it, or lets it overwrite what others read",
    "wrong data", "identity", "lost-offsets",
)  # fmt: skip
@law("client/commits-as-a-member", "grp-171", "grp-64", premise=(premises.SYNCED, premises.COMMITS))
def commits_as_a_member(history: History) -> Iterator[Violation]:
    """Each OffsetCommit of a program that has joined a group carries a member id and a generation or epoch."""
    for traced in trace(history):
        if is_request(traced, "OffsetCommit") and traced.memberships:
            given = traced.event.member or "", generation_of(traced.event)
            if not given[0] or given[1] < 0:
                lacks = "member id" if not given[0] else "generation"
                why = f"OffsetCommit of a program that is in a group has no {lacks}"
                shape = "member" if traced.certain is not None else "membership over"
                yield breach(traced, why, f"its {lacks}", "none", lacks, shape)


@impact(
    "A group forgets its offsets as soon as its consumers stop: it begins anew", "wrong data", "ownership",
    "lost-offsets", links=("KIP-211",),
)  # fmt: skip
@law("client/keeps-its-commits", "grp-210", premise=(premises.COMMITS,))
def keeps_its_commits(history: History) -> Iterator[Violation]:
    """An OffsetCommit does not ask the broker to drop its offsets at once: no retention time is 0."""
    for traced in trace(history):
        if is_request(traced, "OffsetCommit") and traced.event.retention_ms == 0:
            yield breach(traced, "the client commits offsets for 0 ms", "-1, or a time", "0", "no time")
            return


@dataclass(slots=True)
class _Read:
    """How far a partition of the member is read and committed."""

    ends: list[tuple[int, int]] = field(default_factory=list)
    """When records were sent to the client, and the offset after them."""
    committed: int = 0
    tried: int = 0
    """The highest offset of its commits, whatever their answers were."""
    commits: int = 0
    commit_ms: int = 0
    """When it was committed last."""
    pause_ms: int = 0
    """The longest pause between two commits."""

    def commit(self, ms: int, offset: int, is_accepted: bool) -> None:
        if self.commits:
            self.pause_ms = max(self.pause_ms, ms - self.commit_ms)
        self.commits, self.commit_ms, self.tried = self.commits + 1, ms, max(self.tried, offset)
        if is_accepted:
            self.committed = max(self.committed, offset)

    def sent_until(self, ms: int) -> tuple[int, int]:
        """The offset after the records that had been sent then, and when the last of them was."""
        return max(((end, sent_ms) for sent_ms, end in self.ends if sent_ms <= ms), default=(0, 0))

    def bound_ms(self) -> int:
        """In what time a position is committed, as far as the pauses between commits show; never, if they do not."""
        return terms.GRACE_MS + PACES * self.pause_ms if self.commits > SHOWN else terms.NEVER


@dataclass(slots=True)
class _Pace:
    """What a member has read and committed."""

    launched: Launched | None = None
    by_name: dict[str, _Read] = field(default_factory=dict)
    since_ms: int = 0
    """When something last kept the client from committing."""

    def read(self, traced: TracedEvent[Event]) -> None:
        event, now = traced.event, traced.certain
        mine = frozenset[str]() if now is None else now.partitions
        self.by_name = {name: found for name, found in self.by_name.items() if name in mine}
        if isinstance(event, Launched):
            self.launched = event
        is_asked_to_join = is_answer(traced, "Heartbeat") and traced.error == KafkaError.REBALANCE_IN_PROGRESS
        if not is_asked_to_join:  # when it still is a member, whose commits are taken
            self.since_ms = hindered_ms(traced, self.since_ms)
        if is_answer(traced, "Fetch"):
            for name, end in (traced.event.ends or {}).items():
                if name in mine:
                    self.by_name.setdefault(name, _Read()).ends.append((event.ms, end))
        elif is_request(traced, "OffsetCommit"):
            for name, offset in traced.event.placed:
                if (found := self.by_name.get(name)) is not None:
                    found.commit(event.ms, offset, traced.answered == 0)


@impact(
    "A consumer does not commit what it has read: after a rebalance or a restart it is read again",
    "double processing", "ownership", "lost-offsets",
)  # fmt: skip
@timed("client/commits-in-time", "grp-172", premise=(premises.RECORDS, premises.COMMITS))
def commits_in_time(history: History) -> Iterator[Violation]:
    """A program that commits again and again commits its whole position: a second and three of its pauses later.

    One that works between polls is given what was sent to it when it polls again; one that is closed polls no more.
    """
    pace, behind, closes = _Pace(), set[str](), False
    for traced in trace(history) if not _has_unread_offsets(history) else ():
        pace.read(traced)
        closes = isinstance(traced.event, Signalled) or (closes and not isinstance(traced.event, (Launched, Restarted)))
        behind &= pace.by_name.keys()
        works_ms = 0 if pace.launched is None else pace.launched.pause_ms or 0  # records wait for its next poll
        for name, found in pace.by_name.items():
            since_ms = traced.ms - found.bound_ms() - works_ms
            end, sent_ms = found.sent_until(since_ms)
            if found.committed < end and pace.since_ms < since_ms and name not in behind and not closes:
                behind.add(name)
                why = f"the client was sent {name} up to {end}, and commits {found.committed}"
                yield breach(traced, why, f"offset {end}", f"offset {found.committed}", "behind", since_ms=sent_ms)


@impact(
    "A consumer closes, or gives partitions up, without a last commit: their next owner reads records again",
    "double processing", "ownership", "lost-offsets",
)  # fmt: skip
@timed("client/commits-before-it-leaves", "grp-173", premise=premises.commits_by_itself)
def commits_before_it_leaves(history: History) -> Iterator[Violation]:
    """A program that is to commit by itself has sent a commit of its positions when it leaves its group.

    Records that it was sent in the last second, or while it worked, need not be among them. A program that commits in
    the callback for revoked partitions finishes its work there, after that on its last poll.
    """
    pace, gone = _Pace(), False
    """Whether it has given its partitions up: it may have to join, or to leave, several times."""
    for traced in trace(history) if not _has_unread_offsets(history) else ():
        launched = pace.launched
        if (is_answer(traced, "SyncGroup") and not traced.error) or isinstance(traced.event, STARTS):
            gone = False
        if launched is not None and launched.commit in COMMITS_BY_ITSELF and _leaves(traced) and not gone:
            gone = True
            works = 2 if launched.commit == "revoked" else 1
            before_ms = traced.ms - terms.GRACE_MS - works * (launched.pause_ms or 0)
            for name, found in pace.by_name.items() if pace.since_ms < before_ms else ():
                end, sent_ms = found.sent_until(before_ms)
                if found.tried < end:
                    why = f"the client leaves; it was sent {name} up to {end}, and commits {found.tried}"
                    owed = f"a commit of {end}"
                    shape = "left out", "to join" if is_request(traced, "JoinGroup") else "to leave"
                    yield breach(traced, why, owed, f"offset {found.tried}", *shape, since_ms=sent_ms)
        pace.read(traced)


def _has_unread_offsets(history: History) -> bool:
    """Whether logs have offsets without a record for users, as of markers of transactions: some clients commit the
    offset after the last record alone."""
    return any(each.verb == OPERATIONS.verb_of[Records] for each in history.case.steps)


def _leaves(traced: TracedEvent[Event]) -> bool:
    """Whether it gives all partitions up here: an eager member does so when it joins, too."""
    if is_request(traced, *terms.HEARTBEATS):
        return generation_of(traced.event) < 0
    return is_request(traced, "LeaveGroup") or (
        is_request(traced, "JoinGroup") and not premises.EAGER.isdisjoint(traced.event.assignors)
    )
