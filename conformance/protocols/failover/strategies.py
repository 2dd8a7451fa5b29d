"""Draws conversations with a cluster: members come and go while one node at a time fails and comes back.

Only what can happen is drawn, and only single faults: a cluster whose topics need two replicas in sync survives these.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.failover import ops
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

LONG_MS: Final = 12_000
"""A pause of that length outlasts the session of a broker, and that of a member."""
MOST: Final = 12


@dataclass(frozen=True, slots=True)
class State:
    """What the steps so far allow."""

    members: frozenset[str] = frozenset()
    protocol: ops.Protocol | None = None
    """Of the group: that of its first member."""
    paused: bool = False
    down: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all nodes run."""
        return not self.paused and not self.down


class Steps:
    """Keeps what the next steps depend on."""

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Join(member, protocol):
                return Transition(
                    replace(state, members=state.members | {member}, protocol=state.protocol or protocol)
                )  # fmt: skip
            case ops.Leave(member) | ops.Crash(member):
                return Transition(replace(state, members=state.members - {member}))
            case ops.Kill() | ops.Stop():
                return Transition(replace(state, down=True))
            case ops.Pause():
                return Transition(replace(state, paused=True))
            case ops.Resume():
                return Transition(replace(state, paused=False))
            case ops.Start():
                return Transition(replace(state, down=False))
            case _:
                return Transition(state)


def possible(state: State, event: ops.Event) -> ops.Event:
    """An event that can happen, in place of one that cannot: a group has one protocol, and one node at a time fails."""
    match event:
        case ops.Join(member, protocol) if state.protocol not in (None, protocol):
            return ops.Join(member, state.protocol)
        case ops.Leave(member) | ops.Crash(member) if member not in state.members:
            return ops.Pass(1000)
        case ops.Kill() | ops.Stop() | ops.Pause() | ops.Elect() | ops.Roll() if not state.is_whole:
            return ops.Resume() if state.paused else ops.Start()
        case ops.Resume() if not state.paused:
            return ops.Settle()
        case ops.Start() if not state.down:
            return ops.Settle()
        case _:
            return event


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    """Two members first; then faults, each of which ends after some time."""
    return ops.OPERATIONS.step_of(_next(state, swarm, random))


def _next(state: State, swarm: Swarm, random: Random) -> ops.Event:
    absent = [each for each in ops.MEMBERS if each not in state.members]
    if len(state.members) < 2:
        return ops.Join(random.choice(absent), state.protocol or swarm.traits)
    chance = random.random()
    if not state.is_whole and chance < 0.6:
        ends = ops.Resume() if state.paused else ops.Start()
        return random.choice((ops.Pass(LONG_MS), ops.Pass(3000), ends, ops.Settle()))
    if chance < 0.2:
        return random.choice((ops.Pass(1000), ops.Pass(3000), ops.Settle()))
    if chance < 0.45:
        gone = random.choice(sorted(state.members))
        choices: list[ops.Event] = [ops.Leave(gone), ops.Crash(gone)]
        return random.choice([*choices, *(ops.Join(each, state.protocol or swarm.traits) for each in absent)])
    if not state.is_whole:
        return ops.Resume() if state.paused else ops.Start()
    which: ops.Which = "coordinator" if random.random() < 0.75 else "other"
    return random.choice((
        ops.Kill(which), ops.Stop(which), ops.Pause(which), ops.Elect(), ops.Roll(), ops.Roll(), ops.Raise(),
    ))  # fmt: skip


def traits(random: Random) -> ops.Protocol:
    """The protocol of the group."""
    return random.choice(("classic", "consumer"))


DRAWN: Final = nodes(
    ops.Settle, ops.Pass, ops.Join, ops.Leave, ops.Crash, ops.Kill, ops.Stop, ops.Pause, ops.Resume, ops.Start,
    ops.Elect, ops.Roll, ops.Raise,
)  # fmt: skip
SCRIPTS: Final[Conversations[State, ops.Event]] = Conversations(
    Steps(),
    ops.OPERATIONS.step_of,
    ops.OPERATIONS.event_of,
    events=DRAWN,
    progress=frozenset(DRAWN),
    max_steps=MOST,
    usual_steps=8,
    likely=likely,
    traits=traits,
    possible=possible,
    enabled_shares=(1.0,),
    near_shares=(0.0,),
)
CONVERSATIONS: Final = {ops.FAILOVER: lambda edition: SCRIPTS}
