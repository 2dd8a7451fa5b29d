"""What is drawn for controllers of one feature."""

from kipcheck.conformance.protocols.features.model.controller import FeatureController, State
from kipcheck.conformance.protocols.features.ops import controller as ops
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

FEATURE_UPDATES: Conversations[State, ops.Event] = Conversations(
    FeatureController(),
    ops.OPERATIONS.step_of,
    ops.OPERATIONS.event_of,
    events=nodes(ops.Describe, ops.Update, ops.BrokerUp, ops.BrokerDown, ops.Restart),
    progress=frozenset({"update", "broker-up", "describe"}),
)
"""KIP-584: brokers start with the range they support, are upgraded and stop; the operator finalizes levels."""
