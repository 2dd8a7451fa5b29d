"""KIP-1071: members of one group join with topologies, send heartbeats, revoke tasks, fall silent and leave."""

from kipcheck.conformance.protocols.streams_group.model import StreamsGroup
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS, Beat, Consume, Describe, Event, Pass
from kipcheck.conformance.protocols.streams_group.state import State
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

STREAMS_GROUPS: Conversations[State, Event] = Conversations(
    StreamsGroup(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(Beat, Describe, Consume, Pass),
    progress=frozenset({"streams-group-heartbeat", "streams-group-describe"}),
    max_steps=25,
)
CONVERSATIONS = {"streams-group": lambda edition: STREAMS_GROUPS}
