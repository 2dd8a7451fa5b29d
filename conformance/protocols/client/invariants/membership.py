"""Laws of being a member: heartbeats, fencing, recovery and the end."""

import re
import signal
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client import events, premises, terms
from kipcheck.conformance.protocols.client.consequences import after_a_fault, after_closing
from kipcheck.conformance.protocols.client.invariants.law import OF_ALL, OF_STREAMS, breach, law, timed
from kipcheck.conformance.protocols.client.ops import OPERATIONS, held_in_all_ms, held_ms
from kipcheck.conformance.protocols.client.trace import (
    OVER,
    STARTS,
    TracedEvent,
    disturbance,
    generation_of,
    has_deleted_topic,
    has_malformed_member,
    has_missing_topic,
    is_answer,
    is_request,
    longest_absence_ms,
    repeated_disturbance,
    session_of,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 50

INTERVALS: Final = 4
MOST_BEATS: Final = {"Heartbeat": 3, **dict.fromkeys(terms.HEARTBEATS, 2)}
"""In a heartbeat interval, on average of ``INTERVALS``. One of KIP-848 comes early only to say what is new."""
SOON_MS: Final = 10_000
RAISED: Final = re.compile(r"panic: |Exception in thread |[\w.$]*(Error|Errors|Exception)\b")
"""How the line of an error begins in Go, Java, Python and JavaScript."""


def _has_ended_memberships(history: History) -> bool:
    """Whether a membership is over: by an error, by a later one, or since the client left."""
    return any(each.until_ms is not None for traced in trace(history) for each in traced.memberships)


@impact(
    "A consumer that was removed from its group goes on as if it were a member", "double processing", "identity",
    "stuck-group",
)  # fmt: skip
@timed("client/stops-when-fenced", "grp-64", premise=_has_ended_memberships)
def stops_when_fenced(history: History) -> Iterator[Violation]:
    """A second after it was sent that its membership is over, a member sends no request with that id and generation.

    Commits right before it joins again, or leaves, are refused, and do not show that it goes on: Kafka's own consumer
    up to 0.10.0 sends them too, since ILLEGAL_GENERATION did not reset its generation.
    """
    partings = _commits_before_joining(history)
    for at, traced in enumerate(trace(history)):
        if is_request(traced) and at not in partings:
            yield from _after_its_end(traced)


@cached_on_history
def _commits_before_joining(history: History) -> frozenset[int]:
    """The places of commits right before the client joins again, or leaves: with them it does not go on as a member."""
    found: set[int] = set()
    row: list[int] = []
    committed_ms = -terms.GRACE_MS
    for at, traced in enumerate(trace(history)):
        if is_answer(traced, "OffsetCommit"):
            committed_ms = traced.ms
        if not is_request(traced, *terms.GROUP_REQUESTS, "JoinGroup", "LeaveGroup"):
            continue
        if traced.ms > committed_ms + terms.GRACE_MS:
            row.clear()
        if traced.event.api == "OffsetCommit":
            row.append(at)
            committed_ms = traced.ms
            continue
        if traced.event.api in ("JoinGroup", "LeaveGroup"):
            found.update(row)
        row.clear()
    return frozenset(found)


def _after_its_end(traced: TracedEvent[events.RequestSeen]) -> list[Violation]:
    """The breach of a request whose membership was over for more than the grace; nothing for another request."""
    api, generation = traced.event.api, traced.event.generation
    if api not in terms.GROUP_REQUESTS:
        return []
    ended_ms, kind = -1, tuple[str, ...]()
    for membership in reversed(traced.memberships):
        if membership.carried == traced.event.carried:
            if membership.is_current(traced.ms):
                return []
            ended_ms = max(ended_ms, membership.until_ms or 0)
            kind = ("epoch",) if membership.has_epoch else ()
    if ended_ms < 0:
        return []
    why = f"{traced.ms - ended_ms} ms after its membership ended, the client sends {api} with it"
    wanted, observed = "no request with that generation", f"generation {generation}"
    return [breach(traced, why, wanted, observed, api, "fenced", *kind, since_ms=ended_ms)]


def _answer_cut_off(history: History, step: int) -> tuple[str, ...]:
    """A word of a shape, if the last disturbance ended a connection in the middle of an answer."""
    cause = disturbance(history, step)
    return cause if cause == ("reset amid",) else ()


@impact("A consumer stops its heartbeats, and is removed from its group", "stuck group", "gating", "stuck-group")
@timed("client/beats", "grp-69", premise=(premises.SYNCED,), follows=after_closing)
def beats(history: History) -> Iterator[Violation]:
    """A stable member sends a heartbeat, or another request of its group, before its session ends.

    A request that is answered NOT_COORDINATOR is no sign of life: no coordinator took it. A client that sent
    LeaveGroup, or JoinGroup without a member id, takes itself for no member. One that sent JoinGroup is no stable
    member: its session does not end before the coordinator has answered, and ``client/comes-back`` judges its retries.
    What is sent behind a request that is never answered is never read, and a client may wait for the answer to one of
    its group, so the time until it comes, or the connection is closed, shows no silence. One whose
    look-up of its coordinator failed has none to send to, and ``client/comes-back`` judges when it tries again.
    """
    last, session_ms, closes, looks_up, joins_ms = -1, terms.SESSION_MS, False, False, -1
    is_asked_to_join = False
    unanswered: list[events.RequestSeen] = []
    stuck = _closed_unanswered(history)
    for traced in trace(history):
        now = traced.certain
        if isinstance(traced.event, events.Closed):
            unanswered = [request for request in unanswered if request.connection != traced.event.connection]
            last = traced.ms if (traced.ms, traced.event.connection) in stuck else last
        if is_request(traced, "JoinGroup"):
            session_ms, joins_ms, is_asked_to_join = session_of(traced.event), traced.ms, False
        elif is_answer(traced, "Heartbeat"):
            is_asked_to_join = traced.error == KafkaError.REBALANCE_IN_PROGRESS
        if is_request(traced, *terms.HEARTBEATS):
            return  # sessions of KIP-848 are a matter of the broker
        closes = (closes or isinstance(traced.event, events.Signalled)) and not isinstance(traced.event, STARTS)
        is_stable = now is not None and now.synced_ms is not None and now.synced_ms >= joins_ms
        if is_request(traced, "FindCoordinator") or is_answer(traced, "FindCoordinator"):
            looks_up = bool(is_request(traced) or traced.error or traced.in_doubt)
        is_excused = closes or looks_up or traced.shut_out or traced.stopped or isinstance(traced.event, STARTS)
        if now is None or not is_stable or is_excused:
            last = traced.ms
            unanswered.clear()
            continue
        last = max(last, now.synced_ms or 0)
        silent_ms = traced.ms - last
        if silent_ms > session_ms and not unanswered:
            why = f"a stable member sent nothing to its group for {silent_ms} ms"
            cut_off = _answer_cut_off(history, traced.step)
            asked = ("asked to join",) if is_asked_to_join else ()
            bound, since_ms = f"a heartbeat within {session_ms} ms", traced.ms - silent_ms
            yield breach(traced, why, bound, "none", "no heartbeat", *cut_off, *asked, since_ms=since_ms)
            return
        if is_request(traced, *terms.GROUP_REQUESTS):
            unanswered.append(traced.event)
        elif is_answer(traced, *terms.GROUP_REQUESTS):
            request = taken(unanswered, traced.event)
            if request is not None and traced.error != KafkaError.NOT_COORDINATOR:
                last = max(last, request.ms)
            if request is not None and traced.ms > request.ms + terms.RACE_MS:
                last = traced.ms


def _closed_unanswered(history: History) -> set[tuple[int, int]]:
    """When a connection to the group was closed on which a request waited for its answer, and the connection."""
    waiting: Counter[int] = Counter()
    of_group: set[int] = set()
    found = set()
    for traced in trace(history):
        connection = traced.connection
        if is_request(traced):
            waiting[connection] += 1
            of_group |= {connection} if traced.event.api in (*terms.GROUP_REQUESTS, "FindCoordinator") else set()
        elif is_answer(traced):
            waiting[connection] = max(waiting[connection] - 1, 0)
        elif isinstance(traced.event, events.Closed) and waiting[connection] > 0 and connection in of_group:
            found.add((traced.ms, connection))
    return found


def taken(unanswered: list[events.RequestSeen], answer: events.AnswerSeen) -> events.RequestSeen | None:
    """Takes the request of an answer out of those without one. None: it is older than they are."""
    for at, request in enumerate(unanswered):
        if (request.api, request.connection) == (answer.api, answer.connection):
            return unanswered.pop(at)
    return None


@impact("A consumer sends its coordinator more heartbeats than are due", "trivia", "resources", "needless-move")
@timed(
    "client/beats-no-more-than-due",
    "grp-89",
    "grp-99",
    checks=OF_STREAMS,
    premise=(premises.HAS_INTERVAL, premises.BEATS_EITHER_WAY),
)
def beats_no_more_than_due(history: History) -> Iterator[Violation]:
    """While they are answered without an error, a member sends at most three heartbeats in its heartbeat interval.

    In groups of KIP-848 the interval is that of the last answer, and a member whose assignment does not change sends at
    most two.
    """
    interval_ms: int | None = None
    times: deque[int] = deque()
    for traced in trace(history):
        if isinstance(traced.event, events.Launched):
            interval_ms = traced.event.heartbeat_ms
        if is_answer(traced, *terms.HEARTBEATS) and not traced.error:
            interval_ms = traced.event.interval_ms
        is_new = traced.error or traced.gives_other_partitions
        if isinstance(traced.event, (events.Closed, *STARTS)) or is_new or is_request(traced, "JoinGroup", "SyncGroup"):
            times.clear()  # one that failed or was lost is repeated earlier, and one that reports an assignment sent
        if interval_ms is None or not is_request(traced, "Heartbeat", *terms.HEARTBEATS):
            continue
        times.append(traced.ms)
        while times[0] < traced.ms - INTERVALS * interval_ms:
            times.popleft()
        if len(times) > MOST_BEATS[traced.event.api] * INTERVALS + 1:
            why = f"{len(times)} heartbeats in {traced.ms - times[0]} ms, where the interval is {interval_ms} ms"
            bound = f"at most {MOST_BEATS[traced.event.api]} in {interval_ms} ms"
            yield breach(traced, why, bound, str(len(times)), "heartbeats", since_ms=times[0])
            return


@dataclass(frozen=True, slots=True)
class _Absence:
    """A client is no stable member, since a step that disturbed it began."""

    at: TracedEvent[events.Event]
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
    after, lost, patience_ms, session_ms = "", False, 0, terms.SESSION_MS
    requests: list[events.RequestSeen] = []
    for traced in trace(history):
        if isinstance(traced.event, events.Launched):
            patience_ms = traced.event.patience_ms or 0
        if is_answer(traced) and traced.error and traced.event.api not in ("Metadata", "ListOffsets"):
            after = f"{traced.event.api} {traced.error}"
        if is_answer(traced) and traced.error in terms.FATAL:
            return  # it may raise, and stay out
        if is_request(traced, *terms.ATTEMPTS, *terms.GROUP_REQUESTS):
            requests.append(traced.event)
            session_ms = session_of(traced.event, session_ms)
        event = traced.event
        if isinstance(event, events.Settled | events.Unsettled) and not (lost and isinstance(event, events.Unsettled)):
            longest_ms = longest_absence_ms(requests, event.ms - event.waited_ms, event.ms, session_ms, patience_ms)
            undisturbed = isinstance(event, events.Settled) and event.unsent  # it sent nothing that was to fail
            if not undisturbed and not has_malformed_member(history, traced.step):
                lasts = isinstance(event, events.Unsettled)
                yield _Absence(traced, event.waited_ms, after, longest_ms, patience_ms, lasts)
        if isinstance(event, (events.Settled, events.Unsettled, *STARTS)):
            lost = isinstance(event, events.Unsettled)
            requests.clear()
        if isinstance(event, events.Settled):
            after = ""


def _lost(absence: _Absence, history: History, why: str, bound: str) -> Violation:
    group = ("missing topic",) if has_missing_topic(history, absence.at.step) else ()
    shape = "lost", absence.after, *group, *_answer_cut_off(history, absence.at.step)
    since_ms = absence.at.ms - absence.waited_ms
    return breach(absence.at, why, bound, "no stable member", *shape, since_ms=since_ms)


@impact("A consumer does not return to its group after an error that passes", "stuck group", "waiting", "stuck-group")
@timed("client/comes-back", "grp-66", checks=OF_ALL, premise=(premises.WAITED_FOR,), follows=after_a_fault)
def comes_back(history: History) -> Iterator[Violation]:
    """A client returns after an error that passes, or a rebalance, in its session timeout and ten of its own intervals.

    Its interval is the longest pause between its attempts, or the back-off that its user stated (``--patience``), if
    that is longer. One that was not watched for so long is judged by ``client/comes-back-soon`` only.
    """
    for absence in _absences(history):
        if absence.is_proven:
            why = f"{absence.waited_ms} ms after {absence.after or 'the rebalance'} the client has not returned"
            bound = f"a stable member within {absence.longest_ms} ms, a session timeout and ten of its own intervals"
            yield _lost(absence, history, why, bound)


@impact("A consumer is slow to return to its group after an error that passes", "trivia", "waiting", "needless-move")
@timed("client/comes-back-soon", "grp-66", grade=Grade.SHOULD, premise=(premises.WAITED_FOR,), follows=after_a_fault)
def comes_back_soon(history: History) -> Iterator[Violation]:
    """A client is a stable member again within 10 s, and the back-off that its user stated, of an error or a rebalance.

    One of which ``client/comes-back`` says that it does not return is not judged again. The time in which the script
    holds an answer back is none of the client's.
    """
    for absence in _absences(history):
        soon_ms = SOON_MS + absence.patience_ms + _held_ms(history, absence.at.step)
        if absence.is_proven or not (absence.lasts or absence.waited_ms > soon_ms):
            continue
        after = f"{absence.after or 'the rebalance'} the client"
        back = "has not come back within" if absence.lasts else "came back in"
        why = f"after {after} {back} {absence.waited_ms} ms"
        yield _lost(absence, history, why, f"a stable member within {soon_ms} ms")


def _held_ms(history: History, step: int) -> int:
    """How long the script holds answers back in a step, and in those prepared for it."""
    found = held_ms(OPERATIONS.event_of(history.case.steps[step]))
    for before in reversed(history.case.steps[:step]):
        event = OPERATIONS.event_of(before)
        if getattr(event, "at", "now") != "next":
            break
        found += held_in_all_ms(event)
    return found


@impact(
    "A consumer reads and commits with its old partitions in a generation whose assignment it does not have",
    "double processing", "waiting", "double-processing", "stuck-group", links=("KAFKA-12890",),
)  # fmt: skip
@timed("client/syncs", "grp-67", premise=(premises.JOINED,), follows=after_closing)
def syncs(history: History) -> Iterator[Violation]:
    """A client that joined sends SyncGroup, or joins again, before it acts as a member for its session timeout.

    A commit right before it joins again, or leaves, does not show that it goes on.
    """
    joined_ms: int | None = None
    asked, session_ms = -1, terms.SESSION_MS
    partings = _commits_before_joining(history)
    for at, traced in enumerate(trace(history)):
        if is_request(traced, "JoinGroup"):
            joined_ms, session_ms = None, session_of(traced.event)
        elif is_request(traced, "SyncGroup"):
            joined_ms, asked = None, traced.event.connection
        elif is_request(traced, "LeaveGroup") or isinstance(traced.event, OVER):
            joined_ms, asked = None, -1
        elif is_answer(traced, "SyncGroup"):
            joined_ms, asked = (traced.ms if traced.error else None), -1
        elif (is_answer(traced, "JoinGroup") and not traced.error) or (
            isinstance(traced.event, events.Closed) and traced.event.connection == asked
        ):
            joined_ms, asked = traced.ms, -1
        elif joined_ms is not None and at not in partings and is_request(traced, "Fetch", *terms.GROUP_REQUESTS):
            api, late_ms = traced.event.api, traced.ms - joined_ms
            if late_ms > session_ms:
                why = f"{late_ms} ms after it joined, or its SyncGroup failed, the client sends {api}"
                yield breach(traced, why, "SyncGroup or JoinGroup", api, "no SyncGroup", since_ms=joined_ms)
                return


@impact(
    "A consumer asks a broker that is not its coordinator any more", "trivia", "waiting", "needless-move", "stuck-group"
)
@timed(
    "client/finds-its-coordinator",
    "grp-77",
    checks=OF_ALL,
    grade=Grade.SHOULD,
    premise=(premises.MOVED, premises.REQUEST),
)
def finds_its_coordinator(history: History) -> Iterator[Violation]:
    """After NOT_COORDINATOR a client looks its coordinator up before it sends the next request of its group.

    One that knows the new coordinator by another request may go there, which it does over another connection. A look-up
    that waited behind another request may have been sent as early as that one, and is never read if that one was never
    answered.
    """
    lost: events.AnswerSeen | None = None
    waited = _look_ups_that_waited(history)
    for traced in trace(history):
        if is_answer(traced, *terms.COORDINATED) and traced.error == KafkaError.NOT_COORDINATOR:
            lost = lost or (None if traced.in_doubt else traced.event)
        elif is_request(traced, "FindCoordinator") or isinstance(traced.event, OVER):
            lost = None
        elif lost is None or not is_request(traced, *terms.COORDINATED) or traced.event.pipelined:
            continue
        elif (
            traced.ms > lost.ms + terms.RACE_MS
            and traced.event.connection == lost.connection
            and not any(
                begin <= traced.ms <= end and connection != traced.event.connection for begin, end, connection in waited
            )
        ):
            api, late_ms = traced.event.api, traced.ms - lost.ms
            why = f"{late_ms} ms after NOT_COORDINATOR the client sends {api} without a look-up of its coordinator"
            yield breach(traced, why, "FindCoordinator first", api, api, lost.api, since_ms=lost.ms)
            lost = None


def _look_ups_that_waited(history: History) -> list[tuple[int, int, int]]:
    """When a FindCoordinator that was read late, or never, may have been sent at the earliest, when it was read or its
    connection closed, and the connection: what is read there meanwhile was sent before it."""
    unanswered: dict[int, int] = {}
    found = []
    for traced in trace(history):
        connection = traced.connection
        if is_request(traced):
            unanswered[connection] = traced.ms
            if traced.event.pipelined and traced.event.api == "FindCoordinator":
                found.append((traced.earliest_ms, traced.ms, connection))
        elif is_answer(traced):
            unanswered.pop(connection, None)
        elif isinstance(traced.event, events.Closed) and connection in unanswered:
            found.append((unanswered.pop(connection), traced.ms, connection))
    return [*found, *((begin, terms.NEVER, connection) for connection, begin in unanswered.items())]


@impact(
    "Two processes with one instance id fence each other for ever", "double processing", "identity", "stuck-group",
    links=("KIP-345",),
)  # fmt: skip
@timed("client/stays-fenced", "grp-98", premise=(premises.FENCED_INSTANCE,))
def stays_fenced(history: History) -> Iterator[Violation]:
    """A second after FENCED_INSTANCE_ID a member sends no further request to its group with that instance id."""
    fenced: dict[str, int] = {}
    instance = ""
    for traced in trace(history):
        if isinstance(traced.event, STARTS):
            fenced.clear()
        if is_request(traced, *terms.COORDINATED):
            api, instance = traced.event.api, traced.event.instance or ""
            since = fenced.get(instance)
            if since is not None and traced.ms > since + terms.GRACE_MS and generation_of(traced.event) >= -1:
                why = f"{traced.ms - since} ms after FENCED_INSTANCE_ID the client sends {api} as {instance}"
                yield breach(traced, why, "no further request", api, api, "fenced instance", since_ms=since)
                return
        elif is_answer(traced) and traced.error == KafkaError.FENCED_INSTANCE_ID and instance and not traced.in_doubt:
            fenced.setdefault(instance, traced.ms)


@impact("A consumer that is closed stays a member until its session ends", "stuck group", "gating", "stuck-group")
@law("client/leaves", "grp-69", premise=(premises.SYNCED, premises.SIGNALLED, premises.ENDED), follows=after_closing)
def leaves(history: History) -> Iterator[Violation]:
    """A dynamic member that is closed sends LeaveGroup; a static one sends none.

    One that lost its connection to the coordinator less than a second before may end without, and so may one whose
    LeaveGroup may have waited behind a request when the broker closed the connection, or that the broker refuses. One
    that was silent for its session timeout is no member any more: ``client/beats`` judges the silence. A program to
    which its client raised an error may end with it.
    """
    static, left, member, raised = False, False, False, False
    connection, lost_ms = -1, -terms.GRACE_MS
    session_ms, in_touch_ms = terms.SESSION_MS, 0
    for traced in trace(history):
        if is_request(traced, *terms.GROUP_REQUESTS, "JoinGroup"):
            connection, lost_ms = traced.event.connection, -terms.GRACE_MS
            session_ms = session_of(traced.event, session_ms)
        raised = not isinstance(traced.event, events.Launched) and (raised or traced.error in terms.FATAL)
        if is_request(traced, *terms.GROUP_REQUESTS, "JoinGroup") or is_answer(
            traced, *terms.GROUP_REQUESTS, "JoinGroup"
        ):
            in_touch_ms = traced.ms
        elif isinstance(traced.event, events.Closed) and traced.event.connection == connection:
            lost_ms = traced.ms
            member = member and not traced.event.why
        if is_request(traced, "JoinGroup"):
            static = traced.event.instance is not None
        elif is_request(traced, "LeaveGroup"):
            left = True
            named = {traced.event.member, *(traced.event.members or ())}
            if traced.certain is not None and not static and traced.certain.member not in named:
                why = "LeaveGroup does not name the member that leaves"
                given = ", ".join(sorted(filter(None, named))) or "none"
                yield breach(traced, why, traced.certain.member, given, "LeaveGroup", "another member")
            if static:
                yield breach(traced, "a static member sent LeaveGroup", "no LeaveGroup", "LeaveGroup", "static")
        elif isinstance(traced.event, events.Signalled):
            is_cut_off = traced.ms < lost_ms + terms.GRACE_MS or traced.ms > in_touch_ms + session_ms
            member = traced.certain is not None and traced.certain.synced_ms is not None and not is_cut_off
            left = False
        elif is_request(traced, *terms.HEARTBEATS):
            return  # client/leaves-with-its-epoch
        elif isinstance(traced.event, events.Ended) and member and not left and not static and not traced.shut_out:
            if traced.certain is None or (raised and traced.event.code > 0):
                continue  # an answer that it was sent at its end says that it is no member any more, or was raised
            unhandled = traced.event.code == -signal.SIGTERM  # whatever the script did before
            why = f"the {'program does not handle SIGTERM: it' if unhandled else 'client'} ended without LeaveGroup"
            cause = () if unhandled else disturbance(history, traced.step, unsent="LeaveGroup")
            yield breach(traced, why, "LeaveGroup", "none", "no LeaveGroup", *cause)


@impact("A consumer ends by itself, or does not end when it is closed", "crash or hang", "waiting", "hang")
@law("client/ends-when-stopped", "grp-95", checks=OF_ALL, premise=(premises.ENDS,), follows=after_closing)
def ends_when_stopped(history: History) -> Iterator[Violation]:
    """A program ends within 30 s of SIGTERM, without a crash, and not before it but for an error that it has to raise.

    So long ``KafkaConsumer.close`` waits by default. Of a program that does not handle SIGTERM the signal is the end.
    """
    signalled = raises = False
    last: TracedEvent[events.Event] | None = None
    session_ms, silent_since = terms.SESSION_MS, None
    for traced in trace(history):
        if is_answer(traced) and traced.error in terms.FATAL:
            raises = True
        if is_request(traced, *terms.GROUP_REQUESTS, "JoinGroup"):
            last, session_ms = traced, session_of(traced.event, session_ms)
        match traced.event:
            case events.Signalled():
                signalled = True
                silent_since = last.step if last is not None and traced.ms > last.ms + session_ms else None
            case events.Launched() | events.Restarted():
                signalled = raises = False
                last = None
            case events.Killed():
                # What silenced a client before it was closed keeps it from its end, too.
                cause = disturbance(history, traced.step if silent_since is None else silent_since)
                yield breach(traced, "30 s after SIGTERM the program still runs", "its end", "it runs", "hangs", *cause)
            case events.Ended(code=code) if signalled and code < 0 and code != -signal.SIGTERM:
                how = f"exit code {code}"
                yield breach(traced, f"the program crashed while it was closed, {how}", "its end", how, "crashed", how)
            case events.Ended(code=code, stderr=stderr) if not signalled and not raises:
                if code >= 0 and (
                    has_malformed_member(history, traced.step) or has_deleted_topic(history, traced.step)
                ):
                    continue  # it may raise where no one can read a member's metadata, or there is nothing to read
                how = f"exit code {code}"
                missing = ("missing topic",) if has_missing_topic(history, traced.step) else ()
                group = *missing, *repeated_disturbance(history, traced.step)
                yield breach(
                    traced,
                    f"the program ended by itself, {how}: {_raised(stderr)}",
                    "it consumes",
                    how,
                    "ended",
                    how,
                    *group,
                )


def _raised(stderr: str) -> str:
    """The line of the error that ended a program; of one that shows none, its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next(filter(RAISED.match, reversed(lines)), lines[-1] if lines else "")
