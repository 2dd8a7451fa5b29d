"""The state of an application of KIP-258's draft: its instances with their directories, and the changelogs."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from kipcheck.conformance.protocols.store_upgrade.ops import IN_MEMORY, TASKS, Code, Logged, Place
from kipcheck.conformance.protocols.store_upgrade.records import Contents

TaskSet: TypeAlias = frozenset[int]
NO_TASKS: TaskSet = frozenset()


@dataclass(frozen=True, slots=True)
class Store:
    """A store, or the part of one that is on disk."""

    place: Place
    contents: Contents = ()
    position: int = 0
    """The first offset of the changelog that it does not have."""
    disk: tuple[Contents, int] = ((), 0)
    """Contents and position that a kill leaves."""

    def saved(self) -> "Store":
        return replace(self, disk=(self.contents, self.position))

    def killed(self) -> "Store":
        return replace(self, contents=self.disk[0], position=self.disk[1])


@dataclass(frozen=True, slots=True)
class Directory:
    """What an instance has of a task."""

    active: Store | None = None
    prepared: Store | None = None
    swapping: bool = False
    """Whether a kill ended the swap: the old store is gone, and the prepared one is not yet in its place."""


@dataclass(frozen=True, slots=True)
class Instance:
    name: str
    code: Code = "old"
    mode: str | None = None
    metadata: int = 3
    live: bool = False
    joined: bool = False
    """Whether it was in the last rebalance with this run."""
    active: TaskSet = NO_TASKS
    standby: TaskSet = NO_TASKS
    mirrored: TaskSet = NO_TASKS
    """The tasks that it restores for the roll-over."""
    directories: tuple[tuple[int, Directory], ...] = ()

    @property
    def marked(self) -> bool:
        """Whether its subscription has the mark of the roll-over."""
        return self.code != "old" and self.mode == "roll_over"

    def directory(self, task: int) -> Directory:
        return dict(self.directories).get(task, Directory())

    def having(self, task: int, directory: Directory) -> "Instance":
        kept = {**dict(self.directories), task: directory}
        found = {each: had for each, had in kept.items() if had != Directory()}
        return replace(self, directories=tuple(sorted(found.items())))

    def ended(self) -> "Instance":
        """The process is gone, and what it had in memory."""
        kept = tuple((task, had) for task, had in self.directories if task != IN_MEMORY)
        return replace(self, live=False, directories=kept)


@dataclass(frozen=True, slots=True)
class State:
    instances: tuple[Instance, ...] = ()
    """Those that ever ran, sorted by name."""
    changelogs: tuple[tuple[Logged, ...], ...] = ((),) * len(TASKS)
    kills: int = 0

    def instance(self, name: str) -> Instance:
        return next((each for each in self.instances if each.name == name), Instance(name))

    def having(self, instance: Instance) -> "State":
        others = (each for each in self.instances if each.name != instance.name)
        return replace(self, instances=tuple(sorted((*others, instance), key=lambda each: each.name)))

    def appending(self, task: int, record: Logged) -> "State":
        logs = ((*log, record) if place == task else log for place, log in enumerate(self.changelogs))
        return replace(self, changelogs=tuple(logs))

    @property
    def live(self) -> tuple[Instance, ...]:
        return tuple(each for each in self.instances if each.live)

    @property
    def headers(self) -> bool:
        """Whether each member of the group reads headers, so that the new format may be written."""
        return all(each.code != "old" for each in self.instances if each.live or each.joined)
