"""ConsumerGroupHeartbeat (KIP-848), translated to heartbeats of the machine of consumer groups.

Members with an instance id are served like members without one. The server chooses the assignor; both of Kafka's names
are accepted.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.answered_errors import code_of
from kipcheck.conformance.live.server.groups import Answer, Groups, Handler
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.consumer_group.ops import Rejected
from kipcheck.conformance.protocols.reconciled.terms import Partitions

INVALID_REQUEST: Final = 42
GROUP_ID_NOT_FOUND: Final = 69
UNSUPPORTED_ASSIGNOR: Final = 112
INVALID_REGULAR_EXPRESSION: Final = 128
ASSIGNORS: Final = (None, "", "uniform", "range")
LEAVES_FOR_A_WHILE: Final = -2
"""The epoch with which a static member leaves."""


class ConsumerApi:
    def __init__(self, groups: Groups, topics: Topics, new_uuid: Callable[[], uuid.UUID] = uuid.uuid4) -> None:
        """``new_uuid`` makes member ids for version 0."""
        self.groups = groups
        self.topics = topics
        self.new_uuid = new_uuid

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"ConsumerGroupHeartbeatRequest": self.heartbeat}

    def heartbeat(self, request: Received, answer: Answer) -> None:
        body, version = request.body, request.version
        member, epoch = body["memberId"], body["memberEpoch"]
        if not body["groupId"] or (not member and (version > 0 or epoch)):
            return answer(_refused(INVALID_REQUEST, member))
        if body["serverAssignor"] not in ASSIGNORS:
            return answer(_refused(UNSUPPORTED_ASSIGNOR, member))
        member = member or str(self.new_uuid())
        group = self.groups.new_consumer(body["groupId"], member)
        if group is None:
            return answer(_refused(GROUP_ID_NOT_FOUND, body["memberId"]))
        try:
            topics = self._subscribed(body["subscribedTopicNames"], body.get("subscribedTopicRegex"))
        except (re.error, RecursionError, OverflowError):
            return answer(_refused(INVALID_REGULAR_EXPRESSION, member))
        leaves = epoch == LEAVES_FOR_A_WHILE and body["instanceId"] is not None
        found = group.heartbeat(
            member, -1 if leaves else epoch, topics, self._owned(body["topicPartitions"]), body["rebalanceTimeoutMs"]
        )
        if isinstance(found, Rejected):
            return answer(_refused(code_of(found.error), member))
        answer(
            {
                "errorCode": 0,
                "memberId": member,
                "memberEpoch": epoch if leaves else found.epoch,
                "heartbeatIntervalMs": self.groups.settings.consumer_heartbeat_ms,
                "assignment": None if found.assignment is None else self._assignment(found.assignment),
            }
        )

    def _subscribed(self, names: Iterable[str] | None, pattern: str | None) -> set[str] | None:
        """The subscribed topics: those named, and those whose whole name matches. Errors: re.error."""
        if names is None and pattern is None:
            return None
        matching = re.compile(pattern).fullmatch if pattern else None
        return {*(names or ()), *(each for each in self.topics.by_name if matching and matching(each))}

    def _owned(self, given: Iterable[Mapping[str, Any]] | None) -> Partitions | None:
        if given is None:
            return None
        known = ((self.topics.by_id.get(each["topicId"]), each["partitions"]) for each in given)
        return tuple(sorted((topic.name, index) for topic, indexes in known if topic for index in indexes))

    def _assignment(self, partitions: Partitions) -> dict[str, Any]:
        by_topic: dict[str, list[int]] = {}
        for topic, index in partitions:
            by_topic.setdefault(topic, []).append(index)
        return {
            "topicPartitions": [
                {"topicId": self.topics.by_name[topic].id, "partitions": indexes} for topic, indexes in by_topic.items()
            ]
        }


def _refused(error: int, member: str) -> dict[str, Any]:
    return {"errorCode": error, "memberId": member or None, "memberEpoch": 0, "heartbeatIntervalMs": 0}
