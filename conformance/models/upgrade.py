"""Rolling upgrades and downgrades of a group, with faults.

``UpgradeModel`` is the machine of a conversation: its events are steps of an operator, its actions are observed
events of the
members. It is deterministic: a member moves when the script says so, and in ``Settle`` all members take turns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple, TypeAlias, assert_never

from kipcheck.conformance.core.edition import KIP_429, Edition, Standing
from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.core.release import Release
from kipcheck.conformance.core.releases_table import since
from kipcheck.conformance.machines.product import Step
from kipcheck.conformance.models.assignment import Topic
from kipcheck.conformance.models.cluster import Cluster
from kipcheck.conformance.models.cluster_components import Centre, Does, Message, Move as Moves, Node, Part, Told
from kipcheck.conformance.models.group.answers import Config as BrokerConfig
from kipcheck.conformance.models.group.coordinator import Coordinator
from kipcheck.conformance.models.group.draft import OVER, DraftCoordinator
from kipcheck.conformance.models.group.messages import Error, Join, Request, Synced
from kipcheck.conformance.models.group.rules import Rules as BrokerRules
from kipcheck.conformance.models.group.state import Member
from kipcheck.conformance.models.member.consumer import Consumer
from kipcheck.conformance.models.member.messages import Given, Lost, Metric, Raised, Revoked, UserEvent
from kipcheck.conformance.models.member.rules import ASSIGNORS, Config, Rules
from kipcheck.conformance.models.member.state import Phase
from kipcheck.conformance.models.membership import COOPERATIVE, EAGER, V0, Assigned, Subscription
from kipcheck.conformance.models.observed_events import (
    Assigned as WasAssigned,
    Counted,
    Ended,
    Failed,
    Formed,
    Gave,
    Joining,
    ObservedEvent,
    PutOut,
    Restless,
    Rests,
    Took,
)
from kipcheck.conformance.models.operations import (
    KINDS,
    LATER,
    MEMBERS,
    TOPICS,
    V2,
    Crash,
    Event,
    Expire,
    Kind,
    Lose,
    Move,
    OldBrokers,
    Revive,
    Roll,
    RollStreams,
    Settle,
    Stop,
)
from kipcheck.conformance.models.probing import Probing, Streams
from kipcheck.conformance.models.rolling import Run, evicted, member_name

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


Parts: TypeAlias = tuple[Part, ...]


class State(NamedTuple):
    parts: Parts
    by_version: bool = True
    """Whether brokers choose the leader by version; only in the draft."""
    streams: Streams = Streams()
    restless: bool = False
    """The group did not come to rest once: further ``Settle`` events do not wait again."""


class UpgradeModel:
    """Errors: ValueError for an edition without cooperative members (``has_upgrade``)."""

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
            True: Cluster(brokers or coordinator(edition), kinds, MEMBERS),
            False: Cluster(coordinator(edition, by_version=False), kinds, MEMBERS, adapted=for_old_brokers),
        }

    def initial(self) -> State:
        return State(self.clusters[True].initial())

    def step(self, state: State, event: Event, /) -> Transition[State, ObservedEvent]:
        match event:
            case OldBrokers():
                fresh = state.parts == self.clusters[True].initial()
                return Transition(state._replace(by_version=not (self.draft and fresh) and state.by_version))
            case RollStreams(member, version):
                by_version = self.draft and state.by_version
                streams, events = self.probing.rolled(state.streams, member, version, by_version)
                return Transition(state._replace(streams=streams), tuple(events))
        if state.restless and isinstance(event, Settle):
            return Transition(state, (Restless(0),))
        run = Run(self.clusters[state.by_version], self, state.parts)
        apply_event(run, event)
        restless = state.restless or any(isinstance(each, Restless) for each in run.observed)
        return Transition(state._replace(parts=tuple(run.parts), restless=restless), tuple(run.observed))

    def enabled(self, state: State, /) -> Iterator[Event]:
        """Events that have an effect."""
        if state.parts == self.clusters[True].initial() and self.draft and state.by_version:
            yield OldBrokers()
        kinds = [each for each in KINDS if self.draft or each != LATER]
        for member, node in zip(MEMBERS, state.parts[1:], strict=True):
            assert isinstance(node, Node)
            for kind in kinds:
                yield Roll(member, kind)
                yield Roll(member, kind, tuple(name for name, _ in TOPICS))
            if node.state is not None:
                yield Stop(member)
                yield Crash(member)
                if node.busy:
                    yield Lose(member)
                if node.id:
                    yield Expire(member)
            elif node.kind and not node.starts:
                yield Revive(member)
            if node.state is not None or node.starts:
                yield from (Move(member, moves) for moves in range(1, 5))
        yield Settle()

    # Observed events

    def observe_step(self, cluster: Cluster, step: Step[Part, Moves, Message]) -> Iterator[ObservedEvent]:
        before, after = step.before, step.did.part
        if isinstance(before, Centre):
            assert isinstance(after, Centre)
            yield from self.coordinator_events(before, after, step.cause)
            return
        assert isinstance(before, Node) and isinstance(after, Node)
        name = cluster.names[step.index]
        seen: list[UserEvent] = []
        match step.cause:
            case Does():
                _, _, seen = cluster.member_outcome(step.index, before, step.cause)
            case Told(kind, topics):
                _, seen = cluster.restarted_as(before, kind, topics)
        yield from self.assignment_events(name, before, step.cause)
        generation = after.state.identity.generation if after.state is not None else -1
        yield from (found for each in seen for found in self.callback_events(name, generation, each))
        if before.state is not None and after.state is None:
            yield Ended(name)

    def assignment_events(self, name: str, before: Node, cause: object) -> Iterator[ObservedEvent]:
        if cause == Does("hears") and isinstance(before.inbox, Synced) and before.state is not None:
            reply, (_, generation, _), phase = before.inbox, before.state.identity, before.state.phase
            awaited = phase is Phase.COMPLETING and generation > 0 and reply.error is Error.NONE
            if awaited and isinstance(reply.assignment, Assigned):
                yield WasAssigned(name, generation, reply.assignment.partitions, reply.assignment.error)

    def callback_events(self, name: str, generation: int, seen: UserEvent) -> Iterator[ObservedEvent]:
        match seen:
            case Revoked(partitions) if partitions:
                yield Gave(name, partitions)
            case Lost(partitions) if partitions:
                yield Gave(name, partitions, lost=True)
            case Given(partitions) if partitions:
                yield Took(name, generation, partitions)
            case Metric(value):
                yield Counted(name, value)
            case Raised(error):
                yield Failed(name, error)

    def rests(self, centre: Centre, nodes: Sequence[Node]) -> ObservedEvent:
        return Rests(centre.group.generation, self.joining(centre))

    def restless(self, turns: int) -> ObservedEvent:
        return Restless(turns)

    def coordinator_events(self, before: Centre, after: Centre, cause: object) -> Iterator[ObservedEvent]:
        yield from map(PutOut, evicted(before, after, cause))
        group = after.group
        if group.generation > before.group.generation and group.members:
            leader = member_name(after, group.leader or "")
            yield Formed(group.generation, leader, group.protocol or "", self.joining(after))

    def joining(self, centre: Centre) -> tuple[Joining, ...]:
        found = []
        kinds = dict(centre.kinds)
        for each in centre.group.members:
            events = each.metadata(centre.group.protocol)
            assert isinstance(events, Subscription)
            version = events.version if self.draft else cooperates(each)
            knows = KINDS[kinds[each.id]].knows
            found.append(Joining(member_name(centre, each.id), version, knows, events.topics))
        return tuple(found)


def cooperates(member: Member) -> int:
    """In releases: 1 if all assignors of the member support the cooperative protocol (429-20), else 0."""
    return int(all(COOPERATIVE in ASSIGNORS[name].supports for name, _ in member.protocols))


def apply_event(run: Run[ObservedEvent], event: Event) -> None:
    match event:
        case Roll(member, kind, topics):
            run.send_order(member, Told(kind, topics))
        case Stop(member):
            run.send_order(member, Told("", run.node(member).topics))
        case Crash(member):
            run.crash(member)
        case Revive(member):
            run.revive(member, run.node(member))
        case Lose() | Expire() | Move() | Settle():
            run.apply_fault(event)
        case OldBrokers() | RollStreams():
            pass
        case _:
            assert_never(event)
