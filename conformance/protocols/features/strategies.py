"""KIP-584: brokers start with the range they support, are upgraded and stop; the operator finalizes levels."""

from kipcheck.conformance.protocols.features.model.controller import FeatureController, State
from kipcheck.conformance.protocols.features.ops import (
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
CONVERSATIONS = {"features": lambda edition: FEATURE_UPDATES}
