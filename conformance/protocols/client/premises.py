"""What has to occur in the traffic of a client so that a law says something of it.

A premise is a list of kinds of events, which have to occur in this order, with others between them. A history without
them breaks no law, and does not keep it either: it is not judged.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, RANGE, ROUNDROBIN, STICKY
from kipcheck.conformance.protocols.client import events, terms
from kipcheck.conformance.protocols.client.trace import events_of, generation_of
from kipcheck.conformance.protocols.group.request_rules import PROTOCOL_SINCE

Premise: TypeAlias = Callable[[History], bool]
Kind: TypeAlias = Callable[[events.Event], Any]
"""Whether an event is of the kind: true or false in a condition."""

EAGER: Final = frozenset({RANGE, ROUNDROBIN, STICKY})
"""Kafka's assignors that support nothing else: a member that offers one is eager."""


def _request(*apis: str, which: Callable[[events.RequestSeen], Any] = lambda request: True) -> Kind:
    return lambda event: isinstance(event, events.RequestSeen) and event.api in apis and which(event)


def _answer(*apis: str, which: Callable[[events.AnswerSeen], Any] = lambda answer: True) -> Kind:
    """An answer without an error."""
    return lambda event: isinstance(event, events.AnswerSeen) and event.api in apis and not event.error and which(event)


def _error(*errors: int, apis: Collection[str] = ()) -> Kind:
    return lambda event: (
        isinstance(event, events.AnswerSeen) and event.error in errors and (not apis or event.api in apis)
    )


def _is_a(*kinds: type[events.Event]) -> Kind:
    return lambda event: isinstance(event, kinds)


def _any(*kinds: Kind) -> Kind:
    return lambda event: any(kind(event) for kind in kinds)


# Requests
REQUEST: Final = _is_a(events.RequestSeen, events.RequestRefused)
JOINS: Final = _request("JoinGroup")
SYNCS: Final = _request("SyncGroup")
SYNCS_WITH_PROTOCOL: Final = _request("SyncGroup", which=lambda sync: sync.version >= PROTOCOL_SINCE)
BEATS_ANEW: Final = _request(*terms.HEARTBEATS)
BEATS_EITHER_WAY: Final = _request("Heartbeat", *terms.HEARTBEATS)
COMMITS: Final = _request("OffsetCommit")
COMMITS_AS_MEMBER: Final = _request("OffsetCommit", which=lambda commit: commit.member)
FETCHES: Final = _request("Fetch")
ASKS_FOR_OFFSETS: Final = _request("OffsetFetch")
AS_MEMBER: Final = _request(*terms.GROUP_REQUESTS)
LEAVES: Final = _request("LeaveGroup")
OWNS: Final = _request(*terms.HEARTBEATS, which=lambda beat: beat.owned)
GIVES_UP: Final = _request(*terms.HEARTBEATS, which=lambda beat: beat.owned is not None)
OFFERS_EAGER: Final = _request("JoinGroup", which=lambda join: not EAGER.isdisjoint(join.assignors))
OFFERS_COOPERATIVE: Final = _request("JoinGroup", which=lambda join: {*join.assignors} == {COOPERATIVE})
BEATS_TO_SHARE: Final = _request(terms.SHARE_HEARTBEAT)
SHARES: Final = _request("ShareFetch", "ShareAcknowledge")
ACKNOWLEDGES: Final = _request("ShareFetch", "ShareAcknowledge", which=lambda request: request.acknowledged)
# Answers
ACQUIRED: Final = _answer("ShareFetch", which=lambda answer: answer.acquired)
JOINED: Final = _answer("JoinGroup")
SYNCED: Final = _answer("SyncGroup")
HAS_EPOCH: Final = _answer(*terms.HEARTBEATS, which=lambda answer: generation_of(answer) > 0)
ASSIGNED: Final = _answer("SyncGroup", *terms.HEARTBEATS, which=lambda answer: answer.partitions)
COMMITTED: Final = _answer("OffsetFetch", which=lambda answer: max((answer.committed or {}).values(), default=-1) >= 0)
COMMITTED_OR_NONE: Final = _answer("OffsetFetch", which=lambda answer: answer.committed)
RECORDS: Final = _answer("Fetch", which=lambda answer: answer.records)
MEMBERSHIP_OVER: Final = _error(*terms.FENCING)
OLD_GENERATION: Final = _error(KafkaError.ILLEGAL_GENERATION)
FENCED_INSTANCE: Final = _error(KafkaError.FENCED_INSTANCE_ID)
ENDING_BEAT: Final = _error(*terms.ENDING, apis=terms.HEARTBEATS)
OFFSETS_NOT_YET: Final = _error(*terms.OF_COORDINATORS, apis=("OffsetFetch",))
MOVED: Final = _error(KafkaError.NOT_COORDINATOR, apis=terms.COORDINATED)
# The script
SIGNALLED: Final = _is_a(events.Signalled)
ENDED: Final = _is_a(events.Ended)
CLOSES: Final = (SIGNALLED, ENDED)
CALLED: Final = _is_a(events.CalledBack)
GIVES_BACK: Final[Kind] = lambda event: isinstance(event, events.CalledBack) and event.callback in ("revoked", "lost")
ENDS: Final = _is_a(events.Signalled, events.Ended, events.Killed)

HAS_PATTERN: Final[Kind] = lambda event: isinstance(event, events.Launched) and event.pattern
TOO_SLOW: Final[Kind] = lambda event: (
    isinstance(event, events.Launched)
    and event.max_poll_ms is not None
    and (event.pause_ms or 0) > event.max_poll_ms + terms.GRACE_MS
)
"""The program works for longer between two polls than it may, and than what this says of a client is uncertain."""
ENDS_ON_ERRORS: Final[Kind] = lambda event: isinstance(event, events.Launched) and event.ends_on_errors
REFUSED: Final = _error(*terms.FATAL, apis=("JoinGroup", "SyncGroup"))

# Several
EMBEDS: Final = _any(
    _is_a(events.RecordDamaged), _request("JoinGroup", which=lambda join: join.protocols),
    _request("SyncGroup", which=lambda sync: sync.assignments),
)  # fmt: skip
"""A subscription or an assignment inside a request."""
SUBSCRIBES: Final = _any(
    _request("JoinGroup", which=lambda join: any(join.subscriptions or ())),
    _request(*terms.HEARTBEATS, which=lambda beat: beat.topics is not None),
)
WAITED_FOR: Final = _any(_is_a(events.Unsettled), lambda event: isinstance(event, events.Settled) and not event.unsent)
"""The script waits for a stable member."""
HAS_INTERVAL: Final[Kind] = lambda event: isinstance(event, events.Launched) and event.heartbeat_ms is not None
HAS_TOPICS: Final[Kind] = lambda event: isinstance(event, events.Launched) and event.topics is not None
READS: Final = (ASSIGNED, RECORDS)
"""A client reads: it is sent records once it is assigned partitions."""
NEVER_READ: Final = "the client was given no record, so it never read"
"""Why a run is inconclusive; ``kipcheck doctor`` shows what such a client sent."""


def occurring(*kinds: Kind) -> Premise:
    """The premise that events of these kinds occur, in this order."""
    return partial(_occur, kinds)


def _occur(kinds: tuple[Kind, ...], history: History) -> bool:
    return in_order((event for _, event in events_of(history)), kinds)


def reads(traffic: Iterable[events.Event]) -> bool:
    """Whether a client reads, in these events."""
    return in_order(traffic, READS)


def in_order(traffic: Iterable[events.Event], kinds: tuple[Kind, ...]) -> bool:
    left = iter(traffic)
    return all(any(kind(event) for event in left) for kind in kinds)


def _commits(*how: str) -> Kind:
    return lambda event: isinstance(event, events.Launched) and event.commit in how


MAY_GIVE_UP: Final = _request("JoinGroup", "LeaveGroup", *terms.HEARTBEATS)


def commits_by_itself(history: History) -> bool:
    """Whether the program was sent records, and is to commit them by itself, or before it gives partitions up."""
    is_to = occurring(_commits("auto", "sync"), RECORDS, COMMITS), occurring(_commits("revoked"), RECORDS, MAY_GIVE_UP)
    return any(premise(history) for premise in is_to)
