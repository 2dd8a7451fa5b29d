"""What was observed of the consumers of a group, as events of the machine ``bounce``."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.live.members.history import GroupHistory, Process, process_of
from kipcheck.conformance.live.members.processes import Exited, Line
from kipcheck.conformance.live.members.traffic import Answered, Sent, assigned, subscribed
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE
from kipcheck.conformance.protocols.cluster.kinds import TOPICS
from kipcheck.conformance.protocols.group.model.messages import Error, Join, Joined, Synced
from kipcheck.conformance.protocols.member.model.rules import ASSIGNORS
from kipcheck.conformance.protocols.upgrade import ops as upgrade
from kipcheck.conformance.protocols.upgrade.ops import ObservedEvent

REFUSED: Final = Error.INCONSISTENT_GROUP_PROTOCOL
"""The error of JoinGroup that a member reports to its user."""


def partitions_printed(rest: str) -> tuple[Partition, ...]:
    names = (name.rpartition("-") for name in rest.split(",") if name)
    return tuple(sorted((topic, int(number)) for topic, _, number in names))


@dataclass(slots=True)
class Consumer(Process):
    protocols: tuple[str, ...] = ()
    """The assignors in its last JoinGroup."""
    owned: set[Partition] = field(default_factory=set)
    refused: bool = False

    @property
    def is_expected(self) -> bool:
        return self.is_running and not self.refused

    @property
    def cooperates(self) -> bool:
        return bool(self.protocols) and all(COOPERATIVE in ASSIGNORS[name].supports for name in self.protocols)

    @property
    def knows(self) -> bool:
        return any(COOPERATIVE in ASSIGNORS[name].supports for name in self.protocols)

    def lose_all(self) -> None:
        self.owned.clear()


class ConsumerHistory(GroupHistory[Consumer]):
    topics: Mapping[str, tuple[str, ...]] = {}
    """Process -> topics, of the last generation."""

    def _begun(self, name: str) -> Consumer:
        return Consumer(name)

    def _line(self, line: Line, process: Consumer) -> Iterator[ObservedEvent]:
        if process.closing:
            return
        partitions = partitions_printed(line.rest) if line.what in ("assigned", "revoked", "lost") else ()
        match line.what:
            case "assigned" if partitions:
                process.owned.update(partitions)
                yield upgrade.Took(process.member, process.generation, partitions)
            case "revoked" | "lost" if partitions:
                process.owned.difference_update(partitions)
                yield upgrade.Gave(process.member, partitions, lost=line.what == "lost")
            case "closing":
                process.closing = True
                if process.owned:
                    yield upgrade.Gave(process.member, tuple(sorted(process.owned)))
                process.owned.clear()

    def _exited(self, exited: Exited, process: Consumer) -> Iterator[ObservedEvent]:
        if not process.closing and not process.refused:
            yield upgrade.Failed(process.member, _error(exited.errors) or f"exit code {exited.code}")
        yield upgrade.Ended(process.member)

    def _sent(self, sent: Sent, process: Consumer) -> Iterator[ObservedEvent]:
        if isinstance(sent.request, Join):
            process.protocols = tuple(name for name, _ in sent.request.protocols)
        yield from ()

    def _answered(self, answered: Answered, process: Consumer) -> Iterator[ObservedEvent]:
        if isinstance(answered.reply, Joined):
            if answered.reply.error == REFUSED and not process.refused and not process.ended:
                process.refused = True
                yield upgrade.Failed(process.member, REFUSED.name)
            process.refused &= bool(answered.reply.error)
        yield from super()._answered(answered, process)

    def _synced(self, synced: Synced, process: Consumer) -> Iterator[ObservedEvent]:
        yield upgrade.Assigned(process.member, process.generation, assigned(synced.assignment).partitions)

    def _generation(self, joined: Joined, members: Mapping[str, bytes]) -> ObservedEvent:
        self.topics = {process: subscribed(metadata).topics for process, metadata in members.items()}
        leader = self._name(process_of(joined.leader))
        return upgrade.Formed(self.generation, leader, joined.protocol or "", self._joining())

    def _at_rest(self) -> ObservedEvent:
        return upgrade.Rests(self.generation, self._joining() if self.expected else ())

    def _joining(self) -> tuple[upgrade.Joining, ...]:
        members = [(self._name(name), self.processes[name], topics) for name, topics in self.topics.items()]
        return tuple(
            upgrade.Joining(name, int(member.cooperates), int(member.knows), topics) for name, member, topics in members
        )

    def is_complete(self) -> bool:
        """Whether all partitions that the members subscribe to are owned."""
        wanted = {topic for topics in self.topics.values() for topic in topics}
        owned = {partition for process in self.expected for partition in process.owned}
        return not self.expected or owned >= {
            (topic, number) for topic, size in TOPICS if topic in wanted for number in range(size)
        }


def _error(errors: str) -> str:
    """The class of the first error that a program names on stderr."""
    words = errors.replace(":", " ").split()
    return next((word.rpartition(".")[2] for word in words if word.endswith(("Exception", "Error"))), "")
