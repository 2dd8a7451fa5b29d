"""Members of Kafka Streams groups, their user data, and the interface of their binaries.

A member is one thread of an instance: a consumer whose only assignor is StreamsPartitionAssignor, named ``stream`` in
the group. All types here are values. The results of a binary are a function of its settings, the member's memory and
the arguments, so that reference models, released jars and mutants are interchangeable.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias, final

from kipcheck.conformance.protocols.assignment.model.assignment import Partition, Topic
from kipcheck.conformance.protocols.assignment.model.membership import Partitions

STREAM: Final = "stream"
"""The name of the assignor in every release, which old and new members have in common."""
OWN: Final = "own"
"""Placeholder for the release of the script's edition."""
FUTURE: Final = "future"
"""A simulated release with a version above the newest metadata version, and fields that no release knows (268-27)."""
NO_VERSION: Final = -1
"""The latest supported version in user data of versions 1 and 2, which do not contain it."""
LATEST_OFFSET: Final = -2
"""Offset sum of a task that runs actively (``Task.LATEST_OFFSET``)."""
NO_REBALANCE: Final = (1 << 63) - 1
"""``nextRebalanceMs`` of an assignment after which nothing is scheduled."""

NONE, INCOMPLETE_SOURCE_TOPICS, ASSIGNMENT_ERROR, SHUTDOWN_REQUESTED = 0, 1, 3, 4
"""Error codes of an assignment (``AssignorError``). 2, version probing, is never on the wire."""


class TaskId(NamedTuple):
    """``0_2``; in a named topology ``name__0_2``."""

    subtopology: int
    partition: int
    topology: str | None = None

    def __str__(self) -> str:
        task = f"{self.subtopology}_{self.partition}"
        return task if self.topology is None else f"{self.topology}__{task}"

    @classmethod
    def parse(cls, text: str) -> "TaskId":
        """Parses the text of a task id. Errors: ValueError."""
        name, named, task = text.rpartition("__")
        subtopology, parted, partition = task.partition("_")
        if not parted or not subtopology.isdigit() or not partition.isdigit() or (named and not name):
            raise ValueError(f"invalid task id {text!r}: 0_2 is the third task of the first subtopology")
        return cls(int(subtopology), int(partition), name if named else None)


Tasks: TypeAlias = tuple[TaskId, ...]


# Applications


@final
@dataclass(frozen=True, slots=True)
class Store:
    name: str
    logged: bool = True
    """Whether the store has a changelog. Only tasks with a changelog have standbys."""


@final
@dataclass(frozen=True, slots=True)
class Subtopology:
    id: int
    sources: tuple[str, ...]
    """Topics that it reads, including repartition topics of other subtopologies."""
    repartition: tuple[str, ...] = ()
    """Topics that it writes for other subtopologies. The leader creates them."""
    stores: tuple[Store, ...] = ()
    copartition: tuple[tuple[str, ...], ...] = ()
    """Co-partitioned groups of sources, for joins."""
    topology: str | None = None
    """The name of its topology, if that has one (since 3.0)."""


@final
@dataclass(frozen=True, slots=True)
class Topology:
    subtopologies: tuple[Subtopology, ...]
    standbys: int = 0
    """``num.standby.replicas``."""

    @property
    def source_topics(self) -> frozenset[str]:
        """The topics that members subscribe to."""
        return frozenset(topic for each in self.subtopologies for topic in each.sources)


# Members


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """Binary and configuration of a member."""

    release: str
    """An exact patch release, or ``FUTURE``; for a draft's member the edition's name."""
    topology: Topology
    process: str
    """The UUID of the instance, as text; the same for all its threads."""
    upgrade_from: str | None = None
    """``upgrade.from``."""
    end_point: str | None = None
    """``application.server``, as ``host:port``."""
    tags: tuple[tuple[str, str], ...] = ()
    """``client.tag.*``, sorted (since 3.2)."""
    tag_keys: tuple[str, ...] = ()
    """``rack.aware.assignment.tags``."""


@final
@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a member's assignor and task manager between rebalances; lost when the process ends (268-47)."""

    used: int
    """The metadata version of its subscriptions."""
    unique: int = 0
    """The unique byte of its last subscription, from -128 to 127 (268-45)."""
    active: Tasks = ()
    """Active tasks of its task manager, sorted."""
    standby: Tasks = ()
    """Standby tasks, and other tasks whose state is on its disk, sorted."""
    sums: tuple[tuple[TaskId, int], ...] = ()
    """Offset sums that override those derived from ``active`` (-2) and ``standby`` (0)."""
    error: int = 0
    """The error code of its next subscription: 4 to request a shutdown of all members."""
    closes: bool = False
    """KIP-268's draft: as leader, it has to trigger the last rebalance after applying its own assignment (268-21)."""


# User data


@final
@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """User data of a subscription. A reader that does not know version ``used`` reads only the first two fields."""

    used: int
    latest: int = NO_VERSION
    process: str = "00000000-0000-0000-0000-000000000000"
    active: Tasks = ()
    """Up to version 6."""
    standby: Tasks = ()
    """Up to version 6."""
    end_point: str | None = None
    sums: tuple[tuple[TaskId, int], ...] = ()
    """Since version 7."""
    unique: int = 0
    error: int = 0
    tags: tuple[tuple[str, str], ...] = ()


Hosts: TypeAlias = tuple[tuple[str, Partitions], ...]
"""``host:port``, and the partitions of that instance; sorted."""


@final
@dataclass(frozen=True, slots=True)
class AssignmentInfo:
    """User data of an assignment."""

    used: int
    supported: int = NO_VERSION
    """The second int: the leader's latest version, or the lowest latest version of all members (268-20, 268-34)."""
    active: Tasks = ()
    """One task for each partition, in the order of the partitions sorted by topic and number."""
    standby: tuple[tuple[TaskId, Partitions], ...] = ()
    hosts: Hosts = ()
    standby_hosts: Hosts = ()
    error: int = NONE
    next_ms: int = NO_REBALANCE


Blob: TypeAlias = Hashable
"""User data: bytes if binaries may be of any kind, or the values above (``Draft`` and ``Released``)."""


@final
@dataclass(frozen=True, slots=True)
class Joining:
    """A member as its leader receives it."""

    id: str
    topics: tuple[str, ...]
    """Subscribed topics."""
    data: Blob
    owned: Partitions = ()
    """Owned partitions in its consumer's metadata: since 2.4, and none if it is eager."""
    generation: int = -1


@final
@dataclass(frozen=True, slots=True)
class Share:
    """The assignment that the leader sends to a member."""

    partitions: Partitions
    data: Blob


class Rejoin(NamedTuple):
    """When a member rejoins by itself after an assignment."""

    when: str = "never"
    """``never``; ``again``: it leaves the group and subscribes again (up to 2.5); ``now``: it rejoins and stays in the
    group (since 2.6); ``later``: at ``at_ms``."""
    at_ms: int = 0


NEVER: Final = Rejoin()


@final
@dataclass(frozen=True, slots=True)
class AssignmentResult:
    """The effect of an assignment on a member."""

    memory: Memory
    rejoin: Rejoin = NEVER
    applied: bool = True
    """Whether the task manager got the tasks: not up to 2.3.1 while the member probes (268-44), and not on an error."""
    error: int = NONE
    """The error code of the assignment, which ends the thread."""


class Fatal(Exception):
    """The assignor threw an exception, which leaves ``poll`` and ends the thread."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(f"{kind}: {why}")
        self.kind = kind
        """Class of the exception, or a model's name for it."""
        self.why = why


ENDLESS: Final = "endless"
"""The kind of a failure without an exception."""


class Endless(Fatal):
    """A call that does not return within its time limit."""


class Misconfigured(Exception):
    """The configuration is rejected at the start: the release does not know this ``upgrade.from``."""

    def __init__(self, why: str, kind: str = "Misconfigured") -> None:
        super().__init__(why)
        self.kind = kind
        """Class of the exception, as in ``Fatal``."""


class Binary(Protocol):
    """The assignor of one member, implemented by a model or a jar.

    Pure: equal arguments give equal results. ``initial`` raises ``Misconfigured``, the other methods ``Fatal``.
    """

    @property
    def settings(self) -> Settings: ...
    @property
    def latest(self) -> int:
        """The newest metadata version that it supports."""
        ...

    @property
    def supports(self) -> Sequence[str]:
        """Supported rebalance protocols: ``eager``, ``cooperative``."""
        ...

    def initial(self) -> Memory: ...
    def subscribe(self, memory: Memory, topics: tuple[str, ...], /) -> tuple[Memory, Blob]: ...
    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        """Member id -> assignment. ``members`` are in the order in which they joined. ``topics``: all topics of the
        cluster, including internal ones that exist already."""
        ...

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult: ...


def by_topic(partitions: Sequence[Partition]) -> Partitions:
    """Partitions in the order in which tasks are paired with them: topics as Java compares strings, then numbers."""
    return tuple(sorted(partitions, key=lambda each: (each[0].encode("utf-16-be"), each[1])))
