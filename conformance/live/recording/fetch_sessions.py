"""Reads the Fetch requests of sessions (KIP-227), which name only the partitions that changed since the request before.

Source: classes ``FetchSessionHandler`` and ``FetchManager``.
"""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from kipcheck.conformance.live.recording.received import Received

FETCH: Final = "FetchRequest"
IDS_SINCE: Final = 13
"""Topics are named by ids."""
FULL, SESSIONLESS = 0, -1
"""Epochs of requests with all partitions: of a new session, and of none."""
MOST_SESSIONS: Final = 1000
"""``max.incremental.fetch.session.cache.slots``."""
Key: TypeAlias = tuple[str | uuid.UUID, int]
"""Name or id of a topic, and partition."""
Partitions: TypeAlias = dict[Key, Mapping[str, Any]]
"""What a request says of each, in its order."""


def epoch_of(request: Received) -> int:
    epoch: int = request.body.get("sessionEpoch", SESSIONLESS)
    return epoch


def topic_field(version: int) -> str:
    """The field that names a topic."""
    return "topicId" if version >= IDS_SINCE else "topic"


def named(request: Received) -> Partitions:
    field = topic_field(request.version)
    return {(topic[field], part["partition"]): part for topic in request.body["topics"] for part in topic["partitions"]}


def updated(partitions: Partitions, request: Received) -> Partitions:
    """The partitions of a session after a request: without those that it forgets, and with those that it names."""
    field = topic_field(request.version)
    forgotten = {(topic[field], number) for topic in request.body["forgottenTopicsData"]
                 for number in topic["partitions"]}  # fmt: skip
    return {key: part for key, part in partitions.items() if key not in forgotten} | named(request)


class ObservedSessions:
    """The sessions that pass by."""

    def __init__(self) -> None:
        self._partitions: dict[int, Partitions] = {}

    def whole(self, request: Received) -> Received:
        """A Fetch of a session with all partitions of it and no epoch, as if there were no session; other requests,
        and those of sessions that began unobserved, as they are."""
        id = request.body.get("sessionId")
        if request.message != FETCH or epoch_of(request) <= FULL or id not in self._partitions:
            return request
        found = self._partitions[id] = updated(self._partitions[id], request)
        field = topic_field(request.version)
        topics: dict[str | uuid.UUID, list[Mapping[str, Any]]] = {}
        for (topic, _), part in found.items():
            topics.setdefault(topic, []).append(part)
        listed = [{field: topic, "partitions": parts} for topic, parts in topics.items()]
        body = {**request.body, "sessionEpoch": SESSIONLESS, "topics": listed, "forgottenTopicsData": []}
        return replace(request, body=body)

    def answered(self, request: Received, body: Mapping[str, Any]) -> None:
        if request.message == FETCH and epoch_of(request) == FULL and body.get("sessionId"):
            self._partitions[body["sessionId"]] = named(request)
            if len(self._partitions) > MOST_SESSIONS:
                del self._partitions[next(iter(self._partitions))]
