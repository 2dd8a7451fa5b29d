"""Laws of a feature controller, checked in every state and step of its model: they restate its invariants."""

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.features.model.controller import State
from kipcheck.conformance.protocols.features.ops.controller import Event, Update


def _suits(views: tuple[State]) -> str | None:
    """Every live broker supports the finalized level."""
    (state,) = views
    unsuited = [each.number for each in state.brokers if state.level and not each.supports(state.level)]
    return f"level {state.level} is finalized, but broker {unsuited[0]} does not support it" if unsuited else None


SUITS: Law[State] = Law(
    "features/level-suits-brokers",
    lambda index, state: state,
    _suits,
)


def _counts(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    """The epoch rises by one with every change of the level, and at no other time."""
    after = did.part
    grown = after.epoch - before.epoch
    if grown == (isinstance(event, Update) and after.level != before.level):
        return None
    return f"the epoch goes from {before.epoch} to {after.epoch}, the level from {before.level} to {after.level}"


COUNTS: StepLaw[State, Event, Event] = StepLaw("features/epoch-grows", _counts)
