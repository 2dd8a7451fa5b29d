"""Laws of a client that leads: its SyncGroup is judged by the invariants of assignors."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.invariants import assignments, cooperation
from kipcheck.conformance.protocols.assignment.model.assignment import ASSIGNORS, COOPERATIVE, NO_GENERATION
from kipcheck.conformance.protocols.client import events, premises, terms, trace as client_trace
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_GROUPS, breach, law, timed
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.group.request_rules import shares

PLACE = 40

INT32: Final = 4
TURNS: Final = 2
"""So often in a row a leader gives up whose reason is the members that it is sent: once it may have another one."""
Search = Callable[[History], Iterator[Violation]]


@dataclass(frozen=True, slots=True)
class Led:
    """A SyncGroup of a client that leads, and the answer to its JoinGroup."""

    joined: events.AnswerSeen
    synced: client_trace.TracedEvent[events.RequestSeen]
    sizes: Mapping[str, int]
    """Topic -> partitions, as the client was sent them last in Metadata."""
    lasted_ms: int = 0
    """Until the client sent JoinGroup again, or was closed."""
    is_last: bool = True

    @property
    def subscriptions(self) -> dict[str, events.Subscribed | None]:
        """By member id."""
        return {member.id: member.subscription for member in self.joined.members or ()}

    @property
    def assignments(self) -> tuple[tuple[str, tuple[str, ...] | None], ...]:
        return self.synced.event.assignments or ()

    @property
    def all_sizes(self) -> Mapping[str, int]:
        """Topic -> partitions, as they were when the client was sent the members."""
        return self.joined.sizes or {}

    @property
    def is_readable(self) -> bool:
        return None not in self.subscriptions.values()

    @property
    def is_judged(self) -> bool:
        """Whether the client was sent the numbers of partitions of all subscribed topics.

        A client may assign before it has them, and join again when it has. What others subscribe to it has to ask for:
        an assignment without it counts, if the client made not up for it.
        """
        topics = {id: {*found.topics} for id, found in self.subscriptions.items() if found is not None}
        wanted = {n: size for n, size in self.all_sizes.items() if n in set[str]().union(*topics.values())}
        unknown = wanted.keys() - self.sizes.keys()
        if set[str]().union(*topics.values()).intersection(self.sizes) - wanted.keys():
            return False  # it was deleted since
        if any(self.sizes.get(name, size) != size for name, size in wanted.items()):
            return False
        rests = self.is_last and self.lasted_ms > terms.GRACE_MS
        return not unknown or (rests and unknown.isdisjoint(topics.get(self.joined.member or "", ())))

    @property
    def op(self) -> Op:
        """As an assignment of an assignor."""
        topics = [{"name": name, "partitions": size, "racks": None} for name, size in self.all_sizes.items()]
        assignor = self.joined.protocol or ""
        members = [_member(member, assignor) for member in self.joined.members or ()]
        given = [{"id": id, "partitions": _pairs(partitions or ())} for id, partitions in self.assignments]
        step = Step("leader", "assign", {"assignor": assignor, "topics": topics, "members": members})
        return Op(self.synced.step, step, Replied((("assignment", given),)))


def _member(member: events.ListedMember, assignor: str) -> dict[str, Any]:
    found = member.subscription or events.Subscribed(0, ())
    generation, data = found.generation, found.data
    if assignor == COOPERATIVE and generation is None and data and len(data) >= 2 * INT32:
        generation = int.from_bytes(bytes.fromhex(data)[:INT32], "big", signed=True)
    return {
        "id": member.id, "subscription": [*found.topics], "owned": _pairs(found.owned or ()),
        "generation": NO_GENERATION if generation is None else generation, "instance": member.instance, "rack": None,
        "userData": data,
    }  # fmt: skip


def _pairs(names: Iterable[str]) -> list[list[Any]]:
    return [[topic, int(number)] for topic, _, number in (name.rpartition("-") for name in names)]


@cached_on_history
def led(history: History) -> tuple[Led, ...]:
    joined: events.AnswerSeen | None = None
    answers: list[client_trace.TracedEvent[events.AnswerSeen]] = []
    found: list[Led] = []
    rests = False
    late = client_trace.was_late(history)
    for traced in client_trace.trace(history):
        if found and rests:
            found[-1] = replace(found[-1], lasted_ms=traced.ms - found[-1].synced.ms)
        if isinstance(traced.event, client_trace.STARTS):
            answers, joined, rests = [], None, False
        elif client_trace.is_answer(traced, "Metadata"):
            answers.append(traced)
        elif client_trace.is_answer(traced, "JoinGroup"):
            joined = traced.event if traced.event.members is not None else None
        elif client_trace.is_request(traced, "SyncGroup") and joined is not None:
            if traced.event.carried == (joined.member, joined.generation):
                found.append(Led(joined, traced, _known_sizes(answers, traced.ms)))
                rests = not late
            joined = None
        elif found and client_trace.is_request(traced, "JoinGroup"):
            rests, found[-1] = False, replace(found[-1], is_last=False)
        elif isinstance(traced.event, events.Signalled):
            rests = False
    return tuple(found)


def _known_sizes(answers: list[client_trace.TracedEvent[events.AnswerSeen]], ms: int) -> dict[str, int]:
    """Topic -> partitions, as a client certainly has them at this time.

    An answer just before may not have been read. One that lacks topics may have been: a client may forget them all.
    """
    known: dict[str, int] = {}
    for traced in answers:
        if traced.error or traced.event.missing:
            known = {}
        elif traced.ms < ms - terms.RACE_MS:
            known |= traced.event.sizes or {}
    return known


def _judged_ops(history: History) -> tuple[Op, ...]:
    return tuple(
        led_round.op for led_round in led(history)
        if led_round.is_readable and led_round.is_judged and led_round.joined.protocol in ASSIGNORS
        and all(partitions is not None for _, partitions in led_round.assignments)
    )  # fmt: skip


def _is_judged(history: History) -> bool:
    """Whether the client led with an assignor of Kafka's, and was sent all that it had to know."""
    return bool(_judged_ops(history))


def _judged(history: History, *searches: Search) -> Iterator[Violation]:
    ops = _judged_ops(history)
    if not ops:
        return
    made = History(Case(SURVIVES_GROUPS, history.case.edition, Role.LEADER, tuple(op.step for op in ops)), "", ops)
    places = {led_round.synced.step: led_round.synced.place for led_round in led(history)}
    for search in searches:
        for found in search(made):
            place = places.get(found.at[-1])
            yield Violation(found.why, found.at, found.expected, found.observed, shape=found.shape, event=place)


@impact("A member of the group gets no assignment, or a stranger gets one", "stuck group", "answers", "stuck-group")
@law("client/assigns-to-everybody", "grp-12", "grp-67", premise=(premises.JOINED, premises.SYNCS))
def assigns_to_everybody(history: History) -> Iterator[Violation]:
    """A leader's SyncGroup has an assignment for each member and no other; that of a follower has none."""
    leads: bool | None = None
    for traced in client_trace.trace(history):
        if client_trace.is_answer(traced, "JoinGroup") and not traced.error:
            leads = traced.event.leads
        elif client_trace.is_request(traced, "SyncGroup") and not traced.event.pipelined and leads is False:
            number = len(traced.event.assignments or ())
            if number:
                yield breach(traced, "a follower sends assignments", "none", str(number), "follower")
    for round in led(history):
        members = round.subscriptions
        wrong = shares([id for id, _ in round.assignments], members)
        for id in wrong.missing:
            found = members[id]
            kind = ("unreadable",) if found is None else () if found.topics else ("no topics",)
            yield breach(round.synced, f"{id} is a member, and gets no assignment", id, "none", "member missing", *kind)
        for id in wrong.strangers:
            yield breach(round.synced, f"{id} gets an assignment, and is no member", "none", id, "stranger")
        for id in wrong.twice:
            yield breach(round.synced, f"{id} gets two assignments", "one", "two", "member twice")


@impact(
    "A partition has two readers, or none", "double processing", "ownership", "double-processing", "unread-partition"
)
@law("client/assigns-each-partition-once", "grp-03", "429-16", premise=_is_judged)
def assigns_each_partition_once(history: History) -> Iterator[Violation]:
    """A leader gives each partition of subscribed topics to one member that subscribes to it, and nothing else."""
    yield from _judged(history, assignments.nothing_else, assignments.one_owner, assignments.none_idle)


@impact("Members get more partitions than others without need", "trivia", "balance", "unfair-load")
@law("client/assigns-evenly", "grp-13", premise=_is_judged)
def assigns_evenly(history: History) -> Iterator[Violation]:
    """The shares that a leader gives differ by no more than its assignor allows."""
    yield from _judged(history, assignments.balance)


@impact(
    "A leader deals partitions out in another way than other clients do: they move when another member leads", "trivia",
    "order", "needless-move",
)  # fmt: skip
@law("client/assigns-by-rule", "grp-16", grade=Grade.SHOULD, premise=_is_judged)
def assigns_by_rule(history: History) -> Iterator[Violation]:
    """A leader without static members assigns with range and round robin as their rules say, in member id order."""
    yield from _judged(history, assignments.by_rule)


@impact(
    "A partition is assigned while another member still reads it", "double processing", "claims", "double-processing",
    links=("KIP-429",),
)  # fmt: skip
@law("client/hands-over", "429-05", "429-16", premise=_is_judged)
def hands_over(history: History) -> Iterator[Violation]:
    """A cooperative leader gives a claimed partition to no member that does not claim it."""
    yield from _judged(history, cooperation.hand_over)


@impact(
    "A leader gives a partition to a member whose claim is outdated, while its owner still reads it",
    "double processing", "claims", "double-processing", links=("KIP-429", "KAFKA-14639"),
)  # fmt: skip
@law("client/heeds-newer-claims", "429-16", "grp-24", grade=Grade.SHOULD, premise=_is_judged)
def heeds_newer_claims(history: History) -> Iterator[Violation]:
    """A cooperative leader gives a partition to no member whose claim is of an older generation than another one's."""
    yield from _judged(history, cooperation.hand_over_older)


def _shows_others(event: events.AnswerSeen) -> bool:
    """Whether a leader is sent another member, and each of them has a whole subscription to topics that exist. One with
    user data is left out: an assignor need not understand it."""
    others = [member.subscription for member in _others(event)]
    return bool(others) and all(
        found is not None and found.data is None and (event.sizes or {}).keys() >= {*found.topics} for found in others
    )


def _others(event: events.AnswerSeen) -> list[events.ListedMember]:
    return [member for member in event.members or () if member.id != event.member]


def _leads_others(history: History) -> bool:
    return any(
        client_trace.is_answer(traced, "JoinGroup") and _shows_others(traced.event)
        for traced in client_trace.trace(history)
    )


@impact(
    "A group gets no assignment, because its leader cannot read what another client wrote", "stuck group", "layout",
    "stuck-group", "refused-peer",
)  # fmt: skip
@law("client/leads-other-clients", "grp-162", "grp-67", premise=_leads_others)
def leads_other_clients(history: History) -> Iterator[Violation]:
    """A leader that is sent whole subscriptions of others sends SyncGroup, whatever version they have.

    It breaks this that assigned before, and joins again, or leaves, twice in a row without SyncGroup, though nothing
    that it was sent meanwhile was an error, and the broker closed no connection.
    """
    shown: events.AnswerSeen | None = None
    leads, has_assigned, turns = False, False, 0
    for traced in client_trace.trace(history):
        if isinstance(traced.event, client_trace.OVER):
            shown, leads, has_assigned, turns = None, False, False, 0
        elif client_trace.is_answer(traced, "JoinGroup") and not traced.error:
            leads = traced.event.members is not None
            shown = traced.event if has_assigned and _shows_others(traced.event) else None
            turns = turns if shown is not None else 0
        elif client_trace.is_request(traced, "SyncGroup"):
            shown, has_assigned, turns = None, has_assigned or leads, 0
        elif shown is not None and (
            (client_trace.is_answer(traced) and (traced.error or traced.event.missing))
            or (isinstance(traced.event, events.Closed) and traced.event.why)
        ):
            shown, turns = None, 0
        elif shown is not None and client_trace.is_request(traced, "JoinGroup", "LeaveGroup"):
            turns += 1
            if turns >= TURNS:
                others = [member.subscription for member in _others(shown)]
                versions = sorted({found.version for found in others if found is not None})
                named = f"of version {', '.join(map(str, versions))}"
                why = f"the leader is sent whole subscriptions {named}, and sends no SyncGroup, {turns} times in a row"
                yield breach(traced, why, "SyncGroup", traced.event.api, "no assignment")
            shown = None


@impact(
    "New partitions of a topic are not read: no member joins again for them", "stuck group", "gating",
    "unread-partition",
)  # fmt: skip
@timed(
    "client/joins-for-new-partitions", "grp-230", grade=Grade.SHOULD, premise=lambda history: any(_outgrown(history))
)
def joins_for_new_partitions(history: History) -> Iterator[Violation]:
    """A leader that is sent that a topic of its group has more partitions joins again within its session timeout.

    A program that works between two polls may do so that much later. What fails meanwhile may hinder it so long.
    """
    for traced, since_ms, longest_ms in _outgrown(history):
        if traced.ms > since_ms + longest_ms:
            why = f"{traced.ms - since_ms} ms ago the leader was sent that a topic has more partitions than it assigned"
            yield breach(traced, why, f"JoinGroup within {longest_ms} ms", "none", "new partitions", since_ms=since_ms)
            return


def _outgrown(history: History) -> Iterator[tuple[client_trace.TracedEvent[events.Event], int, int]]:
    """The events at which a stable leader knows of partitions that it has not assigned, since when, and in what time it
    joins again."""
    known: dict[str, int] = {}
    assigned: dict[str, int] = {}
    topics = frozenset[str]()
    since_ms, pause_ms, session_ms = terms.NEVER, 0, terms.SESSION_MS
    for traced in client_trace.trace(history):
        event = traced.event
        if isinstance(event, events.Launched):
            pause_ms = event.pause_ms or 0
        if isinstance(event, client_trace.OVER) or client_trace.is_request(traced, "JoinGroup", "LeaveGroup"):
            assigned, topics, since_ms = {}, frozenset(), terms.NEVER
        if client_trace.is_request(traced, "JoinGroup"):
            session_ms = client_trace.session_of(traced.event)
        elif client_trace.is_answer(traced, "JoinGroup") and not traced.error:
            subscribed = (member.subscription for member in traced.event.members or ())
            topics = frozenset(topic for each in subscribed if each is not None for topic in each.topics)
        elif client_trace.is_answer(traced, "SyncGroup") and not traced.error:
            assigned = {name: size for name, size in known.items() if name in topics}
        elif client_trace.is_answer(traced, "Metadata") and not traced.error and not traced.event.missing:
            known |= traced.event.sizes or {}
            is_more = any(known[name] > size for name, size in assigned.items())
            since_ms = min(since_ms, traced.ms) if is_more else since_ms
        elif since_ms != terms.NEVER and (_hinders(traced) or traced.stopped):
            since_ms = traced.ms
        if since_ms != terms.NEVER and traced.certain is not None:
            yield traced, since_ms, session_ms + pause_ms


def _hinders(traced: client_trace.TracedEvent[events.Event]) -> bool:
    """Whether a connection is lost, or a request to the group fails."""
    fails = client_trace.is_answer(traced, *terms.OF_GROUPS, *terms.GROUP_REQUESTS) and bool(traced.error)
    return fails or isinstance(traced.event, events.Closed)
