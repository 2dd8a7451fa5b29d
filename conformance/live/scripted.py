"""A broker that plays the coordinator and all other members of one classic group, for one client alone.

What happens is decided by calls (``live.play``): rebalances, errors, the other members, and what a client that follows
is assigned. Everything else is answered as ``Broker`` does.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from kipcheck.conformance.core.edition import Edition
from kipcheck.conformance.live.broker import Broker
from kipcheck.conformance.live.connection import Connection
from kipcheck.conformance.live.disturbances import Disturbance
from kipcheck.conformance.live.groups import Answer, Handler
from kipcheck.conformance.live.received import Received
from kipcheck.conformance.live.topics import Topics
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import spec

TOPIC: Final = "t"
PARTITIONS: Final = 4
GROUP: Final = "g"
MEMBER_ID_SINCE: Final = 4
"""JoinGroup: a new dynamic member has to come again with the id that it is given."""
BATCHES_SINCE: Final = 3
"""LeaveGroup."""
IDS_SINCE: Final = 10
"""OffsetCommit: topics have ids in place of names."""


class ScriptedBroker(Broker):
    def __init__(self, edition: Edition) -> None:
        super().__init__(edition, Topics.of(((TOPIC, PARTITIONS),)))
        self.others: tuple[str, ...] = ()
        self.leads = True
        self.given: tuple[int, ...] = (0,)
        """The partitions that a client that follows is assigned."""
        self.generation = 0
        self.member = ""
        """The id of the client; empty: it is not a member."""
        self.protocol = ""
        self.rebalancing = True
        self.stable = False
        self.faults: list[tuple[str, Error]] = []
        """The requests that are still to be answered with an error."""
        self.disturbances: list[tuple[str, Disturbance]] = []
        self.has_joined = False
        """Whether it was a stable member once."""
        self._synced = -1
        """The last generation whose assignment the client was sent."""
        self._pending = ""
        """The id that a new member has to come again with."""
        self._leads_now = True

    def _handlers(self) -> dict[str, Handler]:
        own = {
            "JoinGroupRequest": self.join,
            "SyncGroupRequest": self.sync,
            "HeartbeatRequest": self.heartbeat,
            "LeaveGroupRequest": self.leave,
            "OffsetCommitRequest": self.commit,
        }
        found = {**super()._handlers(), **own}
        for name in ("ConsumerGroupHeartbeatRequest", "ConsumerGroupDescribeRequest"):
            found.pop(name, None)
        return found

    # Called by scripts

    def rebalance(self) -> None:
        self.rebalancing, self.stable = True, False

    def fail_next(self, api: str, error: Error) -> None:
        self.faults.append((api, error))
        self.stable = False
        if api in ("JoinGroup", "SyncGroup"):
            self.rebalance()

    def disturb(self, api: str, how: Disturbance) -> None:
        """What happens to the answer to the next request of that kind."""
        self.disturbances.append((api, how))
        self.stable = False
        if api in ("JoinGroup", "SyncGroup"):
            self.rebalance()

    @property
    def pending(self) -> bool:
        """Whether an error or a disturbance waits for its request."""
        return bool(self.faults or self.disturbances)

    def drop_pending(self) -> list[str]:
        """The requests that errors and disturbances still wait for, which are forgotten."""
        found = [api for api, _ in (*self.faults, *self.disturbances)]
        self.faults.clear()
        self.disturbances.clear()
        return found

    # Requests

    def received(self, request: Received, connection: Connection) -> None:
        found = next((each for each in self.disturbances if each[0] == request.api), None)
        if found is None:
            return super().received(request, connection)
        self.disturbances.remove(found)
        found[1].apply(request, connection, super().received)

    def join(self, request: Received, answer: Answer) -> None:
        body = request.body
        id, instance = body["memberId"], body.get("groupInstanceId")
        fault = self._fault(request) if id else None
        if fault is not None:
            return answer(self._joined(request, fault, id))
        if id and id not in (self.member, self._pending):
            return answer(self._joined(request, Error.UNKNOWN_MEMBER_ID, id))
        if not id:
            id = f"{request.client_id or '' if instance is None else instance}-{uuid.uuid4()}"
            if request.version >= MEMBER_ID_SINCE and instance is None:
                self._pending = id
                return answer(self._joined(request, Error.MEMBER_ID_REQUIRED, id))
        self.member, self._pending = id, ""
        self.generation += 1
        self.rebalancing, self.stable = False, False
        self.protocol = body["protocols"][0]["name"]
        self._leads_now = self.leads or not self.others
        metadata = spec(self.edition, "ConsumerProtocolSubscription").at(0).encode({"topics": [TOPIC]})
        members = [{"memberId": id, "metadata": body["protocols"][0]["metadata"]}]
        members += [{"memberId": each, "metadata": metadata} for each in self.others]
        answer(self._joined(request, Error.NONE, id, members if self._leads_now else []))

    def _joined(
        self, request: Received, error: Error, id: str, members: list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        done = error is Error.NONE
        leader = (id if self._leads_now else self.others[0]) if done else ""
        named = {"protocolType": "consumer"} if done and request.version >= 7 else {}
        return {
            "errorCode": error, "generationId": self.generation if done else -1, "leader": leader, "memberId": id,
            "protocolName": self.protocol if done else "", "members": members or [], **named,
        }  # fmt: skip

    def sync(self, request: Received, answer: Answer) -> None:
        body = request.body
        error = self._fault(request) or self._stranger(body, "generationId")
        if error is None and self.rebalancing:
            error = Error.REBALANCE_IN_PROGRESS
        if error is not None:
            return answer({"errorCode": error, "assignment": b""})
        assignment = self._own(body) if self._leads_now else assigned(self.edition, self.given)
        named = {"protocolType": "consumer", "protocolName": self.protocol} if request.version >= 5 else {}
        answer({"errorCode": 0, "assignment": assignment, **named})
        self.stable = self.has_joined = True
        self._synced = self.generation

    def _own(self, body: Mapping[str, Any]) -> bytes:
        """What a client that leads assigned to itself."""
        return next((each["assignment"] for each in body["assignments"] if each["memberId"] == self.member), b"")

    def heartbeat(self, request: Received, answer: Answer) -> None:
        error = self._fault(request) or self._stranger(request.body, "generationId")
        if error is None and self.rebalancing:
            error = Error.REBALANCE_IN_PROGRESS
        if error is None and self._synced == self.generation:
            self.stable = True  # the client has found its coordinator again
        answer({"errorCode": error or Error.NONE})

    def commit(self, request: Received, answer: Answer) -> None:
        body = request.body
        generation = "generationIdOrMemberEpoch"
        error = self._fault(request) or self._stranger(body, generation) or Error.NONE
        topics = []
        for each in body["topics"]:
            name = "topicId" if "topicId" in each and request.version >= IDS_SINCE else "name"
            parts = [{"partitionIndex": part["partitionIndex"], "errorCode": error} for part in each["partitions"]]
            topics.append({name: each[name], "partitions": parts})
        answer({"topics": topics})

    def leave(self, request: Received, answer: Answer) -> None:
        body = request.body
        leaving = [body["memberId"]] if request.version < BATCHES_SINCE else [x["memberId"] for x in body["members"]]
        if self.member in leaving:
            self.member, self.stable = "", False
        if request.version < BATCHES_SINCE:
            return answer({"errorCode": 0})
        members = [
            {"memberId": each["memberId"], "groupInstanceId": each["groupInstanceId"], "errorCode": 0}
            for each in body["members"]
        ]
        answer({"errorCode": 0, "members": members})

    # Errors

    def _fault(self, request: Received) -> Error | None:
        """The error that the script has for this request, and what it says of the group."""
        found = next((each for each in self.faults if each[0] == request.api), None)
        if found is None:
            return None
        self.faults.remove(found)
        error = found[1]
        if error is Error.UNKNOWN_MEMBER_ID:
            self.member = ""
        if error is Error.ILLEGAL_GENERATION:
            self.generation += 1
        if error is Error.REBALANCE_IN_PROGRESS:
            self.rebalancing = True
        return error

    def _stranger(self, body: Mapping[str, Any], generation: str) -> Error | None:
        if not self.member or body["memberId"] != self.member:
            return Error.UNKNOWN_MEMBER_ID
        return None if body[generation] == self.generation else Error.ILLEGAL_GENERATION


def assigned(edition: Edition, partitions: tuple[int, ...]) -> bytes:
    """An assignment of these partitions."""
    topics = [{"topic": TOPIC, "partitions": list(partitions)}] if partitions else []
    return spec(edition, "ConsumerProtocolAssignment").at(0).encode({"assignedPartitions": topics, "userData": None})


def partitions_of(edition: Edition, assignment: bytes) -> list[str]:
    """The partitions of an assignment, ``t-0``; empty for one that cannot be read."""
    if len(assignment) < 2:
        return []
    version = min(max(int.from_bytes(assignment[:2], "big", signed=True), 0), 3)
    try:
        found = spec(edition, "ConsumerProtocolAssignment").at(version).decode(assignment, lenient=True)
    except Refused:
        return []
    return [f"{each['topic']}-{part}" for each in found["assignedPartitions"] for part in each["partitions"]]
