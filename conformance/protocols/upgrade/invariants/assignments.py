"""Invariants of what the leader of a group hands out: by which assignor, and what others still own."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_names
from kipcheck.conformance.protocols.cluster.kinds import KINDS
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.upgrade.invariants import upgrade_invariant
from kipcheck.conformance.protocols.upgrade.invariants.bounces import in_draft, scripted, summary
from kipcheck.conformance.protocols.upgrade.invariants.ownership import Owners, observed_events
from kipcheck.conformance.protocols.upgrade.ops import Assigned, Formed

PLACE = 40


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


@impact(
    "A partition is handed over in the round in which its owner has to revoke it",
    "double processing",
    "claims",
    "double-processing",
    links=("KIP-429", "KAFKA-14639"),
)
@upgrade_invariant("bounce/later-generation", "429-15", "429-16", checks=("bounce/ownership",))
def later_generation(history: History) -> Iterator[Violation]:
    """No assignment has a partition that another member of the generation owned when it was formed.

    It does not matter which of the two members is faster.
    """
    had: dict[Partition, str] = {}
    formed: Formed | None = None
    at = 0
    for observation, owners in observed_events(history):
        match observation.seen:
            case Formed():
                formed, at, had = observation.seen, observation.step, _owned(observation.seen, owners)
            case Assigned(member, generation, partitions) if formed is not None and generation == formed.generation:
                taken = [each for each in partitions if had.get(each, member) != member]
                if taken:
                    what, other = partition_names(taken), had[taken[0]]
                    why = f"{summary(formed)} gives {member} {what}, which {other} owned when it was formed"
                    yield Violation(why, (at, observation.step), "not before a later generation", f"{what} at once",
                                    shape=("handed over", "one round"))  # fmt: skip


def _owned(formed: Formed, owners: Owners) -> dict[Partition, str]:
    """The only owners of partitions among the members."""
    found = [(each, joined.member) for joined in formed.members for each in owners.of(joined.member)]
    number = [partition for partition, _ in found]
    return {partition: member for partition, member in found if number.count(partition) == 1}
