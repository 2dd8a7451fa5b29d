"""KIP-932: clients fetch records of one share partition, acknowledge them, are late, and lose their connections."""

from kipcheck.conformance.protocols.share_partition.model import ShareLeader, State
from kipcheck.conformance.protocols.share_partition.ops import (
    OPERATIONS,
    Acknowledge,
    Disconnect,
    Event,
    Fetch,
    Pass,
    Produce,
    Reload,
    Reset,
)
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

SHARE_PARTITIONS: Conversations[State, Event] = Conversations(
    ShareLeader(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(Produce, Reset, Fetch, Acknowledge, Disconnect, Reload, Pass),
    progress=frozenset({"share-fetch", "share-acknowledge", "share-produce"}),
    max_steps=20,
)
CONVERSATIONS = {"share-partition": lambda edition: SHARE_PARTITIONS}
