"""A broker on loopback, one node, which answers what admin clients need to update features."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.edition import KIP_584, Edition
from kipcheck.conformance.live.recording.received import API_VERSIONS, Received
from kipcheck.conformance.live.server.broker import (
    CLUSTER,
    INVALID_REQUEST,
    SOFTWARE,
    UNSUPPORTED_VERSION,
    refused_topics,
)
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.features import NUMBER, controller_of, features_of
from kipcheck.conformance.wire.framing import requests

UNKNOWN_TOPIC_OR_PARTITION: Final = 3
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
        self.versions = {
            key: range(each.versions.low, each.versions.high + 1)
            for key, each in requests(edition).items()
            if each.name in self.handlers and each.versions.high is not None
        }
        """Served versions by API key."""
        self.advertised = {**self.versions, **(ranges_of(edition, LISTED_ONLY) if edition != KIP_584 else {})}

    def opened(self, connection: Connection) -> None:
        pass

    def closed(self, connection: Connection) -> None:
        pass

    def received(self, request: Received, connection: Connection) -> None:
        if not request.served:
            own = {API_VERSIONS: self.versions[API_VERSIONS]}
            return connection.answer(request, {"errorCode": UNSUPPORTED_VERSION, "apiKeys": _keys(own)}, version=0)
        connection.answer(request, self.handlers[request.message](request))

    def close(self) -> None:
        pass

    def api_versions(self, request: Received) -> Body:
        body = request.body
        software = (body.get("clientSoftwareName", "x"), body.get("clientSoftwareVersion", "x"))
        if not all(map(SOFTWARE.fullmatch, software)):
            return {"errorCode": INVALID_REQUEST, "apiKeys": []}
        found = features_of(self.controller.picture(), request.version)
        return {"errorCode": 0, "apiKeys": _keys(self.advertised), **found}

    def metadata(self, request: Received) -> Body:
        """One broker, which is the controller, and no topic."""
        host, port = request.reached
        if refused := refused_topics(request):
            return {"brokers": [], "topics": refused}
        asked = request.body["topics"] or []
        return {
            "brokers": [{"nodeId": NUMBER, "host": host, "port": port, "rack": None}],
            "clusterId": CLUSTER,
            "controllerId": NUMBER,
            "topics": [
                {"errorCode": UNKNOWN_TOPIC_OR_PARTITION, "name": each["name"], "partitions": []} for each in asked
            ],
        }


def _keys(versions: Mapping[int, range]) -> list[Body]:
    return [
        {"apiKey": key, "minVersion": each.start, "maxVersion": each.stop - 1} for key, each in sorted(versions.items())
    ]


def ranges_of(edition: Edition, names: tuple[str, ...]) -> dict[int, range]:
    """The versions that an edition has of these messages, by API key."""
    return {
        key: range(declared.versions.low, declared.versions.high + 1)
        for key, declared in requests(edition).items()
        if declared.name in names and declared.versions.high is not None
    }
