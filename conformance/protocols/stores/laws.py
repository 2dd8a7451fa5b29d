"""Laws of the store, checked in every state of its model: they restate its invariants."""

from itertools import combinations
from typing import Any

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.stores.model import State, Stored
from kipcheck.conformance.protocols.stores.ops import FORMATS, Crash, Event, Get, Range


def _one_format(views: tuple[State]) -> str | None:
    """No key has values in several formats, neither in the open store nor on disk."""
    (state,) = views
    for where, each in (("the open store", state.seen), ("the directory", state.disk)):
        for one, other in combinations(FORMATS, 2):
            if both := each.of(one).keys() & each.of(other).keys():
                return f"in {where} key {min(both)} has a value in both formats, {one} and {other}"
    return None


ONE_FORMAT: Law[State] = Law("stores/ranges", lambda index, state: state, _one_format)


def _readings_change_nothing(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    """A reading moves values, and changes none."""
    if isinstance(event, Get | Range) and _values(before) != _values(did.part):
        return "a reading changes a value"
    return None


def _values(state: State) -> dict[str, Stored]:
    return {key: stored for each in FORMATS for key, stored in state.seen.of(each).items()}


READINGS_CHANGE_NOTHING: StepLaw[State, Event, Event] = StepLaw("stores/reads-back", _readings_change_nothing)


def _crashes_keep_the_disk(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    """A crash leaves what was flushed."""
    if isinstance(event, Crash) and did.part.seen != before.disk:
        return "a crash leaves something other than what was flushed"
    return None


CRASHES_KEEP_THE_DISK: StepLaw[State, Event, Event] = StepLaw("stores/survives", _crashes_keep_the_disk)
LAWS = (ONE_FORMAT, READINGS_CHANGE_NOTHING, CRASHES_KEEP_THE_DISK)
