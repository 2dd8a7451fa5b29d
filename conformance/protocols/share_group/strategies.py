"""KIP-932: members of one share group join, send heartbeats, subscribe to other topics, fall silent and leave."""

from kipcheck.conformance.protocols.share_group.model import ShareGroup, State
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS, Beat, Event, Pass
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

SHARE_GROUPS: Conversations[State, Event] = Conversations(
    ShareGroup(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(Beat, Pass),
    progress=frozenset({"share-group-heartbeat"}),
    max_steps=20,
)
CONVERSATIONS = {"share-group": lambda edition: SHARE_GROUPS}
