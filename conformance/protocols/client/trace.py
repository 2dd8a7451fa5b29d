"""The traffic of a script in order, with what the client was a member of at each event."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client.ops import (
    MALFORMED,
    OPERATIONS,
    Answer,
    Kind,
    Late,
    Member,
    Move,
    Pieces,
    Refuse,
    Reset,
    Silent,
    Tags,
    Together,
    Topic,
)

NOT_COORDINATOR: Final = 16
ILLEGAL_GENERATION: Final = 22
UNKNOWN_MEMBER_ID: Final = 25
REBALANCE_IN_PROGRESS: Final = 27
MEMBER_ID_REQUIRED: Final = 79
FENCED_INSTANCE_ID: Final = 82
GROUP_ID_NOT_FOUND: Final = 69
FENCED_MEMBER_EPOCH: Final = 110
FENCING: Final[Mapping[int, str]] = {
    ILLEGAL_GENERATION: "ILLEGAL_GENERATION", UNKNOWN_MEMBER_ID: "UNKNOWN_MEMBER_ID",
    FENCED_INSTANCE_ID: "FENCED_INSTANCE_ID", FENCED_MEMBER_EPOCH: "FENCED_MEMBER_EPOCH",
}  # fmt: skip
"""The errors that end a membership, with their names."""
OF_THE_ID: Final = frozenset({UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, GROUP_ID_NOT_FOUND})
"""The errors after which a member id is worth nothing, whatever generation its request had."""
FATAL: Final = frozenset({23, 24, 26, 29, 30, 31, 35, 42, 81, FENCED_INSTANCE_ID, 111, 112, 128})
"""Errors after which a consumer raises: protocols that do not match, invalid settings, no authorization, and so on."""
OF_GROUPS: Final = frozenset({
    "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "LeaveGroup", "ConsumerGroupHeartbeat",
})  # fmt: skip
"""Requests without which no client is a member that reads, or leaves."""
GRACE_MS: Final = 1000
"""What the client does so long after an answer may precede it."""
RACE_MS: Final = 100
"""So long after an answer a request of another thread or connection may have been written before it was read."""
NEVER: Final = 1 << 60
MISSING: Final[Topic] = "gone"
"""A topic that does not exist."""
INTERVALS_OF_ITS_OWN: Final = 10
"""So many pauses between its attempts, and a session timeout, a client has that returns to its group."""
LATE_MS: Final = 50
"""A breach of a bound in time proves nothing if an idle loop of ours was late by so much meanwhile."""
BY_SCRIPT: Final = "by the script"
"""Why a connection was closed that a script disturbs: the fault is not the client's."""
CONFIRMED: Final = "confirmed"
"""The event that the same law was broken in the same way when a script was played alone, and in time."""
HEARTBEAT: Final = "ConsumerGroupHeartbeat"
"""The only request of groups of KIP-848, but for OffsetCommit; what is a generation elsewhere is an epoch there."""
DAMAGED: Final = "damaged"
"""The event that a record inside a message is damaged: ``live.recording.embedded`` writes it."""
GROUP_REQUESTS: Final = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit"})
"""Those that carry member id and generation."""
ATTEMPTS: Final = frozenset({"FindCoordinator", "JoinGroup", "SyncGroup", HEARTBEAT})
"""The requests by which a client returns to its group."""
WITHOUT_GENERATION: Final = frozenset({"JoinGroup", "LeaveGroup", HEARTBEAT})
"""Requests without a generation; and that of KIP-848, an error to which ends the membership whatever its epoch."""
STARTS: Final = frozenset({"launched", "restarted", "ended", "killed"})
"""Events after which no process of before is left."""


@dataclass(slots=True)
class Membership:
    """A member id and a generation."""

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
    given_up_ms: int | None = None
    """When the client began to take it for over, as far as its requests and their answers show: it sent LeaveGroup, or
    JoinGroup without a member id; or was sent an error that it may or may not have read. None: it is a member for all
    that the client knows."""

    def is_current(self, ms: int) -> bool:
        """Whether it is over for at most the grace."""
        return self.until_ms is None or ms <= self.until_ms + GRACE_MS


@dataclass(slots=True)
class Happened:
    """An event, its step, and the memberships so far, the newest last."""

    step: int
    event: Mapping[str, Any]
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

    @property
    def ms(self) -> int:
        ms: int = self.event["ms"]
        return ms

    @property
    def what(self) -> str:
        what: str = self.event["what"]
        return what

    @property
    def api(self) -> str:
        api: str = self.event["api"]
        return api

    @property
    def error(self) -> int:
        error: int = self.event.get("error", 0)
        return error

    @property
    def gives_other_partitions(self) -> bool:
        """Of an answer: a heartbeat of KIP-848 with all fields is answered with the partitions that the member has."""
        given = self.event.get("partitions")
        return given is not None and (self.now is None or self.now.partitions != frozenset(given))

    @property
    def pipelined(self) -> bool:
        """Whether the request was sent before the answer before it could be read."""
        return bool(self.event.get("pipelined"))

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

    def is_request(self, *apis: str) -> bool:
        return self.what == "request" and (not apis or self.event["api"] in apis)

    def is_answer(self, *apis: str) -> bool:
        return self.what == "answer" and (not apis or self.event["api"] in apis)


@dataclass(slots=True)
class _Reader:
    memberships: list[Membership] = field(default_factory=list)
    in_doubt: bool = False
    shut_out: bool = False

    def read(self, event: Mapping[str, Any], in_doubt: bool) -> None:
        self.in_doubt = in_doubt
        if event["what"] in STARTS:
            self.shut_out = False
            return self.memberships.clear()
        if event["what"] == "request":
            self._sent(event)
        if event["what"] != "answer":
            return
        error, ms = event.get("error", 0), event["ms"]
        if error in FATAL and event["api"] in OF_GROUPS:
            self.shut_out = True
        if event["api"] not in (*GROUP_REQUESTS, "JoinGroup", "LeaveGroup", HEARTBEAT):
            return
        if error in FENCING or error in OF_THE_ID:
            self._fence(event, error, ms)
        elif error:
            return
        elif event["api"] == "LeaveGroup":
            self._end(ms)
        elif event["api"] == "JoinGroup":
            before = self.memberships[-1] if self.memberships else None
            self._end(ms)
            # What it had is taken away by the answer to SyncGroup.
            kept = (
                before.partitions if before is not None and before.until_ms in (ms, None) and not before.error else ()
            )
            self.memberships.append(Membership(event["member"], event["generation"], ms, partitions=frozenset(kept)))
        elif event["api"] == "SyncGroup" and self.memberships:
            now = self.memberships[-1]
            given = frozenset(event["partitions"])
            adopted, unread = "empty" not in event, "unread" in event
            self._renew(Membership(now.member, now.generation, ms, None, ms, given, adopted=adopted, unread=unread))
        elif event["api"] == HEARTBEAT:
            self._beaten(event, ms)

    def _sent(self, event: Mapping[str, Any]) -> None:
        """A request shows whether the client takes itself for a member. One of another thread may be older."""
        now = self.memberships[-1] if self.memberships else None
        if now is None or now.until_ms is not None:
            return
        if event["api"] == "LeaveGroup" or (event["api"] == "JoinGroup" and not event.get("member")):
            now.given_up_ms = event["ms"]
        elif now.given_up_ms is not None and event["api"] in (*GROUP_REQUESTS, "JoinGroup"):
            is_same = event.get("member") == now.member and event.get("generation", now.generation) == now.generation
            if is_same and event["ms"] > now.given_up_ms + RACE_MS and not event.get("pipelined"):
                now.given_up_ms = None

    def _fence(self, event: Mapping[str, Any], error: int, ms: int) -> None:
        """A JoinGroup has no generation, and a LeaveGroup neither: of them the member id says which membership ends.

        An answer to an older request says nothing of the newest membership; but that its member id is worth nothing,
        of which the client need not take notice, nor of an answer that it may not have read.
        """
        newest = self.memberships[-1] if self.memberships else None
        given = event.get("to") or [event.get("member"), -1]
        if newest is None or newest.until_ms is not None or given[0] != newest.member:
            return
        is_of_it = event["api"] in WITHOUT_GENERATION or given[1] == newest.generation
        if is_of_it and error in FENCING:
            self._end(ms, error, event["api"])
        if newest.until_ms is None and (is_of_it or error in OF_THE_ID):
            newest.given_up_ms = ms

    def _beaten(self, event: Mapping[str, Any], ms: int) -> None:
        now = self.memberships[-1] if self.memberships else None
        if event["generation"] < 0:
            return self._end(ms)
        same = now is not None and now.until_ms is None and now.member == event["member"]
        given = event.get("partitions")
        had = now.partitions if same and now is not None else frozenset()
        partitions = had if given is None else frozenset(given)
        if same and now is not None and partitions == had and now.generation == event["generation"]:
            return
        self._renew(Membership(event["member"], event["generation"], ms, None, ms, partitions))

    def _renew(self, found: Membership) -> None:
        self.shut_out = False
        self._end(found.since_ms)
        self.memberships.append(found)

    def _end(self, ms: int, error: int = 0, by: str = "") -> None:
        """Ends what is not over, unless the client may not know it. What is not over is the newest of all."""
        for each in reversed(self.memberships) if not self.in_doubt else ():
            if each.until_ms is not None:
                break
            each.until_ms, each.error, each.ended_by = ms, error, by


def trace(history: History) -> Iterator[Happened]:
    """All events up to the first step without an answer. Memberships change after the event that changes them."""
    reader, events = _Reader(), [*history.actions()]
    closed = {event["connection"]: event["ms"] for _, event in events if event["what"] == "closed"}
    memberships: tuple[Membership, ...] = ()
    unqueued: dict[int, int] = {}
    errors = _errors([event for _, event in events])
    for at, (step, event) in enumerate(events):
        connection, ms = event.get("connection", -1), event["ms"]
        if event["what"] == "request" and not event.get("pipelined"):
            unqueued[connection] = ms
        in_doubt = event["what"] == "answer" and closed.get(event["connection"], NEVER) <= event["ms"] + RACE_MS
        earliest_ms = unqueued.get(connection, ms)
        yield Happened(step, event, memberships, in_doubt, reader.shut_out, earliest_ms, errors.get(at))
        reader.read(event, in_doubt)
        if len(memberships) != len(reader.memberships):  # a client that spins has thousands, which are copied once
            memberships = tuple(reader.memberships)


def _errors(events: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Place of a request -> error code of its answer. Brokers answer the requests of a connection in their order.

    A request that strict decoding refuses is a second event before its own one, unless it cannot be read at all.
    """
    waiting: dict[tuple[int, str], deque[list[int]]] = {}
    refused: dict[tuple[int, str], list[int]] = {}
    found: dict[int, int] = {}
    for at, event in enumerate(events):
        if event["what"] == "refused":
            refused[event["connection"], (event["message"] or "").removesuffix("Request")] = [at]
        elif event["what"] == "request":
            key = event["connection"], event["api"]
            waiting.setdefault(key, deque()).append([at, *refused.pop(key, ())])
        elif event["what"] == "answer":
            key = event["connection"], event["api"]
            places = waiting[key].popleft() if waiting.get(key) else refused.pop(key, [])
            found |= dict.fromkeys(places, event.get("error", 0))
    return found


def longest_absence_ms(
    events: Iterable[Mapping[str, Any]], since_ms: int, until_ms: int, session_ms: int, patience_ms: int
) -> int | None:
    """In what time a client is back in its group that returns at all, as far as it shows: its session timeout and ten
    of its own intervals.

    Its interval is the longest pause between its attempts to return, from ``since_ms`` on; of a client that does not
    try, between its other requests to its group. The pause that lasts counts, as a back-off that grows is longer than
    those before it; but for one whose user states its longest back-off, ``patience_ms``, which counts if it is longer.
    None: it shows no interval.
    """
    apis = ATTEMPTS | GROUP_REQUESTS
    recent = [each for each in events if each["what"] == "request" and each["ms"] >= since_ms and each["api"] in apis]
    times = [each["ms"] for each in recent if each["api"] in ATTEMPTS] or [each["ms"] for each in recent]
    ends = [since_ms, *times, *(() if patience_ms or not times else (until_ms,))]
    pauses = [after - before for before, after in pairwise(ends)]
    interval_ms = max([*pauses, patience_ms])
    return session_ms + INTERVALS_OF_ITS_OWN * interval_ms if interval_ms else None


def was_late(history: History) -> bool:
    """Whether an idle loop of ours was late, so that a breach of a bound in time has to be proven."""
    return any(_is_late(event) for _, event in history.actions())


def is_in_time(history: History, violation: Violation) -> bool:
    """Whether an idle loop of ours was in time from when a bound began until it was broken."""
    if violation.window_ms is None:
        return not was_late(history)
    since_ms, until_ms = violation.window_ms
    return not any(
        _is_late(event) and since_ms <= event["ms"] + LATE_MS and event["ms"] - event["late_ms"] <= until_ms + LATE_MS
        for _, event in history.actions()
    )


def is_proven(history: History, law: str, violation: Violation) -> bool:
    """Whether a breach of a bound in time counts though this machine was late: in another part of the script, or the
    law was broken in this way when a script was played alone, and in time."""
    way = [law, [*violation.shape]]
    confirmed = ([event["law"], event["shape"]] for _, event in history.actions() if event["what"] == CONFIRMED)
    return way in confirmed or is_in_time(history, violation)


def _is_late(event: Mapping[str, Any]) -> bool:
    return bool(event["what"] == "idle" and event["late_ms"] >= LATE_MS)


def has_malformed_member(history: History, step: int) -> bool:
    """Whether another member's metadata cannot be read, since that step or before: then the group is not healthy."""
    members = (each for each in history.case.steps[: step + 1] if each.verb == OPERATIONS.verb_of[Member])
    return any(each.body.get("damage") in MALFORMED for each in members)


def has_missing_topic(history: History, step: int) -> bool:
    """Whether another member subscribes to a topic that does not exist, since that step or before."""
    members = (each for each in history.case.steps[: step + 1] if each.verb == OPERATIONS.verb_of[Member])
    return any(MISSING in each.body["topics"] for each in members)


def disturbance(history: History, step: int, unsent: Kind | None = None) -> tuple[str, ...]:
    """The last step, this one or before, that changed an answer or a connection, as a word of a shape; or none.

    A step whose request the client did not send has changed nothing. ``unsent``: another request that it did not send.
    """
    waited_for = {(at, kind) for at, event in history.actions() for kind in event.get("unsent", ())}
    for at in range(step, -1, -1):
        each = history.case.steps[at]
        event = OPERATIONS.event_of(each)
        kind = getattr(event, "kind", None)
        if kind is not None and (kind == unsent or (at, kind) in waited_for):
            continue
        match event:
            case Answer(_, error):
                return (f"answer {error}",)
            case Refuse(_, refusal):
                return (f"refuse {refusal}",)
            case Reset(_, when):
                return (f"reset {when}",)
            case Late() | Pieces() | Silent() | Together() | Tags() | Move():
                return (each.verb.removeprefix("client-"),)
    return ()
