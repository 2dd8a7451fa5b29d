"""The requests of classic groups, translated to events of the group machine, and its answers to responses."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.live.recording.bodies import Bodies
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server import groups as server_groups
from kipcheck.conformance.live.server.classic_group import ClassicGroup
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error


class ClassicApi:
    def __init__(
        self, groups: server_groups.Groups, bodies: Bodies, new_uuid: Callable[[], uuid.UUID] = uuid.uuid4
    ) -> None:
        """``new_uuid`` makes the random part of member ids."""
        self.groups = groups
        self.bodies = bodies
        self.new_uuid = new_uuid

    @property
    def handlers(self) -> Mapping[str, server_groups.Handler]:
        return {
            "JoinGroupRequest": self.join,
            "SyncGroupRequest": self.sync,
            "HeartbeatRequest": self.heartbeat,
            "LeaveGroupRequest": self.leave,
            "DescribeGroupsRequest": self.describe,
            "ListGroupsRequest": self.list,
            "DeleteGroupsRequest": self.delete,
        }

    def join(self, request: Received, answer: server_groups.Answer) -> None:
        id, join = self.bodies.read(messages.Join, request)
        if self.groups.consumer_with_members(id) is not None:
            refused = messages.Joined(0, Error.INCONSISTENT_GROUP_PROTOCOL, member=join.member)
            return answer(self.bodies.written(refused, request.version))
        server_groups.bound(len(join.protocols), server_groups.MOST_PROTOCOLS, "protocols")
        group = self.groups.joining(id, join.member)
        begin = request.client_id or "" if join.instance is None else join.instance

        def done(body: Mapping[str, Any]) -> None:
            if body["errorCode"] == Error.NONE:
                group.clients[body["memberId"]] = (request.client_id or "", f"/{request.host}")
            answer(body)

        self._send(group, id, replace(join, fresh=f"{begin}-{self.new_uuid()}"), done)

    def sync(self, request: Received, answer: server_groups.Answer) -> None:
        id, sync = self.bodies.read(messages.Sync, request)
        server_groups.bound(len(sync.assignments), server_groups.MOST_MEMBERS, "members")
        self._send(self.groups.growing(id), id, sync, answer)

    def heartbeat(self, request: Received, answer: server_groups.Answer) -> None:
        id, beat = self.bodies.read(messages.Heartbeat, request)
        self._send(self.groups.classic(id), id, beat, answer)

    def leave(self, request: Received, answer: server_groups.Answer) -> None:
        id, leave = self.bodies.read(messages.Leave, request)
        server_groups.bound(len(leave.members), server_groups.MOST_MEMBERS, "members")
        self._send(self.groups.classic(id), id, leave, answer)

    def _send(self, group: ClassicGroup, id: str, asked: messages.Request, answer: server_groups.Answer) -> None:
        group.send(asked, lambda reply: answer(self.bodies.written(reply, asked.version)), nameless=not id)

    def describe(self, request: Received, answer: server_groups.Answer) -> None:
        size = server_groups.AnswerSize()
        answer({"groups": [self._described(request.version, id, size) for id in request.body["groups"]]})

    def _described(self, version: int, id: str, size: server_groups.AnswerSize) -> dict[str, Any]:
        group = self.groups.classic(id)
        size.add(group.bytes)
        (found,) = self.bodies.written(self.groups.ask(id, messages.Describe, version), version, id)["groups"]
        for member in found["members"]:
            client, host = group.clients.get(member["memberId"], ("", ""))
            member |= {"clientId": client, "clientHost": host}
        described: dict[str, Any] = found
        return described

    def list(self, request: Received, answer: server_groups.Answer) -> None:
        """Filters of states and types apply from their versions on; states are compared without regard to case."""
        size = server_groups.AnswerSize()
        states = {each.lower() for each in request.body.get("statesFilter", ())}
        types = {each.lower() for each in request.body.get("typesFilter", ())}
        found = [
            (id, group.listed.protocol_type or "", group.listed.phase.called, "classic")
            for id, group in self.groups.classics()
            if group.listed.phase is not messages.Phase.DEAD
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

    def delete(self, request: Received, answer: server_groups.Answer) -> None:
        answer({"results": [self._deleted(request.version, id) for id in request.body["groupsNames"]]})

    def _deleted(self, version: int, id: str) -> dict[str, Any]:
        consumer = self.groups.consumer(id)
        if consumer is not None:
            error = Error.NON_EMPTY_GROUP if consumer.state.members else Error.NONE
            if error is Error.NONE:
                self.groups.remove_consumer(id)
            return {"groupId": id, "errorCode": error}
        reply = cast(messages.Deleted, self.groups.ask(id, messages.Delete, version))
        return {"groupId": id, "errorCode": reply.error}
