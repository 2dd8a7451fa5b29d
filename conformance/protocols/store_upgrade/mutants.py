"""Applications whose upgrades of stores have one planted defect each. Least cases are in shorthand."""

from collections.abc import Sequence
from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.store_upgrade import ops
from kipcheck.conformance.protocols.store_upgrade.invariants.group import GROUP
from kipcheck.conformance.protocols.store_upgrade.invariants.stores import CHANGELOG, STORES
from kipcheck.conformance.protocols.store_upgrade.model import Result, Shares, StoreUpgrade
from kipcheck.conformance.protocols.store_upgrade.records import having, stamped
from kipcheck.conformance.protocols.store_upgrade.state import NO_TASKS, Directory, Instance, State, Store, TaskSet
from kipcheck.conformance.protocols.store_upgrade.subscription import Subscription


class Upgrading(MachineMutant, StoreUpgrade):
    """The reference machine as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS


changelog = mutants_of(CHANGELOG, ops.OPERATIONS.machine)
stores = mutants_of(STORES, ops.OPERATIONS.machine)
group = mutants_of(GROUP, ops.OPERATIONS.machine)
NEW_STORE = "start a timestamped; rebalance"
LOGGED = "append 0 61=31 at 5 version 1"
WAITS = "start a plain; rebalance; start a builder; rebalance"
"""Then an instance waits for its store, and the changelogs are empty."""

# The changelog


@changelog("converts", "convert =0000000000000005 at 5 version 2")
class ConvertsTwice(Upgrading):
    """The converter does not read the header, and converts records of the new format again."""

    def converted(self, record: ops.Logged) -> str | None:
        return super().converted(replace(record, version=ops.OLD))


@changelog("converts", "convert =31 at 5 version 3")
class ConvertsAnything(Upgrading):
    """A record of an unknown version is taken for one of the new format."""

    def converted(self, record: ops.Logged) -> str | None:
        return record.value if record.version not in (ops.OLD, ops.NEW) else super().converted(record)


@changelog("converts", "convert =31 at -1 version 1")
class ConvertsNoTimestampToZero(Upgrading):
    """A record of the old format whose timestamp is -1 gets timestamp 0."""

    def converted(self, record: ops.Logged) -> str | None:
        return super().converted(replace(record, timestamp=0) if record.timestamp == -1 else record)


@changelog("converts", "convert =31 at 5 version 1")
class ConvertsNothing(Upgrading):
    """A record of the old format stays as it is."""

    def converted(self, record: ops.Logged) -> str | None:
        return record.value if record.version == ops.OLD else super().converted(record)


@changelog("converts", "convert =31 at -2 version 1")
class RefusesTimestampsBelowZero(Upgrading):
    """A record whose timestamp is below zero is refused."""

    def converted(self, record: ops.Logged) -> str | None:
        if record.timestamp < -1:
            raise LookupError(record.timestamp)
        return super().converted(record)


@changelog("reads-back", "append 0 61=31 at 5 version 2; start a timestamped; rebalance; get 0 61")
class DecidesOnce(Upgrading):
    """A store takes all records of its changelog for records of the old format."""

    def restored(self, record: ops.Logged, place: ops.Place) -> str | None:
        return super().restored(replace(record, version=ops.OLD), place)


@changelog(
    "reads-back",
    f"{LOGGED}; append 0 61 null at 5 version 1; {NEW_STORE}; get 0 61",
)
class SkipsTombstones(Upgrading):
    """A store that is filled from its changelog skips tombstones."""

    def filled(self, store: Store, log: Sequence[ops.Logged], most: int | None) -> Store:
        whole = super().filled(store, log, most)
        contents = store.contents
        for record in log[store.position : whole.position]:
            if record.value is not None:
                contents = having(contents, record.key, self.restored(record, store.place))
        return replace(whole, contents=contents)


@changelog("reads-back", f"{NEW_STORE}; put 0 61=31 at 5; kill a; {NEW_STORE}; get 0 61")
class TrustsTheCheckpoint(Upgrading):
    """A kill leaves the position of a store ahead of its contents."""

    def killed(self, store: Store) -> Store:
        return replace(super().killed(store), position=store.position)


@changelog(
    "reads-back",
    f"{LOGGED}; {WAITS}; replay a 0; kill a swapping 0; start a builder; rebalance; get 0 61",
)
class EmptiesInTheSwap(Upgrading):
    """A kill during the swap leaves an empty store that counts as complete."""

    def recovered(self, directory: Directory) -> Directory:
        made = super().recovered(directory)
        return made if made.active is None else replace(made, active=replace(made.active, contents=()))


@changelog("runs", "append 0 61=31 at 5 version 3; start a timestamped; rebalance; replay a 0")
class SkipsUnknownRecords(Upgrading):
    """A store that is filled from its changelog skips records of an unknown version."""

    def filled(self, store: Store, log: Sequence[ops.Logged], most: int | None) -> Store:
        known = [
            each if each.version in (ops.OLD, ops.NEW) else replace(each, version=ops.OLD, value=None) for each in log
        ]
        return super().filled(store, known, most)


@changelog("timestamps", f"{LOGGED}; {NEW_STORE}; get 0 61")
class ForgetsTimestampsInRestores(Upgrading):
    """A record of the old format is restored as if it had no timestamp."""

    def restored(self, record: ops.Logged, place: ops.Place) -> str | None:
        unknown = replace(record, timestamp=-1) if record.version == ops.OLD else record
        return super().restored(unknown, place)


@changelog("timestamps", "start a timestamped; rebalance; put 0 61=31 at 5 by aggregation; get 0 61")
class ForgetsTimestampsOfAggregations(Upgrading):
    """An aggregation writes its value without the timestamp of the record behind it."""

    def stored(self, event: ops.Put, place: ops.Place) -> str | None:
        return super().stored(replace(event, timestamp=-1) if event.operator == "aggregation" else event, place)


@changelog("timestamps", "start a plain; rebalance; put 0 61=31 at 5; get 0 61")
class InventsTimestamps(Upgrading):
    """The proxy of an old store returns timestamp 0 for each value."""

    def shown(self, stored: str, place: ops.Place) -> tuple[str, int]:
        return super().shown(stored, place) if place == "new" else (stored, 0)


@changelog("absent-only", "start a plain; rebalance; put 0 61=31 at 5; put-if-absent 0 61=32 at 7; get 0 61")
class PutsWhatIsThere(Upgrading):
    """A put for an absent key overwrites a value."""

    def absent(self, value: str | None) -> bool:
        return True


@changelog("absent-only", "start a plain; rebalance; put 0 61=31 at 5; put-if-absent 0 61=32 at 7; get 0 61")
class TakesOldStoresForAbsent(Upgrading):
    """Through the proxy a put for an absent key does not look into the old store."""

    def read(self, state: State, event: ops.PutIfAbsent | ops.Get) -> Result:
        _, _, store = self.owner(state, event.task)
        self.is_old = store is not None and store.place == "old"
        return super().read(state, event)

    def absent(self, value: str | None) -> bool:
        return self.is_old or super().absent(value)


@changelog("reads-back", "start a timestamped; rebalance; put-if-absent 0 61=31 at 5; get 0 61")
class PutsNothingWhatIsAbsent(Upgrading):
    """A put for an absent key puts nothing."""

    def absent(self, value: str | None) -> bool:
        return False


@changelog("written-back", "start a timestamped; rebalance; put 0 61=31 at 5; changelog 0")
class LogsNothing(Upgrading):
    """A record is in the store, and not in its changelog."""

    def step(self, state: State, event: ops.Event, /) -> Result:
        if isinstance(event, ops.ReadChangelog):
            return Transition(state, (ops.Changelog(()),))
        return super().step(state, event)


class WritesBack(Upgrading):
    """An upgrade task writes records back to the changelog."""

    def replayed(self, state: State, task: int) -> State:
        for record in self.written_back(state.changelogs[task]):
            state = state.appending(task, record)
        return state

    def written_back(self, log: Sequence[ops.Logged]) -> Sequence[ops.Logged]:
        old = [each for each in log if each.version == ops.OLD and each.value is not None]
        return [replace(each, value=stamped(each.value or "", each.timestamp), version=ops.NEW) for each in old[:1]]


@changelog(
    "written-back",
    f"{LOGGED}; append 0 61= at 5 version 1; {NEW_STORE}; replay a 0; changelog 0",
)
class WritesBackOldValues(WritesBack):
    """The first record of the old format is written back, after a newer one of its key."""


@changelog("written-back", f"{LOGGED}; {NEW_STORE}; replay a 0; changelog 0")
class WritesBackWithoutAHeader(WritesBack):
    """A record is written back without the version of its format."""

    def written_back(self, log: Sequence[ops.Logged]) -> Sequence[ops.Logged]:
        return log[-1:]


@changelog("written-back", f"{LOGGED}; {NEW_STORE}; replay a 0; replay a 0; changelog 0")
class WritesBackEachTime(WritesBack):
    """A record is written back, with the version of the new format, at each replay."""


# Stores


@stores("serves-on", "start a builder mode in_place; rebalance; get 0 61")
class StopsInPlace(Upgrading):
    """An upgrade in place interrupts processing until the new store is there."""

    def serves_from(self, instance: Instance, task: int) -> ops.Place | None:
        found = super().serves_from(instance, task)
        return None if found == "old" and self.prepares(instance, task) else found


@stores("serves-on", "start a builder mode in_place; rebalance; get 0 61")
class ServesTheNewStoreAtOnce(Upgrading):
    """In the mode in_place the new store serves."""

    def serves_from(self, instance: Instance, task: int) -> ops.Place | None:
        found = super().serves_from(instance, task)
        return "new" if found == "old" and instance.code == "builder" else found

    def prepares(self, instance: Instance, task: int) -> bool:
        return instance.mode != "in_place" and super().prepares(instance, task)


@stores("prepares", "start a builder mode in_place; start b plain; rebalance")
class PreparesActiveTasksOnly(Upgrading):
    """No new store is prepared for standby tasks."""

    def upgrades(self, instance: Instance) -> TaskSet:
        return super().upgrades(instance) & (instance.active | instance.mirrored)


@stores("waits", f"{WAITS}; get 0 61")
class ServesBeforeTheSwap(Upgrading):
    """A task is processed from its old store while the new one is prepared, outside of the mode in_place."""

    def serves_from(self, instance: Instance, task: int) -> ops.Place | None:
        return super().serves_from(instance, task) or "old"


@stores("waits", f"append 0 61= at 5 version 1; {WAITS}; swap a 0")
class SwapsEarly(Upgrading):
    """A prepared store is swapped before it has the whole changelog."""

    def complete(self, prepared: Store, end: int) -> bool:
        return True


@stores("waits", f"append 0 61= at 5 version 1; {WAITS}; swap a 0")
class SwapsWithOneRecordMissing(Upgrading):
    """A prepared store is swapped although the last record of the changelog is missing."""

    def complete(self, prepared: Store, end: int) -> bool:
        return prepared.position >= end - 1


@stores("serves-on", "start a builder mode in_place; rebalance; swap a 0")
class SwapsBeforeTheSecondBounce(Upgrading):
    """In the mode in_place a complete prepared store may replace the old one."""

    def swappable(self, state: State, instance: Instance, task: int) -> bool:
        return super().swappable(state, replace(instance, mode=None), task)


@stores("prepares", "start a builder mode in_place; rebalance")
class PreparesNothing(Upgrading):
    """In the mode in_place no new store is prepared."""

    def upgrades(self, instance: Instance) -> TaskSet:
        return super().upgrades(instance) if instance.mode != "in_place" else frozenset()


@stores("nothing-needed", "start a builder mode in_place; rebalance")
class PreparesMemory(Upgrading):
    """A store in memory is prepared like one on disk."""

    def upgrades(self, instance: Instance) -> TaskSet:
        found = super().upgrades(instance)
        return found | (instance.active & {ops.IN_MEMORY}) if instance.mode == "in_place" else found


@stores("serves-on", "start a plain; rebalance; get 0 61")
class StopsUnchangedCode(Upgrading):
    """Code without a change is held up, as if it had an upgrade to finish."""

    def serves_from(self, instance: Instance, task: int) -> ops.Place | None:
        return None if instance.code == "plain" else super().serves_from(instance, task)


@stores("nothing-needed", "start a plain; rebalance; get 0 61")
class ChangesTheFormatOfUnchangedCode(Upgrading):
    """With the new jar every store has timestamps, whether the code asks for them or not."""

    def serves_from(self, instance: Instance, task: int) -> ops.Place | None:
        return "new" if instance.code == "plain" else super().serves_from(instance, task)


@stores("finished", "start a builder; rebalance; rebalance")
class UpgradesAgain(Upgrading):
    """After the swap the store is prepared again at each start."""

    def upgrades(self, instance: Instance) -> TaskSet:
        swapped = frozenset(task for task, each in instance.directories if each.active and each.active.place == "new")
        again = swapped - {ops.IN_MEMORY} if instance.code == "builder" else frozenset()
        return super().upgrades(instance) | (again & self.mine(instance))


@stores("serves-on", f"{WAITS}; swap a 0; get 0 61")
class SwapsNothing(Upgrading):
    """A swap is accepted, and leaves the old store in its place."""

    def swapped(self, instance: Instance, task: int) -> Instance:
        return instance


@stores("progress", "append 0 61=31 at 5 version 1; start a builder mode in_place; rebalance; replay a 0 1 records")
class ReportsNoProgress(Upgrading):
    """A preparation reports neither how far it is nor where the changelog ends."""

    def replay(self, state: State, event: ops.Replay) -> Result:
        after, actions = super().replay(state, event)
        return Transition(
            after, tuple(ops.Replayed(0, 0, None) if isinstance(each, ops.Replayed) else each for each in actions)
        )


@stores("taken-up", "append 0 61=31 at 5 version 1; start a plain; rebalance; replay a 0")
class ReplaysNothing(Upgrading):
    """A replay reads no record."""

    def replay(self, state: State, event: ops.Replay) -> Result:
        after, actions = super().replay(state, event)
        return Transition(
            after, tuple(replace(each, position=0) if isinstance(each, ops.Replayed) else each for each in actions)
        )


@stores("progress", "start a builder mode in_place; rebalance; replay a 0")
class ReportsTheEnd(Upgrading):
    """A preparation is reported as finished once it has all records, while more are processed."""

    def finished(self, instance: Instance, task: int, store: Store, end: int) -> bool | None:
        return store.position == end


@stores("taken-up", "start a plain; rebalance; kill a; start a builder; rebalance; replay a 0; swap a 0")
class NeedsAFreshStart(Upgrading):
    """After a kill the prepared store is never swapped."""

    def swappable(self, state: State, instance: Instance, task: int) -> bool:
        return state.kills == 0 and super().swappable(state, instance, task)


@stores(
    "taken-up",
    "start a plain; start b plain; rebalance; start a builder; rebalance; replay a 1; swap a 1",
)
class SwapsActiveTasksOnly(Upgrading):
    """The store of a standby task is never swapped."""

    def swappable(self, state: State, instance: Instance, task: int) -> bool:
        return task in instance.active and super().swappable(state, instance, task)


# The group


@group("modes", "start a builder mode IN_PLACE")
class TakesAnyMode(Upgrading):
    """An unknown mode counts as none."""

    def knows(self, mode: str | None) -> bool:
        return True


@group("modes", "start a plain mode roll_over")
class TakesNoMode(Upgrading):
    """An instance with a mode does not start."""

    def knows(self, mode: str | None) -> bool:
        return mode is None


@group("runs", "start a plain; start b old; rebalance")
class StopsMixedGroups(Upgrading):
    """Instances with different code do not rebalance together."""

    def rebalance(self, state: State, named: str | None) -> Result:
        if len({each.code for each in state.live}) > 1:
            return Transition(state, (ops.Rejected(ops.NOT_RUNNING),))
        return super().rebalance(state, named)


@group("runs", "start a old; stop a")
class NeverStops(Upgrading):
    """An instance refuses to stop."""

    def step(self, state: State, event: ops.Event, /) -> Result:
        return (
            Transition(state, (ops.Rejected(ops.NOT_READY),))
            if isinstance(event, ops.Stop)
            else super().step(state, event)
        )


@group("marked", "start r builder mode roll_over; rebalance")
class NeverMarks(Upgrading):
    """No subscription has the mark."""

    def subscriptions(self, instance: Instance, leader: Instance) -> tuple[Subscription, ...]:
        return tuple(each._replace(mark=False) for each in super().subscriptions(instance, leader))


@group("marked", "start a builder; rebalance")
class MarksAll(Upgrading):
    """Each subscription of a builder has the mark, in every mode."""

    def subscriptions(self, instance: Instance, leader: Instance) -> tuple[Subscription, ...]:
        marked = instance.code == "builder"
        return tuple(each._replace(mark=marked) for each in super().subscriptions(instance, leader))


@group("marked", "start a plain; start r builder mode roll_over metadata 4; rebalance")
class ForgetsTheMarkInProbing(Upgrading):
    """The subscription after version probing lacks the mark."""

    def lowered(self, subscription: Subscription) -> Subscription:
        return subscription._replace(mark=False)


@group("mirrored", "start a plain; start r builder mode roll_over; rebalance")
class AssignsToAll(Upgrading):
    """The leader takes roll-over instances for old ones."""

    def reads_mark(self, subscription: Subscription, instance: Instance) -> bool:
        return False


@group("mirrored", "start a plain; start r builder mode roll_over; rebalance")
class MirrorsNothing(Upgrading):
    """Roll-over instances get no task while an old instance lives."""

    def mirrored(self, active: Shares, marked: Sequence[Instance]) -> dict[str, TaskSet]:
        return {}


@group(
    "mirrored",
    "start a plain; start b plain; start r builder mode roll_over; start s builder mode roll_over; rebalance",
)
class MirrorsActiveTasksOnly(Upgrading):
    """Roll-over instances restore the active tasks of the old ones, and not their standby tasks."""

    def mirrored(self, active: Shares, marked: Sequence[Instance]) -> dict[str, TaskSet]:
        return super().mirrored({name: (own, NO_TASKS) for name, (own, _) in active.items()}, marked)


@group("one-owner", "start a plain; start b plain; rebalance")
class AssignsTwice(Upgrading):
    """A standby task is active on its instance, too."""

    def assigned(self, members: Sequence[Instance]) -> Shares:
        return {name: (active | spare, spare) for name, (active, spare) in super().assigned(members).items()}


@group("one-owner", "start a builder mode roll_over; rebalance")
class NeverTakesOver(Upgrading):
    """Roll-over instances get no active task, even where no other instance lives."""

    def assigned(self, members: Sequence[Instance]) -> Shares:
        found = super().assigned(members)
        return {name: (NO_TASKS, NO_TASKS) for name in found} if all(each.marked for each in members) else found


@group("no-leave", "start a old; stop a")
class LeavesWhenItStops(Upgrading):
    """An instance that stops sends a LeaveGroup request."""

    def leaves(self, instance: Instance) -> bool:
        return True
