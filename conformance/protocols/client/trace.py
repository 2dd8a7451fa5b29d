"""The traffic of a script in order, with what the client was a member of at each event."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Generic, TypeGuard, TypeVar

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import events, log_ops, ops, terms
from kipcheck.conformance.protocols.client.ops import MALFORMED, OPERATIONS, Kind

E_co = TypeVar("E_co", bound=events.Event, covariant=True)
MOST_MEMBERSHIPS: Final = 100
"""Laws compare each request with them: with all that a client had that spins, a run took minutes."""
STARTS: Final = (events.Launched, events.Restarted, events.Ended, events.Killed)
"""Events after which no process of before is left."""
OVER: Final = (*STARTS, events.Signalled)
"""The same, and the signal to end."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A member id and a generation, as they are at an event."""

    member: str
    generation: int
    since_ms: int
    until_ms: int | None = None
    """When the client was sent that it is over; None: it is not."""
    synced_ms: int | None = None
    partitions: frozenset[str] = frozenset()
    error: int = 0
    """The error that ended it; 0: a newer one did, or the client left."""
    ended_by: str = ""
    """The request that was answered with that error."""
    adopted: bool = True
    """Whether the assignment has bytes. A client need not take one without."""
    unread: bool = False
    """Whether its partitions are unknown, since its bytes are damaged."""
    has_epoch: bool = False
    """Whether it is one by heartbeats with epochs (KIP-848)."""
    given_up_ms: int | None = None
    """When the client began to take it for over, as far as its requests and their answers show: it sent LeaveGroup, or
    JoinGroup without a member id; or was sent an error that it may or may not have read. None: it is a member for all
    that the client knows."""

    @property
    def carried(self) -> tuple[str, int]:
        """Member id and generation, as requests carry them."""
        return self.member, self.generation

    def is_current(self, ms: int) -> bool:
        """Whether it is over for at most the grace."""
        return self.until_ms is None or ms <= self.until_ms + terms.GRACE_MS


@dataclass(frozen=True, slots=True)
class TracedEvent(Generic[E_co]):
    """An event, its step, and the memberships so far, the newest last."""

    step: int
    event: E_co
    memberships: tuple[Membership, ...]
    in_doubt: bool = False
    """Of an answer: its connection ended so early after it that the client need not have read it."""
    shut_out: bool = False
    """Whether a request of ``OF_GROUPS`` was answered with a fatal error, and the client was assigned nothing since."""
    earliest_ms: int = 0
    """Of a request: when it may have been sent at the earliest. One that waits behind another one is read late, and may
    have been sent when that one was read."""
    answered: int | None = None
    """Of a request: the error code of its answer, 0 for none. None: no answer came."""
    stopped: bool = False
    """Whether the process is stopped, or goes on just now: it owes nothing, and what it sends it wrote before."""
    place: int = 0
    """Among the events of its step."""

    @property
    def ms(self) -> int:
        return self.event.ms

    @property
    def error(self) -> int:
        """Of an answer: its error code, 0 for none; of another event 0."""
        return self.event.error or 0 if isinstance(self.event, events.AnswerSeen) else 0

    @property
    def gives_other_partitions(self) -> bool:
        """Of an answer: a heartbeat of KIP-848 with all fields is answered with the partitions that the member has."""
        if not isinstance(self.event, events.AnswerSeen) or self.event.partitions is None:
            return False
        return self.now is None or self.now.partitions != frozenset(self.event.partitions)

    @property
    def connection(self) -> int:
        """-1: the event is not about a connection."""
        return connection_of(self.event)

    @property
    def now(self) -> Membership | None:
        """The membership that is not over."""
        last = self.memberships[-1] if self.memberships else None
        return last if last is not None and last.until_ms is None else None

    @property
    def certain(self) -> Membership | None:
        """The same, if the client cannot take it for over: what only members owe is owed by this one."""
        now = self.now
        return now if now is not None and now.given_up_ms is None else None


def is_request(traced: TracedEvent[events.Event], *apis: str) -> TypeGuard[TracedEvent[events.RequestSeen]]:
    """Whether it is a request, of one of these APIs if there are any."""
    event = traced.event
    return isinstance(event, events.RequestSeen) and (not apis or event.api in apis)


def is_answer(traced: TracedEvent[events.Event], *apis: str) -> TypeGuard[TracedEvent[events.AnswerSeen]]:
    event = traced.event
    return isinstance(event, events.AnswerSeen) and (not apis or event.api in apis)


def has_failed(traced: TracedEvent[events.Event]) -> bool:
    """Whether a request or a connection fails, or the process ends."""
    return bool(traced.error) or isinstance(traced.event, (events.Closed, *OVER))


def connection_of(event: events.Event) -> int:
    connection: int = getattr(event, "connection", -1)
    return connection


@dataclass(slots=True)
class _Reader:
    memberships: tuple[Membership, ...] = ()
    """The last ``MOST_MEMBERSHIPS``."""
    in_doubt: bool = False
    shut_out: bool = False

    @property
    def newest(self) -> Membership | None:
        return self.memberships[-1] if self.memberships else None

    def read(self, event: events.Event, in_doubt: bool) -> None:
        self.in_doubt = in_doubt
        match event:
            case events.RequestSeen():
                self._sent(event)
            case events.AnswerSeen():
                self._answered(event)
            case events.Launched() | events.Restarted() | events.Ended() | events.Killed():
                self.shut_out = False
                self.memberships = ()

    def _answered(self, event: events.AnswerSeen) -> None:
        error, ms = event.error or 0, event.ms
        if error in terms.FATAL and event.api in terms.OF_GROUPS:
            self.shut_out = True
        if event.api not in (*terms.GROUP_REQUESTS, "JoinGroup", "LeaveGroup", *terms.HEARTBEATS):
            return
        newest = self.newest
        if error in terms.FENCING or error in terms.OF_THE_ID:
            self._fence(event, error)
        elif error:
            return
        elif event.api == "LeaveGroup":
            self._end(ms)
        elif event.api == "JoinGroup":
            self._end(ms)
            # What it had is taken away by the answer to SyncGroup.
            kept = newest is not None and newest.until_ms in (ms, None) and not newest.error
            partitions = newest.partitions if kept and newest is not None else frozenset[str]()
            self._add(Membership(event.member or "", generation_of(event), ms, partitions=partitions))
        elif event.api == "SyncGroup" and newest is not None:
            given = frozenset(event.partitions or ())
            renewed = Membership(newest.member, newest.generation, ms, None, ms, given)
            self._renew(replace(renewed, adopted=not event.empty, unread=event.unread))
        elif event.api in terms.HEARTBEATS:
            self._beaten(event)

    def _sent(self, event: events.RequestSeen) -> None:
        """A request shows whether the client takes itself for a member. One of another thread may be older."""
        now = self.newest
        if now is None or now.until_ms is not None:
            return
        if event.api == "LeaveGroup" or (event.api == "JoinGroup" and not event.member):
            self._give_up(event.ms)
        elif now.given_up_ms is not None and event.api in (*terms.GROUP_REQUESTS, "JoinGroup"):
            is_same = event.member == now.member and event.generation in (None, now.generation)
            if is_same and event.ms > now.given_up_ms + terms.RACE_MS and not event.pipelined:
                self._give_up(None)

    def _fence(self, event: events.AnswerSeen, error: int) -> None:
        """A JoinGroup has no generation, and a LeaveGroup neither: of them the member id says which membership ends.

        An answer to an older request says nothing of the newest membership; but that its member id is worth nothing,
        of which the client need not take notice, nor of an answer that it may not have read.
        """
        newest = self.newest
        member, generation = event.to or (event.member, -1)
        if newest is None or newest.until_ms is not None or member != newest.member:
            return
        is_of_it = event.api in terms.WITHOUT_GENERATION or generation == newest.generation
        if is_of_it and error in terms.FENCING:
            self._end(event.ms, error, event.api)
        is_over = self.memberships[-1].until_ms is not None
        if not is_over and (is_of_it or error in terms.OF_THE_ID):
            self._give_up(event.ms)

    def _beaten(self, event: events.AnswerSeen) -> None:
        now, epoch = self.newest, generation_of(event)
        if epoch < 0:
            return self._end(event.ms)
        if now is not None and (now.until_ms is not None or now.member != event.member):
            now = None
        had = frozenset[str]() if now is None else now.partitions
        partitions = had if event.partitions is None else frozenset(event.partitions)
        if now is not None and partitions == had and now.generation == epoch:
            return
        renewed = Membership(event.member or "", epoch, event.ms, None, event.ms, partitions)
        self._renew(replace(renewed, has_epoch=True))

    def _renew(self, membership: Membership) -> None:
        self.shut_out = False
        self._end(membership.since_ms)
        self._add(membership)

    def _end(self, ms: int, error: int = 0, by: str = "") -> None:
        """Ends what is not over, unless the client may not know it. What is not over is the newest of all."""
        if self.in_doubt:
            return
        over = len(self.memberships)
        while over and self.memberships[over - 1].until_ms is None:
            over -= 1
        ended = (replace(each, until_ms=ms, error=error, ended_by=by) for each in self.memberships[over:])
        self.memberships = (*self.memberships[:over], *ended)

    def _add(self, membership: Membership) -> None:
        self.memberships = (*self.memberships, membership)[-MOST_MEMBERSHIPS:]

    def _give_up(self, given_up_ms: int | None) -> None:
        """When the client began to take the newest one for over."""
        self.memberships = (*self.memberships[:-1], replace(self.memberships[-1], given_up_ms=given_up_ms))


def generation_of(event: events.RequestSeen | events.AnswerSeen) -> int:
    """Generation or epoch; -1: it has none."""
    return -1 if event.generation is None else event.generation


def session_of(event: events.RequestSeen, otherwise: int = terms.SESSION_MS) -> int:
    """The session timeout of a JoinGroup."""
    return otherwise if event.session_ms is None else event.session_ms


@cached_on_history
def events_of(history: History) -> tuple[tuple[int, events.Event], ...]:
    """The events up to the first step without an answer, each with its step."""
    return tuple((step, parsed(action)) for step, action in history.actions())


def parsed(action: Mapping[str, Any] | events.Event) -> events.Event:
    """The event of its JSON. Histories that are only judged, and never written, have events themselves."""
    return events.EVENTS.from_json(action) if isinstance(action, Mapping) else action


@cached_on_history
def trace(history: History) -> tuple[TracedEvent[events.Event], ...]:
    """All events up to the first step without an answer. Memberships change after the event that changes them; of a
    client that joins again and again they are the last ``MOST_MEMBERSHIPS``."""
    found: list[TracedEvent[events.Event]] = []
    reader = _Reader()
    unqueued: dict[int, int] = {}
    stops = stops_of(history)
    closed, errors = _closed_and_errors(history)
    first, last_step = 0, -1
    for at, (step, event) in enumerate(events_of(history)):
        if step != last_step:
            first, last_step = at, step
        connection, ms = connection_of(event), event.ms
        if isinstance(event, events.RequestSeen) and not event.pipelined:
            unqueued[connection] = ms
        in_doubt = isinstance(event, events.AnswerSeen) and closed.get(connection, terms.NEVER) <= ms + terms.RACE_MS
        earliest_ms = unqueued.get(connection, ms)
        stopped = any(begin <= ms <= end for begin, end in stops)
        state = reader.memberships, in_doubt, reader.shut_out
        found.append(TracedEvent(step, event, *state, earliest_ms, errors.get(at), stopped, at - first))
        reader.read(event, in_doubt)
    return tuple(found)


@cached_on_history
def stops_of(history: History) -> tuple[tuple[int, int], ...]:
    """When the process was stopped, and when it went on, each time."""
    found: list[tuple[int, int]] = []
    for _, event in events_of(history):
        if isinstance(event, events.Frozen):
            found.append((event.ms, terms.NEVER))
        elif isinstance(event, (events.Thawed, *STARTS)) and found:
            found[-1] = found[-1][0], min(found[-1][1], event.ms)
    return tuple(found)


def was_stopped(history: History, violation: Violation) -> bool:
    """Whether the process was stopped while a bound in time ran: that time is none of its own."""
    if violation.window_ms is None:
        return False
    since_ms, until_ms = violation.window_ms
    return any(begin <= until_ms and since_ms < end for begin, end in stops_of(history))


@cached_on_history
def _closed_and_errors(history: History) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """When each connection was closed; and the place of a request -> error code of its answer. Brokers answer the
    requests of a connection in their order.

    A request that strict decoding refuses is a second event before its own one, unless it cannot be read at all.
    """
    closed: dict[int, int] = {}
    waiting: dict[tuple[int, str], deque[list[int]]] = {}
    refused: dict[tuple[int, str], list[int]] = {}
    errors: dict[int, int] = {}
    for at, (_, event) in enumerate(events_of(history)):
        match event:
            case events.Closed():
                closed[event.connection] = event.ms
            case events.RequestRefused():
                refused[event.connection, event.api] = [at]
            case events.RequestSeen():
                key = event.connection, event.api
                waiting.setdefault(key, deque()).append([at, *refused.pop(key, ())])
            case events.AnswerSeen():
                key = event.connection, event.api
                places = waiting[key].popleft() if waiting.get(key) else refused.pop(key, [])
                errors |= dict.fromkeys(places, event.error or 0)
    return closed, errors


def longest_absence_ms(
    traffic: Iterable[events.Event], since_ms: int, until_ms: int, session_ms: int, patience_ms: int
) -> int | None:
    """In what time a client is back in its group that returns at all, as far as it shows: its session timeout and ten
    of its own intervals.

    Its interval is the longest pause between its attempts to return, from ``since_ms`` on; of a client that does not
    try, between its other requests to its group. The pause that lasts counts, as a back-off that grows is longer than
    those before it; but for one whose user states its longest back-off, ``patience_ms``, which counts if it is longer.
    None: it shows no interval.
    """
    apis = terms.ATTEMPTS | terms.GROUP_REQUESTS
    requests = (event for event in traffic if isinstance(event, events.RequestSeen) and event.ms >= since_ms)
    recent = [request for request in requests if request.api in apis]
    times = [request.ms for request in recent if request.api in terms.ATTEMPTS] or [request.ms for request in recent]
    ends = [since_ms, *times, *(() if patience_ms or not times else (until_ms,))]
    pauses = [after - before for before, after in pairwise(ends)]
    interval_ms = max([*pauses, patience_ms])
    return session_ms + terms.INTERVALS_OF_ITS_OWN * interval_ms if interval_ms else None


def was_late(history: History) -> bool:
    """Whether an idle loop of ours was late, so that a breach of a bound in time has to be proven."""
    return bool(_late(history))


def is_in_time(history: History, violation: Violation) -> bool:
    """Whether an idle loop of ours was in time from when a bound began until it was broken."""
    if violation.window_ms is None:
        return not was_late(history)
    since_ms, until_ms = violation.window_ms
    late = _late(history)
    first = bisect_left(late, since_ms, key=lambda span: span[1])  # the first one that ends in the window or after it
    return first == len(late) or late[first][0] > until_ms


def is_proven(history: History, law: str, violation: Violation) -> bool:
    """Whether a breach of a bound in time counts though this machine was late: in another part of the script, or the
    law was broken in this way when a script was played alone, and in time."""
    ways = {(event.law, event.shape) for _, event in events_of(history) if isinstance(event, events.Confirmed)}
    return (law, violation.shape) in ways or is_in_time(history, violation)


@cached_on_history
def _late(history: History) -> Sequence[tuple[int, int]]:
    """When an idle loop of ours was late, in ms, with a margin: in their order, none in the middle of another."""
    spans: list[tuple[int, int]] = []
    for _, event in events_of(history):
        if isinstance(event, events.Idle) and event.late_ms >= terms.LATE_MS:
            begin, end = event.ms - event.late_ms - terms.LATE_MS, event.ms + terms.LATE_MS
            while spans and begin <= spans[-1][1]:
                before = spans.pop()
                begin, end = min(begin, before[0]), max(end, before[1])
            spans.append((begin, end))
    return spans


def has_malformed_member(history: History, step: int) -> bool:
    """Whether another member's metadata cannot be read, since that step or before: then the group is not healthy."""
    members = (each for each in history.case.steps[: step + 1] if each.verb == OPERATIONS.verb_of[ops.Member])
    return any(each.body.get("damage") in MALFORMED for each in members)


def has_missing_topic(history: History, step: int) -> bool:
    """Whether a member subscribes to a topic that does not exist, or did not, since that step or before."""
    steps = history.case.steps[: step + 1]
    others = (each for each in steps if each.verb == OPERATIONS.verb_of[ops.Member])
    return has_deleted_topic(history, step) or any(terms.MISSING in each.body["topics"] for each in others)


def has_deleted_topic(history: History, step: int) -> bool:
    """Whether a topic that the client may read was deleted, in that step or before."""
    return any(each.verb == OPERATIONS.verb_of[log_ops.Delete] for each in history.case.steps[: step + 1])


def disturbance(history: History, step: int, unsent: Kind | None = None) -> tuple[str, ...]:
    """The last step, this one or before, that changed an answer or a connection, as a word of a shape; or none.

    A step whose request the client did not send has changed nothing. ``unsent``: another request that it did not send.
    """
    sent = {event.api: at for at, event in events_of(history) if isinstance(event, events.RequestSeen)}
    ends = ((at, event) for at, event in events_of(history) if isinstance(event, events.Settled | events.Unsettled))
    waited_for = {(at, kind) for at, event in ends for kind in event.unsent}
    for at in range(step, -1, -1):
        each = history.case.steps[at]
        event = OPERATIONS.event_of(each)
        kind, time = getattr(event, "kind", None), getattr(event, "at", "now")
        is_prepared = time != "now"
        if time == "start" and isinstance(OPERATIONS.event_of(history.case.steps[step]), ops.Restart):
            continue  # what ends there ended before the program is started again
        if kind is not None and (
            kind == unsent or (at, kind) in waited_for or (is_prepared and sent.get(kind, -1) < at)
        ):
            continue
        match event:
            case ops.Answer(_, error):
                return (f"answer {error}",)
            case ops.Refuse(_, refusal):
                return (f"refuse {refusal}",)
            case ops.Reset(_, when):
                return (f"reset {when}",)
            case ops.Late() | ops.Pieces() | ops.Silent() | ops.Together() | ops.Tags() | ops.Throttle():
                return (each.verb.removeprefix("client-"),)
            case ops.Move() | ops.Down() | ops.Disband():
                return (each.verb.removeprefix("client-"),)
            case log_ops.Delete() | log_ops.Trim() | log_ops.Elect() | log_ops.Lags():
                return (each.verb.removeprefix("client-"),)
    return ()


def repeated_disturbance(history: History, step: int) -> tuple[str, ...]:
    """The same, if that step takes nodes down or changes several answers in a row; else none."""
    for at in range(step, -1, -1):
        event = OPERATIONS.event_of(history.case.steps[at])
        if isinstance(event, ops.Down) or getattr(event, "times", 1) > 1:
            return disturbance(history, at)
        if hasattr(event, "kind"):
            break
    return ()
