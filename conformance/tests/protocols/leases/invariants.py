"""Invariants of a broker that leases a partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
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
    epoch: int = 0
    """Of the last grant, as its answer had it."""

    def is_free_for(self, client: int) -> bool:
        return not self.left_ms or self.holder == client


@dataclass(frozen=True, slots=True)
class LeaseStep(AnsweredStep[Step, Mapping[str, Any], Lease]):
    def known_after(self) -> Lease:
        lease = self.before
        match self.verb:
            case "lease" if self.accepted:
                return Lease(self.request["client"], self.request["ms"], self.op.index, self.answer["epoch"])
            case "release" if self.request["client"] == lease.holder:
                return replace(lease, left_ms=0)
            case "lease-elapse":
                return replace(lease, left_ms=max(0, lease.left_ms - self.request["ms"]))
        return lease


@impact("Two clients have the lease of a partition", "double processing", "ownership", "double-processing")
@holders("leases/one-holder", "999-01", applies_to=steps_of("lease"))
def one_holder(history: History) -> Iterator[Violation]:
    """While a client has the lease, no other client is granted it."""
    for each in plain_steps(history, Lease(), LeaseStep):
        lease = each.before
        if each.verb == "lease" and each.accepted and not lease.is_free_for(each.request["client"]):
            yield Violation(
                f"client {each.request['client']} is granted the lease that client {lease.holder} has for "
                f"{lease.left_ms} ms more", (lease.since, each.op.index), "an error", "accepted", shape=("granted",),
            )  # fmt: skip


@impact("A client does not notice that another one had the lease in between", "double processing", "ownership",
        "double-processing")  # fmt: skip
@holders("leases/next-epoch", "999-02", applies_to=steps_of("lease"))
def next_epoch(history: History) -> Iterator[Violation]:
    """A free lease is granted, and each grant has the epoch after that of the last grant."""
    for each in plain_steps(history, Lease(), LeaseStep):
        if each.verb != "lease" or not each.before.is_free_for(each.request["client"]):
            continue
        due = each.before.epoch + 1
        if not each.accepted:
            yield Violation(
                f"client {each.request['client']} is refused a free lease", (each.op.index,), "accepted", each.error,
                shape=("refused",),
            )  # fmt: skip
        elif each.answer["epoch"] != due:
            yield Violation(
                f"the grant has epoch {each.answer['epoch']}", (each.before.since, each.op.index), f"epoch {due}",
                f"epoch {each.answer['epoch']}", shape=("epoch",),
            )  # fmt: skip
