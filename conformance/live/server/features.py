"""Controllers of feature versions behind ApiVersions and UpdateFeatures, each with a reference machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kipcheck.conformance.core.values.edition import KIP_584, Edition, Standing
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.protocols.features.model.cluster import Broker, FeatureCluster, Node, State as DraftState
from kipcheck.conformance.protocols.features.model.kraft import WITHOUT_RESULTS, KraftController
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.model.ranges import ranges
from kipcheck.conformance.protocols.features.model.zookeeper import ZooKeeperController
from kipcheck.conformance.protocols.features.ops import cluster, kraft, zookeeper
from kipcheck.conformance.protocols.features.target import IN_KRAFT, IN_ZOOKEEPER

NUMBER: Final = 1
"""Of the only broker, which is the controller too."""
SUPPORTED: Final = {"group_coordinator": (1, 3), "transaction_coordinator": (1, 2)}
"""What the broker of the draft supports: the features are examples of KIP-584, and no release has them."""
FINALIZED: Final = {"group_coordinator": (1, 1)}
ALL_SHOWN_SINCE: Final = 4
"""The version of ApiVersions from which on supported features are shown whose lowest level is 0 (KAFKA-17011)."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What ApiVersions shows."""

    epoch: int
    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, tuple[int, int]]


class Controller(Protocol):
    def picture(self) -> Picture: ...

    def update(self, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the response to UpdateFeatures."""
        ...


def controller_of(edition: Edition) -> Controller:
    """Errors: LookupError for an edition without a controller of features."""
    if edition == KIP_584:
        return DraftFeatures()
    if edition.standing is Standing.RELEASED and IN_KRAFT(edition):
        return KraftFeatures(edition.release)
    if edition.standing is Standing.RELEASED and IN_ZOOKEEPER(edition):
        return ZooKeeperFeatures(edition.release)
    raise LookupError(f"edition {edition} has no controller of features: use apache@RELEASE from 2.7.0 on, or kip-584")


class KraftFeatures:
    """A cluster at the default levels of the release, with one broker of the same release."""

    def __init__(self, release: str) -> None:
        self.machine = KraftController(Rules.of(release))
        rules = self.machine.rules
        levels = tuple(kraft.Level(name, level) for name, level in rules.defaults().items() if name != METADATA)
        self.supported = {name: (each.low, each.high) for name, each in rules.declares()}
        declared = tuple(kraft.Declared(name, *span) for name, span in self.supported.items())
        state = self.machine.formatted(kraft.Format(rules.newest, levels))
        self.state = self.machine.declared(state, kraft.DeclareNode("broker", NUMBER, declared))

    def picture(self) -> Picture:
        return Picture(self.state.epoch, self.supported, {name: (each, each) for name, each in self.state.levels})

    def update(self, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        request = kraft.KraftUpdate(version, _typed(version, body), bool(body.get("validateOnly", False)))
        self.state, (answer,) = self.machine.step(self.state, request)
        if isinstance(answer, kraft.Failed):
            return _response(answer.error, (), version)
        assert isinstance(answer, kraft.Results)
        return _response("NONE", answer.results, version)


class ZooKeeperFeatures:
    """A controller at the inter-broker version from which on features are finalized; no release defines one."""

    def __init__(self, release: str) -> None:
        self.machine = ZooKeeperController(release)
        started = self.machine.started(self.machine.initial(), "2.7")
        self.state = self.machine.read(started, NUMBER).state

    def picture(self) -> Picture:
        _, (found,) = self.machine.step(self.state, zookeeper.AskZkFeatures(NUMBER))
        assert isinstance(found, zookeeper.ZkFeatures)
        return Picture(found.epoch, {}, {each.feature: (each.low, each.high) for each in found.finalized})

    def update(self, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        request = zookeeper.ZkUpdate(version, _typed(version, body), bool(body.get("validateOnly", False)))
        after, (answer,) = self.machine.step(self.state, request)
        self.state = self.machine.read(after, NUMBER).state
        if isinstance(answer, zookeeper.ZkTopLevel):
            return _response(answer.error, (), version)
        assert isinstance(answer, zookeeper.ZkResults)
        return _response("NONE", answer.results, version)


class DraftFeatures:
    """The draft's controller, with one broker and one feature that is finalized below its highest level."""

    def __init__(self) -> None:
        self.machine = FeatureCluster()
        node = Node(0, True, ranges(FINALIZED))
        broker = Broker(NUMBER, ranges(SUPPORTED)).read(node)
        self.state = DraftState(node, (broker,), controller=NUMBER, term=1, registered=frozenset({NUMBER}))

    def picture(self) -> Picture:
        _, (found,) = self.machine.step(self.state, cluster.AskFeatures(NUMBER))
        assert isinstance(found, cluster.Features)
        supported = {each.feature: (each.low, each.high) for each in found.supported}
        return Picture(found.epoch, supported, {each.feature: (each.low, each.high) for each in found.finalized})

    def update(self, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        updates = tuple(
            cluster.Requested(each["feature"], each["maxVersionLevel"], each["allowDowngrade"])
            for each in body["featureUpdates"]
        )
        after, (answer,) = self.machine.step(self.state, cluster.UpdateFeatures(updates))
        self.state = self.machine.step(after, cluster.Watch(NUMBER)).state
        if isinstance(answer, cluster.TopLevel):
            return _response(answer.error, (), version)
        assert isinstance(answer, cluster.Answered)
        return _response("NONE", answer.results, version)


def _typed(version: int, body: Mapping[str, Any]) -> tuple[kraft.TypedUpdate, ...]:
    """Version 0 has a flag in place of the type."""
    found = []
    for each in body["featureUpdates"]:
        lowers = kraft.SAFE_DOWNGRADE if each.get("allowDowngrade") else kraft.UPGRADE
        kind = each["upgradeType"] if version > 0 else lowers
        found.append(kraft.TypedUpdate(each["feature"], each["maxVersionLevel"], kind))
    return tuple(found)


def _response(error: str, results: tuple[cluster.Outcome, ...], version: int) -> dict[str, Any]:
    """With texts of our own: Kafka's change with each release."""
    found: dict[str, Any] = {"errorCode": KafkaError[error], "errorMessage": _text(error) or ""}
    if version < WITHOUT_RESULTS:
        found["results"] = [
            {"feature": each.feature, "errorCode": KafkaError[each.error], "errorMessage": _text(each.error)}
            for each in results
        ]
    return found


def _text(error: str) -> str | None:
    return None if error == "NONE" else f"The model of the controller refuses the update: {error}."


def features_of(picture: Picture, version: int) -> dict[str, Any]:
    """The tagged fields of ApiVersions, which begin with version 3."""
    if version < 3:
        return {}
    shown = {name: span for name, span in picture.supported.items() if span[0] > 0 or version >= ALL_SHOWN_SINCE}
    return {
        "supportedFeatures": [
            {"name": name, "minVersion": low, "maxVersion": high} for name, (low, high) in sorted(shown.items())
        ],
        "finalizedFeaturesEpoch": picture.epoch,
        "finalizedFeatures": [
            {"name": name, "maxVersionLevel": high, "minVersionLevel": low}
            for name, (low, high) in sorted(picture.finalized.items())
        ],
    }
