"""What has to occur in the traffic of a client so that a law says something of it.

A premise is a list of kinds of events, which have to occur in this order, with others between them. A history without
them breaks no law, and does not keep it either: it is not judged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, RANGE, ROUNDROBIN, STICKY
from kipcheck.conformance.protocols.client import events, terms
from kipcheck.conformance.protocols.client.trace import events_of, generation_of

Premise: TypeAlias = Callable[[History], bool]

EAGER: Final = frozenset({RANGE, ROUNDROBIN, STICKY})
"""Kafka's assignors that support nothing else: a member that offers one is eager."""
PROTOCOL_SINCE: Final = 5
"""The version of SyncGroup that has the type of consumers and the protocol."""

# Requests
REQUEST: Final = "request"
JOINS: Final = "JoinGroup"
SYNCS: Final = "SyncGroup"
SYNCS_WITH_PROTOCOL: Final = f"SyncGroup v{PROTOCOL_SINCE}"
BEATS: Final = "Heartbeat"
BEATS_ANEW: Final = terms.HEARTBEAT
BEATS_EITHER_WAY: Final = "a heartbeat of either kind of groups"
COMMITS: Final = "OffsetCommit"
COMMITS_AS_MEMBER: Final = "OffsetCommit with a member id"
FETCHES: Final = "Fetch"
AS_MEMBER: Final = "a request with a member id and a generation"
EMBEDS: Final = "a subscription or an assignment inside a request"
OWNS: Final = f"{terms.HEARTBEAT} with owned partitions"
OFFERS_EAGER: Final = "JoinGroup with an eager assignor"
OFFERS_COOPERATIVE: Final = "JoinGroup with the cooperative assignor alone"
# Answers
JOINED: Final = "JoinGroup answered"
LEADS: Final = "JoinGroup answered with the members"
SYNCED: Final = "SyncGroup answered"
HAS_EPOCH: Final = "a heartbeat answered with an epoch"
ASSIGNED: Final = "partitions assigned"
COMMITTED: Final = "a committed offset"
RECORDS: Final = "records"
MEMBERSHIP_OVER: Final = "an error that ends a membership"
OLD_GENERATION: Final = "ILLEGAL_GENERATION"
FENCED_INSTANCE: Final = "FENCED_INSTANCE_ID"
MOVED: Final = "NOT_COORDINATOR"
# The script
HAS_INTERVAL: Final = "the program is started with a heartbeat interval"
HAS_TOPICS: Final = "the program is started with topics"
WAITED_FOR: Final = "the script waits for a stable member"
SIGNALLED: Final = "SIGTERM"
ENDED: Final = "the program ends"
ENDS: Final = "SIGTERM, or the program ends"

GIVEN: Final = {"heartbeat_ms": HAS_INTERVAL, "topics": HAS_TOPICS}
"""What the program is started with."""
SUBSCRIBES: Final = "a subscription of a client"

READS: Final = (ASSIGNED, RECORDS)
"""A client reads: it is sent records once it is assigned partitions."""
NEVER_READ: Final = "the client was given no record, so it never read"
"""Why a run is inconclusive; ``kipcheck doctor`` shows what such a client sent."""


def occurring(*kinds: str) -> Premise:
    """The premise that events of these kinds occur, in this order."""
    return partial(_occur, kinds)


def _occur(kinds: Sequence[str], history: History) -> bool:
    return in_order(_kinds_of(history), kinds)


def reads(events: Iterable[events.Event]) -> bool:
    """Whether a client reads, in these events."""
    return in_order([frozenset(kinds(event)) for event in events], READS)


def in_order(there: Sequence[frozenset[str]], wanted: Sequence[str]) -> bool:
    left = iter(there)
    return all(any(kind in kinds for kinds in left) for kind in wanted)


@cached_on_history
def _kinds_of(history: History) -> tuple[frozenset[str], ...]:
    by_event = (frozenset(kinds(event)) for _, event in events_of(history))
    return tuple(found for found in by_event if found)


def kinds(event: events.Event) -> Iterator[str]:
    """The kinds that an event is of."""
    match event:
        case events.RequestSeen():
            yield from _of_request(event)
        case events.AnswerSeen(error=error) if error:
            yield from _of_error(event.api, error)
        case events.AnswerSeen():
            yield from _of_answer(event)
        case events.RequestRefused():
            yield REQUEST
        case events.RecordDamaged():
            yield EMBEDS
        case events.Launched():
            yield from (kind for name, kind in GIVEN.items() if getattr(event, name) is not None)
        case events.Unsettled():
            yield WAITED_FOR
        case events.Settled(unsent=()):
            yield WAITED_FOR
        case events.Signalled():
            yield from (SIGNALLED, ENDS)
        case events.Ended():
            yield from (ENDED, ENDS)
        case events.Killed():
            yield ENDS


def _of_request(event: events.RequestSeen) -> Iterator[str]:
    api = event.api
    yield REQUEST
    yield api
    if api in (BEATS, BEATS_ANEW):
        yield BEATS_EITHER_WAY
    if api in terms.GROUP_REQUESTS:
        yield AS_MEMBER
    if api == COMMITS and event.member:
        yield COMMITS_AS_MEMBER
    if event.protocols or event.assignments:
        yield EMBEDS
    if api == SYNCS and event.version >= PROTOCOL_SINCE:
        yield SYNCS_WITH_PROTOCOL
    if any(event.subscriptions or ()) or (api == terms.HEARTBEAT and event.topics is not None):
        yield SUBSCRIBES
    if api == terms.HEARTBEAT and event.owned:
        yield OWNS
    offered = frozenset(event.assignors)
    if offered & EAGER:
        yield OFFERS_EAGER
    if offered == {COOPERATIVE}:
        yield OFFERS_COOPERATIVE


def _of_error(api: str, error: int) -> Iterator[str]:
    if error in terms.FENCING:
        yield MEMBERSHIP_OVER
    if error == terms.ILLEGAL_GENERATION:
        yield OLD_GENERATION
    if error == terms.FENCED_INSTANCE_ID:
        yield FENCED_INSTANCE
    if error == terms.NOT_COORDINATOR and api in (*terms.GROUP_REQUESTS, JOINS, terms.HEARTBEAT):
        yield MOVED


def _of_answer(event: events.AnswerSeen) -> Iterator[str]:
    match event.api:
        case "JoinGroup":
            yield JOINED
            if event.sizes is not None:
                yield LEADS
        case "SyncGroup":
            yield SYNCED
        case "ConsumerGroupHeartbeat" if generation_of(event) > 0:
            yield HAS_EPOCH
        case "OffsetFetch" if any(offset >= 0 for offset in (event.committed or {}).values()):
            yield COMMITTED
        case "Fetch" if event.records:
            yield RECORDS
    if event.api in (SYNCS, terms.HEARTBEAT) and event.partitions:
        yield ASSIGNED
