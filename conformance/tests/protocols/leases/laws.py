"""What the exploration of leases keeps to."""

from kipcheck.conformance.machines.product import Did, StepLaw
from kipcheck.conformance.tests.protocols.leases.model import State
from kipcheck.conformance.tests.protocols.leases.ops import Event, Lease


def _one_holder(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    granted = isinstance(event, Lease) and did.part.epoch != before.epoch
    if granted and before.left and before.holder != did.part.holder:
        return f"client {did.part.holder} is granted the lease that client {before.holder} has"
    return None


ONE_HOLDER: StepLaw[State, Event, Event] = StepLaw("leases/one-holder", _one_holder)
