"""The history of one member, of bounded length.

A history begins where a law could judge a whole one: at a JoinGroup without a member id, or a heartbeat that joins. Of
a member that was there before, it begins with the next JoinGroup that succeeds. Heartbeats and commits that change
nothing are kept once. A history that is too long is replaced by the few events that say the same of its member.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kipcheck.conformance.live.watch.exchanges import EARLIER, OTHER_TYPE, SHARED, UNSEEN, Pending
from kipcheck.conformance.protocols.client.answer_ops import STREAMS
from kipcheck.conformance.protocols.client.events import EVENTS, AnswerSeen, Closed, Event, RequestSeen
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_GROUPS, SURVIVES_SHARES, SURVIVES_STREAMS
from kipcheck.conformance.protocols.client.terms import HEARTBEATS, SHARE_HEARTBEAT
from kipcheck.conformance.protocols.client.trace import generation_of

MOST_EVENTS: Final = 400
MOST_SIZE: Final = 4 << 20
"""Bytes of the requests and answers of a history; what is decoded takes several times as many."""
MOST_BYTES: Final = 4096
"""Of a request that is kept, to be shown."""
CALM_BYTES: Final = 100
"""An exchange that changed nothing has at least so many."""
CALM_MS: Final = 2000
"""A history is shortened where there was no error for so long."""
CONSUMER: Final = "consumer"
CHECKS: Final[Mapping[str, str]] = {STREAMS: SURVIVES_STREAMS, SHARE_HEARTBEAT: SURVIVES_SHARES}
"""Heartbeat -> the check whose laws its member is judged by."""


@dataclass(frozen=True, slots=True)
class Member:
    """Who a history is about, as it is shown."""

    group: str
    client_id: str
    host: str
    software: str


@dataclass(slots=True)
class Track:
    about: Member
    pending: Pending
    events: list[Event] = field(default_factory=list)
    payloads: dict[int, bytes] = field(default_factory=dict)
    """The bytes of requests, by the ``id`` of their event."""
    connections: set[int] = field(default_factory=set)
    ids: list[str] = field(default_factory=list)
    """The last member ids."""
    check: str = SURVIVES_GROUPS
    """The check whose laws it is judged by."""
    begun: bool = False
    not_begun: str = EARLIER
    """Why it has not begun, if it has not."""
    judged_type: bool = True
    """Whether the protocol type is that of consumers: the laws are about no others."""
    shared: bool = False
    """Whether another member used its connection or its id: then no request has a certain sender."""
    dirty_ms: int | None = None
    """When the first event came that was not judged yet."""
    last_ms: int = 0
    errors_ms: int = -(1 << 40)
    waiting: int = 0
    """Group requests without an answer."""
    size: int = 0
    """Bytes of the requests and answers of ``events``, about."""
    reported: dict[tuple[str, tuple[str, ...]], int | None] = field(default_factory=dict)
    """What was reported of it: law and shape -> place among all that is in the reports. None: it is beyond their
    limits."""
    shortened: int = 0
    counted: frozenset[str] = frozenset()
    """The laws that read something of it; empty until it is judged for the first time."""
    _join: RequestSeen | None = None
    _joining: RequestSeen | None = None
    """The last heartbeat that joined (KIP-848)."""
    _joined: AnswerSeen | None = None
    _synced: AnswerSeen | None = None
    _beats: list[AnswerSeen] = field(default_factory=list)
    """The last two answers to heartbeats of KIP-848 with another epoch or assignment."""
    _assigned: dict[str, None] = field(default_factory=dict)
    """What it was assigned since it joined (KIP-848)."""
    _calm: list[tuple[RequestSeen, AnswerSeen]] = field(default_factory=list)
    """Exchanges at the end of the history that changed nothing."""

    @property
    def member(self) -> str:
        return self.ids[-1] if self.ids else ""

    @property
    def is_judged(self) -> bool:
        return not self.unjudged

    @property
    def unjudged(self) -> str:
        """Why it is not judged; empty if it is."""
        return SHARED if self.shared else OTHER_TYPE if not self.judged_type else "" if self.begun else self.not_begun

    def reset(self, reason: str = UNSEEN) -> None:
        """Something was not seen: the history begins anew, with the next JoinGroup that succeeds."""
        self.pending.leave(reason)
        self.not_begun = reason
        self.begun, self.waiting, self.dirty_ms = False, 0, None
        self.events.clear()
        self.payloads.clear()
        self._calm.clear()
        self._join = self._joining = self._joined = self._synced = None
        self._beats.clear()
        self._assigned.clear()
        self.size = 0

    # Requests

    def asked(self, event: RequestSeen, payload: bytes) -> None:
        if event.api == "JoinGroup":
            self._join = event
            self.judged_type = event.type in (None, CONSUMER)
        if event.api in HEARTBEATS and event.generation == 0:
            self._joining, self.check = event, CHECKS.get(event.api, SURVIVES_GROUPS)
        if self._begins(event):
            self.begun = True
        if not self.begun:
            return
        self.waiting += 1
        self._add(event, payload)
        self.size += len(payload)
        if not self._is_plain_request(event):
            self.mark(event.ms)
            self._calm.clear()

    def _begins(self, event: RequestSeen) -> bool:
        if event.api == "JoinGroup":
            return not self.begun and not event.member
        return not self.begun and event.api in HEARTBEATS and event.generation == 0

    def _is_plain_request(self, event: RequestSeen) -> bool:
        """Whether no law speaks of it: it names the member as the last answer did."""
        if event.pipelined or self.waiting > 1:
            return False
        if event.api in HEARTBEATS:
            last = self._beats[-1] if self._beats else None
            is_short = event.owned is None and event.topics is None and event.regex is None
            return last is not None and event.carried == last.given and is_short
        if event.api not in ("Heartbeat", "OffsetCommit") or self._joined is None or self._synced is None:
            return False
        same = event.instance == (None if self._join is None else self._join.instance)
        assigned = {*(self._synced.partitions or ())}
        return event.carried == self._joined.given and same and {*(event.partitions or ())} <= assigned

    # Answers

    def answered(self, event: AnswerSeen, request: RequestSeen | None, size: int) -> bool:
        """Whether no law has more to say of the exchange: it changed nothing. ``size``: bytes of the answer."""
        if not self.begun:
            self._resume(event)
            return False
        self.waiting = max(0, self.waiting - 1)
        self.size += size
        self._add(event)
        self._learn(event)
        if request is not None and self._is_plain_answer(event, request):
            self._fold(request, event)
            return True
        self._calm.clear()
        self.mark(event.ms)
        return False

    def _learn(self, event: AnswerSeen) -> None:
        if event.error:
            self.errors_ms = event.ms
        if event.member and event.member not in self.ids[-1:]:
            self.ids = [*self.ids[-3:], event.member]
        match event.api:
            case "JoinGroup" if not event.error:
                self._joined, self._synced = event, None
            case "SyncGroup" if not event.error:
                self._synced = event
            case "LeaveGroup":
                self._joined = self._synced = None
            case api if api in HEARTBEATS and not event.error:
                self._beaten(event)

    def _beaten(self, event: AnswerSeen) -> None:
        last = self._beats[-1] if self._beats else None
        if generation_of(event) <= 0:
            self._beats.clear()
            self._assigned.clear()
        elif last is None or event.partitions is not None or last.generation != event.generation:
            assigned = event.partitions if event.partitions is not None else (last and last.partitions) or ()
            self._beats = [*self._beats[-1:], replace(event, partitions=assigned)]
            self._assigned.update(dict.fromkeys(assigned))

    def _is_plain_answer(self, event: AnswerSeen, request: RequestSeen) -> bool:
        plain = len(self.events) > 1 and self.events[-2] is request and not event.error
        return plain and self._is_plain_request(request) and event.partitions is None

    def _fold(self, request: RequestSeen, answer: AnswerSeen) -> None:
        """Forgets an earlier exchange of that kind, if nothing else came since."""
        before = next((pair for pair in self._calm if pair[0].api == request.api), None)
        if before is not None:
            for event in before:
                self._drop(event)
            self.size -= CALM_BYTES
            self._calm.remove(before)
        self._calm.append((request, answer))

    def _drop(self, event: Event) -> None:
        at = next((at for at in range(len(self.events) - 1, -1, -1) if self.events[at] is event), None)
        if at is not None:
            del self.events[at]
        self.payloads.pop(id(event), None)

    def _resume(self, event: AnswerSeen) -> None:
        """A member that was there before is known from a successful JoinGroup on."""
        if event.api == "JoinGroup" and not event.error and self._join is not None:
            self.begun = True
            self.events += [_nameless(self._join, event.ms), event]
            self.mark(event.ms)
            self._learn(event)

    # Connections

    def happened(self, event: Closed) -> None:
        """A connection was closed."""
        if self.begun:
            self._add(event)
            self._calm.clear()

    def mark(self, ms: int) -> None:
        self.dirty_ms = ms if self.dirty_ms is None else self.dirty_ms

    # Bounds

    def _add(self, event: Event, payload: bytes = b"") -> None:
        self.events.append(event)
        if payload and len(payload) <= MOST_BYTES:
            self.payloads[id(event)] = payload
        self.last_ms = event.ms

    def shorten(self) -> None:
        """Makes a long history short; call it after it was judged."""
        if len(self.events) < MOST_EVENTS and self.size < MOST_SIZE:
            return
        shared = unanswered(self.events)
        is_calm = self.waiting <= len(shared) and self.last_ms > self.errors_ms + CALM_MS
        kept = self._essence() if is_calm else None
        if kept is not None and self._beats:
            kept += [AnswerSeen(self.last_ms, -1, "ShareFetch", acquired=outstanding(self.events)), *shared]
        self.shortened += 1
        if kept is None:
            if len(self.events) >= 4 * MOST_EVENTS or self.size >= 4 * MOST_SIZE:
                self.reset()
            return
        self.events[:] = kept
        self.size = sum(len(repr(EVENTS.to_json(event))) for event in kept)
        self.payloads.clear()
        self._calm.clear()

    def _essence(self) -> list[Event] | None:
        """The events that say the same of a stable member; None if it is none."""
        ms = self.last_ms
        offered = [event for event in self.events if isinstance(event, AnswerSeen) and event.api == "ApiVersions"][-1:]
        if self._beats and self._joining is not None:
            last = self._beats[-1]
            join = replace(self._joining, ms=ms, connection=last.connection, member=last.member, owned=())
            first = replace(self._beats[0], ms=ms, partitions=tuple(self._assigned))
            return [*offered, join, first, replace(last, ms=ms)]
        if self._join is None or self._joined is None or self._synced is None:
            return None
        joined = replace(self._joined, ms=ms, members=None, sizes=None)
        return [*offered, _nameless(self._join, ms), joined, replace(self._synced, ms=ms)]


def unanswered(traffic: list[Event]) -> list[RequestSeen]:
    """The requests of share sessions whose answer did not come yet: one of a connection, which is still open."""
    waiting: dict[int, RequestSeen] = {}
    for event in traffic:
        match event:
            case RequestSeen() if event.session_epoch is not None:
                waiting[event.connection] = event
            case AnswerSeen() | Closed() if event.connection in waiting:
                del waiting[event.connection]
    return [*waiting.values()]


def outstanding(traffic: list[Event]) -> tuple[tuple[str, int, int], ...]:
    """What a share consumer acquired, and did not acknowledge, of these events."""
    left = list[tuple[str, int, int]]()
    for event in traffic:
        match event:
            case AnswerSeen():
                left += event.acquired or ()
            case RequestSeen():
                for name, first, last, kind in event.acknowledged or () if event.session_epoch is not None else ():
                    left = (
                        [part for each in left for part in _without(each, (name, first, last))] if kind != 4 else left
                    )
    return tuple(left)


def _without(records: tuple[str, int, int], gone: tuple[str, int, int]) -> list[tuple[str, int, int]]:
    """A range of offsets of a partition without those of another."""
    (name, first, last), (other, begin, end) = records, gone
    if name != other or end < first or begin > last:
        return [records]
    parts = (name, first, begin - 1), (name, end + 1, last)
    return [part for part in parts if part[1] <= part[2]]


def _nameless(join: RequestSeen, ms: int) -> RequestSeen:
    """A JoinGroup as of a new member: what it was before is not judged."""
    return replace(join, ms=ms, member=None, subscriptions=(None,) * len(join.subscriptions or ()))
