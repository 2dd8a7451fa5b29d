"""Laws of positions: where a client begins to read what it is assigned, and how far it commits."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError, error_name
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import premises, terms
from kipcheck.conformance.protocols.client.events import (
    AnswerSeen,
    Closed,
    Event,
    Launched,
    RequestSeen,
    TopicDeleted,
    Trimmed,
)
from kipcheck.conformance.protocols.client.invariants.law import breach, law, timed
from kipcheck.conformance.protocols.client.trace import STARTS, Membership, TracedEvent, is_answer, is_request, trace
from kipcheck.conformance.protocols.declare.invariant import Leading, impact

PLACE = 70

REMOVED: Final = terms.OF_THE_ID | {KafkaError.FENCED_MEMBER_EPOCH}
"""The errors of a member that the coordinator has removed: others may have had its partitions since."""
END: Final = -1
"""The timestamp of ListOffsets for the end of a log."""
NONE: Final = -1
"""The committed offset of a partition that has none."""


@dataclass(slots=True)
class _Known:
    """The offsets of a partition that answers gave to a client."""

    offsets: set[int] = field(default_factory=set)
    latest: set[int] = field(default_factory=set)
    """Those that were looked up for the end of the log."""
    read: list[tuple[int, int]] = field(default_factory=list)
    """From the offset of a Fetch to the one after the last record in its answer. The client may have thrown away any of
    its last records, to fetch them again when its user has time for them."""

    def has(self, offset: int) -> bool:
        return offset in self.offsets or any(first <= offset <= end for first, end in self.read)

    def add(self, first: int, end: int) -> None:
        if self.read and self.read[-1][0] <= first <= self.read[-1][1] <= end:
            first = self.read.pop()[0]
        self.read.append((first, end))

    def copy(self) -> "_Known":
        return _Known({*self.offsets}, {*self.latest}, [*self.read])


@dataclass(slots=True)
class _New:
    """A partition whose committed offset the client needs, and that it has not read since."""

    since_ms: int
    after_others: bool
    """Whether another member may have had it since the client read it last."""
    kept: _Known = field(default_factory=_Known)
    """What the client knew of a partition that it had before and kept, when it asked for its committed offset again."""
    asked_ms: int | None = None
    """When the client sent OffsetFetch for it; None: it did not."""
    refused: int = 0
    """The error with which that was answered."""
    committed: list[int] = field(default_factory=list)
    """What the client was sent."""
    sent_ms: int = 0
    early: int | None = None
    """Where the client read it first, so soon that it may not have read what it was sent."""


Found: TypeAlias = tuple[str, Violation]
"""The law that is broken, and how."""
STARTS_THERE, WAITS, GOES_ON = (
    "client/starts-at-the-committed-offset",
    "client/waits-for-offsets",
    "client/reads-in-order",
)


@dataclass(slots=True)
class _Positions:
    last: Membership | None = None
    was_removed: bool = False
    """Whether the coordinator has removed the client since its last assignment."""
    latest: bool = False
    """Whether the user wants what has no committed offset to be read from its end on."""
    commits_late: bool = False
    """Whether the user holds records over a rebalance, and commits them at its end."""
    new: dict[str, _New] = field(default_factory=dict)
    fetches: dict[int, deque[RequestSeen]] = field(default_factory=dict)
    """By connection: the Fetch requests without an answer."""
    lookups: dict[tuple[int, str], deque[RequestSeen]] = field(default_factory=dict)
    """The same of OffsetFetch and ListOffsets, by their names, too."""
    known: dict[str, _Known] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)
    """The offset of the last Fetch."""
    asked: set[str] = field(default_factory=set)
    """The partitions whose committed offset the program was sent."""
    starts: dict[str, int] = field(default_factory=dict)
    """The first offsets of logs that do not begin at 0."""

    def read(self, traced: TracedEvent[Event]) -> Iterator[Found]:
        """The breaches at this event, of each law of where a client reads."""
        self._follow(traced)
        event = traced.event
        if is_request(traced, "OffsetFetch", "ListOffsets"):
            self.lookups.setdefault((traced.event.connection, traced.event.api), deque()).append(traced.event)
            if traced.event.api == "OffsetFetch":
                self._asked(traced.event)
        elif is_answer(traced, "OffsetFetch"):
            self._committed(traced, self._request_of(traced.event))
        elif self.commits_late and is_request(traced, "OffsetCommit") and traced.answered == 0:
            for name, offset in traced.event.placed:
                if name in self.new and offset >= max(self.new[name].committed, default=terms.NEVER):
                    self.new[name].committed.append(offset)  # sarama begins where its user has committed last
        elif is_answer(traced, "ListOffsets", "OffsetForLeaderEpoch"):
            request = self._request_of(traced.event)
            wanted = dict(request.placed) if request is not None else {}
            for name, offset in (traced.event.offsets or {}).items():
                self._of(name).offsets.add(offset)
                self._of(name).latest |= {offset} if wanted.get(name, END) == END else set()
                if name in self.new and traced.event.api == "OffsetForLeaderEpoch":
                    self.new[name].committed.append(offset)  # the log was cut off there, below what was committed
        elif is_answer(traced, "Fetch"):
            self._answered(traced.event)
        elif is_request(traced, "Fetch"):
            yield from self._fetched(traced)
        elif isinstance(event, Closed):
            self.fetches.pop(event.connection, None)
            self.lookups = {key: found for key, found in self.lookups.items() if key[0] != event.connection}

    def _request_of(self, answer: AnswerSeen) -> RequestSeen | None:
        waiting = self.lookups.get((answer.connection, answer.api))
        return waiting.popleft() if waiting else None

    def _of(self, name: str) -> _Known:
        return self.known.setdefault(name, _Known())

    def _follow(self, traced: TracedEvent[Event]) -> None:
        """Notes what the client is assigned at this event."""
        if isinstance(traced.event, Launched):
            self.latest, self.commits_late = traced.event.offset_reset == "latest", traced.event.commit == "late"
        if isinstance(traced.event, STARTS):
            for each in (self.new, self.fetches, self.lookups, self.known, self.placed, self.asked):
                each.clear()
            self.last, self.was_removed = None, False
            return
        if isinstance(traced.event, TopicDeleted):
            self.new = {name: found for name, found in self.new.items() if not traced.event.has(name)}
            self.known = {name: known for name, known in self.known.items() if not traced.event.has(name)}
            self.asked = {name for name in self.asked if not traced.event.has(name)}
        elif isinstance(traced.event, Trimmed):
            self.starts |= traced.event.starts
        now = traced.now
        if now is None:
            over = traced.memberships[-1] if traced.memberships else None
            self.was_removed |= over is not None and over.error in REMOVED
            self.last = None
            self.new.clear()
        elif now.synced_ms is not None and now.adopted and now is not self.last:
            had = frozenset[str]() if self.last is None else self.last.partitions
            self.new = {name: found for name, found in self.new.items() if name in now.partitions}
            for name in now.partitions - had:
                self.new[name] = _New(traced.ms, self.was_removed or self.last is not None)
            self.last, self.was_removed = now, False

    def _asked(self, request: RequestSeen) -> None:
        """A client that asks for the offset of a partition again has no position for it, or will say that it has."""
        mine = self.last.partitions if self.last is not None else frozenset[str]()
        for name in mine.intersection(request.partitions or mine):
            if name not in self.new:
                self.new[name] = _New(request.ms, False, self._of(name).copy())
            self.new[name].asked_ms, self.new[name].refused = request.ms, 0

    def _committed(self, traced: TracedEvent[AnswerSeen], request: RequestSeen | None) -> None:
        """An OffsetFetch is answered."""
        committed = traced.event.committed or {}
        for name, offset in committed.items():
            self.asked.add(name)
            self._of(name).offsets |= {offset} - {NONE}
            if name in self.new:
                self.new[name].committed.append(offset)
                self.new[name].sent_ms = traced.ms
        for name in {*self.new} & {*((request and request.partitions) or self.new)} - {*committed}:
            self.new[name].refused = traced.error
        if traced.in_doubt:
            self.new = {name: found for name, found in self.new.items() if name not in committed}

    def _answered(self, answer: AnswerSeen) -> None:
        """A Fetch that was sent before the client lost a partition may be of use to it if it has the right offset."""
        waiting = self.fetches.get(answer.connection)
        placed = dict(waiting.popleft().placed) if waiting else {}
        for name, end in (answer.ends or {}).items():
            first = placed.get(name, self.placed.get(name, end))
            self._of(name).add(first, end)
            if name in self.new and self.new[name].kept.has(first):
                self.new[name].kept.add(first, end)
        for name, offset in placed.items():
            if name in self.new and offset in self.new[name].committed:
                del self.new[name]

    def _fetched(self, traced: TracedEvent[RequestSeen]) -> Iterator[Found]:
        self.fetches.setdefault(traced.event.connection, deque()).append(traced.event)
        for name, offset in traced.event.placed:
            found = self.new.get(name)
            has_none = found is not None and min(found.committed, default=terms.NEVER) < self.starts.get(name, 0)
            if found is None or found.kept.has(offset) or has_none:
                self.new.pop(name, None)
                yield from self._in_order(traced, name, offset, self.latest and has_none)
            elif offset in found.committed:
                del self.new[name]
            else:
                for breach_of in self._elsewhere(traced, name, offset, found):
                    del self.new[name]
                    yield breach_of
            self.placed[name] = offset

    def _elsewhere(self, traced: TracedEvent[RequestSeen], name: str, offset: int, found: _New) -> Iterator[Found]:
        at = f"offset {offset}"
        if found.committed:
            if traced.earliest_ms > found.sent_ms + terms.RACE_MS:
                right, begun = " or ".join(map(str, found.committed)), offset if found.early is None else found.early
                after = "" if begun == offset else f", and goes on at {offset}"
                why = f"the client begins to read {name} at {begun}{after}; the committed offset is {right}"
                yield STARTS_THERE, breach(traced, why, f"offset {right}", at, "elsewhere", since_ms=found.sent_ms)
            elif found.early is None:
                found.early = offset
        elif found.asked_ms is not None:
            if traced.earliest_ms > found.asked_ms + terms.RACE_MS:
                shape = ("refused", error_name(found.refused)) if found.refused else ("not answered yet",)
                why = f"the client begins to read {name} at {offset}; its OffsetFetch was {' with '.join(shape)}"
                yield WAITS, breach(traced, why, "another OffsetFetch", at, *shape, since_ms=found.asked_ms)
        elif self._is_unasked(name, found, traced.earliest_ms):
            why = f"the client reads {name} at {offset}, and did not ask for the offset that others committed"
            owed = f"OffsetFetch for {name}"
            yield STARTS_THERE, breach(traced, why, owed, "none", "not asked", since_ms=found.since_ms)

    def _is_unasked(self, name: str, found: _New, ms: int) -> bool:
        """Whether the program, which does keep its positions in the group, goes on where it once was."""
        return found.after_others and name in self.asked and ms > found.since_ms + terms.GRACE_MS

    def _in_order(self, traced: TracedEvent[RequestSeen], name: str, offset: int, begins_late: bool) -> Iterator[Found]:
        """``begins_late``: at the end, since there is no committed offset, and its user wants it so."""
        known = self._of(name)
        if begins_late and known.latest and not known.read and offset not in known.latest:
            why = f"the client begins to read {name} at {offset}; its user wants it read from its end on"
            yield GOES_ON, breach(traced, why, f"offset {max(known.latest)}", f"offset {offset}", "other end")
            return
        if name not in self.asked or known.has(offset) or (not offset and not self.latest):
            return
        right = max([*known.offsets, *(end for _, end in known.read)], default=None)
        shape = "unknown" if right is None or offset < right else "skipped"
        why = f"the client reads {name} at {offset}, which no answer gave"
        owed = "an offset that was looked up" if right is None else f"offset {right}"
        yield GOES_ON, breach(traced, why, owed, f"offset {offset}", shape)
        known.offsets.add(offset)


def _of_law(history: History, law: str) -> Iterator[Violation]:
    positions = _Positions()
    return (violation for traced in trace(history) for id, violation in positions.read(traced) if id == law)


@impact(
    "A consumer skips records, or reads some again that its group has committed", "wrong data", "ownership",
    "lost-offsets",
)  # fmt: skip
@timed(STARTS_THERE, "grp-100", premise=(premises.COMMITTED, premises.FETCHES, premises.RECORDS))
def starts_at_the_committed_offset(history: History) -> Iterator[Violation]:
    """A client begins to read a partition that it did not have before at the offset that the group has committed.

    A program that never asks for committed offsets keeps its positions elsewhere, and is not judged; nor is a partition
    without a committed offset.
    """
    return _of_law(history, STARTS_THERE)


@impact(
    "A consumer reads a partition from its beginning or end, because the committed offset is late or was refused",
    "wrong data", "ownership", "lost-offsets",
)  # fmt: skip
@timed(WAITS, "grp-166", premise=(premises.ASSIGNED, premises.ASKS_FOR_OFFSETS, premises.FETCHES))
def waits_for_offsets(history: History) -> Iterator[Violation]:
    """A client that asks for the committed offset of a partition reads it only after an answer that has this offset.

    Its own position is as good, of a partition that it had before and kept. A refusal says nothing of what is
    committed, whether the group is refused or the partition.
    """
    return _of_law(history, WAITS)


@impact("A consumer skips records that no member read", "wrong data", "ownership", "lost-offsets")
@law(GOES_ON, "grp-167", premise=(premises.COMMITTED_OR_NONE, premises.FETCHES))
def reads_in_order(history: History) -> Iterator[Violation]:
    """A client reads only where an answer placed it: at an offset that was committed, looked up, or follows a record.

    The beginning of a log is offset 0, unless its user wants to read from the end on.
    """
    return _of_law(history, GOES_ON)


@impact(
    "A consumer commits records that it never read: after a restart nothing reads them", "wrong data", "ownership",
    "lost-offsets",
)  # fmt: skip
@law("client/commits-what-it-read", "grp-101", premise=(premises.COMMITS,))
def commits_what_it_read(history: History) -> Iterator[Violation]:
    """A client commits no offset above its position.

    That is the offset after the last record that it was sent, or the one at which it began to read.
    """
    furthest: dict[str, int] = {}
    for traced in trace(history):
        if is_request(traced, "OffsetCommit"):
            for name, offset in traced.event.placed:
                if offset > (right := furthest.get(name, 0)):
                    why = f"the client commits {name} at {offset}, and was sent no record from {right} on"
                    yield breach(traced, why, f"at most {right}", f"offset {offset}", "ahead")
        for name, offset in _reached(traced):
            furthest[name] = max(offset, furthest.get(name, 0))


def after_other_offsets(history: History, violation: Violation) -> Leading | None:
    """The first breach of where it begins to read, up to then: what a client reads wrongly it reads on from there."""
    before = (found for found in _of_law(history, WAITS) if (found.at_ms or 0) <= (violation.at_ms or 0))
    return next((Leading(WAITS, found.shape) for found in before), None)


@impact(
    "A consumer loses its position in a rebalance, and reads and commits again what it has committed",
    "double processing", "ownership", "lost-offsets",
)  # fmt: skip
@timed("client/reads-on", "grp-102", premise=(premises.COMMITS, premises.FETCHES), follows=after_other_offsets)
def reads_on(history: History) -> Iterator[Violation]:
    """A client reads on from what it has committed: it fetches no earlier offset unless an answer takes it back.

    OffsetFetch and OffsetForLeaderEpoch may do so, and an error of Fetch. A commit that may have been sent before the
    answer to OffsetFetch was read says nothing of what is read after it; nor does one between that answer, or an error
    of Fetch, and the next Fetch of the partition: a program may commit what it held over a rebalance.
    """
    furthest: dict[str, int] = {}
    committed: dict[str, tuple[int, int]] = {}
    """The offset that the client has committed, 0 for none, and since when that is known."""
    lost: set[str] = set()
    """The partitions that the client has not fetched since it learned where to begin, or since an error of Fetch."""
    refused: set[str] = set()
    """The partitions whose last OffsetFetch has an error as its answer, which says nothing of what is committed."""
    for traced in trace(history):
        if is_request(traced, "OffsetFetch"):
            asked = {*(committed if traced.event.partitions is None else traced.event.partitions)}
            refused = refused | asked if traced.answered else refused - asked
        fails = is_answer(traced, "Fetch") and traced.error
        if isinstance(traced.event, (*STARTS, TopicDeleted)) or is_answer(traced, "OffsetForLeaderEpoch") or fails:
            lost |= committed.keys() if fails else set()
            committed.clear()
        elif is_answer(traced, "OffsetFetch"):
            committed |= dict.fromkeys(traced.event.committed or {}, (0, traced.ms))
            lost |= (traced.event.committed or {}).keys()
        elif is_request(traced, "OffsetCommit") and traced.answered == 0:
            for name, offset in traced.event.placed:
                before, ms = committed.get(name, (0, -terms.RACE_MS))
                if traced.earliest_ms > ms + terms.RACE_MS and name not in lost:
                    committed[name] = max(before, min(offset, furthest.get(name, 0))), traced.ms
        elif is_request(traced, "Fetch"):
            for name, offset in traced.event.placed:
                right, ms = committed.get(name, (0, 0))
                if offset < right and traced.earliest_ms > ms + terms.RACE_MS:
                    why = f"the client reads {name} at {offset}, and has committed {right}"
                    owed = f"offset {right} or later"
                    cause = ("OffsetFetch refused",) if name in refused else ()
                    yield breach(traced, why, owed, f"offset {offset}", "back", *cause, since_ms=ms)
                    return
                lost.discard(name)
        furthest |= {name: max(offset, furthest.get(name, 0)) for name, offset in _reached(traced)}


def _reached(traced: TracedEvent[Event]) -> Iterator[tuple[str, int]]:
    """The offsets that a client may take for its positions after this event, whatever it had before."""
    if is_request(traced, "Fetch"):
        yield from traced.event.placed
    elif is_answer(traced, "Fetch"):
        yield from (traced.event.ends or {}).items()
    elif is_answer(traced, "OffsetFetch"):
        yield from (traced.event.committed or {}).items()
    elif is_answer(traced, "ListOffsets"):
        yield from (traced.event.offsets or {}).items()
