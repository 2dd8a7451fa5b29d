"""What was observed of applications of Streams whose output says nothing: their requests and answers show their tasks.

A task is theirs from the answer that assigns it until the JoinGroup that claims it no more. In a correct group both
times are outside of those in which a task runs in two members, as that JoinGroup comes before the next assignment.
"""

from collections.abc import Iterable, Iterator, Mapping

from kipcheck.conformance.live.members.history import Observed
from kipcheck.conformance.live.members.processes import STOPPING, Line
from kipcheck.conformance.live.members.streams_history import TOPIC, Instance, StreamsHistory
from kipcheck.conformance.live.members.traffic import Sent, subscribed
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE
from kipcheck.conformance.protocols.group.model.messages import Join, Synced
from kipcheck.conformance.protocols.streams.model.members import TaskId
from kipcheck.conformance.protocols.streams.model.rules import Rules
from kipcheck.conformance.protocols.streams.ops import ObservedEvent, Start
from kipcheck.conformance.protocols.upgrade.ops import Gave, Took


class SilentHistory(StreamsHistory):
    """``silent``: the processes whose output says nothing. What they support is taken from their release."""

    def __init__(self, observed: Iterable[Observed], starts: Mapping[str, Start], silent: frozenset[str]) -> None:
        self._silent = silent
        super().__init__(observed, starts)

    def cooperates(self, process: str) -> bool:
        start = self._starts[process]
        if process not in self._silent:
            return super().cooperates(process)
        return COOPERATIVE in Rules.of(start.release).supports(start.upgrade_from)

    def _line(self, line: Line, process: Instance) -> Iterator[ObservedEvent]:
        if process.name not in self._silent:
            yield from super()._line(line, process)
        elif line.what == STOPPING and process.is_running:
            process.closing = True
            yield from self._keep(process, ())

    def _sent(self, sent: Sent, process: Instance) -> Iterator[ObservedEvent]:
        yield from super()._sent(sent, process)
        if process.name in self._silent and isinstance(sent.request, Join):
            ((_, metadata), *_) = sent.request.protocols
            yield from self._keep(process, subscribed(metadata).owned if self.cooperates(process.name) else ())

    def _synced(self, synced: Synced, process: Instance) -> Iterator[ObservedEvent]:
        yield from super()._synced(synced, process)
        if process.name in self._silent:
            had = {task.partition for task in process.active}
            new = tuple(each for each in process.partitions if each[1] not in had)
            process.active.update(TaskId(0, number) for _, number in new)
            if new:
                yield Took(process.member, process.generation, new)

    def _keep(self, process: Instance, owned: Iterable[Partition]) -> Iterator[ObservedEvent]:
        kept = {number for _, number in owned}
        lost = {task for task in process.active if task.partition not in kept}
        process.active -= lost
        if lost:
            yield Gave(process.member, tuple(sorted((TOPIC, task.partition) for task in lost)))
