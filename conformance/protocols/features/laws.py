"""What the exploration of feature controllers keeps to: laws of states and of steps."""

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.features.model import State
from kipcheck.conformance.protocols.features.ops import Event, Update


def _suits(views: tuple[State]) -> str | None:
    (state,) = views
    unsuited = [each.number for each in state.brokers if state.level and not each.supports(state.level)]
    return f"level {state.level} is finalized, but broker {unsuited[0]} does not support it" if unsuited else None


SUITS: Law[State] = Law(
    "features/level-suits-brokers",
    ("584-06", "584-10"),
    "Every live broker supports the finalized level.",
    lambda index, state: state,
    _suits,
)


def _counts(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    after = did.part
    grown = after.epoch - before.epoch
    if grown == (isinstance(event, Update) and after.level != before.level):
        return None
    return f"the epoch goes from {before.epoch} to {after.epoch}, the level from {before.level} to {after.level}"


COUNTS: StepLaw[State, Event, Event] = StepLaw(
    "features/epoch-grows",
    ("584-16",),
    "The epoch rises by one with every change of the level, and at no other time.",
    _counts,
)
