"""Laws of partitions: what a client reads, commits and claims is what it was assigned."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError, error_name
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, NO_GENERATION, STICKY
from kipcheck.conformance.protocols.assignment.ops import read_user_data, user_data_version
from kipcheck.conformance.protocols.client import premises, terms, trace as client_trace
from kipcheck.conformance.protocols.client.events import (
    Closed,
    Event,
    Frozen,
    Launched,
    Opened,
    RequestSeen,
    Signalled,
    Subscribed,
    Thawed,
)
from kipcheck.conformance.protocols.client.invariants.law import OF_STREAMS, breach, law, listed, timed
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 60

HINDERS: Final = (Opened, Closed, Thawed)
"""What keeps a client from reading for a while."""
NO_FAILURES: Final = (KafkaError.NONE, KafkaError.REBALANCE_IN_PROGRESS)
VERSION_BYTES: Final = 2
LOOKED_UP: Final = "offset looked up"
"""The client sent ListOffsets for partitions that it had not any more."""


@impact("A consumer reads partitions of other members", "double processing", "ownership", "double-processing")
@timed("client/reads-its-own", "grp-61", checks=OF_STREAMS, premise=premises.READS, essential=premises.NEVER_READ)
def reads_its_own(history: History) -> Iterator[Violation]:
    """A client fetches only partitions that it is assigned, or was until a second ago."""
    looked_up: set[str] = set()
    for traced in client_trace.trace(history):
        if client_trace.is_request(traced, "ListOffsets") and traced.memberships:
            looked_up |= {*(traced.event.partitions or ())} - traced.memberships[-1].partitions
        if not client_trace.is_request(traced, "Fetch"):
            continue
        mine = _all(membership for membership in traced.memberships if membership.is_current(traced.ms))
        strange = {*(traced.event.partitions or ())} - mine
        if strange and _is_known(traced):
            how = (LOOKED_UP,) if strange <= looked_up else ()
            yield _strange(traced, "fetches", strange, mine, _all(iter(traced.memberships)), *how)


@impact("A consumer overwrites the offsets of other members", "wrong data", "ownership", "double-processing")
@timed(
    "client/commits-its-own",
    "grp-61",
    "grp-88",
    checks=OF_STREAMS,
    premise=(premises.ASSIGNED, premises.COMMITS_AS_MEMBER),
)
def commits_its_own(history: History) -> Iterator[Violation]:
    """A client commits only partitions that it was assigned in the generation of its OffsetCommit.

    A cooperative member commits what it has to revoke in the generation that takes it away; an eager one has revoked
    all before it joined.
    """
    is_eager = False
    for traced in client_trace.trace(history):
        if client_trace.is_request(traced, "JoinGroup"):
            is_eager = not premises.EAGER.isdisjoint(traced.event.assignors)
        if not client_trace.is_request(traced, "OffsetCommit") or not traced.event.member:
            continue
        given = traced.event.member, client_trace.generation_of(traced.event)
        allowed = _all(
            membership for membership in traced.memberships
            if membership.carried == given and (membership.synced_ms is not None or membership.is_current(traced.ms))
        )  # fmt: skip
        now = traced.now
        if not (is_eager and now is not None and traced.earliest_ms > (now.synced_ms or terms.NEVER) + terms.RACE_MS):
            allowed |= _all(
                membership
                for membership in traced.memberships
                if membership.until_ms is not None and membership.is_current(traced.ms)
            )
        strange = {*(traced.event.partitions or ())} - allowed
        known = any(membership.carried == given for membership in traced.memberships)
        if strange and known and _is_known(traced):
            yield _strange(traced, "commits", strange, allowed, _all(iter(traced.memberships)))


@impact(
    "A consumer reads on while the group rebalances, beside the next owner of a partition", "double processing",
    "ownership", "double-processing",
)  # fmt: skip
@timed(
    "client/stops-reading-to-join", "grp-168", grade=Grade.SHOULD,
    premise=(premises.ASSIGNED, premises.RECORDS, premises.OFFERS_EAGER),
)  # fmt: skip
def stops_reading_to_join(history: History) -> Iterator[Violation]:
    """An eager member fetches nothing from its JoinGroup on until it has an assignment."""
    joins_ms: int | None = None
    for traced in client_trace.trace(history):
        if isinstance(traced.event, client_trace.STARTS):
            joins_ms = None
        elif client_trace.is_request(traced, "JoinGroup"):
            joins_ms = None if premises.EAGER.isdisjoint(traced.event.assignors) else joins_ms or traced.ms
        elif client_trace.is_answer(traced, "SyncGroup") and not traced.error:
            joins_ms = None
        elif (
            client_trace.is_request(traced, "Fetch") and traced.event.partitions  # else it ends its fetch session
            and traced.earliest_ms > (joins_ms or terms.NEVER) + terms.RACE_MS
        ):  # fmt: skip
            strange = listed(traced.event.partitions)
            why = f"the client fetches {strange} while it joins its group"
            yield breach(traced, why, "nothing", strange, "while it joins", since_ms=joins_ms)
            joins_ms = None


def hindered_ms(traced: client_trace.TracedEvent[Event], before_ms: int) -> int:
    """When something last kept a client from reading and committing: a connection, a stop, a refusal, a join.

    ``before_ms``: the same before this event. A process that is stopped is kept from it until it goes on.
    """
    if isinstance(traced.event, Frozen):
        return terms.NEVER
    refused = client_trace.is_answer(traced) and traced.error not in (0, KafkaError.REBALANCE_IN_PROGRESS)
    joins = client_trace.is_request(traced, "JoinGroup", "FindCoordinator")
    hinders = refused or joins or isinstance(traced.event, HINDERS)
    return traced.ms if hinders and (before_ms != terms.NEVER or isinstance(traced.event, Thawed)) else before_ms


@dataclass(slots=True)
class _Reading:
    """Which partitions of a member are read."""

    waits: dict[int, list[RequestSeen]] = field(default_factory=dict)
    """By connection: the requests without an answer that ask for partitions."""
    asked_ms: dict[tuple[int, str], int] = field(default_factory=dict)
    """When requests of other kinds were sent that have no answer, by connection and kind."""
    seen_ms: dict[str, int] = field(default_factory=dict)
    """When the client was assigned a partition, or asked for it last."""
    hindered_ms: int = 0
    """When something last kept the client from reading."""
    missing: set[str] = field(default_factory=set)
    """The topics that do not exist, as far as the client was sent."""
    is_judged: bool = True
    """Whether its program takes records as soon as they come."""
    rebalances: bool = False
    """Whether the group does, as far as the client was sent."""
    has_read: bool = False
    """Whether it ever was sent a record: that it never is shows in ``client/reads-its-own``."""
    beats_ms: int = 0
    """When it last sent anything that makes its coordinator keep it."""

    def read(self, traced: client_trace.TracedEvent[Event]) -> None:
        event, now = traced.event, traced.certain
        if isinstance(event, Launched):
            self.is_judged = not event.pause_ms and event.commit != "late"
        elif isinstance(event, Signalled):
            self.is_judged = False
        if client_trace.is_request(traced, *terms.COORDINATED):
            self.beats_ms = traced.ms
        if client_trace.is_request(traced, "JoinGroup") or traced.error == KafkaError.REBALANCE_IN_PROGRESS:
            self.rebalances = True
        elif client_trace.is_answer(traced, "SyncGroup", *terms.HEARTBEATS) and not traced.error:
            self.rebalances = False
        rests = now is not None and now.synced_ms is not None and now.adopted and not self.rebalances
        mine = now.partitions if rests and now is not None else frozenset[str]()
        self.seen_ms = {name: self.seen_ms.get(name, event.ms) for name in mine}
        if client_trace.is_request(traced, "Fetch", "OffsetFetch", "ListOffsets"):
            self.waits.setdefault(traced.event.connection, []).append(traced.event)
            self._asks(traced.event, traced.ms)
        elif client_trace.is_answer(traced, "Fetch", "OffsetFetch", "ListOffsets"):
            waiting = self.waits.get(traced.event.connection) or []
            at = next((at for at, each in enumerate(waiting) if each.api == traced.event.api), None)
            if at is not None:
                self._asks(waiting.pop(at), traced.ms)
        elif isinstance(event, Closed):
            self.waits.pop(event.connection, None)
        if client_trace.is_answer(traced, "Fetch") and traced.event.records:
            self.has_read = True
        if client_trace.is_answer(traced, "Metadata"):
            there = traced.event.sizes or {}
            self.missing |= {terms.topic_of(name) for name in mine} if traced.event.missing else set()
            self.missing -= there.keys()
        self.hindered_ms = hindered_ms(traced, self.hindered_ms)
        self._wait_for_answers(traced)

    def _wait_for_answers(self, traced: client_trace.TracedEvent[Event]) -> None:
        """A client may read nothing while its broker answers nothing: sarama and kafkajs share a connection."""
        event = traced.event
        if client_trace.is_request(traced) and event not in self.waits.get(traced.event.connection, ()):
            self.asked_ms.setdefault((traced.event.connection, traced.event.api), traced.ms)
        elif client_trace.is_answer(traced):
            asked_ms = self.asked_ms.pop((traced.event.connection, traced.event.api), traced.ms)
            if traced.ms > asked_ms + terms.GRACE_MS and self.hindered_ms != terms.NEVER:
                self.hindered_ms = traced.ms
        elif isinstance(event, Closed):
            self.asked_ms = {key: ms for key, ms in self.asked_ms.items() if key[0] != event.connection}

    def _asks(self, request: RequestSeen, ms: int) -> None:
        self.seen_ms |= {name: ms for name in self.seen_ms if _is_asked_for(name, request)}

    def unread(self, ms: int) -> Iterator[tuple[str, int]]:
        """The partitions that are not read, and since when."""
        if any(ms > asked_ms + terms.GRACE_MS for asked_ms in self.asked_ms.values()):
            return
        waiting = [each for requests in self.waits.values() for each in requests]
        for name, seen_ms in self.seen_ms.items() if self.has_read and self.is_judged else ():
            since_ms = max(seen_ms, self.hindered_ms)
            if terms.topic_of(name) in self.missing or self.beats_ms < since_ms + terms.GRACE_MS:
                continue
            if ms > since_ms + terms.UNREAD_MS and not any(_is_asked_for(name, each) for each in waiting):
                yield name, since_ms


def _is_asked_for(name: str, request: RequestSeen) -> bool:
    """An OffsetFetch without partitions is for all."""
    return name in (request.partitions or ()) or (request.api == "OffsetFetch" and not request.partitions)


@impact(
    "A consumer does not read what it is assigned: nothing else does", "stuck group", "ownership", "unread-partition"
)
@timed("client/reads-what-it-is-assigned", "grp-169", "grp-61", premise=premises.READS)
def reads_what_it_is_assigned(history: History) -> Iterator[Violation]:
    """A member of a stable group asks for each of its partitions again and again: for records, or where to begin.

    One that sends its group nothing either breaks ``client/beats``: the others get its partitions.
    """
    reading, found = _Reading(), set[str]()
    for traced in client_trace.trace(history):
        reading.read(traced)
        unread = {name: since_ms for name, since_ms in reading.unread(traced.ms) if name not in found}
        found &= reading.seen_ms.keys()
        if unread:
            found |= unread.keys()
            why = f"the member has {listed(unread)}, and does not read it for {terms.UNREAD_MS / 1000:.0f} s"
            yield breach(traced, why, "Fetch", "none", "not read", since_ms=min(unread.values()))


def _all(memberships: Iterator[client_trace.Membership]) -> frozenset[str]:
    return frozenset[str]().union(*(membership.partitions for membership in memberships))


def _is_new(traced: client_trace.TracedEvent[Event]) -> bool:
    """Whether there was no assignment yet."""
    return not any(membership.synced_ms is not None for membership in traced.memberships)


def _is_known(traced: client_trace.TracedEvent[Event]) -> bool:
    """Whether there was an assignment, and all could be read."""
    return not _is_new(traced) and not _has_unread(traced)


def _has_unread(traced: client_trace.TracedEvent[Event]) -> bool:
    return any(membership.unread for membership in traced.memberships)


def _strange(
    traced: client_trace.TracedEvent[Event],
    does: str,
    strange: set[str],
    mine: frozenset[str],
    ever: frozenset[str],
    *more: str,
) -> Violation:
    how = "taken away" if ever.issuperset(strange) else "never assigned"
    last = traced.memberships[-1]
    by = (f"{last.ended_by} {error_name(last.error)}",) if last.ended_by else ()
    why = f"the client {does} {listed(strange)}, {how}"
    ended_ms = [
        membership.until_ms
        for membership in traced.memberships
        if membership.until_ms is not None and membership.partitions & strange
    ]
    since_ms = max(ended_ms, default=last.since_ms)
    return breach(traced, why, f"within {listed(mine)}", listed(strange), how, *by, *more, since_ms=since_ms)


# What it claims when it joins


@impact(
    "An eager consumer claims partitions, so that a leader may take them for still owned", "trivia", "claims",
    "needless-move", links=("KIP-429",),
)  # fmt: skip
@law("client/owns-nothing-when-eager", "grp-60", premise=(premises.ASSIGNED, premises.OFFERS_EAGER))
def owns_nothing_when_eager(history: History) -> Iterator[Violation]:
    """A member that offers an eager assignor owns nothing when it joins."""
    for traced in client_trace.trace(history):
        if not client_trace.is_request(traced, "JoinGroup") or premises.EAGER.isdisjoint(traced.event.assignors):
            continue
        for name, found in zip(traced.event.assignors, traced.event.subscriptions or (), strict=True):
            if found is not None and found.owned:
                why = f"the subscription of an eager member for {name} claims {listed(found.owned)}"
                yield breach(traced, why, "nothing", listed(found.owned), "eager claim")
                break


@impact(
    "A subscription claims partitions that the member does not own, or omits some", "double processing", "claims",
    "double-processing", links=("KIP-429", "KAFKA-12984"),
)  # fmt: skip
@law("client/claims-what-it-owns", "grp-62", premise=(premises.ASSIGNED, premises.OFFERS_COOPERATIVE))
def claims_what_it_owns(history: History) -> Iterator[Violation]:
    """A cooperative member joins with the partitions of its last assignment, and the generation that it has."""
    unseen, unanswered, failed, lost_ms = False, set[int](), 0, terms.NEVER
    for traced in client_trace.trace(history):
        # The SyncGroup that follows a JoinGroup may wait behind a Fetch, and is then lost with the connection, unread.
        if client_trace.is_request(traced, *terms.OF_GROUPS) and (
            traced.answered is None or client_trace.is_request(traced, "JoinGroup")
        ):
            unanswered.add(traced.event.connection)
        elif (isinstance(traced.event, Closed) and traced.event.connection in unanswered) or (
            client_trace.is_answer(traced, *terms.OF_GROUPS)
            and (traced.error in terms.OF_COORDINATORS or traced.in_doubt)
        ) or (
            client_trace.is_answer(traced, "ListOffsets") and traced.error
        ) or (client_trace.is_answer(traced, "Fetch") and traced.error == KafkaError.OFFSET_OUT_OF_RANGE):  # fmt: skip
            lost_ms = min(lost_ms, traced.ms)
        elif client_trace.is_answer(traced, "Heartbeat") and traced.error not in (*terms.FENCING, *NO_FAILURES):
            failed += 1
            if failed > 1:  # franz-go 1.22.2 gives its session up after several
                lost_ms = min(lost_ms, traced.ms)
        elif client_trace.is_answer(traced, "SyncGroup") or (
            client_trace.is_request(traced, "Fetch") and traced.earliest_ms > lost_ms + terms.RACE_MS
        ):
            failed, lost_ms = 0, terms.NEVER
            if client_trace.is_answer(traced):
                unanswered.discard(traced.event.connection)
        if not client_trace.is_request(traced, "JoinGroup") or traced.event.pipelined:
            continue
        unseen |= traced.event.member is None
        # A history that begins amid a membership does not say what the member had before, and a client that raised an
        # error that is fatal may have given everything up.
        unsaid = (unseen and _is_new(traced)) or traced.shut_out or _has_unread(traced)
        if {*traced.event.assignors} != {COOPERATIVE} or unsaid:
            continue
        found = next(iter(traced.event.subscriptions or ()), None)
        # One whose request to its group failed may take its partitions for lost, if it does not read on; so may one
        # that got no place to begin: sarama 1.61.1 ends its session then. One that joins as a new member, since
        # it was silent for its session timeout, has none.
        gave_up = (lost_ms <= traced.ms or not traced.event.member) and found is not None and not found.owned
        if found is not None and found.owned is not None and not gave_up:
            yield from _claims(traced, found, {*found.owned})


def _claims(traced: client_trace.TracedEvent[RequestSeen], found: Subscribed, claimed: set[str]) -> Iterator[Violation]:
    right = [{each for each in owned if terms.topic_of(each) in found.topics} for owned in _owned(traced)]
    if claimed not in right:
        more = claimed - set().union(*right)
        shape = "after its membership ended" if traced.now is None else "too many" if more else "too few"
        why = f"the subscription claims {listed(claimed)}; the member owns {listed(right[0])}"
        yield breach(traced, why, listed(right[0]), listed(claimed), "owned", shape)
    now, generation = traced.now, found.generation
    if now is not None and generation is not None and generation not in _generations(traced, now):
        why = f"the subscription is of generation {generation}, the member of {now.generation}"
        yield breach(traced, why, f"generation {now.generation}", str(generation), "generation")


@impact(
    "What a cooperative consumer gave up is read by no member before the next rebalance", "stuck group", "ownership",
    "unread-partition", links=("KIP-429",),
)  # fmt: skip
@timed("client/rejoins-after-revoking", "429-15", premise=lambda history: any(_revoked(history)))
def rejoins_after_revoking(history: History) -> Iterator[Violation]:
    """A member that is given less than it claimed by a cooperative assignor joins again within three seconds.

    Only then another member gets it.
    What fails meanwhile, and a program that works between two polls, may hinder it so long.
    """
    for traced, since_ms, longest_ms, lost in _revoked(history):
        if traced.ms > since_ms + longest_ms:
            why = f"{traced.ms - since_ms} ms ago the member lost {listed(lost)}, which it had claimed"
            yield breach(traced, why, f"JoinGroup within {longest_ms} ms", "none", "no JoinGroup", since_ms=since_ms)
            return


def _revoked(history: History) -> Iterator[tuple[client_trace.TracedEvent[Event], int, int, frozenset[str]]]:
    """The events at which a member is to join again, since when, in what time, and what it lost."""
    nothing = frozenset[str]()
    claimed, lost, protocol, since_ms, pause_ms = nothing, nothing, "", terms.NEVER, 0
    for traced in client_trace.trace(history):
        event, now = traced.event, traced.certain
        if isinstance(event, Launched):
            pause_ms = event.pause_ms or 0
        if now is None or isinstance(event, client_trace.OVER) or client_trace.is_request(traced, "LeaveGroup"):
            claimed, since_ms = nothing, terms.NEVER
        elif client_trace.is_request(traced, "JoinGroup"):
            found = dict(zip(traced.event.assignors, traced.event.subscriptions or (), strict=False)).get(COOPERATIVE)
            claims = None if found is None else found.owned
            claimed, since_ms = now.partitions.intersection(claims or ()), terms.NEVER
        elif client_trace.is_answer(traced, "JoinGroup"):
            protocol = traced.event.protocol or ""
        elif client_trace.is_answer(traced, "SyncGroup") and not traced.error:
            answer = traced.event
            is_told = protocol == COOPERATIVE and not (answer.empty or answer.unread or traced.in_doubt)
            lost, claimed = claimed.difference(answer.partitions or ()) if is_told else nothing, nothing
            since_ms = traced.ms if lost else terms.NEVER
        elif since_ms != terms.NEVER and (client_trace.has_failed(traced) or traced.stopped):
            since_ms = traced.ms
        if since_ms != terms.NEVER:
            yield traced, since_ms, terms.UNREAD_MS + 2 * pause_ms, lost


@impact(
    "A sticky consumer does not say what it had, so that its leader assigns all partitions anew", "trivia", "claims",
    "needless-move", links=("KIP-54",),
)  # fmt: skip
@law("client/claims-in-its-user-data", "grp-231", grade=Grade.SHOULD, premise=lambda history: any(_sticky(history)))
def claims_in_its_user_data(history: History) -> Iterator[Violation]:
    """A member that led by the sticky assignor joins again with its last assignment, and the generation, as user data.

    One that followed may have its user data from its leader, as in sarama.
    """
    for traced, now, data in _sticky(history):
        claims, generation = read_user_data(data) or ((), NO_GENERATION)
        claimed = frozenset(f"{topic}-{number}" for topic, number in claims)
        if claimed not in (right := _owned(traced)):
            why = f"the user data claims {listed(claimed)}; the member had {listed(right[0])}"
            yield breach(traced, why, listed(right[0]), listed(claimed), "user data", "claims" if claims else "none")
        elif user_data_version(data) and generation not in _generations(traced, now):
            why = f"the user data is of generation {generation}, the assignment of {now.generation}"
            yield breach(traced, why, f"generation {now.generation}", str(generation), "user data", "generation")


def _sticky(
    history: History,
) -> Iterator[tuple[client_trace.TracedEvent[RequestSeen], client_trace.Membership, bytes]]:
    """Each JoinGroup of a member that led by the sticky assignor and certainly has partitions, with its user data."""
    has_led = False
    for traced in client_trace.trace(history):
        if client_trace.is_answer(traced, "JoinGroup") and not traced.error:
            has_led = bool(traced.event.leads) and traced.event.protocol == STICKY
        elif client_trace.has_failed(traced) and traced.error != KafkaError.REBALANCE_IN_PROGRESS:
            has_led = False
        now = traced.certain
        if not (has_led and now is not None and client_trace.is_request(traced, "JoinGroup")):
            continue
        found = dict(zip(traced.event.assignors, traced.event.subscriptions or (), strict=False)).get(STICKY)
        if found is not None and now.synced_ms is not None and now.partitions and not traced.event.pipelined:
            data = bytes.fromhex(found.data or "")
            # kafka-python writes a version in front, which assign/writes-user-data judges
            yield traced, now, data if read_user_data(data) is not None else data[VERSION_BYTES:]


def _generations(traced: client_trace.TracedEvent[Event], now: client_trace.Membership) -> set[int]:
    """That of the member, or of its last assignment: a SyncGroup that fails gives it a generation without one."""
    last = next((membership for membership in reversed(traced.memberships) if membership.synced_ms is not None), None)
    known = {now.generation, *(() if last is None else (last.generation,))}
    return known if last is not None and not last.error else known | {NO_GENERATION}


def _owned(traced: client_trace.TracedEvent[Event]) -> list[frozenset[str]]:
    """What the member may own, the likeliest first."""
    nothing = frozenset[str]()
    if traced.now is None:
        last = traced.memberships[-1] if traced.memberships else None
        is_kept = last is not None and last.error == KafkaError.ILLEGAL_GENERATION
        return [nothing, last.partitions] if last is not None and is_kept else [nothing]
    right = [
        traced.now.partitions,
        *(membership.partitions for membership in traced.memberships[:-1] if membership.until_ms is None),
    ]
    recent = traced.now.synced_ms is not None and traced.ms <= traced.now.synced_ms + terms.RACE_MS
    if len(traced.memberships) > 1 and (recent or not traced.now.adopted):
        right.append(traced.memberships[-2].partitions)
    return right
