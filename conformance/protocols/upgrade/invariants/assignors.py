"""Invariant of the assignor that a group of released consumers uses."""

from collections.abc import Iterator

from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.protocols.cluster.kinds import KINDS
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.upgrade.invariants import upgrade_invariant
from kipcheck.conformance.protocols.upgrade.invariants.bounces import in_draft, scripted, summary
from kipcheck.conformance.protocols.upgrade.ops import Formed

PLACE = 30


@impact(
    "A group uses an assignor that a member is not configured with",
    "stuck group",
    "guards",
    "stuck-upgrade",
    links=("KIP-429",),
)
@upgrade_invariant("bounce/common-assignor", "429-14", "429-19", checks=("bounce/upgrade", "bounce/orders"))
def common_assignor(history: History) -> Iterator[Violation]:
    """A group uses an assignor that each of its members is configured with. Members that restart are exempt."""
    if in_draft(history):
        return
    for observation, _, script in scripted(history, undefined=True):
        if not isinstance(observation.seen, Formed):
            continue
        for each in observation.seen.members:
            kind = script.kinds.get(each.member)
            if kind is None or each.member in script.leaving or observation.seen.protocol in KINDS[kind].assignors:
                continue
            chosen, own = observation.seen.protocol, " and ".join(KINDS[kind].assignors)
            why = f"{summary(observation.seen)} uses {chosen}, and {each.member}, a {kind} member, has {own}"
            yield Violation(why, (observation.step,), f"one of {own}", chosen, shape=("assignor", kind))
