"""Invariants of a broker that leases a partition."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.history import History, Refused, Replied
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant, steps_of

HOLDERS: Final = "leases/holders"
holders = partial(invariant, role=Role.BROKER, checks=(HOLDERS,))


@impact("Two clients have the lease of a partition", "double processing", "ownership", "double-processing")
@holders("leases/one-holder", "999-01", applies_to=steps_of("lease"))
def one_holder(history: History) -> Iterator[Violation]:
    """While a client has the lease, no other client is granted it."""
    holder, left, since = 0, 0, 0
    for op in history.ops:
        if not isinstance(op.observation, Replied | Refused):
            return
        match op.step.verb:
            case "lease" if isinstance(op.observation, Replied):
                client = op.step["client"]
                if left and client != holder:
                    yield Violation(
                        f"client {client} is granted the lease that client {holder} has for {left} ms more",
                        (since, op.index), "an error", "accepted", shape=("granted",),
                    )  # fmt: skip
                holder, left, since = client, op.step["ms"], op.index
            case "release" if op.step["client"] == holder:
                left = 0
            case "lease-elapse":
                left = max(0, left - op.step["ms"])
