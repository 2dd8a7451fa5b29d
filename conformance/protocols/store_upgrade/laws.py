"""Laws of an application, checked in every state of its model: they restate its invariants."""

from collections.abc import Sequence
from typing import Any

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.store_upgrade.ops import NEW, Event, Logged, Place, Put
from kipcheck.conformance.protocols.store_upgrade.state import Instance, State, Store

HEAD = 16
"""Digits of a timestamp."""


def _owed(log: Sequence[Logged], place: Place) -> dict[str, str]:
    """What a store has after these records."""
    found: dict[str, str] = {}
    for each in log:
        found.pop(each.key, None)
        if each.value is not None:
            value = each.value[HEAD:] if each.version == NEW else each.value
            head = each.timestamp.to_bytes(8, "big", signed=True).hex() if place == "new" else ""
            found[each.key] = head + value
    return found


def _reads_back(views: tuple[State]) -> str | None:
    """Each store has exactly what the records of its changelog up to its position make, in its format."""
    (state,) = views
    for each in state.instances:
        for task, directory in each.directories:
            for store in (directory.active, directory.prepared):
                if store is not None and dict(store.contents) != _owed(_read(state, task, store), store.place):
                    return f"a {store.place} store of {each.name} differs from its changelog of task {task}"
    return None


def _read(state: State, task: int, store: Store) -> Sequence[Logged]:
    return state.changelogs[task][: store.position]


def _one_owner(views: tuple[State]) -> str | None:
    """No task is active on two live instances, and none on a roll-over instance beside an old one."""
    (state,) = views
    owners: dict[int, Instance] = {}
    for each in state.live:
        for task in each.active:
            if task in owners:
                return f"task {task} is active on {owners[task].name} and {each.name}"
            owners[task] = each
    joined = [each for each in state.live if each.joined]
    if any(not each.marked for each in joined) and (new := [each for each in joined if each.marked and each.active]):
        return f"{new[0].name} processes beside old instances"
    return None


def _serves_on(views: tuple[State]) -> str | None:
    """The owner of a task serves it, unless its upgrade is unfinished outside of the mode in_place."""
    (state,) = views
    for each in state.live:
        for task in each.active:
            active, prepared = each.directory(task).active, each.directory(task).prepared
            may_wait = each.code == "builder" and each.mode != "in_place" and prepared is not None
            if active is None and not may_wait:
                return f"{each.name} has no store of task {task}"
    return None


def _waits(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    """A task is processed by a store that has the whole changelog."""
    if not isinstance(event, Put) or did.part.changelogs == before.changelogs:
        return None
    owner = next(each for each in did.part.live if event.task in each.active)
    store = owner.directory(event.task).active
    if store is None or store.position != len(did.part.changelogs[event.task]):
        return f"task {event.task} is processed without its whole changelog"
    if store.place == "old" and owner.code == "builder" and owner.mode != "in_place":
        return f"task {event.task} is processed by an old store outside of the mode in_place"
    return None


WAITS: StepLaw[State, Event, Event] = StepLaw("store-upgrade/waits", _waits)
LAWS = (
    Law("store-upgrade/reads-back", lambda index, state: state, _reads_back),
    Law("store-upgrade/one-owner", lambda index, state: state, _one_owner),
    Law("store-upgrade/serves-on", lambda index, state: state, _serves_on),
    WAITS,
)
