"""The machine ``migration`` for the search of all orders of events: time has no length, and member ids come back."""

from collections.abc import Iterator, Mapping
from typing import Final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.consumer_group import model as consumer
from kipcheck.conformance.protocols.consumer_group.ops import INTERVAL_MS, Beat, Pass
from kipcheck.conformance.protocols.group.model.messages import Fired, Phase, Timer
from kipcheck.conformance.protocols.group.model.state import Log
from kipcheck.conformance.protocols.migration import ops
from kipcheck.conformance.protocols.migration.model import CONSUMERS, INITIAL_DELAY_MS, MixedGroup
from kipcheck.conformance.protocols.migration.state import State
from kipcheck.conformance.protocols.reconciled.terms import Says

TOPICS: Final = ("u",)
"""What all subscribe to: a topic with two partitions."""
INSTANCE: Final = "i"
REBALANCE: Final = Timer("rebalance")
SETTLED: Final = (Phase.EMPTY, Phase.STABLE, Phase.DEAD)


class ReleasedGroup(MixedGroup):
    """With the defects of the releases."""

    fails_at_first = True
    assigns_unreleased = True
    may_count_successors = True


def untimed(made: type[MixedGroup]) -> type[MixedGroup]:
    """A machine in which no member is ever silent for too long."""

    class Untimed(made):  # type: ignore[valid-type, misc]
        def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
            found = super().step(state, event)
            return Transition(_renumbered(_young(found.state)), found.actions)

        def passed(self, state: State, ms: int) -> State:
            """The first join phase ends, or the next target assignment may be computed."""
            if state.is_consumer:
                return state._replace(group=state.group._replace(aimed_ms=INTERVAL_MS))
            if not _is_joining(state):
                return state
            ended: State = self.run(state._replace(clock=state.clock.disarmed(REBALANCE)), Fired(REBALANCE))
            return ended

    return Untimed


def _young(state: State) -> State:
    """No time has passed for the members, and nothing is in the log: none of these events reads it."""
    group = state.group
    members = tuple(each._replace(silent_ms=0, revoking_ms=0) for each in group.members)
    return state._replace(group=group._replace(members=members), classic=state.classic._replace(log=Log()))


def _renumbered(state: State) -> State:
    """The next request has the least number that no request and no id has."""
    ids = {each.id for each in state.group.members} | {each.id for each in state.classic.members}
    ids |= {*state.classic.pending}
    ids |= {one for each in state.clients for one in (each.id, each.fresh)}
    used = {int(each.rpartition(".")[2]) for each in ids if "." in each} | {each.asked for each in state.clients}
    return state._replace(requests=next(each for each in range(len(used) + 1) if each not in used))


def tried(state: State, scope: Mapping[str, int]) -> Iterator[ops.Event]:
    """The events that clients may cause. With ``static`` the first consumer and the last client of the classic protocol
    are two processes of one instance. A consumer joins a classic group when no join phase goes on."""
    consumers, clients = CONSUMERS[: scope["consumers"]], ops.CLIENTS[: scope["classic"]]
    static = {consumers[0], clients[-1]} if scope["static"] else set()
    settled = state.is_consumer or state.classic.phase in SETTLED
    for name in consumers:
        instance = INSTANCE if name in static else None
        if state.group.member(name) is not None and state.is_consumer:
            yield Beat(name, Says.STAY, owned="told", instance=instance)
            yield Beat(name, Says.LEAVE, instance=instance)
        elif settled:
            yield Beat(name, Says.JOIN, topics=TOPICS, owned="none", instance=instance)
    for name in clients:
        client = state.client(name)
        if client.asked >= 0:
            yield from () if client.answer is None else (ops.Receive(name),)
            continue
        yield ops.ClassicJoin(name, TOPICS, "told", instance=INSTANCE if name in static else None)
        if client.id:
            everyone = tuple(each.name for each in state.clients if each.id)
            yield from (
                ops.ClassicSync(name, topics=TOPICS, over=everyone),
                ops.ClassicBeat(name),
                ops.ClassicLeave(name),
            )
    if _is_joining(state) or _awaits_target(state):
        yield Pass(INITIAL_DELAY_MS)


def _is_joining(state: State) -> bool:
    """Whether a first join phase goes on. Others end when all members have joined again: none of them is late."""
    return state.classic.initial and any(timer == REBALANCE for _, timer in state.clock.timers)


def _awaits_target(state: State) -> bool:
    group: consumer.State = state.group
    return state.is_consumer and group.target_epoch < group.group_epoch and (group.aimed_ms or 0) < INTERVAL_MS


def newest(state: State) -> int:
    """The group's epoch or generation."""
    return state.group.group_epoch if state.is_consumer else state.classic.generation
