"""Laws of positions: where a client begins to read what it is assigned, and how far it commits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client.invariants.law import breach, law, timed
from kipcheck.conformance.protocols.client.premises import COMMITS, COMMITTED, FETCHES, RECORDS
from kipcheck.conformance.protocols.client.trace import GRACE_MS, RACE_MS, STARTS, Happened, Membership, trace
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
    waiting: list[Happened] = field(default_factory=list)
    """Fetch requests without an answer."""
    known: set[str] = field(default_factory=set)
    """The partitions whose committed offset the program has asked for."""

    def follow(self, each: Happened) -> None:
        """Notes what the client is assigned at this event."""
        if each.what in STARTS:
            self.last = None
            self.new.clear()
            self.waiting.clear()
            self.known.clear()
            return
        now = each.now
        if now is None:
            self.last = None
            self.new.clear()
        elif now.synced_ms is not None and now.adopted and now is not self.last:
            had = frozenset[str]() if self.last is None else self.last.partitions
            self.new = {name: found for name, found in self.new.items() if name in now.partitions}
            for name in now.partitions - had:
                self.new[name] = _New(each.ms, self.last is not None)
            self.last = now

    def committed(self, each: Happened) -> None:
        """An OffsetFetch is answered."""
        for name, offset in each.event.get("committed", {}).items():
            self.known.add(name)
            if name in self.new:
                self.new[name].committed.append(offset)
                self.new[name].sent_ms = each.ms

    def answered(self, each: Happened) -> None:
        """A Fetch that was sent before the client lost a partition may be of use to it if it has the right offset."""
        request = next((one for one in self.waiting if one.event["connection"] == each.event["connection"]), None)
        if request is None:
            return
        self.waiting.remove(request)
        for name, offset in _offsets(request):
            if name in self.new and offset in self.new[name].committed:
                del self.new[name]

    def fetched(self, each: Happened) -> Iterator[Violation]:
        self.waiting.append(each)
        for name, offset in _offsets(each):
            found = self.new.get(name)
            if found is None:
                continue
            if offset in found.committed or NONE in found.committed:
                del self.new[name]
            elif found.committed and each.earliest_ms > found.sent_ms + RACE_MS:
                del self.new[name]
                right = " or ".join(map(str, found.committed))
                why = f"the client begins to read {name} at {offset}; the committed offset is {right}"
                yield breach(each, why, f"offset {right}", f"offset {offset}", "elsewhere", since_ms=found.sent_ms)
            elif not found.committed and self._is_unasked(name, found, each.earliest_ms):
                del self.new[name]
                why = f"the client reads {name} at {offset}, and did not ask for the offset that others committed"
                yield breach(each, why, f"OffsetFetch for {name}", "none", "not asked", since_ms=found.since_ms)

    def _is_unasked(self, name: str, found: _New, ms: int) -> bool:
        """Whether the program, which does keep its positions in the group, goes on where it once was."""
        return found.after_others and name in self.known and ms > found.since_ms + GRACE_MS


def _offsets(request: Happened) -> Iterator[tuple[str, int]]:
    return zip(request.event.get("partitions", ()), request.event.get("offsets", ()), strict=False)


@impact(
    "A consumer skips records, or reads some again that its group has committed",
    "wrong data",
    "ownership",
    "lost-offsets",
)
@timed("client/starts-at-the-committed-offset", "grp-100", premise=(COMMITTED, FETCHES, RECORDS))
def starts_at_the_committed_offset(history: History) -> Iterator[Violation]:
    """A client begins to read a partition that it did not have before at the offset that the group has committed.

    A program that never asks for committed offsets keeps its positions elsewhere, and is not judged; nor is a partition
    without a committed offset.
    """
    positions = _Positions()
    for each in trace(history):
        positions.follow(each)
        if each.is_answer("OffsetFetch") and not each.in_doubt:
            positions.committed(each)
        elif each.is_answer("Fetch"):
            positions.answered(each)
        elif each.is_request("Fetch"):
            yield from positions.fetched(each)


@impact(
    "A consumer commits records that it never read: after a restart nothing reads them",
    "wrong data",
    "ownership",
    "lost-offsets",
)
@law("client/commits-what-it-read", "grp-101", premise=(COMMITS,))
def commits_what_it_read(history: History) -> Iterator[Violation]:
    """A client commits no offset above its position.

    That is the offset after the last record that it was sent, or the one at which it began to read.
    """
    furthest: dict[str, int] = {}
    for each in trace(history):
        if each.is_request("OffsetCommit"):
            for name, offset in _offsets(each):
                if offset > (right := furthest.get(name, 0)):
                    why = f"the client commits {name} at {offset}, and was sent no record from {right} on"
                    yield breach(each, why, f"at most {right}", f"offset {offset}", "ahead")
        for name, offset in _reached(each):
            furthest[name] = max(offset, furthest.get(name, 0))


@impact(
    "A consumer loses its position in a rebalance, and reads and commits again what it has committed",
    "double processing",
    "ownership",
    "lost-offsets",
)
@timed("client/reads-on", "grp-102", premise=(COMMITS, FETCHES))
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
    for each in trace(history):
        if each.is_answer("OffsetFetch"):
            refused = ("OffsetFetch refused",) if each.error else ()
        if each.what in STARTS or each.is_answer("OffsetForLeaderEpoch") or (each.is_answer("Fetch") and each.error):
            committed.clear()
        elif each.is_answer("OffsetFetch"):
            committed |= dict.fromkeys(each.event.get("committed", {}), (0, each.ms))
        elif each.is_request("OffsetCommit") and each.answered == 0:
            for name, offset in _offsets(each):
                before, ms = committed.get(name, (0, -RACE_MS))
                if each.earliest_ms > ms + RACE_MS:
                    committed[name] = max(before, min(offset, furthest.get(name, 0))), each.ms
        elif each.is_request("Fetch"):
            for name, offset in _offsets(each):
                right, ms = committed.get(name, (0, 0))
                if offset < right and each.earliest_ms > ms + RACE_MS:
                    why = f"the client reads {name} at {offset}, and has committed {right}"
                    owed = f"offset {right} or later"
                    yield breach(each, why, owed, f"offset {offset}", "back", *refused, since_ms=ms)
                    return
        furthest |= {name: max(offset, furthest.get(name, 0)) for name, offset in _reached(each)}


def _reached(each: Happened) -> Iterator[tuple[str, int]]:
    """The offsets that a client may take for its positions after this event, whatever it had before."""
    if each.is_request("Fetch"):
        yield from _offsets(each)
    elif each.is_answer("Fetch"):
        yield from each.event.get("ends", {}).items()
    elif each.is_answer("OffsetFetch"):
        yield from each.event.get("committed", {}).items()
    elif each.is_answer("ListOffsets"):
        yield from each.event.get("offsets", {}).items()
