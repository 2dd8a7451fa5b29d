"""Orders what was observed of the members of a group by time, as events of a machine.

Why a verdict on two owners is certain, although the events come from several processes:

* All times are CLOCK_MONOTONIC's of one machine: the programs take it at the begin of a callback, kipcheck when it
  reads an exchange that passes, and before it kills a process.
* In a correct group one thing causes the other: A's revoked or lost callback returns before A's next JoinGroup, or
  before the coordinator can give its partitions away; that comes before the assignments of a generation, and these
  before B's assigned callback. So if B's assigned callback begins before A's revoked callback, the chain is broken,
  whatever delays a thread or a line.
* What ends an ownership without a callback is put at its earliest time: before the SIGKILL, before ``close()`` is
  called, and, for a member that the group removed, when the generation without it is formed, which is before any
  member can learn of an assignment in it.

A line that a killed process could not print any more is missing, which hides a violation at most.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, final

from kipcheck.conformance.live.members.processes import Begun, Exited, Killed, Line
from kipcheck.conformance.live.members.traffic import Answered, Sent
from kipcheck.conformance.protocols.group.model.messages import Join, Joined, Leave, Sync, Synced
from kipcheck.conformance.protocols.upgrade.ops import Ended, PutOut, Restless


@final
@dataclass(frozen=True, slots=True)
class StepBegun:
    at_ns: int
    index: int


@final
@dataclass(frozen=True, slots=True)
class Settled:
    """The end of a wait. ``turns``: how often the group was looked at, if it did not come to rest."""

    at_ns: int
    turns: int | None


Observed: TypeAlias = Line | Begun | Killed | Exited | Sent | Answered | StepBegun | Settled


class At(NamedTuple):
    step: int
    event: Any


def process_of(id: str) -> str:
    """The process of a client id, or of a member id, which a coordinator makes of the client id: ``a-2-`` and a UUID,
    or more between."""
    return "-".join(id.split("-")[:2])


@dataclass(slots=True)
class Process:
    name: str
    joined: bool = False
    """Whether it is a member of the group, as far as it knows."""
    generation: int = -1
    """Of its last assignment."""
    closing: bool = False
    ended: bool = False
    waiting: int = 0
    """Requests without an answer."""
    last_ns: int = 0

    @property
    def member(self) -> str:
        return self.name.partition("-")[0]

    @property
    def is_running(self) -> bool:
        return not self.ended and not self.closing

    @property
    def is_expected(self) -> bool:
        """Whether it should be a member."""
        return self.is_running

    @abstractmethod
    def lose_all(self) -> None:
        """It was put out of the group, and owns nothing any more."""


P = TypeVar("P", bound=Process)


class GroupHistory(Generic[P]):
    """The group after all that was observed, in the order of time."""

    def __init__(self, observed: Iterable[Observed]) -> None:
        self.processes: dict[str, P] = {}
        self.generation = 0
        self.events: list[At] = []
        self._members: frozenset[str] = frozenset()
        """The processes of the last generation."""
        step = 0
        for moment in sorted(observed, key=lambda moment: moment.at_ns):
            if isinstance(moment, StepBegun):
                step = moment.index
            self.events += [At(step, event) for event in self._events(moment)]

    @property
    def running(self) -> list[P]:
        return [process for process in self.processes.values() if process.is_running]

    @property
    def expected(self) -> list[P]:
        """The processes that should be members."""
        return [process for process in self.processes.values() if process.is_expected]

    def _events(self, observed: Observed) -> Iterator[Any]:
        match observed:
            case Begun(at, name):
                self.processes[name] = self._begun(name)
                self.processes[name].last_ns = at
            case Line(at, name) | Killed(at, name) | Exited(at, name) if not self.processes[name].ended:
                process = self.processes[name]
                process.last_ns = at
                yield from self._of_process(observed, process)
            case Sent(at, id) if (known := self.processes.get(process_of(id))) is not None:
                known.waiting += 1
                known.last_ns = at
                yield from self._sent(observed, known)
                known.joined &= not isinstance(observed.request, Leave)
            case Answered(at, Sent(_, id)) if (known := self.processes.get(process_of(id))) is not None:
                known.waiting -= 1
                known.last_ns = at
                yield from self._answered(observed, known)
            case Settled(_, turns):
                yield self._at_rest() if turns is None else Restless(turns)

    def _of_process(self, observed: Line | Killed | Exited, process: P) -> Iterator[Any]:
        match observed:
            case Line():
                yield from self._line(observed, process)
            case Killed():
                process.ended = True
                yield Ended(process.member)
            case Exited():
                process.ended = True
                yield from self._exited(observed, process)

    def _answered(self, answered: Answered, process: P) -> Iterator[Any]:
        match answered.sent.request, answered.reply:
            case Join(), Joined() as joined if not joined.error:
                process.joined = True
                if joined.leader == joined.member:
                    yield from self._formed(joined)
            case Sync() as sync, Synced() as synced if not synced.error and not process.ended:
                process.generation = sync.generation
                yield from self._synced(synced, process)

    def _formed(self, joined: Joined) -> Iterator[Any]:
        """A generation was formed: its leader was sent the members."""
        self.generation = joined.generation
        members: dict[str, Any] = {process_of(id): metadata for id, _, metadata in joined.members}
        self._members = frozenset(members)
        for process in self.running:
            if process.joined and process.name not in self._members:
                process.joined = False
                process.lose_all()
                yield PutOut(process.member)
        yield self._generation(joined, members)

    def _name(self, process: str) -> str:
        found = self.processes[process]
        return found.member if found.is_running else f"former {found.member}"

    # What the machines differ in

    @abstractmethod
    def _begun(self, name: str) -> P: ...
    @abstractmethod
    def _line(self, line: Line, process: P) -> Iterator[Any]: ...
    @abstractmethod
    def _exited(self, exited: Exited, process: P) -> Iterator[Any]: ...
    @abstractmethod
    def _sent(self, sent: Sent, process: P) -> Iterator[Any]: ...
    @abstractmethod
    def _synced(self, synced: Synced, process: P) -> Iterator[Any]: ...
    @abstractmethod
    def _generation(self, joined: Joined, members: Mapping[str, Any]) -> Any:
        """The event that a generation was formed. ``members``: process -> subscription."""

    @abstractmethod
    def _at_rest(self) -> Any:
        """The event that the group came to rest."""

    @abstractmethod
    def is_complete(self) -> bool:
        """Whether all partitions that are read have an owner."""

    # Rest

    def is_stable(self) -> bool:
        """Whether the last generation has all members that it should have, each of which knows its assignment."""
        expected = self.expected
        if not expected:
            return all(process.ended for process in self.processes.values())
        synced = all(process.generation == self.generation and not process.waiting for process in expected)
        return synced and self._members == {process.name for process in expected}

    def quiet_since_ns(self) -> int:
        return max((process.last_ns for process in self.expected), default=0)
