"""What is drawn: leases of three clients, and time that passes."""

from kipcheck.conformance.tests.protocols.leases.model import LeaseBroker, State
from kipcheck.conformance.tests.protocols.leases.ops import OPERATIONS, Elapse, Event, Lease, Release
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

LEASES: Conversations[State, Event] = Conversations(
    LeaseBroker(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(Lease, Elapse, Release),
    progress=frozenset({"lease", "lease-elapse"}),
)
CONVERSATIONS = {"leases": lambda edition: LEASES}
