"""What is drawn for controllers of feature versions."""

from kipcheck.conformance.protocols.features.client_strategies import FEATURE_APPS, feature_clients
from kipcheck.conformance.protocols.features.cluster_strategies import FEATURE_CLUSTERS
from kipcheck.conformance.protocols.features.commands_strategies import feature_commands
from kipcheck.conformance.protocols.features.kraft_strategies import kraft_brokers, kraft_updates
from kipcheck.conformance.protocols.features.model.controller import FeatureController, State
from kipcheck.conformance.protocols.features.ops.controller import (
    OPERATIONS,
    BrokerDown,
    BrokerUp,
    Describe,
    Event,
    Restart,
    Update,
)
from kipcheck.conformance.protocols.features.quorum_strategies import kraft_quorums
from kipcheck.conformance.protocols.features.tool_strategies import feature_tools
from kipcheck.conformance.protocols.features.zookeeper_strategies import zookeeper_updates
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

FEATURE_UPDATES: Conversations[State, Event] = Conversations(
    FeatureController(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(Describe, Update, BrokerUp, BrokerDown, Restart),
    progress=frozenset({"update", "broker-up", "describe"}),
)
"""KIP-584: brokers start with the range they support, are upgraded and stop; the operator finalizes levels."""
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
