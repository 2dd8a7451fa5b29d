"""Rolling upgrades and downgrades of a group of consumers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple, assert_never

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.edition import KIP_429, Edition, Standing
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER, V0, Assigned, Subscription
from kipcheck.conformance.protocols.cluster.components import Centre, Does, Node, Part, Told
from kipcheck.conformance.protocols.cluster.kinds import KINDS, TOPICS, V2, Kind
from kipcheck.conformance.protocols.cluster.model import Cluster
from kipcheck.conformance.protocols.group.model.answers import Config as BrokerConfig
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import OVER, DraftCoordinator
from kipcheck.conformance.protocols.group.model.messages import Error, Join, Request, Synced
from kipcheck.conformance.protocols.group.model.rules import Rules as BrokerRules
from kipcheck.conformance.protocols.group.model.state import Member
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.messages import UserEvent
from kipcheck.conformance.protocols.member.model.rules import ASSIGNORS, Config, Rules
from kipcheck.conformance.protocols.member.model.state import Phase
from kipcheck.conformance.protocols.member.ops import Metric, Raised
from kipcheck.conformance.protocols.upgrade import ops
from kipcheck.conformance.protocols.upgrade.model import script_runner
from kipcheck.conformance.protocols.upgrade.model.probing import Probing, Streams

KNOWN: Final = tuple(Topic(name, size) for name, size in TOPICS)
COOPERATES_SINCE: Final = Release.parse(since("cooperative-rebalancing"))
LARGE_GROUP: Final = BrokerConfig(max_size=100, initial_delay_ms=6000)
"""Large enough for the remains of crashed members. The initial rebalance delay takes one round."""
OLD_JOIN: Final = 4
"""The newest JoinGroup version of brokers before the draft."""


def has_upgrade(edition: Edition) -> bool:
    """Whether the edition has cooperative members to upgrade to."""
    released = edition.standing is Standing.RELEASED and Release.parse(edition.release) >= COOPERATES_SINCE
    return edition == KIP_429 or released


class Later(Consumer):
    """The draft's consumer after a later change of the protocol (429-09)."""

    @property
    def subscription_version(self) -> int:
        return V2


@cache
def consumers(edition: Edition, topics: tuple[Topic, ...] = KNOWN) -> Mapping[str, Consumer]:
    """Kind of member -> its consumer in an edition."""
    return {name: binary(edition, kind)(config(edition, kind, topics)) for name, kind in KINDS.items()}


def binary(edition: Edition, kind: Kind) -> type[Consumer]:
    return Later if edition == KIP_429 and kind.version == V2 else Consumer


def config(edition: Edition, kind: Kind, topics: tuple[Topic, ...] = KNOWN) -> Config:
    if edition != KIP_429:
        assignors = tuple(ASSIGNORS[each] for each in kind.assignors)
        return Config(Rules.of(edition.release), assignors, topics=topics)
    if kind.knows == V0:
        return Config(Rules.of(OVER), topics=topics)
    protocol = EAGER if kind.eager else COOPERATIVE
    return Config(Rules.drafted(), rebalance_protocol=protocol, topics=topics)


def coordinator(edition: Edition, by_version: bool = True) -> Coordinator:
    if edition == KIP_429:
        return DraftCoordinator(LARGE_GROUP) if by_version else Coordinator(BrokerRules.of(OVER), LARGE_GROUP)
    return Coordinator(BrokerRules.of(edition.release), LARGE_GROUP)


def for_old_brokers(request: Request) -> Request:
    """The request for brokers before the draft: without a protocol version."""
    if isinstance(request, Join) and request.protocol_version is not None:
        return replace(request, version=OLD_JOIN, protocol_version=None)
    return request


class State(NamedTuple):
    parts: tuple[Part, ...]
    by_version: bool = True
    """Whether brokers choose the leader by version; only in the draft."""
    streams: Streams = Streams()
    restless: bool = False
    """The group did not come to rest once: further ``Settle`` events do not wait again."""


class Consumers:
    """The members of the group. Errors: ValueError for an edition without cooperative members (``has_upgrade``)."""

    def __init__(
        self,
        edition: Edition,
        members: Mapping[str, Consumer] | None = None,
        brokers: Coordinator | None = None,
        probing: Probing | None = None,
    ) -> None:
        if not has_upgrade(edition):
            raise ValueError(f"edition {edition} has no cooperative members to upgrade to")
        self.draft = edition == KIP_429
        self.probing = probing or Probing()
        kinds = members or consumers(edition)
        self.clusters = {
            True: Cluster(brokers or coordinator(edition), kinds, ops.MEMBERS),
            False: Cluster(coordinator(edition, by_version=False), kinds, ops.MEMBERS, adapted=for_old_brokers),
        }

    def initial(self) -> State:
        return State(self.clusters[True].initial())

    def cluster(self, state: State) -> Cluster:
        return self.clusters[state.by_version]

    def operate(self, run: script_runner.Run[ops.ObservedEvent], state: State, event: ops.OwnEvent) -> State:
        match event:
            case ops.OldBrokers():
                return state._replace(by_version=not (self.draft and run.is_fresh) and state.by_version)
            case ops.Roll(member, kind, topics):
                run.send_order(member, Told(kind, topics))
            case ops.Stop(member):
                run.send_order(member, Told("", run.node(member).topics))
            case ops.RollStreams(member, version):
                by_version = self.draft and state.by_version
                streams, events = self.probing.rolled(state.streams, member, version, by_version)
                run.observed += events
                return state._replace(streams=streams)
            case _:
                assert_never(event)
        return state


class ConsumersObserver:
    """``draft``: members have the versions of the draft's protocol."""

    def __init__(self, draft: bool) -> None:
        self.draft = draft

    def member_events(
        self, cluster: Cluster, index: int, before: Node, after: Node, cause: object
    ) -> Iterator[ops.ObservedEvent]:
        name = cluster.names[index]
        yield from self.assignment_events(name, before, cause)
        generation = after.state.identity.generation if after.state is not None else -1
        for each in script_runner.callbacks(cluster, index, before, cause):
            yield from self.callback_events(name, generation, each)

    def assignment_events(self, name: str, before: Node, cause: object) -> Iterator[ops.ObservedEvent]:
        if cause == Does("hears") and isinstance(before.inbox, Synced) and before.state is not None:
            reply, (_, generation, _), phase = before.inbox, before.state.identity, before.state.phase
            awaited = phase is Phase.COMPLETING and generation > 0 and reply.error is Error.NONE
            if awaited and isinstance(reply.assignment, Assigned):
                yield ops.Assigned(name, generation, reply.assignment.partitions, reply.assignment.error)

    def callback_events(self, name: str, generation: int, called: UserEvent) -> Iterator[ops.ObservedEvent]:
        match called:
            case Metric(value):
                yield ops.Counted(name, value)
            case Raised(error):
                yield ops.Failed(name, error)
            case _ if (found := script_runner.callback_event(name, generation, called)) is not None:
                yield found

    def rests(self, centre: Centre, nodes: Sequence[Node]) -> ops.ObservedEvent:
        return ops.Rests(centre.group.generation, self.joining(centre))

    def coordinator_events(
        self, cluster: Cluster, before: Centre, after: Centre, cause: object
    ) -> Iterator[ops.ObservedEvent]:
        group = after.group
        if group.generation > before.group.generation and group.members:
            leader = script_runner.member_name(after, group.leader or "")
            yield ops.Formed(group.generation, leader, group.protocol or "", self.joining(after))

    def joining(self, centre: Centre) -> tuple[ops.Joining, ...]:
        found = []
        kinds = dict(centre.kinds)
        for each in centre.group.members:
            events = each.metadata(centre.group.protocol)
            assert isinstance(events, Subscription)
            version = events.version if self.draft else cooperates(each)
            knows = KINDS[kinds[each.id]].knows
            found.append(ops.Joining(script_runner.member_name(centre, each.id), version, knows, events.topics))
        return tuple(found)


def cooperates(member: Member) -> int:
    """In releases: 1 if all assignors of the member support the cooperative protocol (429-20), else 0."""
    return int(all(COOPERATIVE in ASSIGNORS[name].supports for name, _ in member.protocols))


def upgrade_model(
    edition: Edition,
    members: Mapping[str, Consumer] | None = None,
    brokers: Coordinator | None = None,
    probing: Probing | None = None,
) -> script_runner.ScriptModel[State, ops.OwnEvent, ops.ObservedEvent]:
    """The reference, unless other parts are given. Errors: as for ``Consumers``."""
    found = Consumers(edition, members, brokers, probing)
    return script_runner.ScriptModel(found, ConsumersObserver(found.draft))
