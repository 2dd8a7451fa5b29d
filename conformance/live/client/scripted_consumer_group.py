"""The coordinator of a consumer group (KIP-848) with one client, whose target assignment a script decides."""

import uuid
from collections.abc import Mapping
from typing import Any, Final, Protocol

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.answered_errors import CODES
from kipcheck.conformance.live.server.groups import Answer
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.client.ops import Error, Refusal

HEARTBEAT_MS: Final = 300
STALE_MEMBER_EPOCH: Final = 113
LEAVING: Final = (-1, -2)
Owned = frozenset[tuple[str, int]]


class Script(Protocol):
    """What the broker of the group knows of its script."""

    topics: Topics
    stable: bool
    has_joined: bool

    def fault(self, request: Received) -> Error | Refusal | None:
        """The error that the script has for this request."""
        ...

    def target(self) -> Mapping[str, tuple[int, ...]]:
        """Topic -> the partitions that the client is to have."""
        ...

    def hand_over(self, given: Mapping[str, tuple[int, ...]]) -> None:
        """The client has these partitions now."""
        ...


class ScriptedConsumerGroup:
    """Source: ``CurrentAssignmentBuilder`` of the coordinator: first a member gives up, then it gets the rest."""

    def __init__(self, broker: Script) -> None:
        self.broker = broker
        self.member = ""
        """The id of the client; empty: it is not a member."""
        self.epoch = 0
        self.target_epoch = 1
        self.sent: Owned = frozenset()
        """What the client was assigned."""
        self.owned: Owned = frozenset()
        """What it says that it has."""

    def forget(self) -> None:
        """The client is no member any more."""
        self.member, self.sent, self.owned = "", frozenset(), frozenset()

    def commit_error(self, body: Mapping[str, Any]) -> int | None:
        if body["memberId"] != self.member:
            return CODES["UNKNOWN_MEMBER_ID"]
        return None if body["generationIdOrMemberEpoch"] == self.epoch else STALE_MEMBER_EPOCH

    def heartbeat(self, request: Received, answer: Answer) -> None:
        body, broker = request.body, self.broker
        id, epoch = body["memberId"], body["memberEpoch"]
        error = broker.fault(request)
        if error is None and epoch > 0 and (id != self.member or epoch != self.epoch):
            error = "UNKNOWN_MEMBER_ID" if id != self.member else "FENCED_MEMBER_EPOCH"
        if error is not None:
            return answer({"errorCode": CODES[error], "memberId": id, "memberEpoch": 0, "heartbeatIntervalMs": 0})
        if epoch in LEAVING:
            self.forget()
            broker.stable = False
            return answer(self._answer(id, epoch, None))
        if not epoch:
            self.forget()
            self.member, self.epoch = id or str(uuid.uuid4()), 0
        if body["topicPartitions"] is not None:
            ids = broker.topics.by_id
            self.owned = frozenset(
                (ids[each["topicId"]].name, part)
                for each in body["topicPartitions"]
                if each["topicId"] in ids
                for part in each["partitions"]
            )
        changed = self._reconcile()
        if self.epoch == self.target_epoch and epoch == self.epoch and not changed:
            broker.stable = broker.has_joined = True
        answer(self._answer(self.member, self.epoch, self.sent if changed or not epoch else None))

    def _reconcile(self) -> bool:
        """Goes on towards the target. Returns whether the assignment, or the epoch of it, changed."""
        if self.epoch == self.target_epoch:
            return False
        wanted = self.broker.target()
        target = frozenset((topic, part) for topic, parts in wanted.items() for part in parts)
        if self.sent - target:
            self.sent &= target
            return True
        if self.owned - self.sent:
            return False  # the client still has to give partitions up
        self.epoch, self.sent = self.target_epoch, target
        self.broker.hand_over(wanted)
        return True

    def _answer(self, id: str, epoch: int, assigned: Owned | None) -> dict[str, Any]:
        found = None
        if assigned is not None:
            by_topic: dict[str, list[int]] = {}
            for topic, part in sorted(assigned):
                by_topic.setdefault(topic, []).append(part)
            ids = {name: topic.id for name, topic in self.broker.topics.by_name.items()}
            found = {
                "topicPartitions": [{"topicId": ids[topic], "partitions": parts} for topic, parts in by_topic.items()]
            }
        return {
            "errorCode": 0, "memberId": id, "memberEpoch": epoch, "heartbeatIntervalMs": HEARTBEAT_MS,
            "assignment": found,
        }  # fmt: skip
