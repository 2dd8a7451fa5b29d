"""What is drawn for controllers of one feature."""

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
