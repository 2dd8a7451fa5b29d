"""A cluster of two nodes that plays the coordinator and all other members of one group, for one client alone.

What happens is decided by calls (``client.play``): rebalances, errors, the other members, what a client that follows is
assigned, and which node coordinates. Everything else is answered as ``Broker`` does.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.client.disturbances import Disturbance
from kipcheck.conformance.live.client.other_members import (
    COOPERATIVE,
    TOPIC,
    Other,
    Partitions,
    assignment,
    pairs,
    partitions_in,
)
from kipcheck.conformance.live.client.scripted_consumer_group import ScriptedConsumerGroup
from kipcheck.conformance.live.client.scripted_offsets import Read, ScriptedOffsets
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.answered_errors import CODES, with_error
from kipcheck.conformance.live.server.broker import NODE, Broker
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.groups import Answer, Handler
from kipcheck.conformance.live.server.offsets_api import is_in_zookeeper
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.client.model import PARTITIONS, SINCE
from kipcheck.conformance.protocols.client.ops import Error, Kind, Member, Refusal
from kipcheck.conformance.protocols.group.model import messages

SECOND: Final = "u"
TOPICS: Final = ((TOPIC, PARTITIONS), (SECOND, 2))
GROUP: Final = "g"
MEMBER_ID_SINCE: Final = 4
"""JoinGroup: a new dynamic member has to come again with the id that it is given."""
SKIPS_SINCE: Final = 9
"""JoinGroup: a static leader that returns is sent that it leads and has to assign nothing."""
BATCHES_SINCE: Final = 3
"""LeaveGroup."""
FENCED_INSTANCE_ID: Final = 82
MOST_REVOCATIONS: Final = 3
"""Rebalances of one step because other members gave partitions up."""
COORDINATED: Final = frozenset({
    "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat",
})  # fmt: skip
"""The requests that only the coordinator answers."""
BY_ASSIGNMENT: Final = frozenset({"JoinGroup", "SyncGroup", "OffsetFetch"})
"""The requests that a client sends in a rebalance."""
PATCHED: Final[tuple[Kind, ...]] = ("FindCoordinator", "Metadata", "OffsetFetch", "ListOffsets", "Fetch")


class ScriptedBroker(Broker):
    def __init__(self, edition: Edition) -> None:
        self.consumer_group = ScriptedConsumerGroup(self)
        super().__init__(edition, Topics.of(TOPICS))
        self.nodes: Sequence[tuple[str, int]] = ()
        """The addresses of the nodes; none: one, that which a client connected to."""
        self.home = 0
        """The node that coordinates the group. The first one leads all partitions."""
        self.others: tuple[Other, ...] = ()
        self.leads = True
        self.given: Partitions = {TOPIC: (0,)}
        """The partitions that a client that follows is assigned, if it subscribes to them and they exist."""
        self.subscribed: tuple[str, ...] = (TOPIC,)
        self.generation = 0
        self.member = ""
        """The id of the client; empty: it is not a member."""
        self.instance: str | None = None
        self.session_ms = 0
        """The session timeout in its last JoinGroup; 0: it sent none."""
        self.protocol = ""
        self.rebalancing = True
        self.stable = False
        self.faults: list[tuple[Kind, Error]] = []
        """The requests that are still to be answered with an error."""
        self.refusals: dict[Kind, Refusal] = {}
        """The requests that are all answered with an error."""
        self.has_refused = False
        """Whether one was."""
        self.disturbances: list[tuple[Kind, Disturbance]] = []
        self.has_joined = False
        """Whether it was a stable member once."""
        self._synced = -1
        """The last generation whose assignment the client was sent."""
        self._assignment = b""
        """What it was assigned there."""
        self._protocols: object = None
        """What it joined with."""
        self._pending = ""
        """The id that a new member has to come again with."""
        self._fenced: set[str] = set()
        """The ids of static members whose instance id another member has now."""
        self._leads_now = True
        self._sync_until_s = inf
        """When the coordinator removes the client if it has not sent SyncGroup (KAFKA-12890)."""
        self._revocations = 0

    def _handlers(self) -> dict[str, Handler]:
        self.offsets = ScriptedOffsets(GROUP, self.groups, self.topics, self._commit_error, self._fetch_error)
        found = {**super()._handlers(), **self.offsets.handlers}
        own: dict[str, Handler] = {
            "JoinGroupRequest": self.join,
            "SyncGroupRequest": self.sync,
            "HeartbeatRequest": self.heartbeat,
            "LeaveGroupRequest": self.leave,
            **{f"{each}Request": partial(self._patched, found[f"{each}Request"]) for each in PATCHED},
        }
        if "ConsumerGroupHeartbeatRequest" in found:
            own["ConsumerGroupHeartbeatRequest"] = self.consumer_group.heartbeat
        found.pop("ConsumerGroupDescribeRequest", None)
        return {**found, **own}

    # Called by scripts

    def become(self, edition: Edition) -> None:
        """Serves the versions of that edition, and has its settings."""
        other = ScriptedBroker(edition)
        self.edition, self.versions = edition, other.versions
        self.log.pads = other.log.pads
        self.has_consumer_groups = other.has_consumer_groups
        self.settings = self.groups.settings = other.settings

    def place_others(self, number: int, leads: bool) -> None:
        self.others = tuple(Other(f"other-{each}") for each in range(number))
        self.leads = leads
        if not self.is_member:
            self._removed()

    def add_other(self, wants: Member) -> None:
        self.others = (*self.others, Other(f"other-{len(self.others)}", wants))

    def grow(self, partitions: int) -> None:
        """The topic has at least so many partitions."""
        topic = self.topics.by_name[TOPIC]
        grown = replace(topic, partitions=max(partitions, topic.partitions))
        self.topics.by_name[TOPIC] = self.topics.by_id[topic.id] = grown

    def rebalance(self) -> None:
        self._revocations = 0
        self._rebalance()

    def _rebalance(self) -> None:
        self.rebalancing, self.stable = True, False
        self.consumer_group.target_epoch += 1

    def move(self) -> None:
        """The group is loaded by the other node."""
        if self.nodes:
            self.home = (self.home + 1) % len(self.nodes)
            self.stable = False

    def fence(self) -> None:
        """Another program has the instance id of the client."""
        if self.instance is not None and self.member:
            self._fenced.add(self.member)
            self.member = f"{self.instance}-{uuid.uuid4()}"

    def fail_next(self, api: Kind, error: Error) -> None:
        self.faults.append((api, error))
        self._provoke(api)

    def refuse(self, api: Kind, error: Refusal) -> None:
        """All requests of that kind are answered with that error from now on."""
        self.refusals[api] = error
        self._provoke(api)

    def disturb(self, api: Kind, how: Disturbance) -> None:
        """What happens to the answer to the next request of that kind."""
        self.disturbances.append((api, how))
        self._provoke(api)

    def _provoke(self, api: Kind) -> None:
        """Does what lets a client send such a request."""
        if api == "LeaveGroup":
            return
        self.stable = False
        if api in BY_ASSIGNMENT:
            self.rebalance()
        if api == "FindCoordinator":
            beat: Kind = "ConsumerGroupHeartbeat" if self.is_modern else "Heartbeat"
            self.faults.append((beat, "NOT_COORDINATOR"))
        if api == "Metadata":
            self.faults.append(("Fetch", "NOT_LEADER_OR_FOLLOWER"))
        if api == "ListOffsets":
            self.faults.append(("Fetch", "OFFSET_OUT_OF_RANGE"))

    @property
    def is_modern(self) -> bool:
        """Whether the client uses the protocol of KIP-848."""
        return bool(self.consumer_group.member)

    @property
    def is_member(self) -> bool:
        return bool(self.member or self.consumer_group.member)

    @property
    def pending(self) -> bool:
        """Whether an error or a disturbance waits for its request."""
        return any(api != "LeaveGroup" for api, _ in (*self.faults, *self.disturbances))

    def drop_pending(self) -> list[str]:
        """The requests that errors and disturbances still wait for, which are forgotten; not those of the end."""
        found: list[str] = [api for api, _ in (*self.faults, *self.disturbances) if api != "LeaveGroup"]
        self.faults = [each for each in self.faults if each[0] == "LeaveGroup"]
        self.disturbances = [each for each in self.disturbances if each[0] == "LeaveGroup"]
        return found

    # Requests

    def received(self, request: Received, connection: Connection) -> None:
        found = next((each for each in self.disturbances if each[0] == request.api), None)
        if found is None:
            return super().received(request, connection)
        self.disturbances.remove(found)
        found[1].apply(request, connection, super().received)

    def _patched(self, handler: Handler, request: Received, answer: Answer) -> None:
        """Answers as every broker does, or with an error of the script."""
        error = self.fault(request)
        if error is None:
            return handler(request, answer)
        handler(request, lambda body: answer(with_error(request.api, request.version, body, error)))

    def metadata(self, request: Received, answer: Answer) -> None:
        brokers = [
            {"nodeId": NODE + at, "host": host, "port": port, "rack": None}
            for at, (host, port) in enumerate(self.nodes or (request.reached,))
        ]
        super().metadata(request, lambda body: answer({**body, "brokers": brokers}))

    def find_coordinator(self, request: Received, answer: Answer) -> None:
        host, port = self.nodes[self.home] if self.nodes else request.reached
        at = {"nodeId": NODE + self.home, "host": host, "port": port}

        def placed(found: Mapping[str, Any]) -> dict[str, Any]:
            return {**found, **({} if found["errorCode"] else at)}

        def done(body: Mapping[str, Any]) -> None:
            if "coordinators" in body:
                return answer({**body, "coordinators": [placed(each) for each in body["coordinators"]]})
            answer(placed(body))

        super().find_coordinator(request, done)

    def join(self, request: Received, answer: Answer) -> None:
        body = request.body
        id, instance, self.session_ms = body["memberId"], body.get("groupInstanceId"), body.get("sessionTimeoutMs", 0)
        error = self._refused(request) if id else self._elsewhere(request)
        if error is None and id and id not in (self.member, self._pending):
            error = FENCED_INSTANCE_ID if id in self._fenced and instance is not None else CODES["UNKNOWN_MEMBER_ID"]
        if error is None and not body["protocols"]:
            error = CODES["INCONSISTENT_GROUP_PROTOCOL"]
        if error is not None:
            return answer(self._joined(request, error, id))
        replaced = ""
        if not id:
            id = f"{request.client_id or '' if instance is None else instance}-{uuid.uuid4()}"
            if request.version >= MEMBER_ID_SINCE and instance is None:
                self._pending = id
                return answer(self._joined(request, messages.Error.MEMBER_ID_REQUIRED, id))
            if instance is not None and instance == self.instance and self.member:
                replaced = self.member
                self._fenced.add(replaced)
        same = self._synced == self.generation and not self.rebalancing and body["protocols"] == self._protocols
        self.member, self.instance, self._pending = id, instance, ""
        if replaced and same:
            return answer(self._returned(request, replaced, id))
        self.generation += 1
        self.rebalancing, self.stable = False, False
        self.protocol, self._protocols = body["protocols"][0]["name"], body["protocols"]
        self._leads_now = self.leads or not self.others
        wait_ms = body.get("rebalanceTimeoutMs", body.get("sessionTimeoutMs", 0))
        self._sync_until_s = request.at_s + wait_ms / 1000 if wait_ms > 0 else inf
        answer(self._joined(request, 0, id, self._members(request, id) if self._leads_now else []))

    def _members(self, request: Received, id: str) -> list[dict[str, Any]]:
        """All members, as a leader is sent them; ``id``: that of the client."""
        own = {"memberId": id, "groupInstanceId": self.instance, "metadata": request.body["protocols"][0]["metadata"]}
        before = self.generation - 1
        return [own, *({"memberId": each.id, "metadata": each.metadata(self.protocol, before)} for each in self.others)]

    def _joined(
        self, request: Received, error: int, id: str, members: list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        done = not error
        leader = (id if self._leads_now else self.others[0].id) if done else ""
        about = {"protocolType": "consumer"} if done and request.version >= 7 else {}
        return {
            "errorCode": error, "generationId": self.generation if done else -1, "leader": leader, "memberId": id,
            "protocolName": self.protocol if done else "", "members": members or [], **about,
        }  # fmt: skip

    def _returned(self, request: Received, replaced: str, id: str) -> dict[str, Any]:
        """A static member comes back to a stable group, which does not rebalance.

        A leader is sent its old id as that of the leader, so that it assigns nothing; or all members, and that it
        has to assign nothing (KIP-814, ``GroupMetadataManager``).
        """
        if not self._leads_now:
            return self._joined(request, 0, id)
        if request.version < SKIPS_SINCE:
            return {**self._joined(request, 0, id), "leader": replaced}
        return {**self._joined(request, 0, id, self._members(request, id)), "skipAssignment": True}

    def sync(self, request: Received, answer: Answer) -> None:
        body = request.body
        error = self._refused(request) or self._stranger(request, "generationId")
        if error is None and self.rebalancing:
            error = CODES["REBALANCE_IN_PROGRESS"]
        if error is not None:
            return answer({"errorCode": error, "assignment": b""})
        revoked = False
        if self._synced != self.generation:
            revoked = self._assign(body)
        about = {"protocolType": "consumer", "protocolName": self.protocol} if request.version >= 5 else {}
        answer({"errorCode": 0, "assignment": self._assignment, **about})
        self.stable = self.has_joined = True
        self._synced, self._sync_until_s = self.generation, inf
        if revoked and self._revocations < MOST_REVOCATIONS:
            self._revocations += 1
            self._rebalance()

    def _assign(self, body: Mapping[str, Any]) -> bool:
        """Completes the rebalance. Returns whether other members now give partitions up, and join again."""
        if not self._leads_now:
            self._assignment = assignment(self.target())
            self.hand_over(self.target())
            return False
        found = {each["memberId"]: each["assignment"] for each in body["assignments"]}
        self._assignment = found.get(self.member, b"")
        gave_up = [each.take(found.get(each.id, b"")) for each in self.others]
        to_others = (each for other in self.others for each in pairs(other.given))
        self.offsets.hand_over(pairs(partitions_in(self._assignment)), to_others)
        return self.protocol == COOPERATIVE and any(gave_up)

    def hand_over(self, given: Partitions) -> None:
        """The client has these partitions now, and other members have all others."""
        mine = frozenset(pairs(given))
        self.offsets.hand_over(mine, self._everything() - mine)

    def _everything(self) -> Read:
        """The partitions that the client subscribes to."""
        sizes = self.topics.sizes
        return frozenset((each, number) for each in self.subscribed for number in range(sizes[each]))

    def _removed(self) -> None:
        """The client is no member any more: the other members, if there are any, take its partitions over."""
        self.member = ""
        if self.others:
            self.offsets.read_by_others = self._everything()

    def target(self) -> Partitions:
        """What the script gives to a client that leads nothing."""
        return {
            topic: tuple(sorted({each for each in parts if each < self.topics.by_name[topic].partitions}))
            for topic, parts in self.given.items()
            if topic in self.subscribed
        }

    def heartbeat(self, request: Received, answer: Answer) -> None:
        error = self._refused(request) or self._stranger(request, "generationId")
        if error is None and self.rebalancing:
            error = CODES["REBALANCE_IN_PROGRESS"]
        if error is None and self._synced == self.generation:
            self.stable = True  # the client has found its coordinator again
            for each in self.subscribed:
                self.topics.grow(each)  # some clients commit new positions only
            self.log.grew()
        answer({"errorCode": error or 0})

    def _commit_error(self, request: Received) -> int:
        error = self._refused(request)
        if error is None and self.is_modern:
            error = self.consumer_group.commit_error(request.body)
        elif error is None:
            error = self._stranger(request, "generationIdOrMemberEpoch")
            if error is None and self._leads_now and self._synced != self.generation:
                error = CODES["REBALANCE_IN_PROGRESS"]  # all members wait for this one's SyncGroup
        return error or 0

    def _fetch_error(self, asked: Mapping[str, Any]) -> int:
        """Of an OffsetFetch that names a member, which only those of KIP-848 do."""
        return (self.consumer_group.commit_error(asked) or 0) if self.is_modern else 0

    def leave(self, request: Received, answer: Answer) -> None:
        body = request.body
        error = self._refused(request) or 0
        leaving = [body["memberId"]] if request.version < BATCHES_SINCE else [x["memberId"] for x in body["members"]]
        if self.member in leaving and not error:
            self._removed()
            self.stable = False
        if request.version < BATCHES_SINCE or error:
            return answer({"errorCode": error} | ({} if request.version < BATCHES_SINCE else {"members": []}))
        members = [
            {"memberId": each["memberId"], "groupInstanceId": each["groupInstanceId"], "errorCode": 0}
            for each in body["members"]
        ]
        answer({"errorCode": 0, "members": members})

    # Errors

    def _refused(self, request: Received) -> int | None:
        error = self.fault(request)
        return None if error is None else CODES[error]

    def _elsewhere(self, request: Received) -> int | None:
        away = bool(self.nodes) and request.reached != self.nodes[self.home]
        if away and request.api in COORDINATED and not is_in_zookeeper(request):
            return CODES["NOT_COORDINATOR"]
        return None

    def fault(self, request: Received) -> Error | Refusal | None:
        """The error that the script has for this request, and what it says of the group."""
        if is_in_zookeeper(request):
            return None
        if self._elsewhere(request) is not None:
            return "NOT_COORDINATOR"
        refusal = next((each for each in self.refusals.items() if each[0] == request.api), None)
        if refusal is not None and request.version >= SINCE.get(refusal, 0):
            self.has_refused = True
            if refusal[1] == "FENCED_INSTANCE_ID":
                self.fence()
            return refusal[1]
        found = next((each for each in self.faults if each[0] == request.api), None)
        if found is None or request.version < SINCE.get(found, 0) or not _can_get(request, found[1]):
            return None
        self.faults.remove(found)
        error = found[1]
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"):
            self._removed()
            self.consumer_group.forget()
        if error == "ILLEGAL_GENERATION":
            self.generation += 1
        if error == "REBALANCE_IN_PROGRESS":
            self.rebalancing = True
        return error

    def _stranger(self, request: Received, generation: str) -> int | None:
        body = request.body
        if request.at_s > self._sync_until_s:
            self._removed()
            self._sync_until_s = inf
        if body["memberId"] in self._fenced and body.get("groupInstanceId") is not None:
            return FENCED_INSTANCE_ID
        if not self.member or body["memberId"] != self.member:
            return CODES["UNKNOWN_MEMBER_ID"]
        return None if body[generation] == self.generation else CODES["ILLEGAL_GENERATION"]


def _can_get(request: Received, error: Error) -> bool:
    """Whether the request says what the error is about: the epoch of a leader, or that it wants stable offsets."""
    if error in ("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"):
        parts = (part for each in request.body["topics"] for part in each["partitions"])
        return any(each.get("currentLeaderEpoch", -1) >= 0 for each in parts)
    return error != "UNSTABLE_OFFSET_COMMIT" or bool(request.body.get("requireStable"))
