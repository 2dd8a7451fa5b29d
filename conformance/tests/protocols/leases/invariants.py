"""Invariants of a broker that leases a partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.case import Role, Step
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant, steps_of
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps

HOLDERS: Final = "leases/holders"
holders = partial(invariant, role=Role.BROKER, checks=(HOLDERS,))


@dataclass(frozen=True, slots=True)
class Lease:
    """What is known of the lease from the answers so far."""

    holder: int = 0
    left_ms: int = 0
    since: int = 0
    """The step that granted it."""


@dataclass(frozen=True, slots=True)
class LeaseStep(AnsweredStep[Step, Mapping[str, Any], Lease]):
    def known_after(self) -> Lease:
        lease = self.before
        match self.verb:
            case "lease" if self.accepted:
                return Lease(self.request["client"], self.request["ms"], self.op.index)
            case "release" if self.request["client"] == lease.holder:
                return replace(lease, left_ms=0)
            case "lease-elapse":
                return replace(lease, left_ms=max(0, lease.left_ms - self.request["ms"]))
        return lease


@impact("Two clients have the lease of a partition", "double processing", "ownership", "double-processing")
@holders("leases/one-holder", "999-01", applies_to=steps_of("lease"))
def one_holder(history: History) -> Iterator[Violation]:
    """A client is granted the lease unless another client has it."""
    for each in plain_steps(history, Lease(), LeaseStep):
        lease = each.before
        if each.verb == "lease" and each.accepted and lease.left_ms and each.request["client"] != lease.holder:
            yield Violation(
                f"client {each.request['client']} is granted the lease that client {lease.holder} has for "
                f"{lease.left_ms} ms more", (lease.since, each.op.index), "an error", "accepted", shape=("granted",),
            )  # fmt: skip
        elif each.verb == "lease" and each.error and not (lease.left_ms and each.request["client"] != lease.holder):
            why = f"client {each.request['client']} is refused the lease, which no other client has"
            yield Violation(why, (each.op.index,), "accepted", f"refused: {each.error}", shape=("refused",))
