"""The product machine of a Streams upgrade, to explore every order of its events within a scope.

It starts with a group at rest. Whenever the group is stable, the operator bounces any of the members with the lowest
stage, so that one search covers all orders. A process may end at any time and restart, with the same binary or the
other one. The network is fast and loses nothing, so that local steps of a member take effect at once, and only requests
that reach the coordinator are separate events:

* a process starts at once when it is ordered to, and receives a response as soon as it is sent;
* a member whose heartbeat reports a rebalance joins at once;
* a member gets its id with its first request (JoinGroup before version 4), and a member that ended is removed from a
  join phase when all others have joined.

Growing values start again with each generation: ids from 1, generations, and the byte that distinguishes subscriptions.
The coordinator keeps only the metadata and assignments that it still needs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from kipcheck.conformance.machines.product import Did, Law, Sent, StepLaw
from kipcheck.conformance.protocols.assignment.model.membership import Subscription
from kipcheck.conformance.protocols.cluster import components
from kipcheck.conformance.protocols.cluster.model import Cluster
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.coordinator_node import Aged, CoordinatorNode, Fire
from kipcheck.conformance.protocols.group.model.messages import EMPTY, Beat, Blob, Error, Fired, Join, Phase, Request
from kipcheck.conformance.protocols.group.model.state import Log, State as Group
from kipcheck.conformance.protocols.group.model.state_bounds import ids
from kipcheck.conformance.protocols.member.model.messages import HEARTBEAT, UserEvent
from kipcheck.conformance.protocols.streams.model.consumer import StreamsConsumer
from kipcheck.conformance.protocols.streams.model.group_model import Kind, StreamsObserver
from kipcheck.conformance.protocols.streams.model.members import Memory, SubscriptionInfo
from kipcheck.conformance.protocols.upgrade.model.script_runner import Run, owner

CHANGES: Final = "changes"
"""The move of a member whose process ends and restarts with the other binary."""
NAMED_AT_ONCE: Final = 3
"""The last JoinGroup version that needs no second request for a member id."""
STAGES: Final = 4
"""The maximum number of binaries in an upgrade path."""
MAX_ROUNDS: Final = 15
"""Limit of generations without a disturbance until the group must be at rest: five for each of three members. Where
members leave to rejoin (up to 2.5, and in the draft), each forms one generation without it and one with it; the slowest
order takes ten or more."""
FIRST_STAYING_VERSION: Final = 7
"""The metadata version of 2.6.0: its members stay in the group to subscribe again, and may send equal subscriptions."""
NOTHING: Final[Mapping[str, Any]] = {"user_data": None, "owned": (), "generation": -1}
T = TypeVar("T")
Stage: TypeAlias = tuple[str, str | None]
"""A release, and ``upgrade.from``."""


class Bounces(NamedTuple):
    """The operator ends a process, and starts it with its next binary."""

    member: str


class Renewed(NamedTuple):
    """A generation was formed, and growing values start again."""

    by: int
    """How many generations to subtract."""
    ids: tuple[tuple[str, str], ...]
    """Renamed member ids: old and new."""


class UpgradeProduct(Cluster):
    """``path``: the binaries of all members, in order, starting with the first."""

    max_rounds = MAX_ROUNDS

    def __init__(
        self,
        coordinator: Coordinator,
        consumers: Mapping[str, StreamsConsumer],
        members: tuple[str, ...],
        path: Sequence[Stage],
        topics: tuple[str, ...],
        crashes: int = 1,
        changes: bool = True,
        laws: tuple[Law[Any] | StepLaw[Any, Any, Any], ...] = (),
    ) -> None:
        """``changes``: whether a crashed member may restart with the other binary."""
        assert len(path) <= STAGES
        self.consumers: Mapping[str, StreamsConsumer]
        self.path = tuple(path)
        self.topics = topics
        self.changes = changes
        kinds = tuple(self.kind(each, 0) for each in members)
        scope = components.Scope(crashes, newest=1, patient=True)
        super().__init__(coordinator, consumers, members, scope, kinds, laws, _named_at_once)

    def kind(self, member: str, stage: int) -> str:
        return str(Kind(member, *self.path[stage], member))

    def stage_of(self, kind: str) -> int:
        _, release, upgrade_from, _ = Kind.parse(kind)
        return self.path.index((release, upgrade_from))

    def initial(self) -> tuple[components.Part, ...]:
        return self._at_rest

    @cached_property
    def _at_rest(self) -> tuple[components.Part, ...]:
        hub, *nodes = super().initial()
        begun = (
            self._started(node._replace(topics=self.topics)) for node in nodes if isinstance(node, components.Node)
        )
        run = Run(self, StreamsObserver(), (hub, *begun))
        run.settle()
        assert isinstance(run.coordinator_part, components.Centre)
        return (run.coordinator_part._replace(rounds=0), *run.parts[1:])

    # Moves

    def moves(self, index: int, part: components.Part, /) -> Iterator[Any]:
        for move in super().moves(index, part):
            if not isinstance(move, Fire) or self._matters(part, move):
                yield move
        if isinstance(part, components.Centre) and self.is_stable(part):
            reached = [_stage(part, place) for place in range(1, len(self.names))]
            if (last := min(reached)) + 1 < len(self.path):
                yield from (Bounces(name) for name, at in zip(self.names[1:], reached, strict=True) if at == last)

    def _matters(self, part: components.Part, move: Fire) -> bool:
        """Whether a timer has to be explored: not if its expiry is equivalent to that of another or a later timer."""
        assert isinstance(part, components.Centre)
        group = part.group
        if group.phase is not Phase.PREPARING or group.initial:
            return True
        awaited = [each.id for each in group.members if each.join is None]
        return move.timer.kind == "session" and not any(map(part.has_process, awaited))

    def fault_moves(self, node: components.Node) -> Iterator[str]:
        if node.state is not None:
            yield "crashes"
            if self.changes and len(self.path) > 1:
                yield CHANGES

    # Transitions

    def acted(self, centre: components.Centre, move: Any) -> Did[components.Part, components.Message]:
        if not isinstance(move, Bounces):
            return super().acted(centre, move)
        place = self.names.index(move.member)
        stage = _stage(centre, place) + 1
        order = components.Told(self.kind(move.member, stage), self.topics)
        return Did(_at_stage(self.after_stop(centre, place), place, stage), (Sent(place, order),))

    def restarted_as(
        self, node: components.Node, kind: str, topics: tuple[str, ...]
    ) -> tuple[components.Node, list[UserEvent]]:
        """The process ends without a LeaveGroup, and starts again."""
        return self._started(components.Node(kind, topics, serial=self.next(node))), []

    def _started(self, node: components.Node) -> components.Node:
        return self.started(node)[0]

    def member_outcome(
        self, index: int, node: components.Node, move: components.Move
    ) -> tuple[components.Node, tuple[Sent[components.Message], ...], list[UserEvent]]:
        match move:
            case components.Does("crashes" | "changes"):
                kind = node.kind
                if move.verb == CHANGES:
                    stage = self.stage_of(kind)
                    kind = self.kind(self.names[index], stage - 1 if stage else 1)
                after, _ = self.restarted_as(node, kind, node.topics)
                return after, self.fault_message(index, after, components.CRASHES, ""), []
            case components.Does("beats"):
                return self._rejoins(index, node)
        return super().member_outcome(index, node, move)

    def _rejoins(
        self, index: int, node: components.Node
    ) -> tuple[components.Node, tuple[Sent[components.Message], ...], list[UserEvent]]:
        assert node.state is not None
        state, _ = self.consumers[node.kind].step(node.state, Fired(HEARTBEAT))
        after, seen = self.run(node._replace(state=state), Beat(0, Error.REBALANCE_IN_PROGRESS))
        if after.failed:
            return after, self.fault_message(index, node, "", ""), seen
        (join,) = after.out
        return after._replace(out=(), waits=True), self.request_message(index, after, join, only_news=True), seen

    def reached(self, index: int, node: components.Node, message: components.Message) -> components.Node:
        if isinstance(message, Renewed):
            # A pending join comes from a new member, and keeps its numbers.
            forgets = not any(isinstance(each, Join) for each in node.out)
            return with_renamed_ids(components.aged_node(node, message.by), dict(message.ids), forgets)
        after = super().reached(index, node, message)
        if after.inbox is None:
            return after
        after_answer, _ = self.run(after._replace(inbox=None), self.answer_event(after.inbox))
        return after if after_answer.failed else after_answer  # A failure is an event of its own.

    def handle_request(
        self, centre: components.Centre, message: components.From
    ) -> Did[components.Part, components.Message] | None:
        by, request = message.by, message.ask.request
        if message.only_news:
            assert isinstance(request, Join)
            member = centre.group.member(request.member)
            if centre.group.phase is not Phase.PREPARING or member is None or member.join is not None:
                return None
            message = message._replace(only_news=False)
        did = super().handle_request(centre, message)
        if did is None or request is not None:
            return did
        assert isinstance(did.part, components.Centre)
        return Did(_at_stage(did.part, by, self.stage_of(message.kind)), did.sends)

    def restarts_count(self, centre: components.Centre, message: components.From) -> bool:
        """Whether the message is a disturbance: not the join of a member that left to rejoin with a new id."""
        if isinstance(message.ask.request, Join):
            return not centre.held[message.by - 1]
        return message.ask.request is None

    # Bounding the state

    def done(
        self, centre: components.Centre, did: Did[CoordinatorNode, Any], disturbed: bool
    ) -> Did[components.Part, components.Message]:
        found = super().done(centre, did, disturbed)
        after, sends = found.part, found.sends
        assert isinstance(after, components.Centre)
        if _ends_early(centre.group, after.group):
            after = after._replace(rounds=max(after.rounds - 1, 0))
        by = next((each.message.by for each in sends if isinstance(each.message, Aged)), None)
        if by is not None:
            names = dict(self._renumbered(after))
            news: Any = Renewed(by, tuple(sorted(names.items())))
            sends = tuple([Sent(each.to, news) if isinstance(each.message, Aged) else each for each in sends])
            after = with_renamed_ids(after, names, True)
            after = after._replace(kinds=tuple(sorted(after.kinds)))
        return Did(self._trimmed(after), sends)

    def _renumbered(self, centre: components.Centre) -> Iterator[tuple[str, str]]:
        known = set(ids(centre.group))
        for name in self.names[1:]:
            own = [each for each in known if owner(each) == name]
            if len(own) == 1 and own[0] != f"{name}1":
                yield own[0], f"{name}1"

    def _trimmed(self, centre: components.Centre) -> components.Centre:
        """Drops the log, which only another broker would read, subscriptions that the leader has, and assignments that
        all members have."""
        group = centre.group._replace(log=Log())
        members = group.members
        if self._subscriptions_differ and group.phase in (Phase.COMPLETING, Phase.STABLE):
            members = tuple([each._replace(protocols=_without_data(each.protocols)) for each in members])
        if self._subscriptions_differ and group.phase is Phase.STABLE and not group.owing:
            members = tuple([each._replace(assignment=EMPTY) for each in members])
        return centre._replace(hub=centre.hub._replace(group=group._replace(members=members)))

    @cached_property
    def _subscriptions_differ(self) -> bool:
        """Whether all subscriptions of a member differ while it is in the group; not in 2.6.0 (268-45)."""
        binaries = (
            self.consumers[self.kind(name, at)].binary for name in self.names[1:] for at in range(len(self.path))
        )
        return all(each.latest != FIRST_STAYING_VERSION for each in binaries)

    def describe(self, value: Any, /) -> str:
        match value:
            case Bounces(member):
                return f"bounces {member}"
            case Renewed():
                return ""
            case components.Told(kind):
                _, release, upgrade_from, _ = Kind.parse(kind)
                return f"end, and start as {release}" + (f", upgrade.from {upgrade_from}" if upgrade_from else "")
        return super().describe(value)


def _ends_early(before: Group, after: Group) -> bool:
    """Whether a generation ends before all members know their assignments. How often that happens depends on timing: a
    member that has to rejoin at once may do so before others receive their assignment."""
    ends = before.phase in (Phase.COMPLETING, Phase.STABLE) and after.phase is Phase.PREPARING
    return ends and (before.phase is Phase.COMPLETING or bool(before.owing))


def _named_at_once(request: Request) -> Request:
    return replace(request, version=min(request.version, NAMED_AT_ONCE)) if isinstance(request, Join) else request


def _without_data(protocols: tuple[tuple[str, Blob], ...]) -> tuple[tuple[str, Blob], ...]:
    """Protocols without the data of their subscriptions; the names are still needed."""
    return tuple(
        [(name, replace(blob, **NOTHING) if isinstance(blob, Subscription) else blob) for name, blob in protocols]
    )


def _stage(centre: components.Centre, place: int) -> int:
    """The stage of a member: ``Centre.rolled`` has one digit for each member."""
    stages: int = centre.rolled // STAGES ** (place - 1)
    return stages % STAGES


def _at_stage(centre: components.Centre, place: int, stage: int) -> components.Centre:
    return centre._replace(rolled=centre.rolled + (stage - _stage(centre, place)) * STAGES ** (place - 1))


def with_renamed_ids(value: T, names: Mapping[str, str], forgets: bool) -> T:
    """The value with renamed ids; ``forgets``: also with the unique bytes of subscriptions reset."""
    found: Any = value
    if isinstance(value, str):
        found = names.get(value, value)
    elif isinstance(value, frozenset):
        found = frozenset(with_renamed_ids(each, names, forgets) for each in value)
    elif isinstance(value, tuple):
        parts = [with_renamed_ids(each, names, forgets) for each in value]
        found = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    elif is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: with_renamed_ids(getattr(value, each.name), names, forgets) for each in fields(value)}
        if forgets and isinstance(value, SubscriptionInfo | Memory):
            changed["unique"] = 0
        found = type(value)(**changed)
    else:
        assert value is None or isinstance(value, int | Enum), f"{value!r} may have ids in it"
    return found  # type: ignore[no-any-return]
