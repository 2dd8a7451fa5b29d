"""Requests to the coordinator of a classic group as the wire has them, and its responses as answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never, cast

from kipcheck.conformance.live.connections.connections import Garbled
from kipcheck.conformance.live.server.classic_api import BATCHES_SINCE
from kipcheck.conformance.live.server.offsets_api import BATCHES_SINCE as GROUPS_SINCE, IDS_SINCE
from kipcheck.conformance.protocols.group.model.messages import (
    Beat,
    Commit,
    Committed,
    Delete,
    Deleted,
    Describe,
    Described,
    Error,
    Fetch,
    Fetched,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Listed,
    ListGroups,
    Reply,
    Request,
    Sync,
    Synced,
)

APIS: Final[Mapping[type[Request], tuple[str, int]]] = {
    Join: ("JoinGroup", 11), Sync: ("SyncGroup", 14), Heartbeat: ("Heartbeat", 12), Leave: ("LeaveGroup", 13),
    Commit: ("OffsetCommit", 8), Fetch: ("OffsetFetch", 9), Describe: ("DescribeGroups", 15),
    ListGroups: ("ListGroups", 16), Delete: ("DeleteGroups", 42),
}  # fmt: skip
"""Name and key."""
ALL_TOPICS_SINCE: Final = 2
"""OffsetFetch of all topics."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of conversations, as the broker has them."""

    names: Mapping[str, str]
    """``t`` -> its name."""
    partitions: Mapping[str, int]
    """By name."""

    def own(self, name: str) -> str:
        return next((each for each, there in self.names.items() if there == name), name)


def request_body(request: Request, group: str, topics: Topics, scaled: "Scale") -> dict[str, Any]:
    """The body of a request whose ids are those that the coordinator gave."""
    match request:
        case Join():
            return {
                "groupId": group, "memberId": request.member, "groupInstanceId": request.instance,
                "sessionTimeoutMs": scaled.session(request.session_ms),
                "rebalanceTimeoutMs": scaled.ms(request.rebalance_ms), "protocolType": request.protocol_type,
                "protocols": [{"name": name, "metadata": _bytes(blob)} for name, blob in request.protocols],
            }  # fmt: skip
        case Sync():
            given = [{"memberId": id, "assignment": _bytes(blob)} for id, blob in request.assignments]
            return {
                **_dated(request, group), "protocolType": request.protocol_type, "protocolName": request.protocol,
                "assignments": given,
            }  # fmt: skip
        case Heartbeat():
            return _dated(request, group)
        case Leave(members=members):
            if request.version >= BATCHES_SINCE:
                leaving = [{"memberId": id, "groupInstanceId": instance} for id, instance in members]
                return {"groupId": group, "members": leaving}
            return {"groupId": group, "memberId": members[0][0]}
        case Commit():
            dated = _dated(request, group)
            return {
                "groupId": group, "memberId": request.member, "groupInstanceId": request.instance,
                "generationIdOrMemberEpoch": dated["generationId"], "topics": _offsets(request, topics),
            }  # fmt: skip
        case Fetch():
            if request.version >= GROUPS_SINCE:
                return {"groups": [{"groupId": group, "topics": None}]}
            return {"groupId": group, "topics": None}
        case Describe():
            return {"groups": [group]}
        case ListGroups():
            return {}
        case Delete():
            return {"groupsNames": [group]}
        case _:
            assert_never(request)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much faster than stated the time of a broker passes, whose settings are divided likewise."""

    times: int
    min_session_ms: int

    def ms(self, stated: int) -> int:
        return -(-stated // self.times)

    def session(self, stated: int) -> int:
        """A session stays on its side of the bounds: below the least one it is rounded down."""
        return stated // self.times if stated < self.min_session_ms else self.ms(stated)


def why_not(request: Request, topics: Topics) -> str:
    """Why a request has no bytes in its version, or would not reach what it is about; empty: it does."""
    if getattr(request, "instance", None) is not None and request.version < _INSTANCES[type(request)]:
        return "its version has no instance id"
    match request:
        case Leave(members=members) if request.version < BATCHES_SINCE:
            if len(members) != 1 or members[0][1] is not None:
                return "in this version only one member can leave, by its id"
        case Fetch() if request.version < ALL_TOPICS_SINCE or request.version >= IDS_SINCE:
            return "this version cannot ask for all topics by name"
        case Commit(offsets=offsets):
            if request.version >= IDS_SINCE:
                return "this version names topics by ids"
            for topic, partition, _ in offsets:
                if partition >= topics.partitions.get(topics.names.get(topic, ""), 0):
                    return f"the broker has no partition {partition} for topic {topic}"
    return ""


_INSTANCES: Final[Mapping[type[Request], int]] = {Join: 5, Sync: 3, Heartbeat: 3, Commit: 7}


def reply_of(request: Request, group: str, topics: Topics, body: Mapping[str, Any]) -> Reply:
    """The answer in a response. Errors: ``Garbled`` if it answers something else."""
    to, error = request.request, _error(body.get("errorCode", 0))
    match request:
        case Join():
            members = tuple(
                (each["memberId"], each.get("groupInstanceId"), _text(each["metadata"])) for each in body["members"]
            )
            return Joined(
                to, error, body["generationId"], body.get("protocolType"), body["protocolName"] or None, body["leader"],
                body["memberId"], members, body.get("skipAssignment", False),
            )  # fmt: skip
        case Sync():
            return Synced(to, error, body.get("protocolType"), body.get("protocolName"), _text(body["assignment"]))
        case Heartbeat():
            return Beat(to, error)
        case Leave():
            left = ((x["memberId"], x.get("groupInstanceId"), _error(x["errorCode"])) for x in body.get("members", ()))
            return Left(to, error, tuple(left))
        case Commit():
            return Committed(to, _only_error(body["topics"]))
        case Fetch():
            own = _one(body["groups"], "group") if request.version >= GROUPS_SINCE else body
            return Fetched(to, _error(own.get("errorCode", 0)), _fetched(own["topics"], topics))
        case Describe():
            own = _one(body["groups"], "group")
            return _described(to, own)
        case ListGroups():
            mine = [each for each in body["groups"] if each["groupId"] == group]
            return Listed(to, error, tuple((each["protocolType"], each.get("groupState", "")) for each in mine))
        case Delete():
            return Deleted(to, _error(_one(body["results"], "group")["errorCode"]))
        case _:
            assert_never(request)


def _described(to: int, own: Mapping[str, Any]) -> Described:
    members = tuple(
        (each["memberId"], each.get("groupInstanceId"), _text(each["memberMetadata"]), _text(each["memberAssignment"]))
        for each in own["members"]
    )
    return Described(to, _error(own["errorCode"]), own["groupState"], own["protocolType"], own["protocolData"], members)


def _dated(request: Sync | Heartbeat | Commit, group: str) -> dict[str, Any]:
    return {
        "groupId": group, "memberId": request.member, "groupInstanceId": request.instance,
        "generationId": request.generation,
    }  # fmt: skip


def _offsets(request: Commit, topics: Topics) -> list[dict[str, Any]]:
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for topic, partition, offset in request.offsets:
        rows = by_topic.setdefault(topics.names[topic], [])
        rows.append({"partitionIndex": partition, "committedOffset": offset, "committedMetadata": ""})
    return [{"name": name, "partitions": rows} for name, rows in by_topic.items()]


def _fetched(rows: Sequence[Mapping[str, Any]] | None, topics: Topics) -> tuple[tuple[str, int, int], ...]:
    return tuple(sorted(
        (topics.own(topic["name"]), each["partitionIndex"], each["committedOffset"])
        for topic in rows or () for each in topic["partitions"]
    ))  # fmt: skip


def _one(rows: Sequence[Any], what: str) -> Mapping[str, Any]:
    if len(rows) != 1:
        raise Garbled(f"the response is about {len(rows)} {what}s, the request about one")
    return cast(Mapping[str, Any], rows[0])


def _only_error(topics: Sequence[Mapping[str, Any]]) -> Error:
    errors = {_error(each["errorCode"]) for topic in topics for each in topic["partitions"]}
    if len(errors) > 1:
        raise Garbled(f"partitions have different errors: {', '.join(sorted(each.name for each in errors))}")
    return errors.pop() if errors else Error.NONE


def _error(code: int) -> Error:
    """An error that this protocol does not know is UNKNOWN_SERVER_ERROR."""
    return Error(code) if code in _CODES else Error.UNKNOWN_SERVER_ERROR


_CODES: Final = frozenset(Error)


def _bytes(blob: Any) -> bytes:
    return str(blob).encode()


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")
