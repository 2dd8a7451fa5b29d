"""Runs upgrade scripts: steps of an operator, and faults, over a group of members of any kind.

``ScriptModel`` is the machine of a conversation: its events are steps of the operator, its actions are observed events
of the members. It is deterministic: a member moves when the script says so, and in ``Settle`` all members take turns.
The kind of members and what is observed of them are parameters.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, Generic, Protocol, Self, TypeVar, assert_never

from kipcheck.conformance.core.values.machine import E, E_contra, Transition
from kipcheck.conformance.machines.product import COORDINATOR_INDEX, Event as Moved, SimpleProduct, Step
from kipcheck.conformance.protocols.cluster import components
from kipcheck.conformance.protocols.cluster.model import Cluster
from kipcheck.conformance.protocols.group.model.coordinator_node import Fire
from kipcheck.conformance.protocols.group.model.messages import Leave, Phase as GroupPhase
from kipcheck.conformance.protocols.group.model.state import session
from kipcheck.conformance.protocols.member.model.messages import UserEvent
from kipcheck.conformance.protocols.member.model.state import Pause, Phase
from kipcheck.conformance.protocols.member.ops import Given, Lost, Revoked
from kipcheck.conformance.protocols.upgrade import ops

MAX_TURNS: Final = 80
"""Limit of turns of all members until the group must be at rest."""
MAX_GENERATIONS: Final = 12
"""Limit of generations until the group must be at rest."""
W = TypeVar("W")
W_co = TypeVar("W_co", covariant=True)
"""An observed event."""


class ScriptState(Hashable, Protocol):
    @property
    def parts(self) -> tuple[components.Part, ...]: ...
    @property
    def restless(self) -> bool:
        """The group did not come to rest once: further ``Settle`` events do not wait again."""
        ...

    def _replace(self, *, parts: tuple[components.Part, ...] = ..., restless: bool = ...) -> Self: ...


S = TypeVar("S", bound=ScriptState)


class Observer(Protocol[W_co]):
    """Converts steps of the cluster to observed events, except those that occur in any group."""

    def coordinator_events(
        self, cluster: Cluster, before: components.Centre, after: components.Centre, cause: object, /
    ) -> Iterable[W_co]: ...

    def member_events(
        self, cluster: Cluster, index: int, before: components.Node, after: components.Node, cause: object, /
    ) -> Iterable[W_co]: ...
    def rests(self, centre: components.Centre, nodes: Sequence[components.Node], /) -> W_co:
        """The group is at rest: no member moves, and the group is stable, empty or gone."""
        ...


class Members(Protocol[S, E_contra, W]):
    """The members of a group: their processes, and the steps of their operator other than faults."""

    def initial(self) -> S: ...
    def cluster(self, state: S, /) -> Cluster: ...
    def operate(self, run: "Run[W]", state: S, event: E_contra, /) -> S:
        """Applies a step to the run; returns the state with what the step changes besides the processes."""
        ...


def evicted(before: components.Centre, after: components.Centre, cause: object) -> Iterator[str]:
    """Members that the coordinator removed from the group although they had not left."""
    left: tuple[str, ...] = ()
    if isinstance(cause, components.From) and isinstance(cause.ask.request, Leave):
        left = tuple(id for id, _ in cause.ask.request.members)
    for each in before.group.members:
        if after.group.member(each.id) is None and each.id not in left and before.has_process(each.id):
            yield owner(each.id)


def member_name(centre: components.Centre, id: str) -> str:
    """The name of the member with this id; with the prefix ``former`` if its process is gone."""
    return owner(id) if centre.has_process(id) else f"former {owner(id)}"


def owner(id: str) -> str:
    """The member that the id was given to."""
    return id.rstrip("0123456789")


def callback_event(name: str, generation: int, called: UserEvent) -> ops.Took | ops.Gave | None:
    """A callback that returned, if it changed what the member owns."""
    match called:
        case Revoked(partitions) if partitions:
            return ops.Gave(name, partitions)
        case Lost(partitions) if partitions:
            return ops.Gave(name, partitions, lost=True)
        case Given(partitions) if partitions:
            return ops.Took(name, generation, partitions)
    return None


def callbacks(cluster: Cluster, index: int, before: components.Node, cause: object) -> Sequence[UserEvent]:
    """The callbacks of a member's user in a step."""
    match cause:
        case components.Does():
            return cluster.member_outcome(index, before, cause)[2]
        case components.Told(kind, topics):
            return cluster.restarted_as(before, kind, topics)[1]
    return ()


class Run(Generic[W]):
    """One step of the operator; ``observed`` has the events observed in it."""

    def __init__(self, cluster: Cluster, observer: Observer[W], parts: Iterable[components.Part]) -> None:
        self.cluster = cluster
        self.product = SimpleProduct(cluster)
        self.observer = observer
        self.members = tuple(cluster.names[1:])
        self.parts: list[components.Part] = list(parts)
        self.observed: list[W | ops.EventOfAnyGroup] = []

    def index(self, member: str) -> int:
        return self.cluster.names.index(member)

    def node(self, member: str) -> components.Node:
        node = self.parts[self.index(member)]
        assert isinstance(node, components.Node)
        return node

    @property
    def coordinator_part(self) -> components.Centre:
        centre = self.parts[COORDINATOR_INDEX]
        assert isinstance(centre, components.Centre)
        return centre

    def observe(self, step: Step[components.Part, components.Move, components.Message]) -> None:
        before, after = step.before, step.did.part
        if isinstance(before, components.Centre):
            assert isinstance(after, components.Centre)
            self.observed += map(ops.PutOut, evicted(before, after, step.cause))
            self.observed += self.observer.coordinator_events(self.cluster, before, after, step.cause)
            return
        assert isinstance(before, components.Node) and isinstance(after, components.Node)
        self.observed += self.observer.member_events(self.cluster, step.index, before, after, step.cause)
        if before.state is not None and after.state is None:
            self.observed.append(ops.Ended(self.cluster.names[step.index]))

    @property
    def is_fresh(self) -> bool:
        """No member has started yet."""
        return tuple(self.parts) == self.cluster.initial()

    def starts(self, member: str, whether: bool) -> None:
        self.parts[self.index(member)] = self.node(member)._replace(starts=whether)

    def restart(self, member: str) -> None:
        node = self.node(member)
        if node.state is None and node.kind:
            self.starts(member, True)
        elif node.then is not None and not node.then[0]:  # The old process has not left yet.
            self.parts[self.index(member)] = node._replace(then=(node.kind, node.topics))

    def send_order(self, member: str, order: components.Told) -> None:
        index, before = self.index(member), self.parts[self.index(member)]
        did = self.cluster.take(index, before, order)
        assert did is not None
        self.parts[index] = did.part
        self.parts[COORDINATOR_INDEX] = self.cluster.after_stop(self.coordinator_part, index)
        self.observe(Step(index, before, order, did))

    def move(self, member: str, verb: str) -> bool:
        """Makes the member's move, if it is enabled. Returns whether it was."""
        index = self.index(member)
        here = self.parts[index]
        return components.Does(verb) in self.cluster.moves(index, here) and self.apply_move(
            Moved(index, components.Does(verb))
        )

    def apply_move(self, event: Moved[components.Move]) -> bool:
        steps = self.product.run_move(tuple(self.parts), event)
        for each in steps or ():
            self.parts[each.index] = each.did.part
            self.observe(each)
        return steps is not None

    def move_on(self, member: str, moves: int) -> None:
        """Makes up to ``moves`` ordinary moves of the member."""
        for _ in range(moves):
            if not any(self.move(member, verb) for verb in (*self.cluster.ordinary_moves(self.node(member)),)):
                break

    def crash(self, member: str) -> None:
        """Ends the member's process, without a restart."""
        self.move(member, "crashes")
        self.starts(member, False)

    def apply_fault(self, event: ops.Fault) -> None:
        match event:
            case ops.Crash(member):
                self.crash(member)
            case ops.Restart(member):
                self.restart(member)
            case ops.Lose(member):
                self.move(member, "breaks")
            case ops.Expire(member):
                self.expire(self.node(member).id)
            case ops.Move(member, moves):
                self.move_on(member, moves)
            case ops.Settle():
                self.settle()
            case _:
                assert_never(event)

    def expire(self, id: str) -> None:
        """Fires the session timer of a member. No effect if the timer is not armed, as while a request is parked."""
        timer = Fire(session(id))
        if timer in (*self.cluster.hub.moves(self.coordinator_part.hub),):
            self.apply_move(Moved(COORDINATOR_INDEX, timer))

    # Turns of all members

    def settle(self) -> None:
        """Runs all members until the group is at rest. Rejected members retry once, and again if the others wait."""
        tries, begun = self.refused(), self.coordinator_part.group.generation
        for turns in range(MAX_TURNS):
            if self.coordinator_part.group.generation > begun + MAX_GENERATIONS:
                break
            if self.turn(tries):
                continue
            rests = self.is_at_rest()
            tries = set() if rests else self.refused()
            if not tries:
                nodes = [self.node(each) for each in self.members]
                self.observed.append(
                    self.observer.rests(self.coordinator_part, nodes) if rests else ops.Restless(turns)
                )
                return
        self.observed.append(ops.Restless(turns))

    def refused(self) -> set[str]:
        return {each for each in self.members if self.is_refused(each)}

    def is_refused(self, member: str) -> bool:
        state = self.node(member).state
        return state is not None and state.pause is Pause.BACK_OFF

    def turn(self, tries: set[str]) -> bool:
        """Each member makes a move; if none can, a timer of the coordinator expires. Returns whether anything moved."""
        moved = False
        for member in self.members:
            for verb in (*self.cluster.ordinary_moves(self.node(member)),):
                if verb == "retries" and self.is_refused(member):
                    if member not in tries:
                        continue
                    tries.discard(member)
                if self.move(member, verb):
                    moved = True
                    break
        return moved or self.time_passes()

    def time_passes(self) -> bool:
        centre = self.coordinator_part
        for each in self.cluster.hub.moves(centre.hub):
            if isinstance(each, Fire) and not self.cluster.cost(centre, each):
                return self.apply_move(Moved(COORDINATOR_INDEX, each))
        return False

    def is_at_rest(self) -> bool:
        group = self.coordinator_part.group
        still = group.phase in (GroupPhase.STABLE, GroupPhase.EMPTY, GroupPhase.DEAD)
        nodes = [self.node(each) for each in self.members]
        states = [each.state for each in nodes if each.state is not None]
        still = still and not any(each.busy for each in nodes)
        return still and all(each.phase is Phase.STABLE or each.pause is Pause.BACK_OFF for each in states)


class ScriptModel(Generic[S, E, W]):
    """The group of these members, as observed."""

    def __init__(self, members: Members[S, E, W], observer: Observer[W]) -> None:
        self.members = members
        self.observer = observer

    def initial(self) -> S:
        return self.members.initial()

    def step(self, state: S, event: E | ops.Fault, /) -> Transition[S, W | ops.EventOfAnyGroup]:
        if isinstance(event, ops.Settle) and state.restless:
            return Transition(state, (ops.Restless(0),))
        run = Run(self.members.cluster(state), self.observer, state.parts)
        if isinstance(event, ops.Fault):
            run.apply_fault(event)
        else:
            state = self.members.operate(run, state, event)
        restless = state.restless or any(isinstance(each, ops.Restless) for each in run.observed)
        return Transition(state._replace(parts=tuple(run.parts), restless=restless), tuple(run.observed))
