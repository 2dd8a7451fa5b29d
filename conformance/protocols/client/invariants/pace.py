"""Laws of how often a member sends what: heartbeats, look-ups of its coordinator, and what failed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError, error_name
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client import events, premises, terms
from kipcheck.conformance.protocols.client.invariants.law import OF_ALL, breach, law, timed
from kipcheck.conformance.protocols.client.trace import (
    OVER,
    TracedEvent,
    has_failed,
    is_answer,
    is_request,
    session_of,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 52

MOST_LOOK_UPS: Final = 2
"""Of a stable member to which no request fails."""
REPEATS: Final = 4
"""Of a request that failed: fewer may be those of several parts of a client."""
REPEATS_OF_JOINS: Final = 2
"""Of a JoinGroup, which one part of a client sends."""
REPEATS_MS: Final = 60
BEATS_SEEN: Final = 2
"""Heartbeats in a row whose time is measured: one alone may be late for many reasons."""
LONGEST_INTERVAL: Final = 1.9
"""The longest average pause of a member that keeps its interval, in intervals. kafkajs, which sends heartbeats between
two Fetch requests of 500 ms, has 1.67 where the interval is 300 ms."""


@dataclass(slots=True)
class _Rhythm:
    """The heartbeats of a stable member that nothing disturbs, as its coordinator can count them."""

    interval_ms: int | None = None
    pause_ms: int = 0
    session_ms: int = terms.SESSION_MS
    answered_ms: list[int] = field(default_factory=list)
    """When the assignment came, and the answer to each heartbeat since; after a disturbance the answer to a commit."""
    recovers: bool = False
    """Whether it is that to a commit: a back-off may still delay the next heartbeat."""
    waiting: dict[int, int] = field(default_factory=dict)
    """Connection -> when the request was sent for whose answer the client waits there, but for Fetch."""
    fetches: set[int] = field(default_factory=set)
    """The connections on which records are awaited, behind which a heartbeat waits too."""
    connection: int = -1
    """That of the last request to the group."""
    throttled_ms: int = -1
    """Until when a connection is not read since the client is throttled."""

    def read(self, traced: TracedEvent[events.Event]) -> None:
        event = traced.event
        if isinstance(event, events.Launched):
            self.interval_ms, self.pause_ms = event.heartbeat_ms, event.pause_ms or 0
            self.fetches.clear()
        if is_request(traced, "Fetch"):
            self.fetches.add(traced.connection)
        elif is_request(traced):
            self.waiting.setdefault(traced.connection, traced.ms)
        if is_request(traced, *terms.GROUP_REQUESTS):
            self.connection = traced.connection
        if is_request(traced, "JoinGroup"):
            self.session_ms = session_of(traced.event)
        is_synced = is_answer(traced, "SyncGroup") and not traced.error
        if is_answer(traced):
            self.throttled_ms = max(self.throttled_ms, traced.ms + (traced.event.throttle_ms or 0))
        is_throttled = traced.ms < self.throttled_ms
        if is_synced or traced.stopped or is_throttled or self._is_disturbed(traced):
            self.answered_ms.clear()
        if is_answer(traced, *terms.GROUP_REQUESTS) and not traced.error and not is_throttled:
            is_commit = traced.event.api == "OffsetCommit"
            if self.recovers and not is_commit:
                self.answered_ms.clear()
            if not (self.answered_ms and is_commit):
                self.recovers = is_commit
                self.answered_ms.append(traced.ms)
        if isinstance(event, events.Closed) or (is_answer(traced) and traced.event.api != "Fetch"):
            self.waiting.pop(traced.connection, None)

    def _is_disturbed(self, traced: TracedEvent[events.Event]) -> bool:
        if is_answer(traced, *terms.OF_GROUPS, *terms.GROUP_REQUESTS) and traced.error:
            return True
        if is_request(traced, *terms.GROUP_REQUESTS) and traced.connection in self.fetches:
            return True
        if is_request(traced, "JoinGroup", "SyncGroup", "LeaveGroup", "FindCoordinator", *terms.HEARTBEATS):
            return True
        is_late = any(traced.ms > sent_ms + terms.RACE_MS for sent_ms in self.waiting.values())
        return is_late or isinstance(traced.event, (events.Closed, *OVER))

    @property
    def since_ms(self) -> int:
        """When the time of the last heartbeats began."""
        return self.answered_ms[max(len(self.answered_ms) - BEATS_SEEN, 0)]

    @property
    def longest_ms(self) -> int | None:
        """In what time since then the last heartbeats have to have come. None: nothing is due."""
        if self.interval_ms is None or not self.answered_ms or self.connection in self.fetches:
            return None
        longest_ms = round(BEATS_SEEN * (LONGEST_INTERVAL * self.interval_ms + self.pause_ms))
        return max(longest_ms, self.session_ms) if self.recovers else longest_ms


@impact(
    "A consumer sends heartbeats less often than its user configured, and learns of rebalances late", "stuck group",
    "gating", "stuck-group",
)  # fmt: skip
@timed("client/beats-at-its-interval", "grp-89", premise=lambda history: any(_due(history)))
def beats_at_its_interval(history: History) -> Iterator[Violation]:
    """While nothing disturbs it, two heartbeats of a stable member take at most 3.8 of its intervals.

    So does the first one after the assignment; after a request that failed it may take the session timeout. They count
    from the answer to the one before them, and on a connection without Fetch: a broker reads what is sent behind a
    Fetch when that is answered. A program that works between two polls may send them as late as that.
    """
    for traced, rhythm, longest_ms in _due(history):
        lasted_ms, beats = traced.ms - rhythm.since_ms, len(rhythm.answered_ms[1:])
        if lasted_ms > longest_ms:
            number = "one" if beats else "no"
            why = f"a stable member sent {number} heartbeat in {lasted_ms} ms; its interval is {rhythm.interval_ms} ms"
            bound, shape = f"{'two' if beats else 'one'} in {longest_ms} ms", "heartbeats" if beats else "no heartbeat"
            yield breach(traced, why, bound, number, shape, since_ms=rhythm.since_ms)
            return


def _due(history: History) -> Iterator[tuple[TracedEvent[events.Event], _Rhythm, int]]:
    """The events at which a member with an interval has sent heartbeats, and in what time the last ones are due."""
    rhythm = _Rhythm()
    for traced in trace(history):
        rhythm.read(traced)
        longest_ms = rhythm.longest_ms
        if longest_ms is not None and traced.certain is not None:
            yield traced, rhythm, longest_ms


@impact("A consumer looks its coordinator up again and again", "trivia", "resources", "needless-move")
@law(
    "client/keeps-its-coordinator",
    "grp-77",
    grade=Grade.SHOULD,
    premise=(premises.SYNCED, premises.AS_MEMBER),
)
def keeps_its_coordinator(history: History) -> Iterator[Violation]:
    """A stable member looks its coordinator up at most twice while its coordinator answers without an error.

    A part of a client that commits may look it up for itself, as in sarama. REBALANCE_IN_PROGRESS is no error of the
    coordinator either: one that looks it up before it joins again does so at most once.
    """
    number, to_join, has_answered, is_to_join = 0, 0, False, False
    for traced in trace(history):
        if is_answer(traced, "Heartbeat") and traced.error == KafkaError.REBALANCE_IN_PROGRESS:
            number, has_answered, is_to_join = 0, False, True
        elif has_failed(traced) or traced.certain is None or is_request(traced, "JoinGroup"):
            number, has_answered, is_to_join = 0, False, False
        elif is_request(traced, "FindCoordinator") and is_to_join:
            to_join, is_to_join = to_join + 1, False
            if to_join == MOST_LOOK_UPS:
                why = f"the client looks its coordinator up to join again, {to_join} times"
                yield breach(traced, why, "JoinGroup", "FindCoordinator", "FindCoordinator", "to join")
                return
        elif is_answer(traced, *terms.GROUP_REQUESTS):
            has_answered = True
        elif is_request(traced, "FindCoordinator") and has_answered:
            number, has_answered = number + 1, False
            if number > MOST_LOOK_UPS:
                why = f"a stable member to which no request failed looks its coordinator up {number} times"
                yield breach(traced, why, f"at most {MOST_LOOK_UPS}", str(number), "FindCoordinator")
                return


@impact("A consumer joins its group once more than it has to", "trivia", "resources", "needless-move")
@law("client/joins-once", "grp-77", grade=Grade.SHOULD, premise=(premises.JOINED,))
def joins_once(history: History) -> Iterator[Violation]:
    """A client whose JoinGroup was answered sends SyncGroup, and no second JoinGroup, if nothing fails meanwhile."""
    has_joined = False
    for traced in trace(history):
        if is_answer(traced, "JoinGroup") and not traced.error and not traced.in_doubt:
            has_joined = True
        elif is_request(traced, "SyncGroup", "LeaveGroup") or has_failed(traced):
            has_joined = False
        elif has_joined and is_request(traced, "JoinGroup"):
            yield breach(
                traced, "JoinGroup follows JoinGroup, which was answered", "SyncGroup", "JoinGroup", "JoinGroup"
            )
            return


@impact(
    "A consumer joins again for an error of its offsets that passes, and its whole group rebalances", "trivia",
    "resources", "needless-move",
)  # fmt: skip
@law("client/asks-for-offsets-again", "grp-77", grade=Grade.SHOULD, premise=(premises.SYNCED, premises.OFFSETS_NOT_YET))
def asks_for_offsets_again(history: History) -> Iterator[Violation]:
    """A member whose OffsetFetch the coordinator cannot answer yet sends it again, and joins for no first error.

    JoinGroup is for it within a second, if nothing else fails meanwhile, and no topic gets partitions. One that gives
    up after several attempts raises the error, and may be begun anew by its user.
    """
    refused: events.AnswerSeen | None = None
    has_retried = False
    sizes: dict[str, int] = {}
    for traced in trace(history):
        if is_answer(traced, "OffsetFetch") and traced.error in terms.OF_COORDINATORS:
            refused = None if traced.certain is None or traced.in_doubt or has_retried else traced.event
        elif is_request(traced, "OffsetFetch"):
            refused, has_retried = None, has_retried or refused is not None
        elif has_failed(traced) or traced.stopped or is_request(traced, "LeaveGroup"):
            refused = None
        elif is_answer(traced, "SyncGroup"):
            has_retried = False
        elif is_answer(traced, "Metadata") and traced.event.sizes:
            refused = refused if sizes.items() >= traced.event.sizes.items() else None
            sizes |= traced.event.sizes
        elif refused is not None and is_request(traced, "JoinGroup") and traced.ms <= refused.ms + terms.GRACE_MS:
            error = error_name(refused.error or 0)
            why = f"{traced.ms - refused.ms} ms after OffsetFetch was answered {error} the client joins again"
            yield breach(traced, why, "OffsetFetch", "JoinGroup", "JoinGroup", error)
            return


@impact(
    "A consumer waits for a coordinator that hangs, and its group reads nothing meanwhile", "trivia", "waiting",
    "stuck-group",
)  # fmt: skip
@timed(
    "client/gives-up-a-silent-coordinator",
    "grp-180",
    checks=OF_ALL,
    grade=Grade.SHOULD,
    premise=lambda history: any(_held(history)),
)
def gives_up_a_silent_coordinator(history: History) -> Iterator[Violation]:
    """A second after its session timeout a client waits no longer for a heartbeat: it looks its coordinator up again.

    One that closes the connection has given it up too.
    """
    for traced, sent_ms, session_ms in _held(history):
        waits_ms = traced.ms - sent_ms
        if waits_ms > session_ms + terms.GRACE_MS:
            why = (
                f"{waits_ms} ms after its heartbeat the client waits for the answer, and sends no other request for it"
            )
            yield breach(traced, why, f"a look-up within {session_ms} ms", "none", "waits", since_ms=sent_ms)
            return


def _held(history: History) -> Iterator[tuple[TracedEvent[events.Event], int, int]]:
    """The events at which a member has waited for the answer to a heartbeat for its session timeout, whether it looks
    on or gives it up then, when it sent that, and its session timeout."""
    sent: events.RequestSeen | None = None
    session_ms = terms.SESSION_MS
    for traced in trace(history):
        event = traced.event
        if sent is not None and traced.ms >= sent.ms + session_ms - terms.RACE_MS and traced.certain is not None:
            yield traced, sent.ms, session_ms
        if is_request(traced, "Heartbeat"):
            sent = sent or traced.event
        elif is_request(traced, "JoinGroup"):
            sent, session_ms = None, session_of(traced.event)
        is_over = isinstance(event, OVER) or (
            isinstance(event, events.Closed) and sent is not None and event.connection == sent.connection
        )
        if (
            is_over
            or is_request(traced, "FindCoordinator", "LeaveGroup")
            or is_answer(traced, "Heartbeat")
            or traced.stopped
        ):
            sent = None


@impact(
    "A slow rebalance never ends: a consumer gives up its JoinGroup and begins anew", "stuck group", "waiting",
    "stuck-group",
)  # fmt: skip
@timed("client/waits-for-the-others", "grp-253", grade=Grade.SHOULD, premise=(premises.JOINS,))
def waits_for_the_others(history: History) -> Iterator[Violation]:
    """A client does not close the connection on which its JoinGroup waits before its rebalance timeout has passed.

    It may if anything else fails, or it was sent metadata meanwhile, in which the node may be missing.
    """
    waiting: events.RequestSeen | None = None
    for traced in trace(history):
        event = traced.event
        if is_request(traced, "JoinGroup"):
            waiting = traced.event
        elif isinstance(event, events.Closed) and waiting is not None and event.connection == waiting.connection:
            waited_ms, longest_ms = traced.ms - waiting.ms, waiting.rebalance_ms or 0
            if not event.why and not traced.stopped and waited_ms < longest_ms - terms.RACE_MS:
                why = f"the client closes the connection {waited_ms} ms after JoinGroup, which was not answered yet"
                bound = f"it waits for {longest_ms} ms, its rebalance timeout"
                yield breach(traced, why, bound, f"{waited_ms} ms", "gives up", since_ms=waiting.ms)
                return
            waiting = None
        elif has_failed(traced) or traced.stopped or is_answer(traced, "JoinGroup", "Metadata"):
            waiting = None


@impact("A consumer repeats what failed without a pause", "trivia", "resources", "needless-move")
@timed(
    "client/pauses-before-it-repeats",
    "grp-96",
    checks=OF_ALL,
    grade=Grade.SHOULD,
    premise=lambda history: any(_repeats(history)),
)
def pauses_before_it_repeats(history: History) -> Iterator[Violation]:
    """Four repeats in a row of a request that the broker cannot answer yet take more than 60 ms; two of a JoinGroup do.

    So they do with any back-off. A broker cannot answer yet while it loads, or does not lead. Parts of a client may
    each repeat a request once at the same time, as kafkajs its heartbeats; JoinGroup is sent by one part.
    """
    for traced, failed_ms in _repeats(history):
        lasted_ms = traced.ms - failed_ms
        if lasted_ms <= REPEATS_MS:
            api = traced.event.api
            times = _repeats_of(api)
            why = f"{api}, which the broker could not answer yet, is sent {times} times more within {lasted_ms} ms"
            yield breach(traced, why, f"more than {REPEATS_MS} ms", f"{lasted_ms} ms", api, since_ms=failed_ms)
            return


def _repeats(history: History) -> Iterator[tuple[TracedEvent[events.RequestSeen], int]]:
    """The last one of so many repeats in a row, and when the request failed before the first of them.

    Requests about other partitions are no repeats: they count from when each was sent.
    """
    failed_ms: dict[str, list[int]] = {}
    sent_ms: dict[tuple[str, frozenset[str]], list[int]] = {}
    """Of requests that name partitions, since one of their kind was last answered otherwise."""
    for traced in trace(history):
        if isinstance(traced.event, OVER):
            failed_ms.clear()
            sent_ms.clear()
        elif is_answer(traced):
            if traced.error in terms.NOT_YET:
                failed_ms.setdefault(traced.event.api, []).append(traced.ms)
            else:
                failed_ms.pop(traced.event.api, None)
                sent_ms = {key: times for key, times in sent_ms.items() if key[0] != traced.event.api}
        elif is_request(traced):
            api, named = traced.event.api, frozenset(traced.event.partitions or ())
            times, number = failed_ms.get(api, []), _repeats_of(api)
            before = sent_ms.setdefault((api, named), []) if named else times
            if len(times) >= number and len(before) >= number:
                yield traced, before[-number]
            if named:
                before.append(traced.ms)


def _repeats_of(api: str) -> int:
    return REPEATS_OF_JOINS if api == "JoinGroup" else REPEATS
