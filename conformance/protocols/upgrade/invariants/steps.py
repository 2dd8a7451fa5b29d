"""Invariants of single steps of an upgrade script: each has its effect, and a member that stops leaves its group."""

from collections.abc import Iterator

from kipcheck.conformance.core.history import History, Refused, Replied
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.upgrade.invariants import OWNERS, upgrade_invariant
from kipcheck.conformance.protocols.upgrade.invariants.ownership import trace
from kipcheck.conformance.protocols.upgrade.ops import (
    OPERATIONS,
    Assigned,
    Crash,
    Ended,
    Expire,
    Formed,
    Lose,
    PutOut,
    Restart,
    Restless,
    Rests,
    Roll,
    RollStreams,
    Settle,
    Stop,
    StreamsLed,
)

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
        match OPERATIONS.event_of(op.step):
            case Settle() if not observed & {(op.index, Rests), (op.index, Restless)}:
                why = f"the wait of step {op.index + 1} ends without a report of the group"
                yield Violation(why, (op.index,), "at rest, or given up", "nothing", shape=("acts", "no end"))
            case RollStreams(member) if (op.index, StreamsLed) not in observed:
                why = f"{member} starts in step {op.index + 1}, and its group has no rebalance"
                yield Violation(why, (op.index,), "a rebalance", "nothing", shape=("acts", "no rebalance"))


@impact(
    "A stopped member stays in its group until its session expires",
    "stuck group",
    "waiting",
    "unread-partition",
    links=("KIP-429",),
)
@upgrade_invariant("bounce/leaves", "429-10", "429-27", checks=(OWNERS,))
def leaves(history: History) -> Iterator[Violation]:
    """A member that stops, or restarts as another kind, leaves the group: no later generation has its old process.

    Not if it had no assignment yet, or if its connection broke: then the group may not know that it left.
    """
    found = trace(history)
    assigned: set[str] = set()
    left: dict[str, int] = {}
    at = 0
    for observation in found.observed:
        for event in found.events[at : observation.step + 1]:
            match event:
                case Lose(member) | Expire(member) | Crash(member) | Restart(member):
                    assigned.discard(member)
                    left.pop(member, None)
                case Roll(member) | Stop(member) if member in assigned:
                    left[member] = at
            at += 1
        match observation.seen:
            case Assigned(member):
                assigned.add(member)
            case Ended(member):
                assigned.discard(member)
            case PutOut(member):
                assigned.discard(member)
                left.pop(member, None)
            case Formed(generation, members=members):
                for each in members:
                    member = each.member.removeprefix("former ")
                    if member != each.member and left.get(member, observation.step) < observation.step:
                        why = f"{member} stops in step {left[member] + 1}, and its old process is in generation"
                        yield Violation(f"{why} {generation}", (left[member], observation.step), f"not {member}",
                                        each.member, shape=("leaves", "stays"))  # fmt: skip
