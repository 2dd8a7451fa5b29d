"""The reference machines of feature controllers as adapters."""

from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import named, since, span
from kipcheck.conformance.core.values.edition import KIP_584, Edition
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.declare.package import either, released_in, released_since
from kipcheck.conformance.protocols.features.model.app import FeatureApp
from kipcheck.conformance.protocols.features.model.client import FeatureClient
from kipcheck.conformance.protocols.features.model.cluster import FeatureCluster
from kipcheck.conformance.protocols.features.model.commands import FeatureCommands
from kipcheck.conformance.protocols.features.model.controller import FeatureController
from kipcheck.conformance.protocols.features.model.kraft import KraftController
from kipcheck.conformance.protocols.features.model.kraft_brokers import KraftBrokers
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.model.quorum import KraftQuorum
from kipcheck.conformance.protocols.features.model.released_tool import ReleasedTool
from kipcheck.conformance.protocols.features.model.tool import FeatureTool
from kipcheck.conformance.protocols.features.model.zookeeper import ZooKeeperController
from kipcheck.conformance.protocols.features.ops import (
    app,
    client,
    cluster,
    commands,
    kraft,
    kraft_brokers,
    quorum,
    tool,
    zookeeper,
)
from kipcheck.conformance.protocols.features.ops.controller import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter

IN_ZOOKEEPER: Final = released_in(span("feature-znode"), span("zookeeper"))
CLIENT: Final = either(KIP_584, released_since(since("feature-znode")))
LAST_WITH_ZOOKEEPER: Final = named("last-before-4")
IN_KRAFT: Final = released_since(since("java-controller-runs"))
HAS_COMMANDS: Final = released_since(since("feature-znode"))


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    return adapter_of(OPERATIONS, FeatureController())


def cluster_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    return adapter_of(cluster.OPERATIONS, FeatureCluster())


def kraft_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if not IN_KRAFT(edition):
        return None
    return adapter_of(kraft.OPERATIONS, KraftController(Rules.of_edition(edition)))


def kraft_brokers_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if not IN_KRAFT(edition):
        return None
    return adapter_of(kraft_brokers.OPERATIONS, KraftBrokers(Rules.of_edition(edition)))


def zookeeper_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    """Of another edition: the last controller with ZooKeeper, as a target announces its machines without an edition."""
    release = edition.release if IN_ZOOKEEPER(edition) else LAST_WITH_ZOOKEEPER
    return adapter_of(zookeeper.OPERATIONS, ZooKeeperController(release))


def client_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if not CLIENT(edition):
        return None
    return adapter_of(client.OPERATIONS, FeatureClient(ordered=edition == KIP_584))


def app_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    return adapter_of(app.OPERATIONS, FeatureApp())


def tool_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    machine = ReleasedTool(Rules.of(edition.release)) if IN_KRAFT(edition) else FeatureTool()
    return adapter_of(tool.OPERATIONS, machine)


def commands_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if not HAS_COMMANDS(edition):
        return None
    return adapter_of(commands.OPERATIONS, FeatureCommands(Rules.of_edition(edition) if IN_KRAFT(edition) else None))


def quorum_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if not IN_KRAFT(edition):
        return None
    return adapter_of(quorum.OPERATIONS, KraftQuorum(Rules.of_edition(edition)))


ADAPTERS = {
    OPERATIONS.machine: adapter,
    cluster.OPERATIONS.machine: cluster_adapter,
    kraft.OPERATIONS.machine: kraft_adapter,
    zookeeper.OPERATIONS.machine: zookeeper_adapter,
    kraft_brokers.OPERATIONS.machine: kraft_brokers_adapter,
    client.OPERATIONS.machine: client_adapter,
    app.OPERATIONS.machine: app_adapter,
    tool.OPERATIONS.machine: tool_adapter,
    commands.OPERATIONS.machine: commands_adapter,
    quorum.OPERATIONS.machine: quorum_adapter,
}
