"""What upgrade scripts of consumers and of Streams members have in common: faults, restarts and waiting."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.protocols.cluster.components import Node
from kipcheck.conformance.protocols.upgrade.model.possible_scripts import Processes, ScriptEvent
from kipcheck.conformance.protocols.upgrade.model.script_runner import ScriptState
from kipcheck.conformance.protocols.upgrade.ops import Lose, Move, Restart, Settle
from kipcheck.strategies.events import Swarm

WAITS = 0.5


class Group(NamedTuple):
    """The members in a state."""

    nodes: Mapping[str, Node]
    running: list[str]
    down: list[str]
    """Members that ran before."""


@dataclass(frozen=True, slots=True)
class Operator:
    """``restarts``, ``moves``, ``fails``: the step is of that kind below this random number, if of no earlier kind."""

    operations: Operations[Any, Any]
    members: tuple[str, ...]
    faults: tuple[type[Any], ...]
    restarts: float
    moves: float
    fails: float
    most_moves: int

    def group(self, state: ScriptState) -> Group:
        nodes = {name: node for name, node in zip(self.members, state.parts[1:], strict=True) if isinstance(node, Node)}
        running = [name for name, node in nodes.items() if node.state is not None or node.starts]
        return Group(nodes, running, [name for name, node in nodes.items() if node.kind and name not in running])

    def usual(self, group: Group, swarm: Swarm, chance: float, random: Random) -> Any:
        """A restart, a wait, moves of one member, or a fault; None: another step."""
        verbs = self.operations.verb_of
        faults = [made for made in self.faults if verbs[made] in swarm.verbs]
        if group.down and chance < self.restarts and verbs[Restart] in swarm.verbs:
            return Restart(random.choice(group.down))
        if not group.running:
            return None
        if chance < WAITS:
            return Settle()
        if chance < self.moves and verbs[Move] in swarm.verbs:
            return Move(random.choice(group.running), random.randint(1, self.most_moves))
        return self._fault(group, random.choice(faults), random) if chance < self.fails and faults else None

    def _fault(self, group: Group, made: type[Any], random: Random) -> Any:
        """Connections break where a request is under way, if there is one."""
        busy = [name for name in group.running if group.nodes[name].busy]
        return made(random.choice(busy if busy and made is Lose else group.running))

    def possible(self, state: ScriptState, event: ScriptEvent) -> Any:
        """The event if it can happen, else the group comes to rest."""
        return Processes.of(self.members, state.parts).possible(event)
