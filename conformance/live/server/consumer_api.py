"""ConsumerGroupHeartbeat (KIP-848), translated to heartbeats of the machine of consumer groups.

Members with an instance id are served like members without one. The server chooses the assignor; both of Kafka's names
are accepted.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.recording.bodies import Bodies
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Answer, Groups, Handler
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.consumer_group.heartbeat import Heartbeat, HeartbeatAnswer
from kipcheck.conformance.protocols.reconciled.terms import AWAY, LEAVING, Rejected

ASSIGNORS: Final = (None, "", "uniform", "range")


class ConsumerApi:
    def __init__(
        self, groups: Groups, topics: Topics, bodies: Bodies, new_uuid: Callable[[], uuid.UUID] = uuid.uuid4
    ) -> None:
        """``new_uuid`` makes member ids for version 0."""
        self.groups = groups
        self.topics = topics
        self.bodies = bodies
        self.new_uuid = new_uuid

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"ConsumerGroupHeartbeatRequest": self.heartbeat}

    def heartbeat(self, request: Received, answer: Answer) -> None:
        id, beat = self.bodies.read(Heartbeat, request)
        answer(self.bodies.written(self._answered(id, beat, request.version), request.version))

    def _answered(self, id: str, beat: Heartbeat, version: int) -> HeartbeatAnswer:
        if not id or (not beat.member and (version > 0 or beat.epoch)):
            return refused(Error.INVALID_REQUEST, beat.member)
        if beat.assignor not in ASSIGNORS:
            return refused(Error.UNSUPPORTED_ASSIGNOR, beat.member)
        member = beat.member or str(self.new_uuid())
        if beat.epoch and self.groups.consumer(id) is None:
            return refused(Error.GROUP_ID_NOT_FOUND, beat.member)
        group = self.groups.new_consumer(id, member)
        if group is None:
            return refused(Error.GROUP_ID_NOT_FOUND, beat.member)
        try:
            topics = self._subscribed(beat.topics, beat.regex)
        except (re.error, RecursionError, OverflowError):
            return refused(Error.INVALID_REGULAR_EXPRESSION, member)
        leaves = beat.epoch == AWAY and beat.instance is not None
        owned = None if beat.owned is None else tuple(partition for partition in beat.owned if partition[0])
        reply = group.heartbeat(member, LEAVING if leaves else beat.epoch, topics, owned, beat.rebalance_ms)
        if isinstance(reply, Rejected):
            return refused(Error[reply.error], member)
        interval_ms = self.groups.settings.consumer_heartbeat_ms
        return HeartbeatAnswer(0, None, member, beat.epoch if leaves else reply.epoch, interval_ms, reply.assignment)

    def _subscribed(self, names: Iterable[str] | None, pattern: str | None) -> set[str] | None:
        """The subscribed topics: those named, and those whose whole name matches. Errors: re.error."""
        if names is None and pattern is None:
            return None
        matching = re.compile(pattern).fullmatch if pattern else None
        return {*(names or ()), *(name for name in self.topics.by_name if matching and matching(name))}


def refused(error: int, member: str) -> HeartbeatAnswer:
    return HeartbeatAnswer(error, member=member or None)
