"""Members of both protocols in one group join, send heartbeats and leave; the group changes its form."""

from kipcheck.conformance.protocols.consumer_group.ops import PASSES as CONSUMER_PASSES, Beat, Pass
from kipcheck.conformance.protocols.migration import ops
from kipcheck.conformance.protocols.migration.model import PASSES, MixedGroup
from kipcheck.conformance.protocols.migration.state import State
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.nodes import Pick
from kipcheck.strategies.operations import nodes

MIXED_GROUPS: Conversations[State, ops.Event] = Conversations(
    MixedGroup(),
    ops.OPERATIONS.step_of,
    ops.OPERATIONS.event_of,
    events=nodes(
        *ops.OPERATIONS.of(
            ops.ClassicJoin,
            ops.ClassicSync,
            ops.ClassicBeat,
            ops.ClassicLeave,
            ops.ClassicRemove,
            ops.Receive,
            Beat,
            Pass,
        ),
        drawn={"ms": Pick(tuple(dict.fromkeys((*PASSES, *CONSUMER_PASSES))))},
    ),
    progress=frozenset({"classic-join", "mixed-heartbeat", "classic-receive"}),
    max_steps=25,
)
CONVERSATIONS = {"migration": lambda edition: MIXED_GROUPS}
