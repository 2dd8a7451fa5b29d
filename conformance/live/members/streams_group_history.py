"""What was observed of the members of a streams group (KIP-1071), as events of the machine ``streams``.

Its coordinator assigns: there are no subscriptions and no assignments of a leader. A generation is an epoch.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.members.history import Observed, process_of
from kipcheck.conformance.live.members.streams_history import TOPIC, Instance, StreamsHistory
from kipcheck.conformance.live.members.traffic import Answered, Sent, StreamsBeat, StreamsBeaten
from kipcheck.conformance.protocols.streams import ops as streams
from kipcheck.conformance.protocols.streams.blobs import latest
from kipcheck.conformance.protocols.streams.ops import ObservedEvent, Start
from kipcheck.conformance.protocols.upgrade.ops import PutOut

PUT_OUT: Final = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH)
"""The errors by which a member learns that it is none any more."""


class StreamsGroupHistory(StreamsHistory):
    def __init__(self, observed: Iterable[Observed], starts: Mapping[str, Start]) -> None:
        self._assigned: dict[str, frozenset[int]] = {}
        """By process, the partitions of the active tasks that it was assigned last."""
        super().__init__(observed, starts)

    def _events(self, observed: Observed) -> Iterator[ObservedEvent]:
        match observed:
            case Sent(_, id, request=StreamsBeat()) if (process := self.processes.get(process_of(id))) is not None:
                yield from self._beats(process)
            case Answered(at, Sent(_, id), StreamsBeaten() as reply) if (
                process := self.processes.get(process_of(id))
            ) is not None and not process.ended:
                if reply.active is not None or reply.epoch != process.generation:
                    process.last_ns = at
                yield from self._beaten(reply, process)
            case _:
                yield from super()._events(observed)

    def _beats(self, process: Instance) -> Iterator[ObservedEvent]:
        """Metadata versions are those of assignors: a member of a streams group says none."""
        if process.began:
            return
        process.began = True
        start = self._starts[process.name]
        process.used = latest(start.release)
        yield streams.Began(process.member, start.release, start.upgrade_from, process.used, process.used)

    def _beaten(self, reply: StreamsBeaten, process: Instance) -> Iterator[ObservedEvent]:
        if reply.error:
            if process.joined and reply.error in PUT_OUT:
                process.joined, process.generation = False, 0
                process.lose_all()
                yield PutOut(process.member)
            return
        process.joined, process.generation = reply.epoch > 0, reply.epoch
        if reply.active is not None:
            self._assigned[process.name] = reply.active
        self.generation = max(self.generation, reply.epoch)

    def _present(self, process: Instance) -> streams.Present:
        """A task says which partition it reads."""
        active = tuple(sorted(process.active, key=str))
        return streams.Present(
            process.member, process.used, active, (), tuple((TOPIC, each.partition) for each in active)
        )

    def is_stable(self) -> bool:
        """Whether each member that runs has the highest epoch, and runs the tasks that it was assigned."""
        members = self.expected
        if not members:
            return all(process.ended for process in self.processes.values())
        return all(map(self._is_settled, members))

    def _is_settled(self, process: Instance) -> bool:
        runs = {task.partition for task in process.active}
        return process.generation == self.generation and runs == self._assigned.get(process.name, set())
