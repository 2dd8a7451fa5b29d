"""KIP-584: brokers start with the range they support, are upgraded and stop; the operator finalizes levels."""

from kipcheck.conformance.apis.features import event_of, step_of
from kipcheck.conformance.models.features import Event, FeatureController, State
from kipcheck.strategies.events import Conversations, event
from kipcheck.strategies.nodes import Flag, Integer, OneOf, Pick, record

BROKER = Integer(0, 2)
NO_RANGE = record(broker=BROKER, low=Pick((None,)), high=Pick((None,)))
"""A broker that does not know the feature."""

FEATURE_UPDATES: Conversations[State, Event] = Conversations(
    FeatureController(),
    step_of,
    event_of,
    events={
        "describe": event("operator", "describe"),
        "update": event("operator", "update", level=Integer(-1, 4), allow_downgrade=Flag()),
        "broker-up": event(
            "broker", "broker-up", OneOf((record(broker=BROKER, low=Integer(1, 2), high=Integer(2, 3)), NO_RANGE))
        ),
        "broker-down": event("broker", "broker-down", broker=BROKER),
        "restart": event("controller", "restart"),
    },
    progress=frozenset({"update", "broker-up", "describe"}),
)
