"""Brokers with one planted defect each. Least cases are in shorthand."""

from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant

from .invariants import HOLDERS
from .model import LeaseBroker, State
from .ops import OPERATIONS


class Playing(MachineMutant, LeaseBroker):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS


@mutant(HOLDERS, "leases/one-holder", OPERATIONS.machine, None, "lease 1 10; wait 5; lease 2 5")
class EndsLeasesEarly(Playing):
    """A lease ends as soon as any time has passed."""

    def elapsed(self, state: State, ms: int) -> State:
        return super().elapsed(state, max(ms, state.left))
