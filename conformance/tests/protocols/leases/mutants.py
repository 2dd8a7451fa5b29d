"""Brokers with one planted defect each. Least cases are in shorthand."""

from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.tests.protocols.leases.invariants import HOLDERS
from kipcheck.conformance.tests.protocols.leases.model import LeaseBroker, State
from kipcheck.conformance.tests.protocols.leases.ops import OPERATIONS, Action, Event, Granted, Lease


class MutantBroker(MachineMutant, LeaseBroker):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS


@mutant(HOLDERS, "leases/one-holder", OPERATIONS.machine, None, "lease 1 10; wait 5; lease 2 5")
class EndsLeasesEarly(MutantBroker):
    """A lease ends as soon as any time has passed."""

    def elapsed(self, state: State, ms: int) -> State:
        return super().elapsed(state, max(ms, state.left))


@mutant(HOLDERS, "leases/next-epoch", OPERATIONS.machine, None, "lease 1 5; lease 1 5")
class CountsHolders(MutantBroker):
    """A client that extends its lease gets the same epoch again."""

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        done = super().step(state, event)
        if not isinstance(event, Lease) or state.holder != event.client:
            return done
        return Transition(replace(done.state, epoch=state.epoch), (Granted(state.epoch),))


@mutant(HOLDERS, "leases/next-epoch", OPERATIONS.machine, None, "lease 1 5")
class GrantsNothing(MutantBroker):
    """Every request is refused."""

    def leased_to_another(self, state: State, client: int) -> bool:
        return True
