"""A Streams group that is upgraded or downgraded member by member, with faults.

The group is the coordinator machine; members are consumers with binaries, which are models or released jars.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, assert_never

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, Assigned, Subscription
from kipcheck.conformance.protocols.cluster.components import Centre, From, Node, Part, Told as Order
from kipcheck.conformance.protocols.cluster.model import Cluster
from kipcheck.conformance.protocols.group.model.answers import Config as BrokerConfig
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import Sync
from kipcheck.conformance.protocols.group.model.rules import Rules as BrokerRules
from kipcheck.conformance.protocols.group.model.state import Member, State as Group
from kipcheck.conformance.protocols.member.model.messages import Noted, UserEvent
from kipcheck.conformance.protocols.member.ops import Poll
from kipcheck.conformance.protocols.streams import ops
from kipcheck.conformance.protocols.streams.model import members as model_members
from kipcheck.conformance.protocols.streams.model.consumer import Adopted, StreamsConsumer, Threw, memory_of
from kipcheck.conformance.protocols.upgrade.model.script_runner import (
    Run,
    ScriptModel,
    callback_event,
    callbacks,
    member_name,
)

BROKERS: Final = named("last-before-4")
"""The newest line whose coordinators support the clients of every release."""
LARGE_GROUP: Final = BrokerConfig(max_size=100, initial_delay_ms=6000)
"""Large enough for the remains of members that ended. The initial rebalance delay takes one round."""


class Kind(NamedTuple):
    """Binary and configuration of a member."""

    member: str
    release: str
    """The release, as named in the script."""
    upgrade_from: str | None
    instance: str

    def __str__(self) -> str:
        return "/".join((self.member, self.release, self.upgrade_from or "", self.instance))

    @classmethod
    def parse(cls, text: str) -> "Kind":
        member, release, upgrade_from, instance = text.split("/")
        return cls(member, release, upgrade_from or None, instance)


class State(NamedTuple):
    parts: tuple[Part, ...]
    deployed: ops.Deploy = ops.Deploy()
    restless: bool = False
    """The group did not come to rest once: further ``Settle`` events do not wait again."""


class Kinds(dict[str, StreamsConsumer]):
    """Kind of member -> its consumer, created on first access. Errors: ``Misconfigured``."""

    def __init__(self, made: Callable[[Kind], StreamsConsumer]) -> None:
        super().__init__()
        self._made = made

    def __missing__(self, kind: str) -> StreamsConsumer:
        self[kind] = made = self._made(Kind.parse(kind))
        return made


class NewestLeads(Coordinator):
    def choose_leader(self, state: Group, candidates: tuple[Member, ...]) -> Member:
        return candidates[-1]


class StreamsMembers:
    """``binary``: creates the binary of a member with these settings. ``own`` and ``future``: the releases with these
    names in scripts."""

    def __init__(
        self,
        binary: Callable[[model_members.Settings], model_members.Binary],
        own: str,
        future: str = model_members.FUTURE,
        members: tuple[str, ...] = ops.MEMBERS,
        brokers: Coordinator | None = None,
    ) -> None:
        self.binary = binary
        self.releases = {model_members.OWN: own, model_members.FUTURE: future}
        self.members = members
        self.brokers = brokers or Coordinator(BrokerRules.of(BROKERS), LARGE_GROUP)
        self._clusters = lru_cache(maxsize=64)(self.cluster_of)

    def cluster_of(self, deployed: ops.Deploy) -> Cluster:
        brokers = NewestLeads(self.brokers.rules, self.brokers.config) if deployed.newest_leads else self.brokers
        return Cluster(brokers, self.consumers(deployed), self.members)

    def consumers(self, deployed: ops.Deploy) -> Mapping[str, StreamsConsumer]:
        """``Kind`` as text -> its consumer, created on first access. Errors: ``Misconfigured``."""
        return Kinds(lambda kind: StreamsConsumer(self.binary(self.settings(deployed, kind)), deployed.topics))

    def settings(self, deployed: ops.Deploy, kind: Kind) -> model_members.Settings:
        number = self.members.index(kind.member)
        keys = sorted({key for key, _ in deployed.tags})
        by_key = [(each, [value for key, value in deployed.tags if key == each]) for each in keys]
        return model_members.Settings(
            self.releases.get(kind.release, kind.release),
            deployed.topology,
            process_of(kind.instance),
            kind.upgrade_from,
            f"{kind.instance}:9092" if deployed.end_points else None,
            tuple((key, values[number % len(values)]) for key, values in by_key),
            tuple(key for key, _ in by_key),
        )

    def initial(self) -> State:
        return State(self._clusters(ops.Deploy()).initial())

    def cluster(self, state: State) -> Cluster:
        return self._clusters(state.deployed)

    def operate(self, run: Run[ops.ObservedEvent], state: State, event: ops.OwnEvent) -> State:
        match event:
            case ops.Deploy():
                return state._replace(deployed=event) if run.is_fresh else state
            case ops.Start(member, release, upgrade_from, instance):
                self.start(run, state.deployed, Kind(member, release, upgrade_from, instance or member))
            case ops.ShutDown(member):
                shut_down(run, member)
            case _:
                assert_never(event)
        return state

    def start(self, run: Run[ops.ObservedEvent], deployed: ops.Deploy, kind: Kind) -> None:
        run.crash(kind.member)
        try:
            run.cluster.consumers[str(kind)]
        except model_members.Misconfigured as why:
            settings = self.settings(deployed, kind)
            run.observed.append(ops.Refused(kind.member, settings.release, settings.upgrade_from, str(why)))
            return
        run.send_order(kind.member, Order(str(kind), tuple(sorted(deployed.topology.source_topics))))


def shut_down(run: Run[ops.ObservedEvent], member: str) -> None:
    """The member joins at once, with a subscription that requests the shutdown."""
    node = run.node(member)
    if node.state is None:
        return
    memory = replace(memory_of(node.state), error=model_members.SHUTDOWN_REQUESTED)
    node = node._replace(state=replace(node.state, memory=memory, rejoin=True))
    after, seen = run.cluster.run(node, Poll())
    run.parts[run.index(member)] = after
    run.observed += all_callbacks(member, seen)


def process_of(instance: str) -> str:
    """The UUID of an instance, a function of its name.

    For short names, hash maps of Java iterate over these UUIDs in the order of the names, so that the assignment of
    tasks does not depend on hash values.
    """
    number = int.from_bytes(instance.encode()[:8], "big")
    text = f"{number:016x}{0x8000000000000000:016x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class StreamsObserver:
    def coordinator_events(
        self, cluster: Cluster, before: Centre, after: Centre, cause: object
    ) -> Iterator[ops.ObservedEvent]:
        group = after.group
        if group.generation > before.group.generation and group.members:
            metadata = tuple(
                _join_metadata(cluster, after, each.id, each.metadata(group.protocol)) for each in group.members
            )
            yield ops.Formed(group.generation, member_name(after, group.leader or ""), metadata)
        if isinstance(cause, From) and isinstance(cause.ask.request, Sync) and cause.ask.request.assignments:
            sync = cause.ask.request
            counts = sync.generation == before.group.generation and sync.member == before.group.leader
            for id, share in sync.assignments if counts else ():
                assert isinstance(share, Assigned)
                leader = member_name(after, sync.member)
                yield ops.Sent(sync.generation, leader, member_name(after, id), share.partitions, share.user_data)

    def member_events(
        self, cluster: Cluster, index: int, before: Node, after: Node, cause: object
    ) -> Iterator[ops.ObservedEvent]:
        name = cluster.names[index]
        if before.state is None and after.state is not None:
            yield began(cluster, name, after)
        yield from all_callbacks(name, callbacks(cluster, index, before, cause))

    def rests(self, centre: Centre, nodes: Sequence[Node]) -> ops.ObservedEvent:
        ids = {each.id for each in centre.group.members}
        members = []
        for node in nodes:
            if node.state is not None and node.id in ids:
                memory = memory_of(node.state)
                name = Kind.parse(node.kind).member
                members.append(ops.Present(name, memory.used, memory.active, memory.standby, node.state.owned))
        return ops.Rests(centre.group.generation, tuple(members))


def streams_group_model(members: StreamsMembers) -> ScriptModel[State, ops.OwnEvent, ops.ObservedEvent]:
    return ScriptModel(members, StreamsObserver())


def began(cluster: Cluster, name: str, node: Node) -> ops.Began:
    consumer = cluster.consumers[node.kind]
    assert isinstance(consumer, StreamsConsumer)
    settings = consumer.binary.settings
    return ops.Began(name, settings.release, settings.upgrade_from, consumer.binary.latest, consumer.begins.used)


def adopted_generation(seen: Sequence[UserEvent]) -> int:
    """The generation of an applied assignment, also if the member has left since; -1 if there is none."""
    adopted = (each.what for each in seen if isinstance(each, Noted))
    return next((each.generation for each in adopted if isinstance(each, Adopted)), -1)


def all_callbacks(name: str, seen: Sequence[UserEvent]) -> Iterator[ops.ObservedEvent]:
    generation = adopted_generation(seen)
    return (found for each in seen for found in callback_events(name, generation, each))


def callback_events(name: str, generation: int, called: UserEvent) -> Iterator[ops.ObservedEvent]:
    match called:
        case Noted(Adopted(at, partitions, before, result)):
            memory = result.memory
            yield ops.Applied(
                name, at, partitions, before, memory.used, memory.active, memory.standby, result.applied, result.rejoin,
                result.error,
            )  # fmt: skip
        case Noted(Threw(during, kind, why)):
            yield ops.Died(name, during, kind, why)
        case _ if (found := callback_event(name, generation, called)) is not None:
            yield found


def _join_metadata(cluster: Cluster, centre: Centre, id: str, subscription: object) -> ops.JoinMetadata:
    assert isinstance(subscription, Subscription)
    consumer = cluster.consumers[dict(centre.kinds)[id]]
    return ops.JoinMetadata(
        member_name(centre, id), subscription.user_data, subscription.owned, consumer.protocol == COOPERATIVE
    )
