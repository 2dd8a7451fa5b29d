"""A cluster of two nodes, and all other members of one group, for one client alone.

The group is run by the machines of the release. Where a script wants what a coordinator does not do by itself, it is
a fault, here: an error answered instead, a member that is removed, a generation that moves on without it, the leader
and the target assignment. Which node coordinates, and what happens to an answer on its way, is the script's too.
"""

import asyncio
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, get_args

from kipcheck.conformance.core.files.broker_settings import settings
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.client.disturbances import Disturbance
from kipcheck.conformance.live.client.other_members import (
    GROUP,
    SESSION_MS,
    TOPIC,
    VERSION,
    Other,
    OtherMembers,
    Partitions,
    clients,
    is_other,
)
from kipcheck.conformance.live.client.possible_answers import can_get, within
from kipcheck.conformance.live.client.scripted_log import ScriptedLog
from kipcheck.conformance.live.client.scripted_machines import ScriptedConsumerGroup, ScriptedCoordinator
from kipcheck.conformance.live.client.scripted_nodes import Nodes
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.answered_errors import with_error
from kipcheck.conformance.live.server.classic_group import ClassicGroup
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.consumer_group import LiveConsumerGroup, LiveMachine
from kipcheck.conformance.live.server.groups import Answer, Handler
from kipcheck.conformance.live.server.offsets_api import is_in_zookeeper
from kipcheck.conformance.live.server.settings import HEARTBEAT
from kipcheck.conformance.live.server.share_api import ShareApi
from kipcheck.conformance.live.server.streams_api import StreamsApi
from kipcheck.conformance.live.server.topics import LEADER_EPOCH, Topics
from kipcheck.conformance.protocols.client.answer_ops import SHARES
from kipcheck.conformance.protocols.client.model import PARTITIONS, SINCE
from kipcheck.conformance.protocols.client.ops import Error, Kind, Member, Refusal
from kipcheck.conformance.protocols.client.terms import HEARTBEATS
from kipcheck.conformance.protocols.consumer_group import model as consumer_group
from kipcheck.conformance.protocols.consumer_group.heartbeat import Heartbeat
from kipcheck.conformance.protocols.consumer_group.rules import Config
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.state import Member as GroupMember
from kipcheck.conformance.protocols.share_group import heartbeat as share_group
from kipcheck.conformance.protocols.streams_group import heartbeat as streams_group
from kipcheck.conformance.wire.framing import requests

SECOND: Final = "u"
TOPICS: Final = ((TOPIC, PARTITIONS), (SECOND, 2))
HEARTBEAT_MS: Final = 300
SETTINGS: Final = {"group.min.session.timeout.ms": 1, "group.max.session.timeout.ms": SESSION_MS}
VISITOR: Final = "other-visitor"
"""A member that joins and leaves at once, which makes a group rebalance."""
LEFT: Final = (-1, -2)
"""Epochs of members that leave."""
MOST_REVOCATIONS: Final = 3
"""Rebalances of one step because other members gave partitions up."""
BUSY: Final = 3_000
"""So many requests a client sends in no script, unless it repeats them without a pause."""
BUSY_S: Final = 0.01
"""So late such a client is answered from then on: it shows what it does, and its traffic can still be read."""
GROWTHS: Final = 4
"""Heartbeats with which the topics grow, after each assignment and error: then a client has time to commit it all."""
MEMBERS: Final[Mapping[str, type[messages.Request]]] = {
    "JoinGroup": messages.Join, "SyncGroup": messages.Sync, "Heartbeat": messages.Heartbeat,
    "LeaveGroup": messages.Leave, "OffsetCommit": messages.Commit,
}  # fmt: skip
BEATS: Final[Mapping[str, type[Heartbeat | streams_group.Heartbeat | share_group.Heartbeat]]] = dict(
    zip(HEARTBEATS, (Heartbeat, streams_group.Heartbeat, share_group.Heartbeat), strict=True)
)
SIGN_OF: Final[Mapping[str, Kind]] = {
    "classic": "Heartbeat", "consumer": "ConsumerGroupHeartbeat", "streams": "StreamsGroupHeartbeat",
    "share": "ShareGroupHeartbeat",
}  # fmt: skip
SIGNS: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", *HEARTBEATS})
"""The requests whose answers make a stable member."""
BY_ASSIGNMENT: Final = frozenset({"JoinGroup", "SyncGroup", "OffsetFetch"})
"""The requests that a client sends in a rebalance."""


class ScriptedBroker(Nodes):
    is_alone = True
    """Whether there is one client, which laws judge: what it was sent in its last life is over when it joins again, its
    sessions do not end by themselves, and its topics grow."""

    def __init__(
        self,
        edition: Edition,
        heartbeat_ms: int = HEARTBEAT_MS,
        topics: Sequence[tuple[str, int]] = TOPICS,
        config: Iterable[str] = (),
    ) -> None:
        """``topics``: those that steps call t and u, and others. ``config``: settings besides those of scripts."""
        known = settings(edition.release)
        own = [f"{name}={value}" for name, value in (SETTINGS | {HEARTBEAT: heartbeat_ms}).items() if name in known]
        self.config = tuple(config)
        super().__init__(edition, Topics.of(topics), (*own, *self.config))
        self.names: Mapping[str, str] = dict(zip((TOPIC, SECOND), (name for name, _ in topics), strict=False))
        """The topics by the names that they have in steps, where these are others."""
        self.logs = ScriptedLog((*TOPICS, *topics), self.topics, self.log, self.groups)
        self.others = OtherMembers(self.topics, self.offsets.in_zookeeper, self.target, self.name_of)
        self.leads = True
        self.given: Mapping[str, tuple[int, ...]] = {self.name_of(TOPIC): (0,)}
        """The partitions that a client that follows is assigned, if it subscribes to them and they exist."""
        self.id = GROUP
        """Of the group."""
        self.instance: str | None = None
        self.session_ms = 0
        """The session timeout in its last JoinGroup; 0: it sent none."""
        self.faults: list[tuple[Kind, Error]] = []
        """The requests that are still to be answered with an error."""
        self.refusals: dict[Kind, Refusal] = {}
        """The requests that are all answered with an error."""
        self.has_refused = False
        """Whether one was."""
        self.disturbances: list[tuple[Kind, Disturbance]] = []
        self.has_joined = False
        """Whether it was a stable member once."""
        self._revocations = self._requests = 0
        self._growths = GROWTHS
        """How many heartbeats the topics still grow with."""
        self._run_groups()

    def _run_groups(self) -> None:
        """By the machines of the edition, with what the script decides of them."""
        self.groups.machine = self.directed(self.groups.machine)
        self.groups.observer = self._changed
        self.groups.consumer_machine = self.targeted
        for _, group in self.groups.classics():
            group.machine = self.groups.machine

    def directed(self, machine: Coordinator) -> Coordinator:
        return ScriptedCoordinator(machine, self.is_to_lead)

    def is_to_lead(self, id: str) -> bool:
        return is_other(id) is not (self.leads or not self.others.members)

    def targeted(self, topics: Mapping[str, int], config: Config) -> LiveMachine:
        machine = ScriptedConsumerGroup(topics, config)
        machine.target = self.target
        return machine

    def _handlers(self) -> dict[str, Handler]:
        handlers = super()._handlers()
        self.streams = StreamsApi(self.groups, self.bodies)
        self.shares = ShareApi(self.groups, self.topics, self.bodies, self.log.error)
        handlers |= {**self.streams.handlers, **self.shares.handlers} if self.has_consumer_groups else {}
        scripted = {f"{api}Request" for api in get_args(Kind)}
        return {
            name: partial(self._handle, handler) if name in scripted else handler for name, handler in handlers.items()
        }

    # Called by scripts

    def become(self, edition: Edition, offered: Mapping[Kind, range], heartbeat_ms: int) -> None:
        """Serves the versions of that edition, with these ranges of those that are offered otherwise, and has its
        settings. ``heartbeat_ms``: the interval of KIP-848. Errors: LookupError for a range in which it has none."""
        known = settings(edition.release)
        kept = (each for each in self.config if each.partition("=")[0] in known)
        other = ScriptedBroker(edition, heartbeat_ms, config=kept)
        self.edition = edition
        self.versions = {
            key: within(served, key, offered) for key, served in other.versions.items()
            if requests(edition)[key].name in self.handlers
        }  # fmt: skip
        self.log.pads = other.log.pads
        self.has_consumer_groups = other.has_consumer_groups
        self.settings = self.groups.settings = other.settings
        self.groups.machine = other.groups.machine
        self._run_groups()

    def place_others(self, number: int, leads: bool) -> None:
        self.others.members = tuple(Other(f"other-{place}") for place in range(number))
        self.leads = leads
        if not self.is_member:
            self.others.take_over()

    def add_other(self, wants: Member) -> None:
        members = self.others.members
        self.others.members = (*members, Other(f"other-{len(members)}", wants))

    def name_of(self, topic: str) -> str:
        """The name of a topic of a step."""
        return self.names.get(topic, topic)

    def assign(self, partitions: tuple[int, ...], more: tuple[int, ...]) -> None:
        self.given = {self.name_of(TOPIC): partitions, self.name_of(SECOND): more}

    def grow(self, partitions: int) -> None:
        """The topic has at least so many partitions."""
        topic = self.topics.by_name.get(self.name_of(TOPIC))
        if topic is None:
            return
        grown = replace(topic, partitions=max(partitions, topic.partitions))
        self.topics.by_name[topic.name] = self.topics.by_id[topic.id] = grown

    def reset_offsets(self, offset: int) -> None:
        """An administrator commits that offset of all partitions, for a group without members."""
        partitions = [
            (topic.name, number) for topic in self.topics.by_name.values() for number in range(topic.partitions)
        ]
        group = self.groups.growing(self.id)
        offsets = tuple((*each, offset, LEADER_EPOCH, "") for each in partitions)
        group.send(messages.Commit(group.machine.rules.versions[messages.Commit][-1], "", None, -1, offsets))
        self.offsets.in_zookeeper.update({(self.id, *each): offset for each in partitions})

    def topics_changed(self) -> None:
        """Topics are created or deleted: a coordinator of KIP-848 assigns anew, and a leader among the others joins
        again."""
        self.groups.topics = self.topics.sizes
        if self.is_modern or (self.is_member and self.others.members and not self.leads):
            self.rebalance()

    def lag(self, what: str, ms: int) -> None:
        """Answers to Metadata lack that for so long."""
        self.logs.lag(what, ms)
        if self.has_joined:
            self.provoke("Metadata")

    def rebalance(self) -> None:
        self._revocations = 0
        self._rebalance()

    def load(self) -> None:
        self.stable, group = False, self.group
        for event in (messages.Unload(), messages.Load(), messages.Loaded()):
            group.apply(event)

    def disband(self) -> None:
        """The group is deleted, with its members and its offsets."""
        self.stable = False
        self._remove()
        for member in self.group.state.members:
            self.group.send(messages.Leave(VERSION, ((member.id, None),)))
        self.groups.ask(self.id, messages.Delete, 0)
        if self.groups.consumer(self.id) is not None:
            self.groups.remove_consumer(self.id)
        for at in [at for at in self.offsets.in_zookeeper if at[0] == self.id]:
            del self.offsets.in_zookeeper[at]

    def fence(self) -> None:
        """Another program has the instance id of the client."""
        for member in clients(self.group.state):
            if member.instance is not None:
                self._join(member, "", f"{member.instance}-{uuid.uuid4()}")

    @property
    def left_ms(self) -> int:
        """The time after which a member is removed that sends nothing from now on: its session timeout."""
        if (consumers := self.consumers) is not None:
            return consumers.machine.config.session_ms
        return self.session_ms or SESSION_MS

    def expire(self) -> None:
        """The session of the client ends."""
        self.stable = False
        self._remove()

    def fail_next(self, api: Kind, error: Error, times: int = 1) -> None:
        self.faults += [(api, error)] * times

    def refuse(self, api: Kind, error: Refusal) -> None:
        """All requests of that kind are answered with that error from now on."""
        self.refusals[api] = error

    def disturb(self, api: Kind, how: Disturbance, times: int = 1) -> None:
        """What happens to the answers to the next requests of that kind."""
        self.disturbances += [(api, how)] * times

    def provoke(self, api: Kind) -> None:
        """Does what lets a client send such a request."""
        if api == "LeaveGroup":
            return
        self.stable, self._growths = False, GROWTHS
        if api in BY_ASSIGNMENT:
            self.rebalance()
        if api == "OffsetCommit":
            self._grow()  # the next heartbeat, with which they grow otherwise, may be far away
        if api == "FindCoordinator":
            self.faults.append((self.sign, "NOT_COORDINATOR"))
        if api == "Metadata":
            self.faults.append(("Fetch", "NOT_LEADER_OR_FOLLOWER"))
        if api == "OffsetForLeaderEpoch":
            self.logs.elect((), len(self.nodes), 0)
        if api == "ListOffsets":
            self.faults.append(("Fetch", "OFFSET_OUT_OF_RANGE"))

    @property
    def group(self) -> ClassicGroup:
        return self.groups.classic(self.id)

    @property
    def consumers(self) -> LiveConsumerGroup | None:
        """The group, if it has members that use the protocol of KIP-848."""
        return self.groups.consumer_with_members(self.id)

    @property
    def is_modern(self) -> bool:
        """Whether the client uses the protocol of KIP-848."""
        return self.consumers is not None

    @property
    def protocol(self) -> str:
        """That of the group of the client: see ``client.model.UNSENT``."""
        if not self.is_modern:
            return "classic"
        return "share" if self.shares.members else "streams" if self.streams.sources else "consumer"

    @property
    def sign(self) -> Kind:
        """The request by which a member of that group shows that it is one."""
        return SIGN_OF[self.protocol]

    @property
    def is_member(self) -> bool:
        return self.is_modern or bool(clients(self.group.state))

    @property
    def rebalancing(self) -> bool:
        return self.is_modern or self.group.state.phase is messages.Phase.PREPARING

    @property
    def pending(self) -> bool:
        """Whether an error or a disturbance waits for its request."""
        return any(api != "LeaveGroup" for api, _ in (*self.faults, *self.disturbances))

    def waiting(self, kinds: Collection[Kind]) -> int:
        """How many errors and disturbances wait for requests of these kinds."""
        return sum(api in kinds for api, _ in (*self.faults, *self.disturbances))

    def drop_pending(self) -> list[str]:
        """The requests that errors and disturbances still wait for, which are forgotten; not those of the end."""
        waiting: list[str] = [api for api, _ in (*self.faults, *self.disturbances) if api != "LeaveGroup"]
        self.faults = [fault for fault in self.faults if fault[0] == "LeaveGroup"]
        self.disturbances = [disturbance for disturbance in self.disturbances if disturbance[0] == "LeaveGroup"]
        return [*dict.fromkeys(waiting)]

    def target(self) -> Partitions:
        """What the script gives to a client that leads nothing."""
        wanted = ((topic, number) for topic, numbers in self.given.items() for number in numbers)
        return self.others.everything().intersection(wanted)

    # What happens to the group

    def _changed(self, group: ClassicGroup) -> None:
        self.others.take_part(group)
        if self.others.have_revoked and group.state.phase is messages.Phase.STABLE:
            self.others.have_revoked = False
            if self._revocations < MOST_REVOCATIONS:
                self._revocations += 1
                self._rebalance()

    def _rebalance(self) -> None:
        """Another member joins, and leaves."""
        self.stable = False
        if (consumers := self.consumers) is not None:
            consumers.heartbeat(VISITOR, 0, {self.name_of(TOPIC)}, ())
            consumers.heartbeat(VISITOR, LEFT[0], None, None)
        for member in clients(self.group.state)[:1]:
            self._join(member._replace(instance=None), "", VISITOR)

    def _join(self, member: GroupMember, id: str, fresh: str = "") -> None:
        """A JoinGroup with what a member has, whose answer it does not receive."""
        kind = self.group.state.protocol_type or ""
        times = SESSION_MS, member.rebalance_ms
        self.group.send(messages.Join(VERSION, id, member.instance, kind, member.protocols, *times, fresh))

    def _advance(self) -> None:
        """The generation moves on without the client: it joined, and the answer was lost."""
        members = clients(self.group.state)
        if members:
            self._rebalance()
        for member in members:
            self._join(member, member.id)

    def _remove(self, id: str = "", instance: str | None = None) -> None:
        """The members of the client are removed, as by an administrator or the end of their sessions, but for the one
        with this id or instance; and ids that were given out are forgotten."""
        group = self.group
        gone = [member.id for member in clients(group.state) if instance is None or member.instance != instance]
        for gone_id in (*gone, *group.state.pending):
            group.send(messages.Leave(VERSION, ((gone_id, None),)))
        if (consumers := self.consumers) is not None:
            for member in consumers.state.members:
                if member.id != id:
                    consumers.heartbeat(member.id, LEFT[0], None, None)

    # Requests

    def received(self, request: Received, connection: Connection) -> None:
        if self.is_silent(request, connection):
            return
        self._requests += 1
        if self._requests > BUSY and self.is_alone:
            loop = asyncio.get_running_loop()
            loop.call_later(BUSY_S, connection.front.guard, connection, lambda: self._receive(request, connection))
        else:
            self._receive(request, connection)

    def _receive(self, request: Received, connection: Connection) -> None:
        disturbance = next((waiting for waiting in self.disturbances if waiting[0] == request.api), None)
        if disturbance is None:
            return super().received(request, connection)
        self.disturbances.remove(disturbance)
        self._disturbed(request)
        disturbance[1].apply(request, connection, super().received)

    def _disturbed(self, request: Received) -> None:
        """A member that was sent an error, or nothing, has to show that it is one."""
        self.stable = self.stable and request.api not in SIGNS

    def _handle(self, handler: Handler, request: Received, answer: Answer) -> None:
        """Answers with an error of the script, or as every broker does."""
        error = self.fault(request)
        if error is not None:
            return self._refuse(handler, request, answer, error)
        match request.api:
            case "JoinGroup":
                self.id, join = self.bodies.read(messages.Join, request)
                self.instance, self.session_ms = join.instance, join.session_ms
                if not join.member and self.is_alone:
                    self._remove(instance=join.instance)
            case api if api in HEARTBEATS:
                return self._beat(handler, request, answer)
        handler(request, partial(self._answered, request, answer))

    def _refuse(self, handler: Handler, request: Received, answer: Answer, error: Error | Refusal) -> None:
        """Requests of members are refused before a machine receives them."""
        code = KafkaError[error]
        if request.api in HEARTBEATS:
            named = {"memberId": request.body["memberId"]} if request.body["memberId"] else {}
            return answer({"errorCode": code, **named})
        if request.api in SHARES:
            return answer({"errorCode": code})
        if request.api == "Fetch":
            return self.log.refuse(request, answer, code)
        if request.api not in MEMBERS:
            return handler(request, lambda body: answer(with_error(request.api, request.version, body, error)))
        _, asked = self.bodies.read(MEMBERS[request.api], request)
        answer(self.bodies.written(self.groups.machine.refusal(asked, code), request.version, asked=request.body))

    def _answered(self, request: Received, answer: Answer, body: Mapping[str, Any]) -> None:
        if request.api == "JoinGroup":  # Kafka has no order of members: a leader has to make one
            listed = sorted(body["members"], key=lambda member: str(member["memberId"]), reverse=True)
            body = {**body, "members": listed}
        answer(body)
        if body.get("errorCode"):
            return
        match request.api:
            case "JoinGroup" | "LeaveGroup":
                self.stable = False
            case "SyncGroup":
                self.stable = self.has_joined = True
                self._growths = GROWTHS
            case "Heartbeat" if request.body["memberId"] not in self.group.state.owing:
                self.stable = True  # the client has found its coordinator again
                self._grow()

    def _grow(self) -> None:
        """Some clients commit new positions only."""
        for topic in self.topics.by_name.keys() & self.others.subscribed if self._growths and self.is_alone else ():
            self.topics.grow(topic)
        self._growths = max(0, self._growths - 1)
        self.log.grew()

    def _beat(self, handler: Handler, request: Received, answer: Answer) -> None:
        """Of a consumer group: what the client is given was read, and committed, by other members."""
        self.id, beat = self.bodies.read(BEATS[request.api], request)
        before = self._consumer(beat.member)
        if beat.epoch > 0 and not beat.member and self.is_alone:  # which a law judges, if the client is not shut out
            return self._refuse(handler, request, answer, "UNKNOWN_MEMBER_ID")
        if not beat.epoch and self.is_alone:
            self._remove(beat.member)
            self.others.members = ()
            for member in self.group.state.members:
                self.group.send(messages.Leave(VERSION, ((member.id, None),)))

        def done(body: Mapping[str, Any]) -> None:
            answer(body)
            group, after = self.consumers, self._consumer(body["memberId"])
            if group is None or after is None or body["errorCode"]:
                self.stable = self.stable and beat.epoch not in LEFT
                return
            had = before.assigned if before is not None else ()
            if self.is_alone:
                offsets = self.others.positions(self.others.left.intersection(after.assigned).difference(had))
                group.commit({at: (offset, LEADER_EPOCH, "") for at, offset in offsets.items()})
            if after.epoch == group.state.target_epoch == group.state.group_epoch:
                self.others.left = self.others.everything().difference(after.assigned)
                if beat.epoch == after.epoch and had == after.assigned:
                    self._grow()
                    self.stable = self.has_joined = True
                else:
                    self._growths = GROWTHS

        handler(request, done)

    def _consumer(self, id: str) -> consumer_group.Member | None:
        group = self.groups.consumer(self.id)
        return None if group is None else group.state.member(id)

    def metadata(self, request: Received, answer: Answer) -> None:
        def done(body: Mapping[str, Any]) -> None:
            answer(self.logs.as_known(request, {**body, "brokers": self.up(body["brokers"])}))

        super().metadata(request, done)

    def close(self) -> None:
        super().close()
        self.logs.close()

    # Errors

    def fault(self, request: Received) -> Error | Refusal | None:
        """The error that the script has for this request, and what it says of the group."""
        if is_in_zookeeper(request):
            return None
        if self.is_elsewhere(request):
            return "NOT_COORDINATOR"
        refusal = next((refusal for refusal in self.refusals.items() if refusal[0] == request.api), None)
        if refusal is not None and request.version >= SINCE.get(refusal, 0):
            self.has_refused = True
            if refusal[1] == "FENCED_INSTANCE_ID":
                self.fence()
            return refusal[1]
        fault = next((fault for fault in self.faults if fault[0] == request.api), None)
        if fault is None or request.version < SINCE.get(fault, 0) or not can_get(request, fault[1], self.is_modern):
            return None
        self.faults.remove(fault)
        self._disturbed(request)
        error = fault[1]
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"):
            self._remove()
        if error == "ILLEGAL_GENERATION":
            self._advance()
        if error in ("REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH"):
            self._rebalance()
        if error == "GROUP_ID_NOT_FOUND":
            self.disband()
        return error
