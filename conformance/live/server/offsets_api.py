"""OffsetCommit and OffsetFetch, of both kinds of groups."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.live.recording.bodies import Bodies
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Answer, AnswerSize, Groups, Handler, TooMany
from kipcheck.conformance.live.server.topics import Topic, Topics
from kipcheck.conformance.protocols.group.model.messages import Commit, Committed, Error, Fetch, Fetched

Position: TypeAlias = tuple[int, int, str]
"""Offset, leader epoch, metadata."""
NO_POSITION: Final[Position] = (-1, -1, "")
IDS_SINCE: Final = 10
"""Topics are named by ids."""
BATCHES_SINCE: Final = 8
"""OffsetFetch of several groups."""
GROUP_ERRORS_SINCE: Final = 2
"""OffsetFetch with an error of the group."""
MOST_IN_ZOOKEEPER: Final = 100_000
"""Offsets."""


def is_in_zookeeper(request: Received) -> bool:
    """Whether a request is about offsets in ZooKeeper, which every broker reads and writes for members and others."""
    return request.version == 0 and request.api in ("OffsetCommit", "OffsetFetch")


class OffsetsApi:
    def __init__(self, groups: Groups, topics: Topics, bodies: Bodies) -> None:
        self.groups = groups
        self.topics = topics
        self.bodies = bodies
        self.in_zookeeper: dict[tuple[str, str, int], int] = {}
        """Group, topic and partition -> the offset that version 0 committed; other versions do not see it."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"OffsetCommitRequest": self.commit, "OffsetFetchRequest": self.fetch}

    # Commit

    def commit(self, request: Received, answer: Answer) -> None:
        """Partitions that do not exist get an error of their own; the group decides on all others together."""
        wanted: dict[tuple[str, int], Position] = {}
        refused: dict[tuple[object, int], int] = {}
        unknown = Error.UNKNOWN_TOPIC_ID if request.version >= IDS_SINCE else Error.UNKNOWN_TOPIC_OR_PARTITION
        for each in request.body["topics"]:
            topic = self.topics.find(each.get("name"), each.get("topicId"))
            for part in each["partitions"]:
                index, metadata = part["partitionIndex"], part["committedMetadata"]
                if topic is None or not 0 <= index < topic.partitions:
                    error = Error.UNKNOWN_TOPIC_OR_PARTITION if topic is not None else unknown
                    refused[_key(each), index] = error
                elif _characters(metadata or "") > self.groups.settings.most_metadata:
                    refused[_key(each), index] = Error.OFFSET_METADATA_TOO_LARGE
                else:
                    epoch = part.get("committedLeaderEpoch", -1)
                    wanted[topic.name, index] = (part["committedOffset"], epoch, metadata or "")

        def done(error: int) -> None:
            answer({"topics": [_committed(each, refused, error) for each in request.body["topics"]]})

        if is_in_zookeeper(request):
            return done(self._commit_in_zookeeper(request.body["groupId"], wanted))
        self._commit(request, wanted, done)

    def _commit_in_zookeeper(self, id: str, wanted: Mapping[tuple[str, int], Position]) -> int:
        """The error. Metadata are not kept. Errors: ``TooMany``."""
        if not id:
            return Error.UNKNOWN_SERVER_ERROR
        found = {(id, *at): position[0] for at, position in wanted.items()}
        if len(self.in_zookeeper.keys() | found.keys()) > MOST_IN_ZOOKEEPER:
            raise TooMany("too many offsets in ZooKeeper")
        self.in_zookeeper.update(found)
        return Error.NONE

    def _commit(
        self, request: Received, wanted: Mapping[tuple[str, int], Position], done: Callable[[int], None]
    ) -> None:
        id, commit = self.bodies.read(Commit, request)
        consumer = self.groups.consumer(id)
        if consumer is not None:
            error = consumer.commit_error(commit.member, commit.generation)
            if not error:
                consumer.commit(wanted)
            return done(error)
        group = self.groups.growing(id)
        offsets = tuple((*at, *position) for at, position in wanted.items())
        group.send(replace(commit, offsets=offsets), lambda reply: done(cast(Committed, reply).error), nameless=not id)

    # Fetch

    def fetch(self, request: Received, answer: Answer) -> None:
        body, version = request.body, request.version
        if version >= BATCHES_SINCE:
            size = AnswerSize()
            for each in body["groups"]:
                size.add(self.groups.weight(each["groupId"]))
            return answer({"groups": [self._fetched_group(version, each) for each in body["groups"]]})
        if is_in_zookeeper(request):
            return answer({"topics": [self._fetched_from_zookeeper(body["groupId"], each) for each in body["topics"]]})
        error, positions = self._positions(version, body["groupId"], "", -1)
        topics = list(self._fetched_topics(version, body["topics"], error, positions))
        answer({"topics": topics, "errorCode": error})

    def _fetched_from_zookeeper(self, id: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A partition without an offset is answered as one that does not exist."""
        name, parts = asked["name"], []
        for index in asked["partitionIndexes"]:
            topic = self.topics.find(name, None)
            exists = topic is not None and 0 <= index < topic.partitions
            offset = self.in_zookeeper.get((id, name, index), -1) if exists else -1
            error = Error.NONE if offset >= 0 else Error.UNKNOWN_TOPIC_OR_PARTITION
            parts.append(_fetched(index, (offset, -1, ""), Error.UNKNOWN_SERVER_ERROR if exists and not id else error))
        return {"name": name, "partitions": parts}

    def _fetched_group(self, version: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        id, member, epoch = asked["groupId"], asked.get("memberId"), asked.get("memberEpoch", -1)
        error, positions = self._positions(version, id, member or "", epoch)
        topics = [] if error else list(self._fetched_topics(version, asked["topics"], error, positions))
        return {"groupId": id, "topics": topics, "errorCode": error}

    def _positions(
        self, version: int, id: str, member: str, epoch: int
    ) -> tuple[int, Mapping[tuple[str, int], Position]]:
        """The error of the group, and its committed positions."""
        consumer = self.groups.consumer(id)
        if consumer is not None:
            return (consumer.commit_error(member, epoch) if member else 0), consumer.offsets
        reply = cast(Fetched, self.groups.ask(id, Fetch, version))
        return reply.error, {row[:2]: row[2:] for row in reply.offsets}

    def _fetched_topics(
        self,
        version: int,
        asked: Iterable[Mapping[str, Any]] | None,
        error: int,
        positions: Mapping[tuple[str, int], Position],
    ) -> Iterator[dict[str, Any]]:
        """``asked``: None means all topics with positions."""
        if asked is None:
            names = dict.fromkeys(topic for topic, _ in positions)
            asked = [
                {"name": name, "topicId": self.topics.by_name[name].id,
                 "partitionIndexes": [partition for topic, partition in positions if topic == name]}
                for name in names
            ]  # fmt: skip
        for each in asked:
            topic = self.topics.find(each.get("name"), each.get("topicId"))
            unknown = Error.UNKNOWN_TOPIC_ID if topic is None and version >= IDS_SINCE else 0
            own = error if version < GROUP_ERRORS_SINCE else 0
            parts = [
                _fetched(index, positions.get((_name(topic, each), index), NO_POSITION), own or unknown)
                for index in each["partitionIndexes"]
            ]
            yield {**_named(each, version), "partitions": parts}


def _characters(text: str) -> int:
    """As Java counts them; brokers do not count bytes, though their setting is named so."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _fetched(index: int, position: Position, error: int) -> dict[str, Any]:
    offset, epoch, metadata = NO_POSITION if error else position
    return {
        "partitionIndex": index,
        "committedOffset": offset,
        "committedLeaderEpoch": epoch,
        "metadata": metadata,
        "errorCode": error,
    }


def _committed(topic: Mapping[str, Any], refused: Mapping[tuple[object, int], int], error: int) -> dict[str, Any]:
    parts = [
        {"partitionIndex": part["partitionIndex"],
         "errorCode": refused.get((_key(topic), part["partitionIndex"]), error)}
        for part in topic["partitions"]
    ]  # fmt: skip
    named = {"topicId": topic["topicId"]} if "topicId" in topic else {"name": topic["name"]}
    return {**named, "partitions": parts}


def _key(topic: Mapping[str, Any]) -> str | uuid.UUID:
    return cast(uuid.UUID, topic["topicId"]) if "topicId" in topic else str(topic["name"])


def _name(topic: Topic | None, asked: Mapping[str, Any]) -> str:
    return topic.name if topic is not None else str(asked.get("name", ""))


def _named(topic: Mapping[str, Any], version: int) -> dict[str, Any]:
    return {"topicId": topic["topicId"]} if version >= IDS_SINCE else {"name": topic["name"]}
