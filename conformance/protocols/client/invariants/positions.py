"""Laws of positions: where a client begins to read what it is assigned, and how far it commits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import premises, terms
from kipcheck.conformance.protocols.client.events import AnswerSeen, Event, RequestSeen, TopicDeleted, Trimmed
from kipcheck.conformance.protocols.client.invariants.law import breach, law, timed
from kipcheck.conformance.protocols.client.trace import STARTS, Membership, TracedEvent, is_answer, is_request, trace
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 70

NONE: Final = -1
"""The committed offset of a partition that has none."""


@dataclass(slots=True)
class _New:
    """A partition that the client has been assigned, and has not read yet."""

    since_ms: int
    after_others: bool
    """Whether another member had it since the client read it last."""
    committed: list[int] = field(default_factory=list)
    """What the client was sent."""
    sent_ms: int = 0


@dataclass(slots=True)
class _Positions:
    last: Membership | None = None
    new: dict[str, _New] = field(default_factory=dict)
    waiting: list[RequestSeen] = field(default_factory=list)
    """Fetch requests without an answer."""
    known: set[str] = field(default_factory=set)
    """The partitions whose committed offset the program has asked for."""
    starts: dict[str, int] = field(default_factory=dict)
    """The first offsets of logs that do not begin at 0."""

    def follow(self, traced: TracedEvent[Event]) -> None:
        """Notes what the client is assigned at this event."""
        if isinstance(traced.event, STARTS):
            self.last = None
            self.new.clear()
            self.waiting.clear()
            self.known.clear()
            return
        if isinstance(traced.event, TopicDeleted):
            self.new = {name: found for name, found in self.new.items() if not traced.event.has(name)}
            self.known = {name for name in self.known if not traced.event.has(name)}
        elif isinstance(traced.event, Trimmed):
            self.starts |= traced.event.starts
        now = traced.now
        if now is None:
            self.last = None
            self.new.clear()
        elif now.synced_ms is not None and now.adopted and now is not self.last:
            had = frozenset[str]() if self.last is None else self.last.partitions
            self.new = {name: found for name, found in self.new.items() if name in now.partitions}
            for name in now.partitions - had:
                self.new[name] = _New(traced.ms, self.last is not None)
            self.last = now

    def committed(self, traced: TracedEvent[AnswerSeen]) -> None:
        """An OffsetFetch is answered."""
        for name, offset in (traced.event.committed or {}).items():
            self.known.add(name)
            if name in self.new:
                self.new[name].committed.append(offset)
                self.new[name].sent_ms = traced.ms

    def answered(self, answer: AnswerSeen) -> None:
        """A Fetch that was sent before the client lost a partition may be of use to it if it has the right offset."""
        at = next((at for at, request in enumerate(self.waiting) if request.connection == answer.connection), None)
        if at is None:
            return
        for name, offset in self.waiting.pop(at).placed:
            if name in self.new and offset in self.new[name].committed:
                del self.new[name]

    def fetched(self, traced: TracedEvent[RequestSeen]) -> Iterator[Violation]:
        self.waiting.append(traced.event)
        for name, offset in traced.event.placed:
            found = self.new.get(name)
            if found is None:
                continue
            is_gone = min(found.committed, default=NONE) < self.starts.get(name, NONE)  # so it takes another one
            if offset in found.committed or NONE in found.committed or is_gone:
                del self.new[name]
            elif found.committed and traced.earliest_ms > found.sent_ms + terms.RACE_MS:
                del self.new[name]
                right = " or ".join(map(str, found.committed))
                why = f"the client begins to read {name} at {offset}; the committed offset is {right}"
                yield breach(traced, why, f"offset {right}", f"offset {offset}", "elsewhere", since_ms=found.sent_ms)
            elif not found.committed and self._is_unasked(name, found, traced.earliest_ms):
                del self.new[name]
                why = f"the client reads {name} at {offset}, and did not ask for the offset that others committed"
                yield breach(traced, why, f"OffsetFetch for {name}", "none", "not asked", since_ms=found.since_ms)

    def _is_unasked(self, name: str, found: _New, ms: int) -> bool:
        """Whether the program, which does keep its positions in the group, goes on where it once was."""
        return found.after_others and name in self.known and ms > found.since_ms + terms.GRACE_MS


@impact(
    "A consumer skips records, or reads some again that its group has committed", "wrong data", "ownership",
    "lost-offsets",
)  # fmt: skip
@timed(
    "client/starts-at-the-committed-offset", "grp-100", premise=(premises.COMMITTED, premises.FETCHES, premises.RECORDS)
)
def starts_at_the_committed_offset(history: History) -> Iterator[Violation]:
    """A client begins to read a partition that it did not have before at the offset that the group has committed.

    A program that never asks for committed offsets keeps its positions elsewhere, and is not judged; nor is a partition
    without a committed offset.
    """
    positions = _Positions()
    for traced in trace(history):
        positions.follow(traced)
        if is_answer(traced, "OffsetFetch") and not traced.in_doubt:
            positions.committed(traced)
        elif is_answer(traced, "Fetch"):
            positions.answered(traced.event)
        elif is_request(traced, "Fetch"):
            yield from positions.fetched(traced)


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


@impact(
    "A consumer loses its position in a rebalance, and reads and commits again what it has committed",
    "double processing", "ownership", "lost-offsets",
)  # fmt: skip
@timed("client/reads-on", "grp-102", premise=(premises.COMMITS, premises.FETCHES))
def reads_on(history: History) -> Iterator[Violation]:
    """A client reads on from what it has committed: it fetches no earlier offset unless an answer takes it back.

    OffsetFetch and OffsetForLeaderEpoch may do so, and an error of Fetch. A commit that may have been sent before the
    answer to OffsetFetch was read says nothing of what is read after it.
    """
    furthest: dict[str, int] = {}
    committed: dict[str, tuple[int, int]] = {}
    """The offset that the client has committed, 0 for none, and since when that is known."""
    refused: tuple[str, ...] = ()
    """Whether the last answer to OffsetFetch had an error, which says nothing of what the group has committed."""
    for traced in trace(history):
        if is_answer(traced, "OffsetFetch"):
            refused = ("OffsetFetch refused",) if traced.error else ()
        fails = is_answer(traced, "Fetch") and traced.error
        if isinstance(traced.event, (*STARTS, TopicDeleted)) or is_answer(traced, "OffsetForLeaderEpoch") or fails:
            committed.clear()
        elif is_answer(traced, "OffsetFetch"):
            committed |= dict.fromkeys(traced.event.committed or {}, (0, traced.ms))
        elif is_request(traced, "OffsetCommit") and traced.answered == 0:
            for name, offset in traced.event.placed:
                before, ms = committed.get(name, (0, -terms.RACE_MS))
                if traced.earliest_ms > ms + terms.RACE_MS:
                    committed[name] = max(before, min(offset, furthest.get(name, 0))), traced.ms
        elif is_request(traced, "Fetch"):
            for name, offset in traced.event.placed:
                right, ms = committed.get(name, (0, 0))
                if offset < right and traced.earliest_ms > ms + terms.RACE_MS:
                    why = f"the client reads {name} at {offset}, and has committed {right}"
                    owed = f"offset {right} or later"
                    yield breach(traced, why, owed, f"offset {offset}", "back", *refused, since_ms=ms)
                    return
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
