"""Stores with one planted defect each. Least cases are in shorthand."""

from collections.abc import Iterable
from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.stores import ops
from kipcheck.conformance.protocols.stores.invariants import CONTENTS, UPGRADES
from kipcheck.conformance.protocols.stores.model import Contents, State, Stored, TimestampedStore, Values, known_to


class Storing(MachineMutant, TimestampedStore):
    """The reference machine as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS
    has_headers = True


contents = mutants_of(CONTENTS, ops.OPERATIONS.machine)
upgrades = mutants_of(UPGRADES, ops.OPERATIONS.machine)
OLD = "open plain; put 61=31 at 5; close; open timestamped"


def older(state: State) -> Values:
    """What the open store has in formats before its own."""
    assert state.open is not None
    return tuple(each for one in known_to(state.open)[1:] for each in getattr(state.seen, one))


def newest(state: State) -> Contents:
    """What the open store has in its own format."""
    assert state.open is not None
    return replace(Contents(), **{state.open: getattr(state.seen, state.open)})


@contents("reads-back", "open timestamped; put 61=31 at 5; get 61")
class ForgetsTimestamps(Storing):
    """Every value is stored as if it had no timestamp."""

    def stored(self, state: State, value: str, timestamp: int | None, headers: str) -> Stored:
        return super().stored(state, value, None, headers)


@contents("reads-back", "open plain; put 61=0000000000000005 at 5; close; open timestamped; get 61")
class GuessesTheFormat(Storing):
    """An old value of 8 bytes or more is read as if it had a timestamp."""

    def converted(self, state: State, format: ops.Format, stored: Stored) -> Stored:
        value, _, headers = stored
        if format != "plain" or state.open == "plain" or len(value) < 16:
            return stored
        return value[16:], int.from_bytes(bytes.fromhex(value[:16]), "big", signed=True), headers


@contents("old-timestamps", f"{OLD}; get 61")
class DatesOldValues(Storing):
    """An old value gets timestamp 0."""

    def converted(self, state: State, format: ops.Format, stored: Stored) -> Stored:
        return stored if format != "plain" or state.open == "plain" else (stored[0], 0, stored[2])


@contents("ranges", f"{OLD}; get 61; all")
class CopiesInsteadOfMoving(Storing):
    """A value that is read is copied to the new format, and a scan finds it in both."""

    def moved(self, state: State, key: str, value: Stored) -> State:
        assert state.open is not None
        return replace(state, seen=state.seen.having(state.open, key, value))

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[ops.Row]:
        assert state.open is not None
        new = state.seen.of(state.open)
        old = [self.row(state, key, value) for key, value in older(state) if key in new]
        return sorted((*super().rows(state, first, last), *old), key=lambda row: bytes.fromhex(row.key))


@contents("ranges", "open plain; put 62=31 at 5; close; open timestamped; put 61=31 at 5; all")
class ScansOneAfterTheOther(Storing):
    """A scan returns the old format first, and then the new one."""

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[ops.Row]:
        old = {key for key, _ in older(state)}
        return sorted(super().rows(state, first, last), key=lambda row: row.key not in old)


@contents("ranges", f"{OLD}; all")
class ScansTheNewOnly(Storing):
    """A scan leaves out what is in the old format."""

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[ops.Row]:
        return super().rows(replace(state, seen=newest(state)), first, last)


@contents("deletes", f"{OLD}; put 61 null; get 61")
class DeletesTheNewOnly(Storing):
    """A null value deletes from the new format, and the old value comes back."""

    def without_old(self, state: State, key: str, value: str | None) -> Contents:
        return state.seen if value is None else super().without_old(state, key, value)


@contents("absent-only", f"{OLD}; put-if-absent 61=31 at 5; get 61")
class LooksInTheNewOnly(Storing):
    """A put for an absent key does not look in the old format."""

    def absent(self, state: State, key: str, had: Stored | None) -> bool:
        assert state.open is not None
        return key not in state.seen.of(state.open)


@contents("restores", "open timestamped; restore 61=31 at 5; get 61")
class RestoresWithoutTimestamps(Storing):
    """A record of the changelog is restored as a value without a timestamp."""

    def restored(self, state: State, key: str, value: str | None, timestamp: int, headers: str) -> State:
        return super().restored(state, key, value, -1, headers)


@contents("deletes", "open timestamped; put 61=31 at 5; restore 61 null at 5; get 61")
class IgnoresTombstones(Storing):
    """A tombstone of the changelog is skipped."""

    def restored(self, state: State, key: str, value: str | None, timestamp: int, headers: str) -> State:
        return state if value is None else super().restored(state, key, value, timestamp, headers)


@contents("count", f"{OLD}; count")
class CountsTheNewOnly(Storing):
    """The count leaves out the old format."""

    def count(self, state: State) -> int:
        return super().count(replace(state, seen=newest(state)))


@contents("old-timestamps", f"{OLD}; all")
class DatesOldValuesInScans(Storing):
    """A scan shows an old value with timestamp 0."""

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[ops.Row]:
        old = {key for key, _ in state.seen.plain} if state.open != "plain" else set()
        return (replace(each, timestamp=0) if each.key in old else each for each in super().rows(state, first, last))


@contents("reads-back", "open timestamped; put 61=31 at -1; get 61")
class TakesNoTimestampForZero(Storing):
    """A value whose timestamp is -1 is stored with timestamp 0."""

    def stored(self, state: State, value: str, timestamp: int | None, headers: str) -> Stored:
        return super().stored(state, value, 0 if timestamp == -1 else timestamp, headers)


@contents("reads-back", "open timestamped; put 61=31 at -2; get 61")
class KeepsNoTimestampBelowZero(Storing):
    """A value whose timestamp is below zero is stored without one."""

    def stored(self, state: State, value: str, timestamp: int | None, headers: str) -> Stored:
        return super().stored(state, value, None if (timestamp or 0) < 0 else timestamp, headers)


@contents("restores", "open timestamped; restore 61=31 at -2; get 61")
class RestoresNothingBelowZero(Storing):
    """A record of the changelog whose timestamp is below zero is skipped."""

    def restored(self, state: State, key: str, value: str | None, timestamp: int, headers: str) -> State:
        return state if timestamp < 0 and value is not None else super().restored(state, key, value, timestamp, headers)


@contents("absent-only", f"{OLD}; put-if-absent 61=31 at 5; get 61")
class TakesOldValuesForAbsent(Storing):
    """A put for an absent key returns an old value, and overwrites it."""

    def absent(self, state: State, key: str, had: Stored | None) -> bool:
        return super().absent(state, key, had) or (state.open != "plain" and key in dict(state.seen.plain))


@contents("reads-back", "open timestamped; put-if-absent 61=31 at 5; get 61")
class PutsNothingIfAbsent(Storing):
    """A put for an absent key puts nothing."""

    def absent(self, state: State, key: str, had: Stored | None) -> bool:
        return False


@contents("serves", "open timestamped; put 61 null")
class RefusesNull(Storing):
    """A put with a null value is refused."""

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        if isinstance(event, ops.Put) and event.value is None and state.open is not None:
            return Transition(state, (ops.Rejected(ops.UNREADABLE),))
        return super().step(state, event)


@contents("serves", "open plain; close; open plain")
class OpensOnce(Storing):
    """A directory that a store has used is refused."""

    def takes(self, state: State, format: ops.Format) -> bool:
        return super().takes(state, format) and not self.used(state)

    def opened(self, state: State, format: ops.Format) -> Transition[State, ops.Action]:
        after, actions = super().opened(state, format)
        return Transition(replace(after, committed=-1) if after.open else after, actions)

    def used(self, state: State) -> bool:
        return state.committed < 0


@upgrades("survives", f"{OLD}; get 61; crash; open timestamped; get 61")
class MovesInTwoSteps(Storing):
    """A value that is read is deleted from the old format at once, and written in the new one later."""

    def moved(self, state: State, key: str, value: Stored) -> State:
        disk = replace(state, seen=state.disk)
        return replace(super().moved(state, key, value), disk=self.without_old(disk, key, value[0]))


@upgrades("survives", f"{OLD}; get 61; crash within a flush; open timestamped; get 61")
class FlushesTheOldFirst(Storing):
    """The old format is flushed before the new one."""

    def left(self, state: State, flushing: bool) -> Contents:
        whole = super().left(state, flushing)
        return replace(whole, plain=state.seen.plain) if flushing else whole


@upgrades("survives", "open plain; put 61=31 at 5; flush; crash; open timestamped; get 61")
class FlushesNothing(Storing):
    """A crash loses all that was not closed."""

    def left(self, state: State, flushing: bool) -> Contents:
        return Contents()


@upgrades("opens-old", OLD)
class NeedsAConversion(Storing):
    """A directory with old values is refused until it was converted offline."""

    def takes(self, state: State, format: ops.Format) -> bool:
        return super().takes(state, format) and (format != "timestamped" or not state.seen.plain)


@upgrades("both-formats", "open timestamped; close; open timestamped")
class AlwaysLooksForBoth(Storing):
    """The store looks for old values each time."""

    def opened(self, state: State, format: ops.Format) -> Transition[State, ops.Action]:
        after, actions = super().opened(state, format)
        if format == "plain" or not after.open:
            return Transition(after, actions)
        return Transition(replace(after, both=True), tuple(ops.Opened(True, self.flushes(after)) for _ in actions))


@upgrades("both-formats", OLD)
class NeverLooksForBoth(Storing):
    """A store with old values says that it looks for the new format alone."""

    def opened(self, state: State, format: ops.Format) -> Transition[State, ops.Action]:
        after, actions = super().opened(state, format)
        return Transition(
            after, tuple(ops.Opened(False, self.flushes(after)) if after.open else each for each in actions)
        )


@contents("headers", "open headers; put 61=31 at 5 with h=31; get 61")
class DropsHeaders(Storing):
    """A record is stored without its headers."""

    def stored(self, state: State, value: str, timestamp: int | None, headers: str) -> Stored:
        return super().stored(state, value, timestamp, ops.NO_HEADERS)


@contents("headers", "open headers; put 61=31 at 5 with h=32,i=,h=31; get 61")
class KeepsTheLastOfAName(Storing):
    """Of several headers with one name the last one is stored, as a map does."""

    def stored(self, state: State, value: str, timestamp: int | None, headers: str) -> Stored:
        by_name = {each.partition("=")[0]: each for each in headers.split(",")}
        return super().stored(state, value, timestamp, ",".join(by_name.values()))


@contents("headers", "open timestamped; put 61=31 at 5; close; open headers; get 61")
class InventsHeaders(Storing):
    """A value that was stored without headers gets one."""

    def converted(self, state: State, format: ops.Format, stored: Stored) -> Stored:
        return stored if state.open != "headers" or format == "headers" else (*stored[:2], "h=31")


@contents("headers", "open headers; restore 61=31 at 5 with h=31; get 61")
class RestoresWithoutHeaders(Storing):
    """A record of the changelog is restored without its headers."""

    def restored(self, state: State, key: str, value: str | None, timestamp: int, headers: str) -> State:
        return super().restored(state, key, value, timestamp, ops.NO_HEADERS)


@contents("reads-back", "open timestamped; put 61=31 at 5; close; open headers; get 61")
class ForgetsTimestampsOnTheWay(Storing):
    """A store with headers takes a value with a timestamp for one without."""

    def converted(self, state: State, format: ops.Format, stored: Stored) -> Stored:
        return (stored[0], -1, stored[2]) if (state.open, format) == ("headers", "timestamped") else stored


@upgrades("opens-older", "open plain; put 61=31 at 5; close; open headers")
class UpgradesFromTimestampsOnly(Storing):
    """A store with headers refuses what a plain store left."""

    def takes(self, state: State, format: ops.Format) -> bool:
        return super().takes(state, format) and (format != "headers" or not state.seen.plain)


@upgrades("refuses-newer", "open headers; close; open timestamped")
class OpensWhatItDoesNotKnow(Storing):
    """A store with timestamps opens the directory of one with headers, and does not find its values."""

    def knows(self, state: State, format: ops.Format) -> bool:
        return super().knows(replace(state, families=state.families - {"headers"}), format)


@upgrades("mixed-formats", f"{OLD}; close; open headers")
class OpensMixedFormats(Storing):
    """A store with headers opens a directory with values of both older formats."""

    def takes(self, state: State, format: ops.Format) -> bool:
        return True


@upgrades("mixed-formats", f"{OLD}; close; open headers; open timestamped")
class RefusesBeforeItMakesAPlace(Storing):
    """A store with headers that refuses a directory leaves it as it was."""

    def opened(self, state: State, format: ops.Format) -> Transition[State, ops.Action]:
        after, actions = super().opened(state, format)
        return Transition(after if after.open else replace(after, families=state.families), actions)
