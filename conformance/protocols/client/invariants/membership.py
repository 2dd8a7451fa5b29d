"""Laws of being a member: heartbeats, fencing, recovery and the end."""

import signal
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client.consequences import after_a_fault, after_closing
from kipcheck.conformance.protocols.client.invariants.law import breach, law, timed
from kipcheck.conformance.protocols.client.ops import OPERATIONS, held_ms
from kipcheck.conformance.protocols.client.premises import (
    BEATS_EITHER_WAY,
    ENDED,
    ENDS,
    FENCED_INSTANCE,
    HAS_INTERVAL,
    JOINED,
    MEMBERSHIP_OVER,
    MOVED,
    REQUEST,
    SIGNALLED,
    SYNCED,
    WAITED_FOR,
)
from kipcheck.conformance.protocols.client.trace import (
    ATTEMPTS,
    FATAL,
    FENCED_INSTANCE_ID,
    GRACE_MS,
    GROUP_REQUESTS,
    HEARTBEAT,
    NEVER,
    NOT_COORDINATOR,
    RACE_MS,
    STARTS,
    Happened,
    disturbance,
    has_malformed_member,
    has_missing_topic,
    longest_absence_ms,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 50

SESSION_MS: Final = 3000
"""Where a JoinGroup names none."""
INTERVALS: Final = 4
MOST_BEATS: Final = {"Heartbeat": 3, HEARTBEAT: 2}
"""In a heartbeat interval, on average of ``INTERVALS``. One of KIP-848 comes early only to say what is new."""
SOON_MS: Final = 10_000


@impact(
    "A consumer that was removed from its group goes on as if it were a member",
    "double processing",
    "identity",
    "stuck-group",
)
@timed("client/stops-when-fenced", "grp-64", premise=(MEMBERSHIP_OVER,))
def stops_when_fenced(history: History) -> Iterator[Violation]:
    """A second after it was sent that its membership is over, a member sends no request with that id and generation.

    Commits right before it joins again, or leaves, are refused, and do not show that it goes on: Kafka's own consumer
    up to 0.10.0 sends them too, since ILLEGAL_GENERATION did not reset its generation.
    """
    last: list[Violation] = []
    committed_ms = -GRACE_MS
    for each in trace(history):
        if each.is_answer("OffsetCommit"):
            committed_ms = each.ms
        if not each.is_request(*GROUP_REQUESTS, "JoinGroup", "LeaveGroup"):
            continue
        if each.ms > committed_ms + GRACE_MS or each.api not in ("OffsetCommit", "JoinGroup", "LeaveGroup"):
            yield from last
        if each.api != "OffsetCommit" or each.ms > committed_ms + GRACE_MS:
            last.clear()
        found = _after_its_end(each)
        if each.api == "OffsetCommit":
            committed_ms = each.ms
            last += found
        else:
            yield from found
    yield from last


def _after_its_end(each: Happened) -> list[Violation]:
    """The breach of a request whose membership was over for more than the grace; nothing for another request."""
    given = each.event.get("member"), each.event.get("generation")
    same = [one for one in each.memberships if (one.member, one.generation) == given]
    if not (each.api in GROUP_REQUESTS and same) or any(one.is_current(each.ms) for one in same):
        return []
    ended_ms = max(one.until_ms or 0 for one in same)
    why = f"{each.ms - ended_ms} ms after its membership ended, the client sends {each.api} with it"
    wanted, found = "no request with that generation", f"generation {given[1]}"
    return [breach(each, why, wanted, found, each.api, "fenced", since_ms=ended_ms)]


def _answer_cut_off(history: History, step: int) -> tuple[str, ...]:
    """A word of a shape, if the last disturbance ended a connection in the middle of an answer."""
    cause = disturbance(history, step)
    return cause if cause == ("reset amid",) else ()


@impact("A consumer stops its heartbeats, and is removed from its group", "stuck group", "gating", "stuck-group")
@timed("client/beats", "grp-69", premise=(SYNCED,), follows=after_closing)
def beats(history: History) -> Iterator[Violation]:
    """A stable member sends a heartbeat, or another request of its group, before its session ends.

    A request that is answered NOT_COORDINATOR is no sign of life: no coordinator took it. A client that sent
    LeaveGroup, or JoinGroup without a member id, takes itself for no member. One that sent JoinGroup is no stable
    member: its session does not end before the coordinator has answered, and ``client/comes-back`` judges its retries.
    What is sent behind a request that is never answered is never read, so the time until its connection is closed
    shows no silence.
    """
    last, session_ms, closes, joins_ms = -1, SESSION_MS, False, -1
    unanswered: list[Happened] = []
    stuck = _closed_unanswered(history)
    for each in trace(history):
        now = each.certain
        if each.what == "closed" and (each.ms, each.event["connection"]) in stuck:
            last = each.ms
        if each.is_request("JoinGroup"):
            session_ms, joins_ms = each.event.get("session_ms", SESSION_MS), each.ms
        if each.is_request(HEARTBEAT):
            return  # sessions of KIP-848 are a matter of the broker
        closes = (closes or each.what == "signalled") and each.what not in STARTS
        is_stable = now is not None and now.synced_ms is not None and now.synced_ms >= joins_ms
        if now is None or not is_stable or closes or each.shut_out or each.what in STARTS:
            last = each.ms
            unanswered.clear()
            continue
        last = max(last, now.synced_ms or 0)
        silent_ms = each.ms - max([last, *(request.ms for request in unanswered)])
        if silent_ms > session_ms:
            why = f"a stable member sent nothing to its group for {silent_ms} ms"
            cut_off = _answer_cut_off(history, each.step)
            bound, since_ms = f"a heartbeat within {session_ms} ms", each.ms - silent_ms
            yield breach(each, why, bound, "none", "no heartbeat", *cut_off, since_ms=since_ms)
            return
        if each.is_request(*GROUP_REQUESTS):
            unanswered.append(each)
        elif each.is_answer(*GROUP_REQUESTS):
            request = taken(unanswered, each)
            if request is not None and each.error != NOT_COORDINATOR:
                last = max(last, request.ms)


def _closed_unanswered(history: History) -> set[tuple[int, int]]:
    """When a connection to the group was closed on which a request waited for its answer, and the connection."""
    waiting: Counter[int] = Counter()
    of_group: set[int] = set()
    found = set()
    for each in trace(history):
        connection = each.event.get("connection", -1)
        if each.is_request():
            waiting[connection] += 1
            of_group |= {connection} if each.api in GROUP_REQUESTS else set()
        elif each.is_answer():
            waiting[connection] = max(waiting[connection] - 1, 0)
        elif each.what == "closed" and waiting[connection] > 0 and connection in of_group:
            found.add((each.ms, connection))
    return found


def taken(unanswered: list[Happened], answer: Happened) -> Happened | None:
    """Takes the request of an answer out of those without one. None: it is older than they are."""
    for each in unanswered:
        if (each.api, each.event["connection"]) == (answer.api, answer.event["connection"]):
            unanswered.remove(each)
            return each
    return None


@impact("A consumer sends its coordinator more heartbeats than are due", "trivia", "resources", "needless-move")
@timed("client/beats-no-more-than-due", "grp-89", "grp-99", premise=(HAS_INTERVAL, BEATS_EITHER_WAY))
def beats_no_more_than_due(history: History) -> Iterator[Violation]:
    """While they are answered without an error, a member sends at most three heartbeats in its heartbeat interval.

    In groups of KIP-848 the interval is that of the last answer, and a member whose assignment does not change sends at
    most two.
    """
    interval_ms: int | None = None
    times: deque[int] = deque()
    for each in trace(history):
        if each.what == "launched":
            interval_ms = each.event.get("heartbeat_ms")
        if each.is_answer(HEARTBEAT) and not each.error:
            interval_ms = each.event["interval_ms"]
        is_new = each.is_answer() and (each.error or each.gives_other_partitions)
        if is_new or each.is_request("JoinGroup", "SyncGroup"):
            times.clear()  # a heartbeat that failed is repeated earlier, and so is one that reports an assignment
        if interval_ms is None or not each.is_request("Heartbeat", HEARTBEAT):
            continue
        times.append(each.ms)
        while times[0] < each.ms - INTERVALS * interval_ms:
            times.popleft()
        if len(times) > MOST_BEATS[each.api] * INTERVALS + 1:
            why = f"{len(times)} heartbeats in {each.ms - times[0]} ms, where the interval is {interval_ms} ms"
            bound = f"at most {MOST_BEATS[each.api]} in {interval_ms} ms"
            yield breach(each, why, bound, str(len(times)), "heartbeats", since_ms=times[0])
            return


@dataclass(frozen=True, slots=True)
class _Absence:
    """A client is no stable member, since a step that disturbed it began."""

    at: Happened
    waited_ms: int
    after: str
    """The last error that it was sent; empty: none."""
    longest_ms: int | None
    """The longest time until it is back, as far as it shows: a session timeout and ten of its own intervals. None: it
    shows no interval."""
    patience_ms: int
    lasts: bool
    """Whether it was not back at the end of the step."""

    @property
    def is_proven(self) -> bool:
        """Whether it was watched for so long that it does not return."""
        return self.lasts and self.longest_ms is not None and self.waited_ms > self.longest_ms


def _absences(history: History) -> Iterator[_Absence]:
    """Those that count: an error that is fatal excuses all that follow, and so does a member whose metadata no one can
    read, since a leader has nothing to assign to it. A client that is lost is so once, until it is a stable member or
    starts again: what follows may have no part in it."""
    after, lost, patience_ms, session_ms = "", False, 0, SESSION_MS
    requests: list[Mapping[str, Any]] = []
    for each in trace(history):
        if each.what == "launched":
            patience_ms = each.event.get("patience_ms", 0)
        if each.is_answer() and each.error and each.api not in ("Metadata", "ListOffsets"):
            after = f"{each.api} {each.error}"
        if each.is_answer() and each.error in FATAL:
            return  # it may raise, and stay out
        if each.is_request(*ATTEMPTS, *GROUP_REQUESTS):
            requests.append(each.event)
            session_ms = each.event.get("session_ms", session_ms)
        if each.what in ("settled", "unsettled") and not (lost and each.what == "unsettled"):
            waited_ms = each.event["waited_ms"]
            longest_ms = longest_absence_ms(requests, each.ms - waited_ms, each.ms, session_ms, patience_ms)
            undisturbed = each.what == "settled" and each.event.get("unsent")  # it sent nothing that was to fail
            if not undisturbed and not has_malformed_member(history, each.step):
                yield _Absence(each, waited_ms, after, longest_ms, patience_ms, each.what == "unsettled")
        if each.what in ("settled", "unsettled", *STARTS):
            lost = each.what == "unsettled"
            requests.clear()
        if each.what == "settled":
            after = ""


def _lost(absence: _Absence, history: History, why: str, bound: str) -> Violation:
    group = ("missing topic",) if has_missing_topic(history, absence.at.step) else ()
    shape = "lost", absence.after, *group, *_answer_cut_off(history, absence.at.step)
    since_ms = absence.at.ms - absence.waited_ms
    return breach(absence.at, why, bound, "no stable member", *shape, since_ms=since_ms)


@impact("A consumer does not return to its group after an error that passes", "stuck group", "waiting", "stuck-group")
@timed("client/comes-back", "grp-66", premise=(WAITED_FOR,), follows=after_a_fault)
def comes_back(history: History) -> Iterator[Violation]:
    """A client returns after an error that passes, or a rebalance, in its session timeout and ten of its own intervals.

    Its interval is the longest pause between its attempts, or the back-off that its user stated (``--patience``), if
    that is longer. One that was not watched for so long is judged by ``client/comes-back-soon`` only.
    """
    for each in _absences(history):
        if each.is_proven:
            why = f"{each.waited_ms} ms after {each.after or 'the rebalance'} the client has not returned"
            bound = f"a stable member within {each.longest_ms} ms, a session timeout and ten of its own intervals"
            yield _lost(each, history, why, bound)


@impact("A consumer is slow to return to its group after an error that passes", "trivia", "waiting", "needless-move")
@timed("client/comes-back-soon", "grp-66", grade=Grade.SHOULD, premise=(WAITED_FOR,), follows=after_a_fault)
def comes_back_soon(history: History) -> Iterator[Violation]:
    """A client is a stable member again within 10 s, and the back-off that its user stated, of an error or a rebalance.

    One of which ``client/comes-back`` says that it does not return is not judged again. The time in which the script
    holds an answer back is none of the client's.
    """
    for each in _absences(history):
        soon_ms = SOON_MS + each.patience_ms + held_ms(OPERATIONS.event_of(history.case.steps[each.at.step]))
        if each.is_proven or not (each.lasts or each.waited_ms > soon_ms):
            continue
        after = f"{each.after or 'the rebalance'} the client"
        back = f"has not come back within {each.waited_ms} ms" if each.lasts else f"came back in {each.waited_ms} ms"
        yield _lost(each, history, f"after {after} {back}", f"a stable member within {soon_ms} ms")


@impact(
    "A consumer reads and commits with its old partitions in a generation whose assignment it does not have",
    "double processing",
    "waiting",
    "double-processing",
    "stuck-group",
    links=("KAFKA-12890",),
)
@timed("client/syncs", "grp-67", premise=(JOINED,), follows=after_closing)
def syncs(history: History) -> Iterator[Violation]:
    """A client that joined sends SyncGroup, or joins again, before it acts as a member for its session timeout."""
    joined: Happened | None = None
    asked, session_ms = -1, SESSION_MS
    for each in trace(history):
        if each.is_request("JoinGroup"):
            joined, session_ms = None, each.event.get("session_ms", SESSION_MS)
        elif each.is_request("SyncGroup"):
            joined, asked = None, each.event["connection"]
        elif each.is_request("LeaveGroup") or each.what == "signalled" or each.what in STARTS:
            joined, asked = None, -1
        elif each.is_answer("SyncGroup"):
            joined, asked = (each if each.error else None), -1
        elif (each.is_answer("JoinGroup") and not each.error) or (
            each.what == "closed" and each.event["connection"] == asked
        ):
            joined, asked = each, -1
        elif joined is not None and each.is_request("Fetch", *GROUP_REQUESTS) and each.ms > joined.ms + session_ms:
            why = f"{each.ms - joined.ms} ms after it joined, or its SyncGroup failed, the client sends {each.api}"
            yield breach(each, why, "SyncGroup or JoinGroup", each.api, "no SyncGroup", since_ms=joined.ms)
            return


@impact(
    "A consumer asks a broker that is not its coordinator any more", "trivia", "waiting", "needless-move", "stuck-group"
)
@timed("client/finds-its-coordinator", "grp-77", grade=Grade.SHOULD, premise=(MOVED, REQUEST))
def finds_its_coordinator(history: History) -> Iterator[Violation]:
    """After NOT_COORDINATOR a client looks its coordinator up before it sends the next request of its group.

    One that knows the new coordinator by another request may go there, which it does over another connection. A look-up
    that waited behind another request may have been sent as early as that one, and is never read if that one was never
    answered.
    """
    lost: Happened | None = None
    waited = _look_ups_that_waited(history)
    for each in trace(history):
        if each.is_answer(*GROUP_REQUESTS, "JoinGroup", HEARTBEAT) and each.error == NOT_COORDINATOR:
            lost = lost or (None if each.in_doubt else each)
        elif each.is_request("FindCoordinator") or each.what == "signalled" or each.what in STARTS:
            lost = None
        elif lost is None or not each.is_request(*GROUP_REQUESTS, "JoinGroup", HEARTBEAT) or each.pipelined:
            continue
        elif (
            each.ms > lost.ms + RACE_MS
            and each.event["connection"] == lost.event["connection"]
            and not any(
                begin <= each.ms <= end and connection != each.event["connection"] for begin, end, connection in waited
            )
        ):
            late = each.ms - lost.ms
            why = f"{late} ms after NOT_COORDINATOR the client sends {each.api} without a look-up of its coordinator"
            yield breach(each, why, "FindCoordinator first", each.api, each.api, lost.api, since_ms=lost.ms)
            lost = None


def _look_ups_that_waited(history: History) -> list[tuple[int, int, int]]:
    """When a FindCoordinator that was read late, or never, may have been sent at the earliest, when it was read or its
    connection closed, and the connection: what is read there meanwhile was sent before it."""
    unanswered: dict[int, int] = {}
    found = []
    for each in trace(history):
        connection = each.event.get("connection", -1)
        if each.is_request():
            unanswered[connection] = each.ms
            if each.pipelined and each.api == "FindCoordinator":
                found.append((each.earliest_ms, each.ms, connection))
        elif each.is_answer():
            unanswered.pop(connection, None)
        elif each.what == "closed" and connection in unanswered:
            found.append((unanswered.pop(connection), each.ms, connection))
    return [*found, *((begin, NEVER, connection) for connection, begin in unanswered.items())]


@impact(
    "Two processes with one instance id fence each other for ever", "double processing", "identity", "stuck-group",
    links=("KIP-345",),
)  # fmt: skip
@timed("client/stays-fenced", "grp-98", premise=(FENCED_INSTANCE,))
def stays_fenced(history: History) -> Iterator[Violation]:
    """A second after FENCED_INSTANCE_ID a member sends no further request to its group with that instance id."""
    fenced: dict[str, int] = {}
    instance = ""
    for each in trace(history):
        if each.what in STARTS:
            fenced.clear()
        if each.is_request(*GROUP_REQUESTS, "JoinGroup", HEARTBEAT):
            instance = each.event.get("instance", "")
            since = fenced.get(instance)
            if since is not None and each.ms > since + GRACE_MS and each.event.get("generation", 0) >= -1:
                why = f"{each.ms - since} ms after FENCED_INSTANCE_ID the client sends {each.api} as {instance}"
                yield breach(each, why, "no further request", each.api, each.api, "fenced instance", since_ms=since)
                return
        elif each.is_answer() and each.error == FENCED_INSTANCE_ID and instance and not each.in_doubt:
            fenced.setdefault(instance, each.ms)


@impact("A consumer that is closed stays a member until its session ends", "stuck group", "gating", "stuck-group")
@law("client/leaves", "grp-69", premise=(SYNCED, SIGNALLED, ENDED), follows=after_closing)
def leaves(history: History) -> Iterator[Violation]:
    """A dynamic member that is closed sends LeaveGroup; a static one sends none.

    One that lost its connection to the coordinator less than a second before may end without, and so may one whose
    LeaveGroup may have waited behind a request when the broker closed the connection, or that the broker refuses. One
    that was silent for its session timeout is no member any more: ``client/beats`` judges the silence.
    """
    static, left, member = False, False, False
    connection, lost_ms = -1, -GRACE_MS
    session_ms, in_touch_ms = SESSION_MS, 0
    for each in trace(history):
        if each.is_request(*GROUP_REQUESTS, "JoinGroup"):
            connection, lost_ms = each.event["connection"], -GRACE_MS
            session_ms = each.event.get("session_ms", session_ms)
        if each.is_request(*GROUP_REQUESTS, "JoinGroup") or each.is_answer(*GROUP_REQUESTS, "JoinGroup"):
            in_touch_ms = each.ms
        elif each.what == "closed" and each.event["connection"] == connection:
            lost_ms = each.ms
            member = member and not each.event["why"]
        if each.is_request("JoinGroup"):
            static = "instance" in each.event
        elif each.is_request("LeaveGroup"):
            left = True
            if static:
                yield breach(each, "a static member sent LeaveGroup", "no LeaveGroup", "LeaveGroup", "static")
        elif each.what == "signalled":
            is_cut_off = each.ms < lost_ms + GRACE_MS or each.ms > in_touch_ms + session_ms
            member = each.certain is not None and each.certain.synced_ms is not None and not is_cut_off
            left = False
        elif each.is_request(HEARTBEAT):
            return  # client/leaves-with-its-epoch
        elif each.what == "ended" and member and not left and not static and not each.shut_out:
            unhandled = each.event["code"] == -signal.SIGTERM  # whatever the script did before
            why = f"the {'program does not handle SIGTERM: it' if unhandled else 'client'} ended without LeaveGroup"
            cause = () if unhandled else disturbance(history, each.step, unsent="LeaveGroup")
            yield breach(each, why, "LeaveGroup", "none", "no LeaveGroup", *cause)


@impact("A consumer ends by itself, or does not end when it is closed", "crash or hang", "waiting", "hang")
@law("client/ends-when-stopped", "grp-95", premise=(ENDS,), follows=after_closing)
def ends_when_stopped(history: History) -> Iterator[Violation]:
    """A program ends within 30 s of SIGTERM, without a crash, and not before it but for an error that it has to raise.

    So long ``KafkaConsumer.close`` waits by default. Of a program that does not handle SIGTERM the signal is the end.
    """
    signalled = raises = False
    for each in trace(history):
        if each.is_answer() and each.error in FATAL:
            raises = True
        match each.what:
            case "signalled":
                signalled = True
            case "launched" | "restarted":
                signalled = raises = False
            case "killed":
                cause = disturbance(history, each.step)
                yield breach(each, "30 s after SIGTERM the program still runs", "its end", "it runs", "hangs", *cause)
            case "ended" if signalled and each.event["code"] < 0 and each.event["code"] != -signal.SIGTERM:
                how = f"exit code {each.event['code']}"
                yield breach(each, f"the program crashed while it was closed, {how}", "its end", how, "crashed", how)
            case "ended" if not signalled and not raises:
                crashed = each.event["code"] < 0
                if has_malformed_member(history, each.step) and not crashed:
                    continue  # it may raise where its group has a member whose metadata no one can read
                how = f"exit code {each.event['code']}"
                group = ("missing topic",) if has_missing_topic(history, each.step) else ()
                last = each.event["stderr"].rstrip().rpartition("\n")[2]
                yield breach(
                    each, f"the program ended by itself, {how}: {last}", "it consumes", how, "ended", how, *group
                )
