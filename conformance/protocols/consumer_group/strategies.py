"""KIP-848: members of one group join, send heartbeats, revoke partitions or fail to, fall silent and leave."""

from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup, State
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS, Beat, Event, Pass
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

CONSUMER_GROUPS: Conversations[State, Event] = Conversations(
    ConsumerGroup(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(Beat, Pass),
    progress=frozenset({"consumer-heartbeat"}),
    max_steps=30,
)
CONVERSATIONS = {"consumer-group": lambda edition: CONSUMER_GROUPS}
