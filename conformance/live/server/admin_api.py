"""What administrators and producers need besides groups and records: topics, settings, and ids of producers."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from kipcheck.conformance.core.files.broker_settings import settings
from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Answer, Groups, Handler
from kipcheck.conformance.live.server.topics import MOST_PARTITIONS, Topics, is_name

TOPIC, BROKER, GROUP = 2, 4, 32
"""Types of resources (class ``ConfigResource``)."""
MOST_TOPICS: Final = 1_000
DEFAULTS_SINCE: Final = 4
"""CreateTopics in which -1 is the default of the broker: one partition, one replica."""
IDS_SINCE: Final = 6
"""DeleteTopics with ids of topics."""
NO_ID: Final = {"producerId": -1, "producerEpoch": -1}


class AdminApi:
    """Settings are checked as far as kipcheck knows them, and change nothing. No transactions."""

    def __init__(
        self,
        release: str,
        topics: Topics,
        groups: Groups,
        nodes: Callable[[Received], int],
        changed: Callable[[], None],
    ) -> None:
        """``nodes``: their number. ``changed`` is called when topics were created or deleted."""
        self.release = release
        self.topics = topics
        self.groups = groups
        self.nodes = nodes
        self.changed = changed
        self._ids = count(1_000)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {
            "CreateTopicsRequest": self.create_topics,
            "DeleteTopicsRequest": self.delete_topics,
            "AlterConfigsRequest": self.alter_configs,
            "IncrementalAlterConfigsRequest": self.alter_configs,
            "InitProducerIdRequest": self.init_producer_id,
        }

    # Topics

    def create_topics(self, request: Received, answer: Answer) -> None:
        names = [each["name"] for each in request.body["topics"]]
        answer({"topics": [self._created(request, each, names.count(each["name"]) > 1)
                           for each in request.body["topics"]]})  # fmt: skip
        self.changed()

    def _created(self, request: Received, asked: Mapping[str, Any], is_repeated: bool) -> dict[str, Any]:
        """Errors in the order of ``ReplicationControlManager.createTopic``."""
        name, partitions, replicas = asked["name"], asked["numPartitions"], asked["replicationFactor"]
        if asked["assignments"]:
            partitions, replicas = len(asked["assignments"]), len(asked["assignments"][0]["brokerIds"])
        elif request.version >= DEFAULTS_SINCE:
            partitions, replicas = (1 if each == -1 else each for each in (partitions, replicas))
        error = Error.NONE
        if is_repeated:
            error = Error.INVALID_REQUEST
        elif not is_name(name):
            error = Error.INVALID_TOPIC_EXCEPTION
        elif name in self.topics.by_name:
            error = Error.TOPIC_ALREADY_EXISTS
        elif not 0 < replicas <= self.nodes(request):
            error = Error.INVALID_REPLICATION_FACTOR
        elif not 0 < partitions <= MOST_PARTITIONS:
            error = Error.INVALID_PARTITIONS
        elif len(self.topics.by_name) >= MOST_TOPICS:
            error = Error.POLICY_VIOLATION
        if error:
            return {"name": name, "errorCode": error, "errorMessage": error.name}
        made = {"name": name, "errorCode": error, "errorMessage": None, "numPartitions": partitions,
                "replicationFactor": replicas, "configs": []}  # fmt: skip
        if request.body.get("validateOnly"):
            return made
        self.topics.create(name, partitions, 0)
        return made | {"topicId": self.topics.by_name[name].id}

    def delete_topics(self, request: Received, answer: Answer) -> None:
        asked = request.body["topics"] if request.version >= IDS_SINCE else [
            {"name": name} for name in request.body["topicNames"]
        ]  # fmt: skip
        answer({"responses": [self._deleted(each) for each in asked]})
        self.changed()

    def _deleted(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        topic = self.topics.find(asked["name"], asked.get("topicId"))
        if topic is None:
            error = Error.UNKNOWN_TOPIC_ID if asked["name"] is None else Error.UNKNOWN_TOPIC_OR_PARTITION
            named = {"topicId": asked["topicId"]} if asked["name"] is None else {}
            return {"name": asked["name"], **named, "errorCode": error, "errorMessage": error.name}
        self.topics.delete(topic.name)
        self.groups.forget(topic.name)
        return {"name": topic.name, "topicId": topic.id, "errorCode": Error.NONE, "errorMessage": None}

    # Settings

    def alter_configs(self, request: Received, answer: Answer) -> None:
        answer({"responses": [self._altered(each) for each in request.body["resources"]]})

    def _altered(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        type, name, error = asked["resourceType"], asked["resourceName"], Error.NONE
        known = settings(self.release, "group")
        if type not in (TOPIC, BROKER, GROUP) or (type == GROUP and not known):
            error = Error.INVALID_REQUEST
        elif type == TOPIC and name not in self.topics.by_name:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
        elif type == GROUP and any(each["name"] not in known for each in asked["configs"]):
            error = Error.INVALID_CONFIG
        message = error.name if error else None
        return {"errorCode": error, "errorMessage": message, "resourceType": type, "resourceName": name}

    # Producers

    def init_producer_id(self, request: Received, answer: Answer) -> None:
        if request.body["transactionalId"] is not None:
            return answer({"errorCode": Error.COORDINATOR_NOT_AVAILABLE, **NO_ID})
        answer({"errorCode": Error.NONE, "producerId": next(self._ids), "producerEpoch": 0})
