"""What was observed of the members of a Streams group, as events of the machine ``streams``.

A task is active in a member from the opening of its processor to its closing, as the member itself reports both;
subscriptions and assignments are bytes that passed the proxy.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.live.members.history import GroupHistory, Observed, Process, process_of
from kipcheck.conformance.live.members.processes import Exited, Line
from kipcheck.conformance.live.members.traffic import Sent, assigned, subscribed
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.group.model.messages import Join, Joined, Sync, Synced
from kipcheck.conformance.protocols.streams import ops as streams
from kipcheck.conformance.protocols.streams.blobs import latest
from kipcheck.conformance.protocols.streams.model.members import TaskId
from kipcheck.conformance.protocols.streams.ops import ObservedEvent, Start
from kipcheck.conformance.protocols.upgrade.ops import Ended, Gave, Took

PLACES: Final = (("performAssignment", "lead"), ("onAssignment", "assigned"), ("subscriptionUserData", "subscribe"),
                 ("PartitionAssignor.subscription", "subscribe"))  # fmt: skip
"""Methods in a stack trace -> what a thread was doing."""
WORD: Final = "COOPERATIVE"
TOPIC: Final = streams.TOPICS[0].name
PARTITIONS: Final = streams.TOPICS[0].partitions


def used_in(data: bytes) -> int:
    """The version in front of user data."""
    return int.from_bytes(data[:4], "big", signed=True)


@dataclass(slots=True)
class Instance(Process):
    began: bool = False
    """Whether it has joined once."""
    used: int = 0
    partitions: tuple[Partition, ...] = ()
    active: set[TaskId] = field(default_factory=set)
    died: bool = False

    @property
    def is_running(self) -> bool:
        return not self.ended and not self.closing and not self.died

    def lose_all(self) -> None:
        self.active.clear()


class StreamsHistory(GroupHistory[Instance]):
    """``starts``: how each process was started."""

    def __init__(self, observed: Iterable[Observed], starts: Mapping[str, Start]) -> None:
        moments = [*observed]
        self._starts = starts
        self._cooperative = {
            line.process
            for line in moments
            if isinstance(line, Line) and line.what == "protocols" and WORD in line.rest
        }
        """Processes whose assignor supports cooperative rebalancing, which it does from its start on."""
        super().__init__(moments)

    def cooperates(self, process: str) -> bool:
        """Whether its assignor supports cooperative rebalancing."""
        return process in self._cooperative

    def _begun(self, name: str) -> Instance:
        return Instance(name)

    def _line(self, line: Line, process: Instance) -> Iterator[ObservedEvent]:
        match line.what:
            case "opened":
                task = TaskId.parse(line.rest)
                process.active.add(task)
                yield Took(process.member, process.generation, ((TOPIC, task.partition),))
            case "closed" if (task := TaskId.parse(line.rest)) in process.active:
                process.active.discard(task)
                yield Gave(process.member, ((TOPIC, task.partition),))
            case "used" if line.rest.isdigit():
                process.used = int(line.rest)
            case "closing":
                process.closing = not process.died
            case "died":
                process.died = True

    def _exited(self, exited: Exited, process: Instance) -> Iterator[ObservedEvent]:
        """A process that was not stopped has died of what it printed on stderr."""
        if not process.closing:
            kind, why = failure(exited.errors)
            start = self._starts[process.name]
            if not process.began:
                yield streams.Refused(process.member, start.release, start.upgrade_from, why)
                return
            during = next((what for method, what in PLACES if method in exited.errors), "error")
            yield streams.Died(process.member, during, kind, why)
        yield Ended(process.member)

    def _sent(self, sent: Sent, process: Instance) -> Iterator[ObservedEvent]:
        match sent.request:
            case Join(protocols=((_, metadata), *_)):
                process.used = used_in(subscribed(metadata).user_data)
                if not process.began:
                    process.began = True
                    start = self._starts[process.name]
                    newest = latest(start.release)
                    yield streams.Began(process.member, start.release, start.upgrade_from, newest, process.used)
            case Sync(generation=self.generation, assignments=assignments):
                for id, data in assignments:
                    share = assigned(data)
                    name = self._name(process_of(id))
                    yield streams.Sent(self.generation, process.member, name, share.partitions, share.user_data)

    def _synced(self, synced: Synced, process: Instance) -> Iterator[ObservedEvent]:
        process.partitions = assigned(synced.assignment).partitions
        yield from ()

    def _generation(self, joined: Joined, members: Mapping[str, bytes]) -> ObservedEvent:
        joins = []
        for process, metadata in members.items():
            wrote = subscribed(metadata)
            joins.append(
                streams.JoinMetadata(self._name(process), wrote.user_data, wrote.owned, self.cooperates(process))
            )
        return streams.Formed(self.generation, self._name(process_of(joined.leader)), tuple(joins))

    def _at_rest(self) -> ObservedEvent:
        return streams.Rests(self.generation, tuple(map(self._present, self.running)))

    def _present(self, process: Instance) -> streams.Present:
        active = tuple(sorted(process.active, key=str))
        return streams.Present(process.member, process.used, active, (), process.partitions)

    def is_complete(self) -> bool:
        """Whether the task of each partition is active in some member."""
        active = {task.partition for process in self.running for task in process.active}
        return not self.running or {*range(PARTITIONS)} <= active


def failure(errors: str) -> tuple[str, str]:
    """Class and message of the last cause in a stack trace."""
    found = ("", errors.splitlines()[-1] if errors else "no error was printed")
    for line in errors.splitlines():
        head, _, why = line.removeprefix("Caused by: ").partition(": ")
        words = head.split()
        if words and words[-1].endswith(("Exception", "Error")) and "." in words[-1]:
            found = words[-1], why
    return found
