"""Laws of members of KIP-848's groups, whose only request is the heartbeat."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client import premises, terms
from kipcheck.conformance.protocols.client.consequences import after_closing
from kipcheck.conformance.protocols.client.events import (
    AnswerSeen,
    Closed,
    Ended,
    Frozen,
    Launched,
    RequestSeen,
    Signalled,
)
from kipcheck.conformance.protocols.client.invariants.law import OF_ALL, OF_STREAMS, breach, law, listed, timed
from kipcheck.conformance.protocols.client.trace import (
    OVER,
    STARTS,
    TracedEvent,
    generation_of,
    is_answer,
    is_request,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 20

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""Epochs."""
FENCED: Final = (KafkaError.FENCED_MEMBER_EPOCH, KafkaError.UNKNOWN_MEMBER_ID)
OMITTED: Final = -1
"""A rebalance timeout that a heartbeat does not repeat."""
INTERVALS: Final = 10
"""A session of a consumer group is longer than its heartbeat interval; by default nine times as long."""
OWN_ID_SINCE: Final = 1
"""The version in which a member chooses its id itself (KIP-1082)."""


@impact(
    "The coordinator fences a member that did nothing wrong", "stuck group", "epochs", "stuck-group",
    links=("KIP-848",),
    accepted="A heartbeat lacks the id or epoch of its member; its coordinator answered it without an error",
)  # fmt: skip
@law(
    "client/names-its-epoch",
    "grp-99",
    "grp-380",
    "grp-388",
    checks=OF_ALL,
    premise=(premises.HAS_EPOCH, premises.BEATS_ANEW),
)
def names_its_epoch(history: History) -> Iterator[Violation]:
    """A heartbeat carries one member id, and the epoch of the last answer, 0 to join, or -1 or -2 to leave.

    One that left, as a member that does not poll in time, has no epoch until it joins again.
    """
    id, left = "", False
    epochs: list[int] = []
    for traced in trace(history):
        if isinstance(traced.event, STARTS):
            id, left, epochs = "", False, []
        if is_answer(traced, *terms.HEARTBEATS) and not traced.error:
            id = traced.event.member or id
            epochs = [*epochs[-1:], generation_of(traced.event)]
        if not is_request(traced, *terms.HEARTBEATS):
            continue
        given, epoch = traced.event.member or "", generation_of(traced.event)
        if not given and (traced.event.version >= OWN_ID_SINCE or epoch != JOINS):
            yield breach(traced, f"a heartbeat with epoch {epoch} has no member id", "a member id", "none", "no id")
        elif id and given != id:
            yield breach(traced, "a heartbeat has another member id than before", id, given or "none", "another id")
        if epoch > JOINS and (left or epoch not in epochs):
            joined = bool(epochs) and not left
            wanted = str(epochs[-1]) if joined else "0, to join"
            shape = "after it left" if left else "never sent" if joined else "before it joined"
            yield breach(traced, f"a heartbeat has epoch {epoch}", wanted, str(epoch), "epoch", shape)
        id, left = id or given, epoch < JOINS or (left and epoch != JOINS)


@impact(
    "A fenced member goes on as if it were one", "double processing", "epochs", "stuck-group", "double-processing",
    links=("KIP-848",),
)  # fmt: skip
@law(
    "client/joins-anew-when-fenced",
    "grp-99",
    "grp-381",
    "grp-389",
    checks=OF_ALL,
    premise=(premises.MEMBERSHIP_OVER, premises.BEATS_ANEW),
)
def joins_anew_when_fenced(history: History) -> Iterator[Violation]:
    """After FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID the next heartbeat joins with epoch 0 and owns nothing."""
    fenced: AnswerSeen | None = None
    for traced in trace(history):
        if is_answer(traced, *terms.HEARTBEATS):
            fenced = traced.event if traced.error in FENCED and not traced.in_doubt else None
        elif isinstance(traced.event, STARTS):
            fenced = None
        elif is_request(traced, *terms.HEARTBEATS) and fenced is not None and not traced.event.pipelined:
            other = traced.event.connection != fenced.connection and traced.ms <= fenced.ms + terms.RACE_MS
            epoch, owned = generation_of(traced.event), traced.event.owned
            if epoch > JOINS and not other:
                why = f"after error {fenced.error} a heartbeat has epoch {epoch}"
                yield breach(traced, why, "epoch 0", str(epoch), "epoch", str(fenced.error))
            elif epoch == JOINS and owned:
                why = f"after error {fenced.error} a heartbeat that joins owns {listed(owned)}"
                yield breach(traced, why, "nothing", listed(owned), "owned", str(fenced.error))
            fenced = None


@impact(
    "The coordinator refuses a member whose joining heartbeat lacks a field", "stuck group", "epochs",
    "stuck-group", links=("KIP-848",),
    accepted="A heartbeat that joins lacks a field; its coordinator answered it without an error",
)  # fmt: skip
@law("client/joins-in-full", "grp-195", "grp-382", "grp-390", checks=OF_ALL, premise=(premises.BEATS_ANEW,))
def joins_in_full(history: History) -> Iterator[Violation]:
    """A heartbeat with epoch 0 has a rebalance timeout, a subscription, and an empty list of owned partitions."""
    fenced = False
    for traced in trace(history):
        if is_answer(traced, *terms.HEARTBEATS):
            fenced = traced.error in FENCED
        elif is_request(traced, *terms.HEARTBEATS) and generation_of(traced.event) == JOINS:
            if omitted := _omitted(traced.event):
                missing = " and no ".join(omitted)
                yield breach(
                    traced, f"a heartbeat that joins has no {missing}", "all of it", "none", "without", *omitted
                )
            if traced.event.owned and not fenced:  # client/joins-anew-when-fenced
                owned = listed(traced.event.owned)
                yield breach(traced, f"a heartbeat that joins owns {owned}", "nothing", owned, "owned")


def _omitted(beat: RequestSeen) -> list[str]:
    """The fields that a short heartbeat lacks, since they did not change."""
    omitted = {
        "rebalance timeout": beat.rebalance_ms == OMITTED,
        "subscription": beat.topics is None and beat.regex is None,
        "list of owned partitions": beat.owned is None,
    }
    if beat.api == terms.SHARE_HEARTBEAT:  # which has nothing else
        omitted = {"subscription": beat.topics is None}
    return [field for field, is_omitted in omitted.items() if is_omitted]


def _after_lost_answers(history: History) -> Iterator[TracedEvent[RequestSeen]]:
    """The heartbeats of members that come after one whose connection was closed before its answer.

    Of groups of KIP-848: coordinators of other groups send an assignment whatever fields a heartbeat has.
    """
    unanswered: RequestSeen | None = None
    is_lost = False
    for traced in trace(history):
        if is_request(traced, terms.HEARTBEAT):
            if is_lost and generation_of(traced.event) > JOINS and not traced.event.pipelined:
                yield traced
            unanswered, is_lost = traced.event, False
        elif is_answer(traced, terms.HEARTBEAT) or isinstance(traced.event, OVER):
            unanswered, is_lost = None, False
        elif isinstance(traced.event, Closed) and unanswered is not None:
            is_lost = is_lost or traced.event.connection == unanswered.connection


def _lost_an_answer(history: History) -> bool:
    return any(_after_lost_answers(history))


@impact(
    "Topics that the pattern of the user matches have no reader", "stuck group", "gating",
    "stuck-group", links=("KIP-848",),
)  # fmt: skip
@law("client/subscribes-by-its-pattern", "grp-200", premise=(premises.HAS_PATTERN, premises.BEATS_ANEW))
def subscribes_by_its_pattern(history: History) -> Iterator[Violation]:
    """Heartbeats subscribe to the topics that the user's pattern matches, by a regular expression or by their names.

    They do so a second after the client was sent that such a topic exists.
    """
    pattern, names, regex = "", frozenset[str](), ""
    described: dict[str, int] = {}
    for traced in trace(history):
        if isinstance(traced.event, STARTS):
            pattern = traced.event.pattern or "" if isinstance(traced.event, Launched) else ""
            described.clear()
        elif is_answer(traced, "Metadata"):
            described = dict.fromkeys(traced.event.sizes or (), traced.ms) | described
        elif pattern and is_request(traced, *terms.HEARTBEATS) and generation_of(traced.event) >= JOINS:
            names = names if traced.event.topics is None else frozenset(traced.event.topics)
            regex = regex if traced.event.regex is None else traced.event.regex
            known = {name for name, since_ms in described.items() if traced.ms > since_ms + terms.GRACE_MS}
            missing = _matched(pattern, known) - names - _matched(regex, known)
            if missing:
                shown = f"the regular expression {regex}" if regex else f"the topics {listed(names)}"
                why = f"the subscription in heartbeats has {shown}, without {listed(missing)}"
                kind = "regular expression" if regex else "topics"
                yield breach(traced, why, f"what {pattern} matches", shown, "omits", kind)
                return


def _matched(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Nothing of an expression that cannot be read. Coordinators compare it with whole names."""
    try:
        return frozenset(filter(re.compile(pattern).fullmatch, names)) if pattern else frozenset()
    except re.error:
        return frozenset()


@impact(
    "The partitions of a program that hangs are read by no member", "stuck group", "gating", "unread-partition",
    "stuck-group", links=("KIP-62", "KIP-848"),
)  # fmt: skip
@timed("client/leaves-when-it-does-not-poll", "grp-201", premise=(premises.TOO_SLOW, premises.RECORDS))
def leaves_when_it_does_not_poll(history: History) -> Iterator[Violation]:
    """A member whose program exceeds its longest time between two polls leaves its group, or sends no heartbeat.

    It has a second more for that. In groups of KIP-848 it leaves; in others it sends none until it polls again.
    """
    slow: Launched | None = None
    working: tuple[int, tuple[str, int]] | None = None
    is_modern = False
    for traced in trace(history):
        is_modern = is_modern or is_request(traced, *terms.HEARTBEATS)
        if isinstance(traced.event, Launched):
            slow, is_modern = (traced.event if premises.TOO_SLOW(traced.event) else None), False
        elif isinstance(traced.event, (*OVER, Frozen)):
            slow, working = None, None
        elif slow is not None and working is None:
            if is_answer(traced, "Fetch") and traced.event.records and traced.certain is not None:
                working = traced.ms, traced.certain.carried
        elif slow is not None and working is not None:
            since_ms, carried = working
            longest_ms, until_ms = slow.max_poll_ms or 0, since_ms + (slow.pause_ms or 0)
            if traced.ms > until_ms or traced.now is None or traced.now.carried != carried:
                slow, working = None, None
            elif traced.ms > since_ms + longest_ms + terms.GRACE_MS and (is_modern or is_request(traced, "Heartbeat")):
                stays = "is a member" if is_modern else "sends a heartbeat"
                why = f"{traced.ms - since_ms} ms after its last poll the client {stays}, and may wait {longest_ms} ms"
                yield breach(traced, why, "that it left", stays, "no poll", since_ms=since_ms)
                return


@impact(
    "A member never learns of an assignment whose answer was lost", "stuck group", "waiting", "unread-partition",
    "stuck-group", links=("KIP-848",),
)  # fmt: skip
@law("client/repeats-in-full", "grp-196", grade=Grade.SHOULD, premise=_lost_an_answer)
def repeats_in_full(history: History) -> Iterator[Violation]:
    """A heartbeat after one whose answer never came has all fields: the coordinator then sends the assignment again."""
    for traced in _after_lost_answers(history):
        if omitted := _omitted(traced.event):
            why = f"the answer to a heartbeat was lost, and the next one has no {' and no '.join(omitted)}"
            yield breach(traced, why, "all of it", "none", "without", *omitted)


@impact(
    "A member reports partitions that it was not assigned", "double processing", "claims", "double-processing",
    links=("KIP-848",),
)  # fmt: skip
@law("client/owns-what-it-is-assigned", "grp-99", "grp-387", checks=OF_STREAMS, premise=(premises.OWNS,))
def owns_what_it_is_assigned(history: History) -> Iterator[Violation]:
    """The owned partitions in a heartbeat are some that the member was assigned since it joined, and has not given up.

    It gives up what it was assigned no longer, with the heartbeat that does not name it any more.
    """
    assigned, target, gone = set[str](), set[str](), set[str]()
    for traced in trace(history):
        if is_answer(traced, *terms.HEARTBEATS):
            fenced = traced.error in FENCED and not traced.in_doubt
            target = set() if fenced else {*traced.event.partitions} if traced.event.partitions is not None else target
            assigned, gone = (set(), set()) if fenced else (assigned | target, gone)
        elif isinstance(traced.event, STARTS):
            assigned, target, gone = set(), set(), set()
        elif is_request(traced, *terms.HEARTBEATS) and not traced.event.pipelined:
            owned = traced.event.owned
            strange = {*(owned or ())} - assigned
            if strange and generation_of(traced.event) > JOINS:
                why = f"a heartbeat says that the member owns {listed(strange)}"
                kind = ("given up",) if strange <= gone else ()
                yield breach(traced, why, f"within {listed(assigned)}", listed(strange), "owned", *kind)
            if owned is not None:
                gone, assigned = gone | assigned, assigned.intersection(owned) | target


@impact(
    "Two members read one partition: the coordinator gives away what the first one still reads", "double processing",
    "claims", "double-processing", links=("KIP-848",),
)  # fmt: skip
@timed("client/revokes-before-it-acknowledges", "grp-198", premise=(premises.OWNS, premises.GIVES_UP))
def revokes_before_it_acknowledges(history: History) -> Iterator[Violation]:
    """A member that no longer names a partition among those it owns fetches and commits it no more.

    The coordinator gives it to another member as soon as the heartbeat without it comes.
    """
    owned = set[str]()
    given_up: dict[str, int] = {}
    for traced in trace(history):
        if isinstance(traced.event, STARTS):
            owned.clear()
            given_up.clear()
        elif is_answer(traced, *terms.HEARTBEATS):
            for partition in traced.event.partitions or ():
                given_up.pop(partition, None)
        elif is_request(traced, *terms.HEARTBEATS) and traced.event.owned is not None:
            if generation_of(traced.event) > JOINS:  # one that joins lost them all: client/stops-when-fenced
                given_up |= dict.fromkeys(owned.difference(traced.event.owned), traced.ms)
            owned = {*traced.event.owned}
        elif is_request(traced, "Fetch", "OffsetCommit"):
            late = {name: given_up[name] for name in traced.event.partitions or () if name in given_up}
            since_ms = max(late.values(), default=terms.NEVER)
            if traced.earliest_ms > since_ms + terms.RACE_MS:
                api = traced.event.api
                why = f"{traced.ms - since_ms} ms after the member gave {listed(late)} up, the client sends {api} of it"
                yield breach(traced, why, f"no {api} of it", listed(late), api, "given up", since_ms=since_ms)
                given_up.clear()


@impact(
    "Commits of a member are refused, and its records are read again", "double processing", "epochs",
    "double-processing", links=("KIP-848",),
)  # fmt: skip
@timed(
    "client/commits-with-its-epoch",
    "grp-199",
    "grp-385",
    checks=OF_STREAMS,
    premise=(premises.HAS_EPOCH, premises.COMMITS_AS_MEMBER),
)
def commits_with_its_epoch(history: History) -> Iterator[Violation]:
    """The OffsetCommit of a member carries the epoch of its last heartbeat.

    An earlier one is broken a second after that heartbeat was answered, or as soon as it was answered
    STALE_MEMBER_EPOCH.
    """
    epoch, since_ms, raised = JOINS, 0, False
    stale: dict[int, int] = {}
    doubted: set[int] = set()
    """Epochs of answers that the client may have read, or not."""
    for traced in trace(history):
        if isinstance(traced.event, STARTS):
            epoch, since_ms, raised = JOINS, 0, False
            stale.clear()
        elif is_answer(traced, *terms.HEARTBEATS) and not traced.error and traced.in_doubt:
            doubted.add(generation_of(traced.event))
        elif is_answer(traced, *terms.HEARTBEATS) and not traced.error:
            doubted.clear()
            if generation_of(traced.event) != epoch:
                raised, epoch, since_ms = epoch > JOINS, generation_of(traced.event), traced.ms
        elif is_answer(traced, "OffsetCommit") and traced.error == KafkaError.STALE_MEMBER_EPOCH:
            _, carried = traced.event.to or ("", epoch)
            stale.setdefault(carried, traced.ms)
        elif is_request(traced, "OffsetCommit") and traced.event.member and raised and epoch > JOINS:
            carried = generation_of(traced.event)
            if carried in doubted:
                continue
            refused_ms = max(stale.get(carried, terms.NEVER), since_ms) + terms.RACE_MS
            if carried != epoch and carried > JOINS and traced.earliest_ms > min(since_ms + terms.GRACE_MS, refused_ms):
                why = f"OffsetCommit has epoch {carried}, {traced.ms - since_ms} ms after the member was sent {epoch}"
                kind = ("STALE_MEMBER_EPOCH",) if carried in stale else ()
                yield breach(traced, why, str(epoch), str(carried), "epoch", *kind, since_ms=since_ms)
                return


@impact(
    "A consumer stops its heartbeats, and is removed from its group", "stuck group", "gating", "stuck-group",
    links=("KIP-848",),
)  # fmt: skip
@timed(
    "client/beats-in-time",
    "grp-99",
    "grp-383",
    "grp-391",
    checks=OF_ALL,
    premise=(premises.HAS_EPOCH,),
    follows=after_closing,
)
def beats_in_time(history: History) -> Iterator[Violation]:
    """A member sends its next heartbeat within ten of the heartbeat intervals that the last answer had."""
    since: AnswerSeen | None = None
    for traced in trace(history):
        if is_answer(traced, *terms.HEARTBEATS):
            stays = not traced.error and generation_of(traced.event) > JOINS and not traced.in_doubt
            since = traced.event if stays else None
        elif is_request(traced, *terms.HEARTBEATS) or isinstance(traced.event, OVER):
            since = None
        elif since is not None and (silent_ms := traced.ms - since.ms) > INTERVALS * (since.interval_ms or 0):
            interval_ms = since.interval_ms or 0
            why = f"the member sent no heartbeat for {silent_ms} ms, though its interval is {interval_ms} ms"
            bound = f"a heartbeat within {INTERVALS * interval_ms} ms"
            yield breach(traced, why, bound, "none", "no heartbeat", since_ms=since.ms)
            return


@impact(
    "A consumer that is closed stays a member until its session ends", "stuck group", "gating", "stuck-group",
    links=("KIP-848",),
)  # fmt: skip
@law(
    "client/leaves-with-its-epoch", "grp-99", "grp-384", "grp-392", checks=OF_ALL,
    premise=(premises.HAS_EPOCH, premises.SIGNALLED, premises.ENDED), follows=after_closing,
)  # fmt: skip
def leaves_with_its_epoch(history: History) -> Iterator[Violation]:
    """A dynamic member that is closed sends a heartbeat with epoch -1, a static one -2.

    One whose requests the broker refuses need not, nor one that lost its connection to the coordinator, or was sent
    that it has another one, or is no member, less than a second before, or while it is closed: ``client/leaves`` says
    the same of other groups.
    """
    last, member, static = LEAVES, False, False
    connection, lost_ms = -1, -terms.GRACE_MS
    for traced in trace(history):
        if is_request(traced, "JoinGroup"):
            return
        if is_request(traced, *terms.HEARTBEATS, "OffsetCommit"):
            connection, lost_ms = traced.event.connection, -terms.GRACE_MS
        elif isinstance(traced.event, Closed) and traced.event.connection == connection:
            lost_ms, member = traced.ms, member and not traced.event.why
        elif is_answer(traced, *terms.HEARTBEATS) and traced.error in (*terms.OF_COORDINATORS, *terms.FENCING):
            lost_ms, member = traced.ms, False
        if is_request(traced, *terms.HEARTBEATS):
            last = generation_of(traced.event)
            static = traced.event.instance is not None if last == JOINS else static
        elif isinstance(traced.event, Signalled):
            member = traced.certain is not None and traced.ms >= lost_ms + terms.GRACE_MS
        elif isinstance(traced.event, Ended) and member and not traced.shut_out:
            wanted = LEAVES_FOR_A_WHILE if static else LEAVES
            if last != wanted:
                why = f"the last heartbeat of a member that ended has epoch {last}"
                yield breach(traced, why, f"epoch {wanted}", str(last), "no leave" if last >= JOINS else "other epoch")
