"""Reads requests and answers that pass by, and makes events of them: what they say that an invariant reads.

Those of groups are values of the classes of their machines. Of others, rows are read.
"""

import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import SAME, Context, message
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.recording.bodies import Bodies
from kipcheck.conformance.live.recording.received import MOST_ENTRIES, Received, form
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.client.events import AnswerSeen, ListedMember, RequestSeen, Subscribed
from kipcheck.conformance.protocols.consumer_group import heartbeat as consumer
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.share_group import heartbeat as share
from kipcheck.conformance.protocols.streams_group import heartbeat as streams
from kipcheck.conformance.protocols.streams_group.ops import Tasks
from kipcheck.conformance.wire.bodies import Rows, read_body, values_in
from kipcheck.conformance.wire.embedded import assigned, read_subscription
from kipcheck.conformance.wire.errors import Entries, Refused
from kipcheck.conformance.wire.record_batches import next_offset

OWNED_SINCE, GENERATION_SINCE = 1, 2
"""Subscriptions."""
BATCHES_SINCE: Final = 3
"""LeaveGroup."""
NAMES: Final = {
    "member": "member", "generation": "generation", "epoch": "generation", "instance": "instance",
    "session_ms": "session_ms", "rebalance_ms": "rebalance_ms", "protocol_type": "type", "protocol": "protocol",
}  # fmt: skip
"""Field of a request of a group -> that of ``RequestSeen``."""


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    id: Annotated[str, wire("groupId")]
    protocol_type: Annotated[str, wire("protocolType")]
    protocol: Annotated[str, wire("protocolData")]
    members: Annotated[
        tuple[tuple[str, bytes, bytes], ...],
        wire("members[].memberId", "members[].memberMetadata", "members[].memberAssignment"),
    ]
    """Id, subscription and assignment."""


@message("DescribeGroupsResponse")
@dataclass(frozen=True, slots=True)
class DescribedGroups:
    groups: Annotated[tuple[DescribedGroup, ...], wire("groups[]")]


Request: TypeAlias = (
    group.Join | group.Sync | group.Heartbeat | group.Leave | group.Commit | consumer.Heartbeat | streams.Heartbeat
    | share.Heartbeat
)  # fmt: skip
Answer: TypeAlias = (
    group.Joined | group.Synced | group.Beat | group.Left | consumer.HeartbeatAnswer | streams.HeartbeatAnswer
    | share.HeartbeatAnswer | DescribedGroups
)  # fmt: skip
Sent: TypeAlias = Request | tuple[Any, ...] | None
Reply: TypeAlias = Answer | tuple[Any, ...] | None
"""Of messages without a class, rows; None: no law reads it."""
OF_MEMBERS: Final = frozenset(map(wire_form.message_of, Request.__args__))
READ: Final = {
    wire_form.message_of(made): (made, {"to": 0} if "to" in made.__match_args__ else {})
    for made in (*Request.__args__, *Answer.__args__)
}
"""The classes of messages by their names, and the number of a request, which is not in messages."""


class Contents(Bodies):
    """A topic with an unknown id has the id as its name; one that was deleted, the name that it had."""

    def __init__(self, edition: Edition, topics: Topics, by_task: bool = False) -> None:
        """``by_task``: tasks of Streams stand for themselves; else for the partitions that they read, by the topology
        that was sent last, which is certain if there is one application only."""
        self._by_task = by_task
        super().__init__(edition, topics, SAME, lambda id: topics.deleted.get(id, str(id)))
        self._context = Context(self._values)
        self._sources: dict[str, tuple[str, ...]] = {}
        """Subtopology of the application that runs -> its source topics."""

    def sent(self, request: Received) -> Sent:
        return self._read_message(request.message, request.version, request.body) if request.body else None

    def reply(self, request: Received, body: Mapping[str, Any]) -> Reply:
        found: Reply = self._read_message(request.response, request.version, body)
        return found

    def _read_message(self, name: str, version: int, body: Mapping[str, Any]) -> Any:
        edition = form(self.edition, name)
        if name in OF_ROWS:
            return values_in(name, version, body, *OF_ROWS[name][1:], context=self._context, edition=edition)
        made, unplaced = READ.get(name, (None, {}))
        return None if made is None else read_body(made, version, body, self._context, edition, **unplaced)

    # Events

    def asked(self, request: Received, sent: Sent) -> RequestSeen:
        return RequestSeen(
            ms_of(request.at_s), request.connection, request.api, request.version, correlation=request.correlation_id,
            digest=zlib.crc32(repr(request.body).encode()), pipelined=request.pipelined,
            retention_ms=(request.body or {}).get("retentionTimeMs"), **self._request(request.message, sent),
        )  # fmt: skip

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any], sent: Sent, reply: Reply) -> AnswerSeen:
        """``sent``, ``reply``: what was read of both."""
        found = {"error": body.get("errorCode"), **self._answer(request.response, reply)}
        found["error"] = body.get("errorCode") or found["error"]
        found["throttle_ms"] = body.get("throttleTimeMs") or None
        to = carried_by(sent) if request.message in OF_MEMBERS else None
        return AnswerSeen(ms_of(at_s), request.connection, request.api, request.version, to=to, **found)

    def _request(self, message: str, sent: Sent) -> dict[str, Any]:
        entries = Entries(MOST_ENTRIES)
        named: dict[str, Any] = {shown: getattr(sent, name) for name, shown in NAMES.items() if hasattr(sent, name)}
        match sent:
            case group.Join(version, protocols=offered):
                named["protocols"] = tuple((name, as_bytes(data).hex()) for name, data in offered)
                named["subscriptions"] = tuple(subscription(self.edition, data, entries) for _, data in offered)
                return named if version else {**named, "rebalance_ms": None}
            case group.Sync(assignments=given):
                return {
                    **named,
                    "assignments": tuple((id, assignment(self.edition, data, entries)) for id, data in given),
                }
            case group.Commit(offsets=offsets):
                return named | _placed(offsets)
            case group.Leave(version, members):
                ids = tuple(id for id, _ in members)
                return {"member": ids[0]} if version < BATCHES_SINCE else {"members": ids}
            case consumer.Heartbeat(owned=owned, topics=topics, regex=regex):
                return {**named, "owned": _names(owned), "topics": topics, "regex": regex}
            case share.Heartbeat(topics=topics):
                return {**named, "topics": topics}
            case streams.Heartbeat(topology=topology, active=active):
                return {**named, "owned": _names(self._read_by(active)), "topics": self._sources_of(topology)}
        return OF_ROWS[message][0](*sent) if isinstance(sent, tuple) else named

    def _answer(self, message: str, reply: Reply) -> dict[str, Any]:
        match reply:
            case group.Joined():
                return self._joined(reply)
            case group.Synced(assignment=data):
                found = assignment(self.edition, data)
                return {"partitions": found or (), "empty": not data, "unread": found is None}
            case consumer.HeartbeatAnswer(member=member, epoch=epoch, interval_ms=ms, assignment=given):
                return {"member": member, "generation": epoch, "interval_ms": ms, "partitions": _names(given)}
            case streams.HeartbeatAnswer(member=member, epoch=epoch, interval_ms=ms, active=given):
                partitions = _names(self._read_by(given))
                return {"member": member, "generation": epoch, "interval_ms": ms, "partitions": partitions}
        return OF_ROWS[message][0](*reply) if isinstance(reply, tuple) else {}

    def _sources_of(self, topology: streams.Topology | None) -> tuple[str, ...] | None:
        """The source topics of a topology, which is remembered."""
        if topology is None:
            return None
        self._sources = {each.id: each.sources for each in topology.subtopologies}
        return tuple(sorted({topic for each in topology.subtopologies for topic in each.sources}))

    def _read_by(self, tasks: Tasks | None) -> list[tuple[str, int]] | None:
        """The partitions that active tasks read, by the last topology: of each source topic that has so many, and of
        all where none has. ``by_task``: the tasks."""
        if tasks is None or self._by_task:
            return None if tasks is None else [*tasks]
        found = list[tuple[str, int]]()
        for subtopology, number in tasks:
            sizes = {topic: self.topics.sizes.get(topic, 0) for topic in self._sources.get(subtopology, ())}
            least = min(number, max(sizes.values(), default=0) - 1)
            found += [(topic, number) for topic, size in sizes.items() if least < size]
        return found

    def _joined(self, reply: group.Joined) -> dict[str, Any]:
        leads = reply.leader == reply.member
        found = {"generation": reply.generation, "member": reply.member, "leads": leads}
        if reply.error:
            return found
        found["protocol"] = reply.protocol
        if leads and not reply.skip_assignment:
            found["members"] = tuple(
                ListedMember(id, instance, subscription(self.edition, data)) for id, instance, data in reply.members
            )
            found["sizes"] = dict(self.topics.sizes)
        return found


def ms_of(at_s: float) -> int:
    return round(at_s * 1000)


def carried_by(sent: Sent) -> tuple[str, int]:
    """Member id and generation in a request of a member; -1: it has no generation."""
    if isinstance(sent, group.Leave):
        return next((id for id, _ in sent.members), ""), -1
    return getattr(sent, "member", ""), getattr(sent, "generation", getattr(sent, "epoch", -1))


def _names(partitions: Iterable[tuple[str, int]] | None) -> tuple[str, ...] | None:
    return None if partitions is None else tuple(map(partition_name, partitions))


def _by_name(offsets: Iterable[tuple[str, int, int]]) -> dict[str, int]:
    return {partition_name((topic, number)): offset for topic, number, offset in offsets}


def _worst(codes: Iterable[int]) -> int:
    return max(codes, default=0)


# Rows


def _placed(rows: Rows) -> dict[str, Any]:
    return {
        "partitions": _names((topic, number) for topic, number, *_ in rows),
        "offsets": tuple(offset for _, _, offset, *_ in rows),
    }


def _shared(epochs: Rows, partitions: Rows, batches: Rows, forgotten: Rows = ()) -> dict[str, Any]:
    """Of an acknowledgement with a type for each record, one for each record."""
    found = list[tuple[str, int, int, int]]()
    for topic, number, first, last, types in batches:
        name, kinds = partition_name((topic, number)), types or (0,)
        found += ((name, first, last, kinds[0]),) if len(kinds) == 1 else (
            (name, first + place, first + place, kind) for place, kind in enumerate(kinds)
        )  # fmt: skip
    ((member, epoch),) = epochs
    return {
        "member": member, "session_epoch": epoch, "partitions": _names(partitions), "acknowledged": tuple(found),
        "forgotten": _names(forgotten) or None,
    }  # fmt: skip


def _acquired(errors: Rows, ranges: Rows) -> dict[str, Any]:
    error = _worst(code for codes in errors for code in codes)
    return {
        "error": error,
        "acquired": tuple((partition_name((topic, number)), first, last) for topic, number, first, last in ranges),
    }


def _fetched(rows: Rows) -> dict[str, Any]:
    ends = ((topic, number, next_offset(data or b"")) for topic, number, _, data in rows)
    return {
        "error": _worst(code for _, _, code, _ in rows), "records": sum(len(data or b"") for *_, data in rows),
        "ends": _by_name((topic, number, end) for topic, number, end in ends if end is not None),
    }  # fmt: skip


def _looked_up(rows: Rows) -> dict[str, Any]:
    """Without offsets of partitions with an error. ListOffsets 0 has several offsets, the latest first."""
    offsets = (
        (topic, number, offset if old is None else next(iter(old), -1)) for topic, number, _, offset, old in rows
    )
    sound = {name: offset for name, offset in _by_name(offsets).items() if offset >= 0}
    return {"error": _worst(row[2] for row in rows), "offsets": sound}


def _offsets_fetched(groups: Rows, rows: Rows) -> dict[str, Any]:
    """-1 for none; without those that are answered with an error, of their own or of their group."""
    error = _worst(code for (code,) in groups) or _worst(code for *_, code in rows)
    return {"error": error, "committed": _by_name(tuple(row[1:4]) for row in rows if not (row[0] or row[4]))}


def _described(rows: Rows) -> dict[str, Any]:
    errors = {code for code, *_ in rows} - {0}
    # A topic that does not exist, or not yet, is no error of the request: a client asks for it again and again.
    error = int(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    sizes = {name: number for code, name, _, number in rows if not code}
    return {"error": error if error in errors else 0, "missing": bool(errors), "sizes": sizes}


_TOPIC: Final = "topics[].name as topic"
_NUMBER: Final = "topics[].partitions[].partitionIndex"
_CODE: Final = "topics[].partitions[].errorCode"
_SHARED: Final[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = (
    ("memberId", "shareSessionEpoch"),
    ("topics[].topicId as topic_id", "topics[].partitions[].partitionIndex"),
    ("topics[].topicId as topic_id", "topics[].partitions[].partitionIndex",
     "topics[].partitions[].acknowledgementBatches[].firstOffset",
     "topics[].partitions[].acknowledgementBatches[].lastOffset",
     "topics[].partitions[].acknowledgementBatches[].acknowledgeTypes"),
)  # fmt: skip
OF_ROWS: Final[Mapping[str, tuple[Callable[..., dict[str, Any]], *tuple[tuple[str, ...], ...]]]] = {
    "FetchRequest": (_placed, ("topics[].topic as topic | topics[].topicId as topic_id",
                               "topics[].partitions[].partition", "topics[].partitions[].fetchOffset")),
    "FetchResponse": (_fetched, (
        "responses[].topic as topic | responses[].topicId as topic_id", "responses[].partitions[].partitionIndex",
        "responses[].partitions[].errorCode", "responses[].partitions[].records",
    )),
    "ShareFetchRequest": (_shared, *_SHARED, ("forgottenTopicsData[].topicId as topic_id",
                                              "forgottenTopicsData[].partitions[]")),
    "ShareAcknowledgeRequest": (_shared, *_SHARED),
    "ShareFetchResponse": (_acquired, (
        "responses[].partitions[].errorCode", "responses[].partitions[].acknowledgeErrorCode",
    ), (
        "responses[].topicId as topic_id", "responses[].partitions[].partitionIndex",
        "responses[].partitions[].acquiredRecords[].firstOffset",
        "responses[].partitions[].acquiredRecords[].lastOffset",
    )),
    "ShareAcknowledgeResponse": (lambda rows: {"error": _worst(code for (code,) in rows)},
                                 ("responses[].partitions[].errorCode",)),
    "ListOffsetsRequest": (_placed, (_TOPIC, _NUMBER, "topics[].partitions[].timestamp")),
    "OffsetFetchRequest": (lambda rows: {"partitions": _names(rows)}, (
        "groups[].topics[].name as topic | groups[].topics[].topicId as topic_id | topics[].name as topic",
        "groups[].topics[].partitionIndexes[] | topics[].partitionIndexes[]",
    )),
    "ListOffsetsResponse": (_looked_up, (_TOPIC, _NUMBER, _CODE, "topics[].partitions[].offset",
                                         "topics[].partitions[].oldStyleOffsets")),
    "OffsetForLeaderEpochResponse": (lambda rows: _looked_up(tuple((*row, None) for row in rows)), (
        "topics[].topic as topic | topics[].name as topic",
        "topics[].partitions[].partition | topics[].partitions[].partitionIndex", _CODE,
        "topics[].partitions[].endOffset",
    )),
    "OffsetCommitResponse": (lambda rows: {"error": _worst(code for (code,) in rows)}, (_CODE,)),
    "OffsetFetchResponse": (_offsets_fetched, ("groups[].errorCode | errorCode",), (
        "groups[].errorCode | errorCode",
        f"groups[].{_TOPIC} | groups[].topics[].topicId as topic_id | {_TOPIC}", f"groups[].{_NUMBER} | {_NUMBER}",
        "groups[].topics[].partitions[].committedOffset | topics[].partitions[].committedOffset",
        f"groups[].{_CODE} | {_CODE}",
    )),
    "FindCoordinatorResponse": (lambda rows: {"error": _worst(code for (code,) in rows)},
                                ("coordinators[].errorCode | errorCode",)),
    "MetadataResponse": (_described, ("topics[].errorCode", "topics[].name", "topics[].topicId",
                                      "topics[].partitions as number")),
    "ApiVersionsResponse": (lambda rows: {"highest": {str(key): highest for key, highest in rows}},
                            ("apiKeys[].apiKey", "apiKeys[].maxVersion")),
}  # fmt: skip
"""Message -> what makes the fields of its event of rows, and the places of these."""


def as_bytes(data: Hashable) -> bytes:
    """A record inside a message: conversations have texts in place of them."""
    assert isinstance(data, bytes)
    return data


def subscription(edition: Edition, data: Hashable, entries: Entries | None = None) -> Subscribed | None:
    """The subscription that a member wrote, as far as this version of the consumer protocol knows it; None if it
    cannot be read. Errors: ``TooManyEntries``, where ``entries`` are those that are accepted."""
    try:
        found = read_subscription(as_bytes(data), edition, entries)
    except Refused:
        return None
    return Subscribed(
        found.version, found.topics, found.user_data.hex() or None,
        tuple(map(partition_name, found.owned)) if found.version >= OWNED_SINCE else None,
        found.generation if found.version >= GENERATION_SINCE else None, found.rack,
    )  # fmt: skip


def assignment(edition: Edition, data: Hashable, entries: Entries | None = None) -> tuple[str, ...] | None:
    """The partitions of an assignment, ``t-0``; None if they cannot be read. Errors: as of ``subscription``."""
    return _names(assigned(as_bytes(data), edition, entries))
