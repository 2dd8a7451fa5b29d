"""A broker on loopback, one node, which answers what admin clients need to update features."""

from collections.abc import Callable, Container, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.edition import KIP_584, Edition
from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.recording.received import API_VERSIONS, Received
from kipcheck.conformance.live.server.broker import cluster, names_software, offered, refused_topics
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.features import controller_of, features_of
from kipcheck.conformance.wire.framing import requests

LISTED_ONLY: Final = ("ProduceRequest",)
"""Some clients give up if these are not advertised, and an admin client never sends them: Java 2.3.1, librdkafka."""
Body = dict[str, Any]


class FeatureBroker:
    """A script of a front. Errors of the constructor: LookupError for an edition without a controller of features."""

    def __init__(self, edition: Edition) -> None:
        self.controller = controller_of(edition)
        self.handlers: Mapping[str, Callable[[Received], Body]] = {
            "ApiVersionsRequest": self.api_versions,
            "MetadataRequest": self.metadata,
            "UpdateFeaturesRequest": lambda request: self.controller.update(request.version, request.body),
        }
        self.versions = ranges_of(edition, self.handlers)
        """Served versions by API key."""
        self.advertised = {**self.versions, **(ranges_of(edition, LISTED_ONLY) if edition != KIP_584 else {})}

    def opened(self, connection: Connection) -> None:
        pass

    def closed(self, connection: Connection) -> None:
        pass

    def received(self, request: Received, connection: Connection) -> None:
        if not request.served:
            own = {API_VERSIONS: self.versions[API_VERSIONS]}
            return connection.answer(request, offered(own, Error.UNSUPPORTED_VERSION), version=0)
        connection.answer(request, self.handlers[request.message](request))

    def close(self) -> None:
        pass

    def api_versions(self, request: Received) -> Body:
        if not names_software(request):
            return offered({}, Error.INVALID_REQUEST)
        return offered(self.advertised) | features_of(self.controller.picture(), request.version)

    def metadata(self, request: Received) -> Body:
        """No topic exists."""
        if refused := refused_topics(request):
            return {"brokers": [], "topics": refused}
        names = [each["name"] for each in request.body["topics"] or ()]
        unknown = {"errorCode": Error.UNKNOWN_TOPIC_OR_PARTITION, "partitions": []}
        return cluster((request.reached,), [{**unknown, "name": name} for name in names])


def ranges_of(edition: Edition, names: Container[str]) -> dict[int, range]:
    """The versions that an edition has of these messages, by API key."""
    return {
        key: range(declared.versions.low, declared.versions.high + 1)
        for key, declared in requests(edition).items()
        if declared.name in names and declared.versions.high is not None
    }
