"""Invariants of single steps of an upgrade script: each has its effect, and a member that stops leaves its group."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.history import History, Refused, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.assignment.model.assignment import partition_names
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.upgrade import ops
from kipcheck.conformance.protocols.upgrade.invariants import OWNERS, upgrade_invariant
from kipcheck.conformance.protocols.upgrade.invariants.bounces import scripted
from kipcheck.conformance.protocols.upgrade.invariants.ownership import trace

PLACE = 30


@impact("A step of an upgrade has no effect", "stuck group", "gating", "stuck-upgrade", "stuck-group")
@upgrade_invariant("bounce/acts", "429-04", checks=(OWNERS, "bounce/streams"), applies_to=lambda case, step: True)
def acts(history: History) -> Iterator[Violation]:
    """Each step is taken: a wait ends with a group at rest or is given up, and a Streams instance joins its group."""
    observed = {(at, type(seen)) for at, seen in trace(history).observed}
    for op in history.ops:
        if isinstance(op.observation, Refused):
            why = f"step {op.index + 1} is refused: {op.observation.error}"
            yield Violation(why, (op.index,), "an effect", "refused", shape=("acts", "refused"))
        if not isinstance(op.observation, Replied):
            return
        match ops.OPERATIONS.event_of(op.step):
            case ops.Settle() if not observed & {(op.index, ops.Rests), (op.index, ops.Restless)}:
                why = f"the wait of step {op.index + 1} ends without a report of the group"
                yield Violation(why, (op.index,), "at rest, or given up", "nothing", shape=("acts", "no end"))
            case ops.RollStreams(member) if (op.index, ops.StreamsLed) not in observed:
                why = f"{member} starts in step {op.index + 1}, and its group has no rebalance"
                yield Violation(why, (op.index,), "a rebalance", "nothing", shape=("acts", "no rebalance"))


@impact("A stopped member still reads when it is gone", "double processing", "callbacks", "double-processing",
        links=("KIP-429",))  # fmt: skip
@upgrade_invariant("bounce/leaves", "429-10", "429-27", checks=(OWNERS,))
def leaves(history: History) -> Iterator[Violation]:
    """A member that stops, or restarts as another kind, gives up all its partitions before its process ends.

    A binary from before the draft has no callback for it.
    """
    knows: dict[str, int] = {}
    for observation, owners, script in scripted(history, undefined=True):
        match observation.seen:
            case ops.Formed(members=members):
                knows.update((each.member, each.knows) for each in members)
            case ops.Ended(member) if member in script.leaving and (kept := sorted(owners.of(member))):
                if history.case.steps[observation.step].verb == "crash" or not knows.get(member):
                    continue
                since = owners.owned[member][kept[0]].since
                why = f"the process of {member} ends in step {observation.step + 1}, and has not given up"
                yield Violation(f"{why} {partition_names(kept)}", (since, observation.step), "no partition",
                                partition_names(kept), shape=("leaves", "keeps"))  # fmt: skip
