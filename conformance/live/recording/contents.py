"""Makes events of the requests and answers of live clients: what they say that an invariant reads."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.recording.received import MOST_ENTRIES, Received
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.client.events import AnswerSeen, ListedMember, RequestSeen, Subscribed
from kipcheck.conformance.wire.embedded import read_assignment, read_subscription
from kipcheck.conformance.wire.errors import Entries, Refused
from kipcheck.conformance.wire.record_batches import next_offset

OWNED_SINCE, GENERATION_SINCE = 1, 2
"""Subscriptions."""
TOPIC_AUTHORIZATION_FAILED: Final = 29
NO_USER_DATA: Final = b"\xff\xff\xff\xff"
NAMES: Final = {
    "memberId": "member",
    "generationId": "generation",
    "generationIdOrMemberEpoch": "generation",
    "memberEpoch": "generation",
    "groupInstanceId": "instance",
    "instanceId": "instance",
    "sessionTimeoutMs": "session_ms",
    "rebalanceTimeoutMs": "rebalance_ms",
    "protocolType": "type",
    "protocolName": "protocol",
}
"""Field of a request -> that of ``RequestSeen``."""
OF_MEMBERS: Final = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup", "ConsumerGroupHeartbeat")
"""The requests that name a member. JoinGroup and LeaveGroup have no generation, which is -1 in events."""


class Contents:
    def __init__(self, edition: Edition, topics: Topics) -> None:
        self.edition = edition
        self.topics = topics
        self._requests: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "JoinGroup": self._join,
            "SyncGroup": self._sync,
            "LeaveGroup": self._leave,
            "Fetch": self._fetch,
            "OffsetCommit": self._commit,
            "ListOffsets": self._named_partitions,
            "ConsumerGroupHeartbeat": self._beat,
        }
        self._answers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "ApiVersions": lambda body: {"highest": {str(x["apiKey"]): x["maxVersion"] for x in body["apiKeys"]}},
            "FindCoordinator": _found,
            "Metadata": _described,
            "JoinGroup": self._joined,
            "SyncGroup": self._synced,
            "Fetch": self._fetched,
            "OffsetCommit": lambda body: {"error": _first_error(body["topics"])},
            "OffsetFetch": lambda body: {**self._committed(body), "error": _offset_error(body)},
            "ListOffsets": lambda body: {"offsets": self._looked_up(body), "error": _first_error(body["topics"])},
            "ConsumerGroupHeartbeat": self._beaten,
        }

    def asked(self, request: Received) -> RequestSeen:
        body = request.body
        found = {shown: body[name] for name, shown in NAMES.items() if body.get(name) is not None}
        read = self._requests.get(request.api)
        if read is not None and body:
            found |= read(body)
        return RequestSeen(
            ms_of(request.at_s), request.connection, request.api, request.version, correlation=request.correlation_id,
            digest=zlib.crc32(repr(body).encode()), pipelined=request.pipelined, **found,
        )  # fmt: skip

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> AnswerSeen:
        found: dict[str, Any] = {}
        if request.api in OF_MEMBERS:
            asked = request.body
            carried = (asked[name] for name in NAMES if NAMES[name] == "generation" and name in asked)
            members = [each["memberId"] for each in asked.get("members", ())]
            found["to"] = asked.get("memberId") or next(iter(members), ""), next(carried, -1)
        if "errorCode" in body:
            found["error"] = int(body["errorCode"])
        if (read := self._answers.get(request.api)) is not None:
            found |= read(body)
        return AnswerSeen(ms_of(at_s), request.connection, request.api, request.version, **found)

    # Requests

    def _join(self, body: Mapping[str, Any]) -> dict[str, Any]:
        offered = [(each["name"], bytes(each["metadata"])) for each in body["protocols"]]
        entries = Entries(MOST_ENTRIES)
        return {
            "protocols": tuple((name, data.hex()) for name, data in offered),
            "subscriptions": tuple(subscription(self.edition, data, entries) for _, data in offered),
        }

    def _sync(self, body: Mapping[str, Any]) -> dict[str, Any]:
        entries = Entries(MOST_ENTRIES)
        rows = ((each["memberId"], each["assignment"]) for each in body["assignments"])
        return {"assignments": tuple((id, assignment(self.edition, data, entries)) for id, data in rows)}

    def _leave(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"members": tuple(each["memberId"] for each in body["members"])} if "members" in body else {}

    def _beat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        owned, topics = body["topicPartitions"], body["subscribedTopicNames"]
        found = {} if owned is None else {"owned": self._by_id(owned)}
        return found if topics is None else found | {"topics": tuple(topics)}

    def _fetch(self, body: Mapping[str, Any]) -> dict[str, Any]:
        offsets = tuple(part["fetchOffset"] for each in body["topics"] for part in each["partitions"])
        return {"partitions": self._partitions(body["topics"], "topic", "partition"), "offsets": offsets}

    def _commit(self, body: Mapping[str, Any]) -> dict[str, Any]:
        offsets = tuple(part["committedOffset"] for each in body["topics"] for part in each["partitions"])
        return {**self._named_partitions(body), "offsets": offsets}

    def _named_partitions(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"partitions": self._partitions(body["topics"], "name", "partitionIndex")}

    def _partitions(self, topics: Any, name: str, index: str) -> tuple[str, ...]:
        found: list[str] = []
        for each in topics:
            topic = self.topics.find(each.get(name), each.get("topicId"))
            shown = topic.name if topic is not None else each.get(name)
            found += [f"{shown}-{part[index]}" for part in each["partitions"]]
        return tuple(found)

    # Answers

    def _joined(self, body: Mapping[str, Any]) -> dict[str, Any]:
        leads = body["leader"] == body["memberId"]
        found = {"generation": body["generationId"], "member": body["memberId"], "leads": leads}
        if body["errorCode"]:
            return found
        found["protocol"] = body["protocolName"]
        if leads and not body.get("skipAssignment"):
            found["members"] = tuple(
                ListedMember(
                    each["memberId"], each.get("groupInstanceId"), subscription(self.edition, each["metadata"])
                )
                for each in body["members"]
            )
            found["sizes"] = dict(self.topics.sizes)
        return found

    def _synced(self, body: Mapping[str, Any]) -> dict[str, Any]:
        found = assignment(self.edition, body["assignment"])
        return {"partitions": found or (), "empty": not body["assignment"], "unread": found is None}

    def _committed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Committed offsets by partition, -1 for none; without those that are answered with an error."""
        groups = body.get("groups", [body])
        topics = [
            {**topic, "partitions": [part for part in topic["partitions"] if not part["errorCode"]]}
            for each in groups if not each.get("errorCode") for topic in each["topics"]
        ]  # fmt: skip
        offsets = [part["committedOffset"] for each in topics for part in each["partitions"]]
        return {"committed": dict(zip(self._partitions(topics, "name", "partitionIndex"), offsets, strict=True))}

    def _looked_up(self, body: Mapping[str, Any]) -> dict[str, int]:
        """Offsets by partition; without those that are answered with an error."""
        offsets = [_first_offset(part) for each in body["topics"] for part in each["partitions"]]
        names = self._partitions(body["topics"], "name", "partitionIndex")
        return {name: offset for name, offset in zip(names, offsets, strict=True) if offset >= 0}

    def _fetched(self, body: Mapping[str, Any]) -> dict[str, Any]:
        parts = [part for each in body["responses"] for part in each["partitions"]]
        error = max((int(part["errorCode"]) for part in parts), default=0)
        names = self._partitions(body["responses"], "topic", "partitionIndex")
        found = {"error": error, "records": sum(len(part["records"] or b"") for part in parts)}
        ends = {name: next_offset(part["records"] or b"") for name, part in zip(names, parts, strict=True)}
        return {**found, "ends": {name: end for name, end in ends.items() if end is not None}}

    def _beaten(self, body: Mapping[str, Any]) -> dict[str, Any]:
        given = body.get("assignment")
        found = {
            "member": body["memberId"], "generation": body["memberEpoch"], "interval_ms": body["heartbeatIntervalMs"],
        }  # fmt: skip
        return found if given is None else found | {"partitions": self._by_id(given["topicPartitions"])}

    def _by_id(self, given: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        found: list[str] = []
        for each in given:
            topic = self.topics.find(None, each["topicId"])
            shown = each["topicId"] if topic is None else topic.name
            found += [f"{shown}-{index}" for index in each["partitions"]]
        return tuple(found)


def ms_of(at_s: float) -> int:
    return round(at_s * 1000)


def _first_offset(part: Mapping[str, Any]) -> int:
    """The offset of a partition in an answer to ListOffsets, of which version 0 has several, the latest first."""
    offset: int = part["offset"] if "offset" in part else next(iter(part.get("oldStyleOffsets", ())), -1)
    return offset


def _found(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"error": max((int(each["errorCode"]) for each in body.get("coordinators", [body])), default=0)}


def _described(body: Mapping[str, Any]) -> dict[str, Any]:
    found = [each for each in body["topics"] if not each["errorCode"]]
    errors = {int(each["errorCode"]) for each in body["topics"]} - {0}
    # A topic that does not exist, or not yet, is no error of the request: a client asks for it again and again.
    error = TOPIC_AUTHORIZATION_FAILED if TOPIC_AUTHORIZATION_FAILED in errors else 0
    return {"error": error, "missing": bool(errors), "sizes": {each["name"]: len(each["partitions"]) for each in found}}


def _offset_error(body: Mapping[str, Any]) -> int:
    """Of the groups, else of their partitions."""
    groups = body.get("groups", [body])
    error = max((int(each.get("errorCode", 0)) for each in groups), default=0)
    return error or max((_first_error(each["topics"]) for each in groups), default=0)


def _first_error(topics: Iterable[Mapping[str, Any]]) -> int:
    return max((int(part["errorCode"]) for each in topics for part in each["partitions"]), default=0)


def subscription(edition: Edition, data: bytes, entries: Entries | None = None) -> Subscribed | None:
    """The subscription that a member wrote, as far as this version of the consumer protocol knows it; None if it
    cannot be read. Errors: ``TooManyEntries``, where ``entries`` are those that are accepted."""
    try:
        found = read_subscription(data, edition, entries)
    except Refused:
        return None
    return Subscribed(
        found.version, found.topics, found.user_data.hex() or None,
        tuple(map(partition_name, found.owned)) if found.version >= OWNED_SINCE else None,
        found.generation if found.version >= GENERATION_SINCE else None, found.rack,
    )  # fmt: skip


def assignment(edition: Edition, data: bytes, entries: Entries | None = None) -> tuple[str, ...] | None:
    """The partitions of an assignment, ``t-0``; none for no bytes, None if they cannot be read. An assignment that ends
    before its user data, as pykafka writes it, has partitions. Errors: ``TooManyEntries``, where ``entries`` are those
    that are accepted."""
    for end in (b"", NO_USER_DATA):
        try:
            return tuple(map(partition_name, read_assignment(data + end, edition, entries).partitions))
        except Refused:
            continue
    return None
