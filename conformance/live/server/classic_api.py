"""The requests of classic groups, translated to events of the group machine, and its answers to responses."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.classic_group import ClassicGroup
from kipcheck.conformance.live.server.groups import (
    MOST_MEMBERS,
    MOST_PROTOCOLS,
    Answer,
    AnswerSize,
    Groups,
    Handler,
    bound,
)
from kipcheck.conformance.protocols.group.model.messages import (
    EMPTY,
    Beat,
    Blob,
    Delete,
    Deleted,
    Describe,
    Described,
    Error,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Phase,
    Request,
    Sync,
    Synced,
)

BATCHES_SINCE: Final = 3
"""LeaveGroup with a list of members."""
NULL_PROTOCOL_SINCE: Final = 7
"""JoinGroup: the protocol name may be null."""


class ClassicApi:
    def __init__(self, groups: Groups, new_uuid: Callable[[], uuid.UUID] = uuid.uuid4) -> None:
        """``new_uuid`` makes the random part of member ids."""
        self.groups = groups
        self.new_uuid = new_uuid

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {
            "JoinGroupRequest": self.join,
            "SyncGroupRequest": self.sync,
            "HeartbeatRequest": self.heartbeat,
            "LeaveGroupRequest": self.leave,
            "DescribeGroupsRequest": self.describe,
            "ListGroupsRequest": self.list,
            "DeleteGroupsRequest": self.delete,
        }

    def join(self, request: Received, answer: Answer) -> None:
        body, id = request.body, request.body["groupId"]
        if self.groups.consumer_with_members(id) is not None:
            return answer(joined(request, Joined(0, Error.INCONSISTENT_GROUP_PROTOCOL, member=body["memberId"])))
        bound(len(body["protocols"]), MOST_PROTOCOLS, "protocols")
        group = self.groups.joining(id, body["memberId"])
        instance = body.get("groupInstanceId")
        join = Join(
            request.version,
            body["memberId"],
            instance,
            body["protocolType"],
            tuple((each["name"], blob(each["metadata"])) for each in body["protocols"]),
            body["sessionTimeoutMs"],
            body.get("rebalanceTimeoutMs", -1),
            f"{request.client_id or '' if instance is None else instance}-{self.new_uuid()}",
            body.get("protocolVersion"),
        )

        def done(reply: Any) -> None:
            if reply.error is Error.NONE:
                group.clients[reply.member] = (request.client_id or "", f"/{request.host}")
            answer(joined(request, reply))

        group.send(join, done, nameless=not id)

    def sync(self, request: Received, answer: Answer) -> None:
        body = request.body
        bound(len(body["assignments"]), MOST_MEMBERS, "members")
        sync = Sync(
            request.version,
            body["memberId"],
            body.get("groupInstanceId"),
            body["generationId"],
            tuple((each["memberId"], blob(each["assignment"])) for each in body["assignments"]),
            body.get("protocolType"),
            body.get("protocolName"),
        )
        group = self.groups.growing(body["groupId"])
        group.send(sync, lambda reply: answer(synced(cast(Synced, reply))), nameless=not body["groupId"])

    def heartbeat(self, request: Received, answer: Answer) -> None:
        body = request.body
        beat = Heartbeat(request.version, body["memberId"], body.get("groupInstanceId"), body["generationId"])
        self._send(body["groupId"], beat, lambda reply: answer({"errorCode": cast(Beat, reply).error}))

    def leave(self, request: Received, answer: Answer) -> None:
        body = request.body
        if request.version < BATCHES_SINCE:
            members: tuple[tuple[str, str | None], ...] = ((body["memberId"], None),)
        else:
            members = tuple((each["memberId"], each["groupInstanceId"]) for each in body["members"])
            bound(len(members), MOST_MEMBERS, "members")
        leave = Leave(request.version, members)
        self._send(body["groupId"], leave, lambda reply: answer(left(request, cast(Left, reply))))

    def describe(self, request: Received, answer: Answer) -> None:
        size = AnswerSize()
        answer({"groups": [self._described(request.version, id, size) for id in request.body["groups"]]})

    def _described(self, version: int, id: str, size: AnswerSize) -> dict[str, Any]:
        group = self.groups.classic(id)
        size.add(group.bytes)
        reply = cast(Described, self.groups.ask(id, Describe, version))
        return {
            "errorCode": reply.error,
            "groupId": id,
            "groupState": reply.state,
            "protocolType": reply.protocol_type,
            "protocolData": reply.protocol,
            "members": [described_member(group, *each) for each in reply.members],
        }

    def list(self, request: Received, answer: Answer) -> None:
        """Filters of states and types apply from their versions on; states are compared without regard to case."""
        size = AnswerSize()
        states = {each.lower() for each in request.body.get("statesFilter", ())}
        types = {each.lower() for each in request.body.get("typesFilter", ())}
        found = [
            (id, group.listed.protocol_type or "", group.listed.phase.called, "classic")
            for id, group in self.groups.classics()
            if group.listed.phase is not Phase.DEAD
        ]
        found += [
            (id, "consumer", "Stable" if group.state.members else "Empty", "consumer")
            for id, group in self.groups.consumers()
        ]
        for each in found:
            size.add(len(each[0]))
        listed = [
            {"groupId": id, "protocolType": protocol, "groupState": state, "groupType": kind}
            for id, protocol, state, kind in found
            if (not states or state.lower() in states) and (not types or kind in types)
        ]
        answer({"errorCode": 0, "groups": listed})

    def delete(self, request: Received, answer: Answer) -> None:
        answer({"results": [self._deleted(request.version, id) for id in request.body["groupsNames"]]})

    def _deleted(self, version: int, id: str) -> dict[str, Any]:
        consumer = self.groups.consumer(id)
        if consumer is not None:
            error = Error.NON_EMPTY_GROUP if consumer.state.members else Error.NONE
            if error is Error.NONE:
                self.groups.remove_consumer(id)
            return {"groupId": id, "errorCode": error}
        reply = cast(Deleted, self.groups.ask(id, Delete, version))
        return {"groupId": id, "errorCode": reply.error}

    def _send(self, id: str, asked: Request, answered: Callable[[Any], None]) -> None:
        self.groups.classic(id).send(asked, answered, nameless=not id)


def joined(request: Received, reply: Joined) -> dict[str, Any]:
    """Fields of later versions appear only with a value, so that a draft without them has no objection."""
    named = request.version >= NULL_PROTOCOL_SINCE
    later = {"protocolType": reply.protocol_type} if reply.protocol_type is not None else {}
    return {
        "errorCode": reply.error,
        "generationId": reply.generation,
        "protocolName": reply.protocol if named else reply.protocol or "",
        "leader": reply.leader,
        "memberId": reply.member,
        "members": [joined_member(*each) for each in reply.members],
        **later,
        **({"skipAssignment": True} if reply.skip_assignment else {}),
    }


def joined_member(id: str, instance: str | None, metadata: Blob) -> dict[str, Any]:
    static = {} if instance is None else {"groupInstanceId": instance}
    return {"memberId": id, "metadata": data(metadata), **static}


def synced(reply: Synced) -> dict[str, Any]:
    return {
        "errorCode": reply.error,
        "protocolType": reply.protocol_type,
        "protocolName": reply.protocol,
        "assignment": data(reply.assignment),
    }


def left(request: Received, reply: Left) -> dict[str, Any]:
    if request.version < BATCHES_SINCE:
        return {"errorCode": reply.error}
    members = [
        {"memberId": id, "groupInstanceId": instance, "errorCode": error} for id, instance, error in reply.members
    ]
    return {"errorCode": reply.error, "members": members}


def described_member(
    group: ClassicGroup, id: str, instance: str | None, metadata: Blob, assignment: Blob
) -> dict[str, Any]:
    client_id, host = group.clients.get(id, ("", ""))
    return {
        "memberId": id,
        "groupInstanceId": instance,
        "clientId": client_id,
        "clientHost": host,
        "memberMetadata": data(metadata),
        "memberAssignment": data(assignment),
    }


def blob(data: bytes) -> Blob:
    return data or EMPTY


def data(blob: Blob) -> bytes:
    return b"" if blob == EMPTY else cast(bytes, blob)
