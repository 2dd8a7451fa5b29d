"""Stores with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.protocols.stores.invariants import CONTENTS, UPGRADES
from kipcheck.conformance.protocols.stores.model import Contents, Stamped, State, TimestampedStore
from kipcheck.conformance.protocols.stores.ops import OPERATIONS, Action, Format, Opened, Row


class Storing(MachineMutant, TimestampedStore):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS


Made = TypeVar("Made", bound=type[Storing])


def contents(invariant: str, least: str) -> Callable[[Made], Made]:
    return mutant(CONTENTS, f"stores/{invariant}", OPERATIONS.machine, None, least)


def upgrades(invariant: str, least: str) -> Callable[[Made], Made]:
    return mutant(UPGRADES, f"stores/{invariant}", OPERATIONS.machine, None, least)


OLD = "open plain; put 61=31 at 5; close; open timestamped"


@contents("reads-back", "open timestamped; put 61=31 at 5; get 61")
class ForgetsTimestamps(Storing):
    """Every value is stored as if it had no timestamp."""

    def stamped(self, value: str, timestamp: int | None) -> Stamped:
        return super().stamped(value, None)


@contents("reads-back", "open plain; put 61=0000000000000005 at 5; close; open timestamped; get 61")
class GuessesTheFormat(Storing):
    """An old value of 8 bytes or more is read as if it had a timestamp."""

    def converted(self, state: State, value: str) -> Stamped:
        if state.open == "plain" or len(value) < 16:
            return super().converted(state, value)
        return value[16:], int.from_bytes(bytes.fromhex(value[:16]), "big", signed=True)


@contents("old-timestamps", f"{OLD}; get 61")
class DatesOldValues(Storing):
    """An old value gets timestamp 0."""

    def converted(self, state: State, value: str) -> Stamped:
        return super().converted(state, value) if state.open == "plain" else (value, 0)


@contents("ranges", f"{OLD}; get 61; all")
class CopiesInsteadOfMoving(Storing):
    """A value that is read is copied to the new format, and a scan finds it in both."""

    def moved(self, state: State, key: str, value: Stamped) -> State:
        return replace(state, seen=state.seen.with_new(key, value))

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[Row]:
        old = [Row(key, value, -1) for key, value in state.seen.old if key in dict(state.seen.new)]
        return sorted((*super().rows(state, first, last), *old), key=lambda row: bytes.fromhex(row.key))


@contents("ranges", "open plain; put 62=31 at 5; close; open timestamped; put 61=31 at 5; all")
class ScansOneAfterTheOther(Storing):
    """A scan returns the old format first, and then the new one."""

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[Row]:
        old = {key for key, _ in state.seen.old}
        return sorted(super().rows(state, first, last), key=lambda row: row.key not in old)


@contents("ranges", f"{OLD}; all")
class ScansTheNewOnly(Storing):
    """A scan leaves out what is in the old format."""

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[Row]:
        seen = state.seen if state.open == "plain" else replace(state.seen, old=())
        return super().rows(replace(state, seen=seen), first, last)


@contents("deletes", f"{OLD}; put 61 null; get 61")
class DeletesTheNewOnly(Storing):
    """A null value deletes from the new format, and the old value comes back."""

    def without_old(self, state: State, key: str, value: str | None) -> Contents:
        return state.seen if value is None else super().without_old(state, key, value)


@contents("absent-only", f"{OLD}; put-if-absent 61=31 at 5; get 61")
class LooksInTheNewOnly(Storing):
    """A put for an absent key does not look in the old format."""

    def absent(self, state: State, key: str, had: Stamped | None) -> bool:
        return key not in dict(state.seen.new if state.open == "timestamped" else state.seen.old)


@contents("restores", "open timestamped; restore 61=31 at 5; get 61")
class RestoresWithoutTimestamps(Storing):
    """A record of the changelog is restored as a value without a timestamp."""

    def restored(self, state: State, key: str, value: str | None, timestamp: int) -> State:
        return super().restored(state, key, value, -1)


@contents("deletes", "open timestamped; put 61=31 at 5; restore 61 null at 5; get 61")
class IgnoresTombstones(Storing):
    """A tombstone of the changelog is skipped."""

    def restored(self, state: State, key: str, value: str | None, timestamp: int) -> State:
        return state if value is None else super().restored(state, key, value, timestamp)


@contents("count", f"{OLD}; count")
class CountsTheNewOnly(Storing):
    """The count leaves out the old format."""

    def count(self, state: State) -> int:
        return super().count(state) if state.open == "plain" else len(state.seen.new)


@upgrades("survives", f"{OLD}; get 61; crash; open timestamped; get 61")
class MovesInTwoSteps(Storing):
    """A value that is read is deleted from the old format at once, and written in the new one later."""

    def moved(self, state: State, key: str, value: Stamped) -> State:
        return replace(super().moved(state, key, value), disk=state.disk.with_old(key, None))


@upgrades("survives", f"{OLD}; get 61; crash within a flush; open timestamped; get 61")
class FlushesTheOldFirst(Storing):
    """The old format is flushed before the new one."""

    def left(self, state: State, flushing: bool) -> Contents:
        whole = super().left(state, flushing)
        return replace(whole, old=state.seen.old) if flushing else whole


@upgrades("survives", "open plain; put 61=31 at 5; flush; crash; open timestamped; get 61")
class FlushesNothing(Storing):
    """A crash loses all that was not closed."""

    def left(self, state: State, flushing: bool) -> Contents:
        return Contents()


@upgrades("opens-old", OLD)
class NeedsAConversion(Storing):
    """A directory with old values is refused until it was converted offline."""

    def takes(self, state: State) -> bool:
        return not state.seen.old


@upgrades("both-formats", "open timestamped; close; open timestamped")
class AlwaysLooksForBoth(Storing):
    """The store looks for old values each time."""

    def opened(self, state: State, format: Format) -> Transition[State, Action]:
        after, actions = super().opened(state, format)
        if format == "plain" or not after.open:
            return Transition(after, actions)
        return Transition(replace(after, both=True), tuple(Opened(True, self.flushes(after)) for _ in actions))
