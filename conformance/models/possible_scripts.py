"""What can happen to the members of an upgrade script: only a process that runs moves, breaks off, crashes or stops.

The rules follow the script alone, for groups of consumers and of Streams members. A process that ended by itself may be
stopped like any other; a new deployment after the first start has no effect, and may be tried.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.models import operations
from kipcheck.conformance.models.operations import Crash, Expire, Lose, Move, OldBrokers, Revive, Roll, Settle
from kipcheck.conformance.models.streams import operations as streams
from kipcheck.conformance.models.streams.operations import Restart, ShutDown, Start

ScriptEvent: TypeAlias = operations.Event | streams.Event


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

    def broken(self, event: ScriptEvent) -> tuple[Rule, str] | None:
        """The rule that the event breaks, and why."""
        match event:
            case Revive(member) | Restart(member) if member not in self.started:
                return STARTED_BEFORE, f"{member} was not."
            case operations.Stop(member) if member not in self.running:
                return NEEDS_A_PROCESS, f"That of {member} does not."
            case (
                Crash(member) | streams.Stop(member) | Lose(member) | Expire(member) | Move(member) | ShutDown(member)
            ) if member not in self.running | self.leaving:
                return NEEDS_A_PROCESS, f"That of {member} does not."
            case OldBrokers() if self.started:
                return BROKERS_FIRST, f"{min(self.started)} was started."
        return None

    def after(self, event: ScriptEvent) -> "Processes":
        match event:
            case Roll(member) | Start(member) | Revive(member) | Restart(member):
                one = frozenset({member})
                return Processes(self.running | one, self.leaving - one, self.started | one)
            case Crash(member) | streams.Stop(member):
                one = frozenset({member})
                return replace(self, running=self.running - one, leaving=self.leaving - one)
            case operations.Stop(member):
                one = frozenset({member})
                return replace(self, running=self.running - one, leaving=self.leaving | one)
            case Settle():
                return replace(self, leaving=frozenset())
        return self


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
        instead = event if processes.broken(event) is None else Settle()
        processes = processes.after(instead)
        yield instead
