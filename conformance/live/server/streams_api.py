"""StreamsGroupHeartbeat (KIP-1071), translated to heartbeats of the machine of consumer groups.

The members of a streams group are assigned tasks in place of partitions, and owe and are owed the same otherwise. This
serves applications of one subtopology that reads topics with the same number of partitions, and has no state: a task is
a partition of each of them.
"""

from collections.abc import Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.recording.bodies import Bodies
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Answer, Groups, Handler
from kipcheck.conformance.protocols.reconciled.terms import AWAY, LEAVING, Partitions, Rejected
from kipcheck.conformance.protocols.streams_group.heartbeat import Heartbeat, HeartbeatAnswer
from kipcheck.conformance.protocols.streams_group.ops import Tasks

LAG: Final = {"acceptableRecoveryLag": 10_000, "taskOffsetIntervalMs": 60_000}
"""The acceptable recovery lag of groups and the interval of task offsets, at their defaults."""


class StreamsApi:
    def __init__(self, groups: Groups, bodies: Bodies) -> None:
        self.groups = groups
        self.bodies = bodies
        self.sources: Mapping[str, tuple[str, ...]] = {}
        """Subtopology -> its source topics."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"StreamsGroupHeartbeatRequest": self.heartbeat}

    def heartbeat(self, request: Received, answer: Answer) -> None:
        id, beat = self.bodies.read(Heartbeat, request)
        answer(self.body(self._answered(id, beat), request.version))

    def body(self, answer: HeartbeatAnswer, version: int) -> dict[str, Any]:
        return self.bodies.written(answer, version) | LAG

    def _answered(self, id: str, beat: Heartbeat) -> HeartbeatAnswer:
        if not id or not beat.member or (not beat.epoch and beat.topology is None):
            return refused(Error.INVALID_REQUEST, beat.member)
        if beat.epoch and self.groups.consumer(id) is None:
            return refused(Error.GROUP_ID_NOT_FOUND, beat.member)
        group = self.groups.new_consumer(id, beat.member)
        if group is None:
            return refused(Error.GROUP_ID_NOT_FOUND, beat.member)
        if beat.topology is not None:
            self.sources = {each.id: each.sources for each in beat.topology.subtopologies}
        topics = None if beat.topology is None else {name for names in self.sources.values() for name in names}
        leaves = beat.epoch == AWAY and beat.instance is not None
        owned = None if beat.active is None else self._partitions(beat.active)
        epoch = LEAVING if leaves else beat.epoch
        reply = group.heartbeat(beat.member, epoch, topics, owned, beat.rebalance_ms)
        if isinstance(reply, Rejected):
            return refused(Error[reply.error], beat.member)
        tasks = None if reply.assignment is None else self._tasks(reply.assignment)
        none = None if tasks is None else ()
        return HeartbeatAnswer(
            0, None, beat.member, beat.epoch if leaves else reply.epoch, (), tasks, none, none,
            interval_ms=self.groups.settings.consumer_heartbeat_ms,
        )  # fmt: skip

    def _partitions(self, tasks: Tasks) -> Partitions:
        return tuple(sorted((topic, number) for id, number in tasks for topic in self.sources.get(id, ())))

    def _tasks(self, partitions: Partitions) -> Tasks:
        of = {topic: id for id, topics in self.sources.items() for topic in topics}
        return tuple(sorted({(of[topic], number) for topic, number in partitions if topic in of}))


def refused(error: int, member: str) -> HeartbeatAnswer:
    return HeartbeatAnswer(error, member=member)
