"""The reference machine of KIP-258's draft: an application whose stores are upgraded on one of three paths.

The changelog has every record that was processed; a store has a prefix of it, in one of two formats. A task is
processed once its store has the whole changelog.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias, assert_never

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.store_upgrade import ops
from kipcheck.conformance.protocols.store_upgrade.records import for_new_store, for_store, having, stamped, unstamped
from kipcheck.conformance.protocols.store_upgrade.state import NO_TASKS, Directory, Instance, State, Store, TaskSet
from kipcheck.conformance.protocols.store_upgrade.subscription import Subscription, written

Result: TypeAlias = Transition[State, ops.Action]
Shares: TypeAlias = dict[str, tuple[TaskSet, TaskSet]]
"""Instance -> its active and its standby tasks."""


def refused(state: State, error: str, offset: int | None = None) -> Result:
    return Transition(state, (ops.Rejected(error, offset),))


class StoreUpgrade:
    """``tasks``: those of the application."""

    tasks: Sequence[int] = ops.TASKS

    def __init__(self, tasks: Sequence[int] = ops.TASKS) -> None:
        self.tasks = tasks

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Result:
        match event:
            case ops.Start():
                return self.start(state, event)
            case ops.Stop(name) | ops.Kill(name) | ops.Lose(name):
                return self.ended(state, state.instance(name), event)
            case ops.Rebalance(leader):
                return self.rebalance(state, leader)
            case ops.Append(task, key, value, timestamp, version):
                return self.append(state, task, ops.Logged(key, value, timestamp, version))
            case ops.Put(task, key, value, timestamp):
                after, owner, store = self.owner(state, task)
                if owner is None or store is None:
                    return self.unserved(after, task)
                after = self.put(after, owner, event)
                return Transition(after, (ops.Processed(owner.name, store.place),))
            case ops.PutIfAbsent() | ops.Get():
                return self.read(state, event)
            case ops.Replay():
                return self.replay(state, event)
            case ops.Swap(name, task):
                if not self.swappable(state, state.instance(name), task):
                    return refused(state, ops.NOT_READY)
                return Transition(state.having(self.swapped(state.instance(name), task)))
            case ops.ReadChangelog(task):
                return Transition(state, (ops.Changelog(state.changelogs[task]),))
            case ops.Convert(value, timestamp, version):
                try:
                    return Transition(
                        state, (ops.Converted(self.converted(ops.Logged("", value, timestamp, version))),)
                    )
                except (LookupError, ValueError):
                    return refused(state, ops.UNKNOWN_VERSION)
            case _:
                assert_never(event)

    # Instances

    def start(self, state: State, event: ops.Start) -> Result:
        had = state.instance(event.instance)
        if had.live:
            had = self.stopped(had)
            state = state.having(had)
        if event.code != "old" and not self.knows(event.mode):
            return refused(state, ops.INVALID_CONFIG)
        if event.code == "old" and any(each.version == ops.NEW for each in chain(*state.changelogs)):
            return refused(state, ops.DOWNGRADE)
        made = replace(
            had, code=event.code, mode=event.mode, metadata=event.metadata, live=True, joined=False,
            active=NO_TASKS, standby=NO_TASKS, mirrored=NO_TASKS,
        )  # fmt: skip
        for task, each in made.directories:
            if each.swapping:
                made = made.having(task, self.recovered(each))
        return Transition(state.having(made))

    def knows(self, mode: str | None) -> bool:
        """Whether upgrade.mode takes this value."""
        return mode in ops.MODES

    def recovered(self, directory: Directory) -> Directory:
        """The directory of a task whose swap was ended by a kill."""
        return Directory(active=directory.prepared)

    def stopped(self, instance: Instance) -> Instance:
        for task, each in instance.directories:
            if each.active is not None:
                instance = instance.having(task, replace(each, active=each.active.saved()))
        return instance.ended()

    def ended(self, state: State, instance: Instance, event: ops.Stop | ops.Kill | ops.Lose) -> Result:
        if instance.live is isinstance(event, ops.Lose):
            return refused(state, ops.NOT_RUNNING)
        match event:
            case ops.Stop():
                return Transition(state.having(self.stopped(instance)), (ops.Stopped(self.leaves(instance)),))
            case ops.Lose():
                return Transition(state.having(replace(instance, directories=())))
        if event.swapping is not None:
            if not self.swappable(state, instance, event.swapping):
                return refused(state, ops.NOT_READY)
            prepared = instance.directory(event.swapping).prepared
            instance = instance.having(event.swapping, Directory(None, prepared, swapping=True))
        for task, each in instance.directories:
            if each.active is not None:
                instance = instance.having(task, replace(each, active=self.killed(each.active)))
        return Transition(replace(state.having(instance.ended()), kills=state.kills + 1))

    def killed(self, store: Store) -> Store:
        """What a kill leaves of a store."""
        return store.killed()

    def leaves(self, instance: Instance) -> bool:
        """Whether an instance that stops sends a LeaveGroup request."""
        return False

    # The group

    def rebalance(self, state: State, named: str | None) -> Result:
        live = state.live
        if not live:
            return refused(state, ops.NOT_RUNNING)
        leader = next((each for each in live if each.name == named), live[0])
        subscriptions = {each.name: self.subscriptions(each, leader) for each in live}
        plain = [each for each in live if not self.reads_mark(subscriptions[each.name][-1], each)]
        marked = [each for each in live if each not in plain]
        active = self.assigned(plain or marked)
        mirrored = self.mirrored(active, marked) if plain else {}
        after, shares = state, []
        for each in state.instances:
            after = after.having(replace(each, joined=each.live))
        for each in live:
            mine, spare = active.get(each.name, (NO_TASKS, NO_TASKS))
            copied = mirrored.get(each.name, NO_TASKS)
            member = replace(
                after.instance(each.name), active=mine, standby=spare | copied, mirrored=copied
            )  # fmt: skip
            member = self.with_directories(member)
            after = after.having(member)
            shares.append(
                ops.Share(
                    each.name, tuple(map(written, subscriptions[each.name])), tuple(sorted(member.active)),
                    tuple(sorted(member.standby)), tuple(sorted(self.upgrades(member))),
                )
            )  # fmt: skip
        return Transition(after, (ops.Rebalanced(tuple(shares)),))

    def subscriptions(self, instance: Instance, leader: Instance) -> tuple[Subscription, ...]:
        """One for each round: a leader answers a version above its own with its own, which the member uses then."""
        first = Subscription(instance.name, instance.metadata, instance.metadata, instance.marked)
        if instance.metadata <= leader.metadata:
            return (first,)
        return first, self.lowered(first._replace(used=leader.metadata))

    def lowered(self, subscription: Subscription) -> Subscription:
        """The subscription of the round after version probing."""
        return subscription

    def reads_mark(self, subscription: Subscription, instance: Instance) -> bool:
        return subscription.mark

    def assigned(self, members: Sequence[Instance]) -> Shares:
        """Each task once active, and once standby if there is another member."""
        found: Shares = {each.name: (NO_TASKS, NO_TASKS) for each in members}
        for place, task in enumerate(self.tasks):
            owner, spare = members[place % len(members)], members[(place + 1) % len(members)]
            found[owner.name] = (found[owner.name][0] | {task}, found[owner.name][1])
            if spare is not owner:
                found[spare.name] = (found[spare.name][0], found[spare.name][1] | {task})
        return found

    def mirrored(self, active: Shares, marked: Sequence[Instance]) -> dict[str, TaskSet]:
        """The tasks that roll-over instances restore: those of the others, each at least once."""
        found = {each.name: NO_TASKS for each in marked}
        for place, shares in enumerate(active.values()):
            if marked:
                name = marked[place % len(marked)].name
                found[name] |= shares[0] | shares[1]
        return found

    # Stores

    def upgrades(self, instance: Instance) -> TaskSet:
        """The tasks whose new store an instance prepares."""
        return frozenset(each for each in self.mine(instance) if self.prepares(instance, each))

    def mine(self, instance: Instance) -> TaskSet:
        return instance.active | instance.standby | instance.mirrored

    def prepares(self, instance: Instance, task: int) -> bool:
        directory = instance.directory(task)
        if instance.code != "builder" or task == ops.IN_MEMORY or _is_new(directory.active):
            return False
        if task in instance.mirrored or instance.mode == "in_place":
            return True
        return self.unfinished(directory)

    def unfinished(self, directory: Directory) -> bool:
        """Whether an upgrade has begun, or has to: then it is finished before the task is processed."""
        return not _is_new(directory.active) and (directory.active is not None or directory.prepared is not None)

    def serves_from(self, instance: Instance, task: int) -> ops.Place | None:
        """The kind of store from which an instance serves a task; None: it does not serve it yet."""
        if instance.code in ("old", "plain"):
            return "old"
        if instance.code == "timestamped" or task == ops.IN_MEMORY or _is_new(instance.directory(task).active):
            return "new"
        if instance.mode == "in_place":
            return "old"
        return None if self.waits(instance, task) else "new"

    def waits(self, instance: Instance, task: int) -> bool:
        """Whether an instance outside of the mode in_place prepares a store before it serves the task."""
        return self.unfinished(instance.directory(task))

    def with_directories(self, instance: Instance) -> Instance:
        """The instance with the stores of its tasks, which it creates if they are not there."""
        for task in sorted(self.mine(instance)):
            had = instance.directory(task)
            if not (task in instance.mirrored and self.prepares(instance, task)):
                place = self.serves_from(instance, task)
                if place is not None and (had.active is None or had.active.place != place):
                    had = replace(had, active=Store(place))
            if had.active is not None:
                had = replace(had, active=had.active.saved())
            instance = instance.having(task, had)
            if had.prepared is None and self.prepares(instance, task):
                instance = instance.having(task, replace(had, prepared=Store("new")))
        return instance

    def owner(self, state: State, task: int) -> tuple[State, Instance | None, Store | None]:
        """The live instance that processes a task, and its store, with the whole changelog; None: no store is ready."""
        owner = next((each for each in state.live if task in each.active), None)
        if owner is None or self.serves_from(owner, task) is None:
            return state, owner, None
        had = owner.directory(task)
        if had.active is None:
            return state, owner, None
        store = self.filled(had.active, state.changelogs[task], None)
        if store.position < len(state.changelogs[task]):
            return state, owner, None
        owner = owner.having(task, replace(had, active=store))
        return state.having(owner), owner, store

    def unserved(self, state: State, task: int) -> Result:
        bad = next(
            (at for at, each in enumerate(state.changelogs[task]) if each.version not in (ops.OLD, ops.NEW)), None
        )
        return refused(state, ops.NOT_SERVING, bad)

    def filled(self, store: Store, log: Sequence[ops.Logged], most: int | None) -> Store:
        """The store after so many records; before one that it cannot read."""
        contents, position = store.contents, store.position
        for record in log[position : None if most is None else position + most]:
            try:
                value = self.restored(record, store.place)
            except (LookupError, ValueError):
                break
            contents, position = having(contents, record.key, value), position + 1
        return replace(store, contents=contents, position=position)

    def restored(self, record: ops.Logged, place: ops.Place) -> str | None:
        """The bytes that a store gets of a record of its changelog."""
        return for_store(record, place)

    def converted(self, record: ops.Logged) -> str | None:
        return for_new_store(record)

    def append(self, state: State, task: int, record: ops.Logged) -> Result:
        if record.version != ops.OLD and any(each.code == "old" for each in state.live):
            return refused(state, ops.DOWNGRADE)
        if record.version == ops.NEW and record.value is not None:
            record = replace(record, value=stamped(record.value, record.timestamp))
        return Transition(state.appending(task, record))

    def put(self, state: State, owner: Instance, event: ops.Put) -> State:
        """The record is in the store and in the changelog."""
        had = owner.directory(event.task)
        store = had.active
        assert store is not None
        record = self.logged(state, store, event)
        value = self.stored(event, store.place)
        after = replace(
            store, contents=having(store.contents, event.key, value), position=store.position + 1,
        )  # fmt: skip
        return state.appending(event.task, record).having(owner.having(event.task, replace(had, active=after)))

    def logged(self, state: State, store: Store, event: ops.Put) -> ops.Logged:
        """The record of the changelog: in the new format if all members of the group can read it."""
        if store.place == "old" or not state.headers or event.value is None:
            return ops.Logged(event.key, event.value, event.timestamp, ops.OLD)
        return ops.Logged(event.key, stamped(event.value, event.timestamp), event.timestamp, ops.NEW)

    def stored(self, event: ops.Put, place: ops.Place) -> str | None:
        if event.value is None or place == "old":
            return event.value
        return stamped(event.value, event.timestamp)

    def read(self, state: State, event: ops.PutIfAbsent | ops.Get) -> Result:
        after, owner, store = self.owner(state, event.task)
        if owner is None or store is None:
            return self.unserved(after, event.task)
        had = dict(store.contents).get(event.key)
        value, timestamp = (None, None) if had is None else self.shown(had, store.place)
        if isinstance(event, ops.PutIfAbsent) and self.absent(value):
            after = self.put(after, owner, ops.Put(event.task, event.key, event.value, event.timestamp))
        return Transition(after, (ops.Found(owner.name, store.place, value, timestamp),))

    def shown(self, stored: str, place: ops.Place) -> tuple[str, int]:
        """Value and timestamp; the proxy of an old store fills in the timestamp."""
        return unstamped(stored) if place == "new" else (stored, ops.NO_TIMESTAMP)

    def absent(self, value: str | None) -> bool:
        return value is None

    # The upgrade

    def replay(self, state: State, event: ops.Replay) -> Result:
        instance, task = state.instance(event.instance), event.task
        if not instance.live:
            return refused(state, ops.NOT_RUNNING)
        if task not in self.mine(instance):
            return refused(state, ops.NOT_ASSIGNED)
        had, log = instance.directory(task), state.changelogs[task]
        prepares = self.prepares(instance, task)
        store = had.prepared if prepares else had.active
        if store is None:
            return refused(state, ops.NOT_ASSIGNED)
        filled = self.filled(store, log, event.most)
        if filled.position < len(log) and filled.position < store.position + (event.most or len(log)):
            return refused(state, ops.UNKNOWN_VERSION, filled.position)
        after = replace(had, prepared=filled.saved()) if prepares else replace(had, active=filled)
        finished = self.finished(instance, task, filled, len(log)) if prepares else None
        answer = ops.Replayed(filled.position, len(log), finished)
        return Transition(self.replayed(state.having(instance.having(task, after)), task), (answer,))

    def replayed(self, state: State, task: int) -> State:
        """After records were converted: none is written back, for a record of the old format has its own timestamp."""
        return state

    def finished(self, instance: Instance, task: int, store: Store, end: int) -> bool | None:
        return None if instance.mode == "in_place" or task in instance.mirrored else store.position == end

    def swappable(self, state: State, instance: Instance, task: int) -> bool:
        """Whether the prepared store may replace the active one: it has the whole changelog, and no task serves."""
        if not instance.live or task not in instance.active | instance.standby or task in instance.mirrored:
            return False
        prepared = instance.directory(task).prepared
        if instance.mode == "in_place" or prepared is None or not self.prepares(instance, task):
            return False
        return self.complete(prepared, len(state.changelogs[task]))

    def complete(self, prepared: Store, end: int) -> bool:
        return prepared.position == end

    def swapped(self, instance: Instance, task: int) -> Instance:
        return instance.having(task, Directory(active=instance.directory(task).prepared))

    def enabled(self, state: State, /) -> Iterable[ops.Event]:
        return ()

    def accepts(self, state: State, event: ops.Event) -> bool:
        """Whether ``step`` accepts the event."""
        return not any(isinstance(each, ops.Rejected) for each in self.step(state, event).actions)


def _is_new(store: Store | None) -> bool:
    return store is not None and store.place == "new"
