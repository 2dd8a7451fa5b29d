"""The invariant that every step of the operator has its effect: without it, a target that does nothing is judged in no
case."""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.values.history import History, Refused as RefusedStep, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.streams.invariants import LIVING
from kipcheck.conformance.protocols.streams.invariants.trace import script, streams_invariant
from kipcheck.conformance.protocols.streams.ops import OPERATIONS, Began, ObservedEvent, Refused, Rests, Start
from kipcheck.conformance.protocols.upgrade.ops import Crash, Restless, Settle

PLACE = 70

of_living = partial(streams_invariant, checks=(LIVING,))


@impact("A step of an upgrade has no effect", "stuck group", "gating", "stuck-upgrade", "stuck-group")
@of_living("streams/acts", "268-26", "268-13", "268-22", "268-23")
def acts(history: History) -> Iterator[Violation]:
    """A member that is started runs or is refused its configuration, and each wait ends, or is given up."""
    observed: dict[int, list[ObservedEvent]] = {}
    for step, seen in script(history).observed:
        observed.setdefault(step, []).append(seen)
    starting: dict[str, int] = {}
    for op in history.ops:
        if isinstance(op.observation, RefusedStep):
            why = f"step {op.index + 1} is refused: {op.observation.error}"
            yield Violation(why, (op.index,), "an effect", "refused", shape=("acts", "refused"))
        if not isinstance(op.observation, Replied):
            return
        event = OPERATIONS.event_of(op.step)
        if isinstance(event, Start):
            starting[event.member] = op.index
        if isinstance(event, Crash):
            starting.pop(event.member, None)
        for seen in observed.get(op.index, ()):
            if isinstance(seen, Began | Refused):
                starting.pop(seen.member, None)
        if isinstance(event, Settle):
            yield from _not_waited(op.index, starting, observed.get(op.index, []))
            starting.clear()


def _not_waited(at: int, starting: dict[str, int], seen: list[ObservedEvent]) -> Iterator[Violation]:
    for member, began in starting.items():
        why = f"{member} is started in step {began + 1}, and neither runs nor is refused by step {at + 1}"
        yield Violation(why, (began, at), f"{member} runs", "nothing", shape=("acts", "not started"))
    if not any(isinstance(each, Rests | Restless) for each in seen):
        why = f"the wait of step {at + 1} ends without a report of the group"
        yield Violation(why, (at,), "at rest, or given up", "nothing", shape=("acts", "no end"))
