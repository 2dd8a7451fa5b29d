"""What can happen to the members of an upgrade script: only a process that runs moves, breaks off, crashes or stops.

The rules follow the script alone, for groups of consumers and of Streams members. A process that ended by itself may be
stopped like any other; a new deployment after the first start has no effect, and may be tried.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.protocols.cluster.components import Node, Part
from kipcheck.conformance.protocols.upgrade import ops

ScriptEvent: TypeAlias = Any
"""An event of a script, of whatever members."""


class Rule(NamedTuple):
    id: str
    sentence: str


NEEDS_A_PROCESS: Final = Rule(
    "needs-a-process", "A member moves, loses its connection or session, crashes or stops only while its process runs."
)
STARTED_BEFORE: Final = Rule("started-before", "A member starts again only if it was started before.")
BROKERS_FIRST: Final = Rule("brokers-first", "Old brokers are there before the first member starts.")


@final
@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a script, as far as its operator knows."""

    running: frozenset[str] = frozenset()
    """Without those that ended by themselves."""
    leaving: frozenset[str] = frozenset()
    """Stopped cleanly: such a process runs until the group is at rest."""
    started: frozenset[str] = frozenset()

    @classmethod
    def of(cls, members: Sequence[str], parts: Sequence[Part]) -> "Processes":
        """The processes of a model: the coordinator is the first part."""
        nodes = [(name, node) for name, node in zip(members, parts[1:], strict=True) if isinstance(node, Node)]
        up = [(name, node) for name, node in nodes if node.state is not None or node.starts]
        return cls(
            frozenset(name for name, node in up if node.then is None),
            frozenset(name for name, node in up if node.then is not None),
            frozenset(name for name, node in nodes if node.kind),
        )

    def broken(self, event: ScriptEvent) -> tuple[Rule, str] | None:
        """The rule that the event breaks, and why."""
        match event:
            case ops.Restart(member) if member not in self.started:
                return STARTED_BEFORE, f"{member} was not."
            case ops.Stop(member) if member not in self.running:
                return NEEDS_A_PROCESS, f"That of {member} does not."
            case ops.NeedsProcess(member) if member not in self.running | self.leaving:
                return NEEDS_A_PROCESS, f"That of {member} does not."
            case ops.OldBrokers() if self.started:
                return BROKERS_FIRST, f"{min(self.started)} was started."
        return None

    def after(self, event: ScriptEvent) -> "Processes":
        match event:
            case ops.StartsProcess(member):
                one = frozenset({member})
                return Processes(self.running | one, self.leaving - one, self.started | one)
            case ops.Crash(member):
                one = frozenset({member})
                return replace(self, running=self.running - one, leaving=self.leaving - one)
            case ops.Stop(member):
                one = frozenset({member})
                return replace(self, running=self.running - one, leaving=self.leaving | one)
            case ops.Settle():
                return replace(self, leaving=frozenset())
        return self

    def possible(self, event: ScriptEvent) -> ScriptEvent:
        """The event if it can happen, else the group comes to rest."""
        return event if self.broken(event) is None else ops.Settle()


def impossible_events(events: Iterable[ScriptEvent]) -> Iterator[tuple[int, Rule, str]]:
    """The events that cannot happen. They change nothing for those after them."""
    processes = Processes()
    for at, event in enumerate(events):
        found = processes.broken(event)
        if found is None:
            processes = processes.after(event)
        else:
            yield at, *found


def possible_events(events: Iterable[ScriptEvent]) -> Iterator[ScriptEvent]:
    """As many events: in place of one that cannot happen the group comes to rest."""
    processes = Processes()
    for event in events:
        instead = processes.possible(event)
        processes = processes.after(instead)
        yield instead
