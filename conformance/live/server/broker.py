"""A broker on loopback, one node, whose groups are run by the reference machines."""

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.live.recording.bodies import Bodies
from kipcheck.conformance.live.recording.received import API_VERSIONS, Received
from kipcheck.conformance.live.server.admin_api import AdminApi
from kipcheck.conformance.live.server.classic_api import ClassicApi
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.consumer_api import ConsumerApi
from kipcheck.conformance.live.server.features import Picture, features_of
from kipcheck.conformance.live.server.groups import Answer, Groups, Handler, TooMany
from kipcheck.conformance.live.server.log_api import LogApi
from kipcheck.conformance.live.server.offsets_api import OffsetsApi
from kipcheck.conformance.live.server.produce_api import ProduceApi
from kipcheck.conformance.live.server.settings import Settings, parse
from kipcheck.conformance.live.server.topics import NO_LEADER, NODE, Topic, Topics, nodes
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.wire.framing import requests

CLUSTER: Final = "kipcheck"
MACHINES: Final[Mapping[str, type[messages.Request]]] = {
    "JoinGroupRequest": messages.Join,
    "SyncGroupRequest": messages.Sync,
    "HeartbeatRequest": messages.Heartbeat,
    "LeaveGroupRequest": messages.Leave,
    "OffsetCommitRequest": messages.Commit,
    "OffsetFetchRequest": messages.Fetch,
    "DescribeGroupsRequest": messages.Describe,
    "ListGroupsRequest": messages.ListGroups,
    "DeleteGroupsRequest": messages.Delete,
}
SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Names and versions of client software in ApiVersions (KIP-511)."""
OFFSETS: Final = Topic("__consumer_offsets", 50, uuid.uuid5(uuid.NAMESPACE_OID, "kipcheck/__consumer_offsets"))
"""The internal topic, which a broker has since its first group. No Fetch reads it."""
NO_IDS: Final = (10, 11)
"""The versions of Metadata that have ids of topics, and whose requests may not use them."""
ZERO: Final = uuid.UUID(int=0)
PRODUCE: Final = "ProduceRequest"
GROUP_KEY, BATCHES_SINCE = 0, 4
FEATURES: Final = Picture(1, {"group.version": (0, 1)}, {"group.version": (1, 1)})


def coordinator_of(edition: Edition, config: Iterable[str]) -> tuple[Coordinator, Settings]:
    """The group machine of an edition, and its settings with these, ``KEY=VALUE``.

    Errors: LookupError where the edition has none; ValueError as of ``settings.parse``.
    """
    found = coordinator(edition)
    if found is None:
        raise LookupError(f"edition {edition} has no group coordinator: use apache@RELEASE, or kip-429")
    settings = parse(config, edition.release)
    if isinstance(found, DraftCoordinator):
        return DraftCoordinator(settings.group), settings
    return Coordinator(found.rules, settings.group), settings


class Broker:
    """A script of a front. Errors of the constructor: as of ``coordinator_of``."""

    def __init__(self, edition: Edition, topics: Topics, config: Iterable[str] = ()) -> None:
        """``config``: settings besides those of the edition, as ``KEY=VALUE``."""
        machine, self.settings = coordinator_of(edition, config)
        self.topics = topics
        self.log = LogApi(topics, _is_from(edition, "kip-283"), self.addresses)
        self.edition = edition
        self.groups = Groups(machine, self.settings, topics.sizes)
        self.has_consumer_groups = self.settings.has_consumer_groups
        self.handlers = self._handlers()
        self.versions = self._versions(machine)
        """Served versions by API key, which are those that ApiVersions offers."""

    def _handlers(self) -> dict[str, Handler]:
        self.bodies = Bodies(self.edition, self.topics)
        self.offsets = OffsetsApi(self.groups, self.topics, self.bodies)
        consumer = ConsumerApi(self.groups, self.topics, self.bodies).handlers if self.has_consumer_groups else {}
        return {
            "ApiVersionsRequest": self.api_versions,
            "MetadataRequest": self.metadata,
            "FindCoordinatorRequest": self.find_coordinator,
            **ClassicApi(self.groups, self.bodies).handlers,
            **self.offsets.handlers,
            **self.log.handlers,
            **ProduceApi(self.topics, self.log.grew).handlers,
            **AdminApi(
                self.edition.release,
                self.topics,
                self.groups,
                lambda request: len(self.addresses(request)),
                lambda: self.topics_changed(),
            ).handlers,
            **consumer,
        }

    def _versions(self, machine: Coordinator) -> dict[int, range]:
        """What the edition has, the handlers serve, and the group machine of a release supports."""
        found = {}
        for key, declared in requests(self.edition).items():
            if declared.name not in self.handlers or declared.versions.high is None:
                continue
            low, high = declared.versions.low, declared.versions.high
            if self.edition.exact and (request := MACHINES.get(declared.name)):
                supported = machine.rules.versions[request]
                low, high = max(low, supported.start), min(high, supported.stop - 1)
            if low <= high:
                found[key] = range(low, high + 1)
        return found

    # The script

    def opened(self, connection: Connection) -> None:
        pass

    def closed(self, connection: Connection) -> None:
        pass

    def received(self, request: Received, connection: Connection) -> None:
        if not request.served:
            return connection.answer(request, self._api_versions(0, Error.UNSUPPORTED_VERSION), version=0)
        answer = partial(connection.answer, request)
        if request.message == PRODUCE and not request.body["acks"]:
            answer = partial(_unanswered, request, connection)
        try:
            self.handlers[request.message](request, answer)
        except TooMany as limit:
            connection.abort(str(limit))

    def close(self) -> None:
        self.groups.close()

    def topics_changed(self) -> None:
        """Topics were created or deleted."""
        self.groups.know(self.topics.sizes)
        self.log.grew()

    def addresses(self, request: Received) -> Sequence[tuple[str, int]]:
        """Of all nodes of the cluster."""
        return (request.reached,)

    # ApiVersions

    def api_versions(self, request: Received, answer: Answer) -> None:
        answer(
            self._api_versions(request.version, Error.NONE)
            if names_software(request)
            else offered({}, Error.INVALID_REQUEST)
        )

    def _api_versions(self, version: int, error: int) -> dict[str, Any]:
        """With Error.UNSUPPORTED_VERSION only the range of ApiVersions itself: up to 2.3, nothing."""
        keys = self.versions
        if error:
            keys = {API_VERSIONS: keys[API_VERSIONS]} if _is_from(self.edition, "kip-511") else {}
        has_features = self.has_consumer_groups and _is_from(self.edition, "kip-848")
        return offered(keys, error) | (features_of(FEATURES, version) if has_features else {})

    # Metadata and FindCoordinator

    def metadata(self, request: Received, answer: Answer) -> None:
        asked, version = request.body["topics"], request.version
        if refused := refused_topics(request):
            return answer({"brokers": [], "topics": refused})
        if asked is None or (version == 0 and not asked):
            topics = [self.described(each) for each in (*self.topics.by_name.values(), OFFSETS)]
        else:
            once = {(each["name"], each.get("topicId")): each for each in asked}
            topics = [self._described(each) for each in once.values()]
        answer(cluster(self.addresses(request), topics))

    def _described(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        name, id = asked["name"], asked.get("topicId")
        topic = OFFSETS if name == OFFSETS.name else self.topics.find(name, id)
        if topic is not None:
            return self.described(topic)
        error = Error.UNKNOWN_TOPIC_OR_PARTITION if name is not None else Error.UNKNOWN_TOPIC_ID
        return {"errorCode": error, "name": name, "partitions": []} | ({} if id is None else {"topicId": id})

    def described(self, topic: Topic) -> dict[str, Any]:
        partitions = []
        for index in range(topic.partitions):
            leader = topic.leader_of(index)
            is_led = leader.node != NO_LEADER
            partitions.append({
                "errorCode": Error.NONE if is_led else Error.LEADER_NOT_AVAILABLE, "partitionIndex": index,
                "leaderId": NODE + leader.node if is_led else NO_LEADER, "leaderEpoch": leader.epoch,
                "replicaNodes": [NODE], "isrNodes": [NODE], "offlineReplicas": [],
            })  # fmt: skip
        about = {"name": topic.name, "topicId": topic.id, "isInternal": topic is OFFSETS}
        return {"errorCode": Error.NONE, **about, "partitions": partitions}

    def find_coordinator(self, request: Received, answer: Answer) -> None:
        body, version = request.body, request.version
        error = Error.NONE if body.get("keyType", 0) == GROUP_KEY else Error.COORDINATOR_NOT_AVAILABLE
        host, port = request.reached if error == Error.NONE else ("", -1)
        found = {"nodeId": -1 if error else NODE, "host": host, "port": port, "errorCode": error}
        if version < BATCHES_SINCE:
            return answer(found)
        answer({"coordinators": [{"key": key, **found} for key in body["coordinatorKeys"]]})


def _unanswered(request: Received, connection: Connection, body: Mapping[str, Any]) -> None:
    """A Produce with acks=0 gets no answer; with an error in it, the connection is closed."""
    if any(part["errorCode"] for each in body["responses"] for part in each["partitionResponses"]):
        return connection.abort("a Produce with acks=0 and an error")
    connection.answer_bytes(request, b"")


def names_software(request: Received) -> bool:
    """Whether what an ApiVersions says of the client's software is valid; old versions say nothing."""
    body = request.body
    return all(SOFTWARE.fullmatch(body.get(f"clientSoftware{part}", "x")) for part in ("Name", "Version"))


def offered(versions: Mapping[int, range], error: int = Error.NONE) -> dict[str, Any]:
    keys = [
        {"apiKey": key, "minVersion": each.start, "maxVersion": each.stop - 1} for key, each in sorted(versions.items())
    ]
    return {"errorCode": error, "apiKeys": keys}


def cluster(addresses: Sequence[tuple[str, int]], topics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer to a Metadata of a cluster with nodes at these addresses, of which the first one is the controller."""
    return {"brokers": nodes(addresses), "clusterId": CLUSTER, "controllerId": NODE, "topics": topics}


def refused_topics(request: Received) -> list[dict[str, Any]]:
    """The topics of the response if a request of version 10 or 11 names a topic by its id, or not at all: brokers up to
    4.4.0 refuse all of them (``KafkaApis.handleTopicMetadataRequest``, ``MetadataRequest.getErrorResponse``)."""
    topics = request.body["topics"] or []
    if request.version not in NO_IDS or all(each["name"] is not None and each["topicId"] == ZERO for each in topics):
        return []
    return [
        {
            "errorCode": Error.INVALID_REQUEST,
            "name": each["name"] or "",
            "topicId": each["topicId"],
            "partitions": [],
        }
        for each in topics
    ]


def _is_from(edition: Edition, behaviour: str) -> bool:
    return edition.standing is Standing.RELEASED and Release.parse(edition.release) >= Release.parse(since(behaviour))
