"""What is drawn for controllers of feature versions, one module for each machine."""

from kipcheck.conformance.protocols.features.strategies.client import FEATURE_APPS, feature_clients
from kipcheck.conformance.protocols.features.strategies.cluster import FEATURE_CLUSTERS
from kipcheck.conformance.protocols.features.strategies.commands import feature_commands
from kipcheck.conformance.protocols.features.strategies.controller import FEATURE_UPDATES
from kipcheck.conformance.protocols.features.strategies.kraft import kraft_brokers, kraft_updates
from kipcheck.conformance.protocols.features.strategies.quorum import kraft_quorums
from kipcheck.conformance.protocols.features.strategies.tool import feature_tools
from kipcheck.conformance.protocols.features.strategies.zookeeper import zookeeper_updates

CONVERSATIONS = {
    "features": lambda edition: FEATURE_UPDATES,
    "feature-cluster": lambda edition: FEATURE_CLUSTERS,
    "kraft-features": kraft_updates,
    "zookeeper-features": zookeeper_updates,
    "kraft-brokers": kraft_brokers,
    "feature-client": feature_clients,
    "feature-app": lambda edition: FEATURE_APPS,
    "feature-tool": feature_tools,
    "feature-commands": feature_commands,
    "kraft-quorum": kraft_quorums,
}
