"""A Kafka Streams group that follows group_coordinator, as KIP-584 describes it for KIP-447 (section Use case).

Level 1: a producer for each task; level 2: one for each thread. All brokers support both. The leader polls a broker,
and the level of the last rebalance is in each member's metadata, so that no stale broker takes the group back. A write
of a member on level 2 succeeds as long as level 2 is finalized: a broker that is late supports it, too (584-71).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.ops import app as ops

OLD, NEW = 1, 2
LEVELS: Final = (OLD, NEW)
BROKERS: Final = range(2)
NAMES: Final = ("a", "b")


@final
@dataclass(frozen=True, slots=True)
class Member:
    name: str
    level: int = OLD
    """In its metadata, since the last rebalance."""
    told: int = OLD
    """The level that it works at."""


@final
@dataclass(frozen=True, slots=True)
class State:
    level: int = OLD
    """Finalized."""
    caches: tuple[int, ...] = (OLD, OLD)
    """The level that each broker knows."""
    members: tuple[Member, ...] = ()
    """The first one leads."""

    def member(self, name: str) -> Member | None:
        return next((each for each in self.members if each.name == name), None)

    def without(self, name: str) -> "State":
        return replace(self, members=tuple(each for each in self.members if each.name != name))

    def changed(self, member: Member) -> "State":
        return replace(self, members=tuple(member if each.name == member.name else each for each in self.members))

    @property
    def newest(self) -> int:
        """The newest level in the metadata of members."""
        return max((each.level for each in self.members), default=OLD)


class FeatureApp:
    def __init__(self, names: tuple[str, ...] = NAMES) -> None:
        """``names``: of the members that may start."""
        self.names = names

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Finalize(level):
                return Transition(replace(state, level=level))
            case ops.Notify(broker):
                known = (state.level if number == broker else each for number, each in enumerate(state.caches))
                return Transition(replace(state, caches=tuple(known)))
            case ops.Begin(name):
                fresh = state.without(name)
                return Transition(replace(fresh, members=(*fresh.members, Member(name))))
            case ops.End(name):
                return Transition(state.without(name))
            case ops.Poll(broker):
                return self.polled(state, broker)
            case ops.Rebalance(broker):
                return self.rebalanced(state, broker)
            case ops.Tell(name):
                return Transition(self.told(state, name))
            case ops.Commit(name):
                return self.committed(state, name)
            case ops.Wipe():
                return Transition(replace(state, members=tuple(Member(each.name) for each in state.members)))
            case ops.Look():
                members = (ops.AppMember(each.name, each.level, each.told == NEW) for each in state.members)
                return Transition(state, (ops.AppState(tuple(members)),))
            case _:
                assert_never(event)

    def known(self, state: State, broker: int) -> int:
        return state.caches[broker] if broker < len(state.caches) else OLD

    def asks(self, state: State) -> bool:
        """An upgrade that began goes on without a question (584-72)."""
        return bool(state.members) and state.newest < NEW

    def polled(self, state: State, broker: int) -> Transition[State, ops.Action]:
        asks = self.asks(state)
        return Transition(state, (ops.Polled(asks, asks and self.known(state, broker) > state.newest),))

    def rebalanced(self, state: State, broker: int) -> Transition[State, ops.Action]:
        asks = self.asks(state)
        level = self.instruction(state, self.known(state, broker) if asks else state.newest)
        members = tuple(replace(each, level=level) for each in state.members)
        return Transition(replace(state, members=members), (ops.Instructed(asks, level),))

    def instruction(self, state: State, level: int) -> int:
        return level

    def told(self, state: State, name: str) -> State:
        member = state.member(name)
        return state if member is None else state.changed(replace(member, told=max(member.told, member.level)))

    def committed(self, state: State, name: str) -> Transition[State, ops.Action]:
        """A member does not step back: it ends where the cluster is below its level (584-51)."""
        member = state.member(name)
        if member is None or member.told <= state.level:
            return Transition(state, (ops.Wrote(False),))
        return Transition(state.without(name), (ops.Wrote(True),))

    def enabled(self, state: State, /) -> Iterable[ops.Event]:
        return self.events(state)

    def events(self, state: State) -> Iterator[ops.Event]:
        yield from (ops.Finalize(level) for level in LEVELS if level != state.level)
        yield from (ops.Notify(broker) for broker in BROKERS if state.caches[broker] != state.level)
        yield from (ops.Begin(name) for name in self.names if state.member(name) is None)
        if state.members:
            yield from (made(broker) for broker in BROKERS for made in (ops.Poll, ops.Rebalance))
            yield from (made(each.name) for each in state.members for made in (ops.End, ops.Tell, ops.Commit))
            yield ops.Wipe()
        yield ops.Look()
