"""What is drawn: leases of three clients, and time that passes."""

from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

from .model import LeaseBroker, State
from .ops import OPERATIONS, Elapse, Event, Lease, Release

LEASES: Conversations[State, Event] = Conversations(
    LeaseBroker(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(Lease, Elapse, Release),
    progress=frozenset({"lease", "lease-elapse"}),
)
CONVERSATIONS = {"leases": lambda edition: LEASES}
