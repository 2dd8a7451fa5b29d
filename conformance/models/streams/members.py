"""What the members of a Kafka Streams group are, what they tell each other, and what a binary of theirs can be asked.

A member is one thread of an instance: a consumer whose only assignor is StreamsPartitionAssignor, called ``stream`` in
the group. Everything here is a value. What a binary does is a function of its settings, of what the member remembers
and of what it hears: so a reference model, a released jar and a planted defect can take each other's places, and equal
questions have equal answers.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias, final

from kipcheck.conformance.models.assignment import Partition, Topic
from kipcheck.conformance.models.membership import Partitions

STREAM: Final = "stream"
"""The name of the assignor in every release, so that old and new members always meet in it."""
FUTURE: Final = "future"
"""In the place of a release: the newest metadata version and one more, with fields that nobody knows (268-27)."""
NO_VERSION: Final = -1
"""What versions 1 and 2 say about the latest supported one."""
LATEST_OFFSET: Final = -2
"""Offset sum of a task that runs actively (``Task.LATEST_OFFSET``)."""
UNKNOWN_OFFSET_SUM: Final = -3
NO_REBALANCE: Final = (1 << 63) - 1
"""``nextRebalanceMs`` of an assignment after which nothing is scheduled."""

NONE, INCOMPLETE_SOURCE_TOPICS, ASSIGNMENT_ERROR, SHUTDOWN_REQUESTED = 0, 1, 3, 4
"""Error codes of an assignment (``AssignorError``). 2, version probing, is never on the wire."""


class TaskId(NamedTuple):
    """``0_2``; with the name of its topology in front where it has one, as ``name__0_2``."""

    subtopology: int
    partition: int
    topology: str | None = None

    def __str__(self) -> str:
        task = f"{self.subtopology}_{self.partition}"
        return task if self.topology is None else f"{self.topology}__{task}"

    @classmethod
    def parse(cls, text: str) -> "TaskId":
        """Errors: ValueError for anything else."""
        name, named, task = text.rpartition("__")
        subtopology, parted, partition = task.partition("_")
        if not parted or not subtopology.isdigit() or not partition.isdigit() or (named and not name):
            raise ValueError(f"{text!r} is no task: 0_2 is the third task of the first subtopology")
        return cls(int(subtopology), int(partition), name if named else None)


Tasks: TypeAlias = tuple[TaskId, ...]


# What an application is


@final
@dataclass(frozen=True, slots=True)
class Store:
    name: str
    logged: bool = True
    """Is there a changelog? Only then its task is one that can stand by."""


@final
@dataclass(frozen=True, slots=True)
class Subtopology:
    id: int
    sources: tuple[str, ...]
    """Topics that it reads, those of ``repartition`` of other subtopologies among them."""
    repartition: tuple[str, ...] = ()
    """Topics that it writes for another subtopology to read. The leader makes them; nobody else has to."""
    stores: tuple[Store, ...] = ()
    copartition: tuple[tuple[str, ...], ...] = ()
    """Groups of sources whose partitions of one number belong together: a join reads them side by side."""
    topology: str | None = None
    """The name of the topology that it is part of, where topologies have names (3.0 on)."""


@final
@dataclass(frozen=True, slots=True)
class Topology:
    subtopologies: tuple[Subtopology, ...]
    standbys: int = 0
    """``num.standby.replicas``."""

    @property
    def source_topics(self) -> frozenset[str]:
        """What a member subscribes to."""
        return frozenset(topic for each in self.subtopologies for topic in each.sources)


# What a member is, and what it remembers


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """Of one member: a binary and its configuration."""

    release: str
    """An exact patch, or ``FUTURE``; of a draft's member the edition's name."""
    topology: Topology
    process: str
    """The instance, as the text of a UUID: all its threads have the same one."""
    upgrade_from: str | None = None
    """``upgrade.from``."""
    end_point: str | None = None
    """``application.server``, as ``host:port``."""
    tags: tuple[tuple[str, str], ...] = ()
    """``client.tag.*``, sorted (3.2 on)."""
    tag_keys: tuple[str, ...] = ()
    """``rack.aware.assignment.tags``."""


@final
@dataclass(frozen=True, slots=True)
class Memory:
    """What a member's assignor and task manager hold between rebalances. A process that ends forgets it (268-47)."""

    used: int
    """The metadata version in which it subscribes."""
    unique: int = 0
    """The byte that its last subscription had, from -128 to 127 (268-45)."""
    active: Tasks = ()
    """What its task manager was last told to run, sorted."""
    standby: Tasks = ()
    """What it was told to keep ready, and other tasks whose state is on its disk, sorted."""
    sums: tuple[tuple[TaskId, int], ...] = ()
    """Offset sums that are told in the place of those that follow from ``active`` (-2) and ``standby`` (0)."""
    error: int = 0
    """The error that its next subscription tells: 4 where it asks all to shut down."""
    closes: bool = False
    """KIP-268's draft: it leads, and after its own assignment it is the one to trigger the last rebalance (268-21)."""


# What is told


@final
@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """User data of a subscription. A reader that does not know ``used`` sees nothing but the first two."""

    used: int
    latest: int = NO_VERSION
    process: str = "00000000-0000-0000-0000-000000000000"
    active: Tasks = ()
    """Up to version 6."""
    standby: Tasks = ()
    """Up to version 6."""
    end_point: str | None = None
    sums: tuple[tuple[TaskId, int], ...] = ()
    """From version 7 on."""
    unique: int = 0
    error: int = 0
    tags: tuple[tuple[str, str], ...] = ()


Hosts: TypeAlias = tuple[tuple[str, Partitions], ...]
"""``host:port``, and the partitions that it has; sorted."""


@final
@dataclass(frozen=True, slots=True)
class AssignmentInfo:
    """User data of an assignment."""

    used: int
    supported: int = NO_VERSION
    """The second int: the leader's own latest version, or the lowest of all (268-20, 268-34)."""
    active: Tasks = ()
    """One for each partition, in the order of the partitions sorted by topic and number."""
    standby: tuple[tuple[TaskId, Partitions], ...] = ()
    hosts: Hosts = ()
    standby_hosts: Hosts = ()
    error: int = NONE
    next_ms: int = NO_REBALANCE


Blob: TypeAlias = Hashable
"""User data: bytes between binaries that may be of any make, else the values above (``Draft`` and ``Released``)."""


@final
@dataclass(frozen=True, slots=True)
class Joining:
    """A member as the leader has it."""

    id: str
    topics: tuple[str, ...]
    """Subscribed to."""
    data: Blob
    owned: Partitions = ()
    """As its consumer tells: from 2.4 on, and nothing where it is eager."""
    generation: int = -1


@final
@dataclass(frozen=True, slots=True)
class Share:
    """What the leader sends to a member."""

    partitions: Partitions
    data: Blob


class Rejoin(NamedTuple):
    """When a member joins once more of its own accord, after an assignment."""

    when: str = "never"
    """``never``; ``again``: it leaves the group and subscribes afresh (up to 2.5); ``now``: it asks to rejoin and stays
    in (2.6 on); ``later``: at ``at_ms``."""
    at_ms: int = 0


NEVER: Final = Rejoin()


@final
@dataclass(frozen=True, slots=True)
class Heard:
    """What an assignment did to a member."""

    memory: Memory
    rejoin: Rejoin = NEVER
    applied: bool = True
    """Was the task manager told of its tasks? Not up to 2.3.1 while the member probes (268-44), nor on an error."""
    error: int = NONE
    """The error code that came: the thread ends with it."""


class Fatal(Exception):
    """The assignor threw: out of ``poll``, which ends the thread."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(f"{kind}: {why}")
        self.kind = kind
        """The class of the exception, or the name that a model has for it."""
        self.why = why


ENDLESS: Final = "endless"
"""In the place of the class of an exception, where there is none."""


class Endless(Fatal):
    """It does not come back: given up after the time that a call may take."""


class Misconfigured(Exception):
    """The configuration is refused before anything runs: ``upgrade.from`` that the release does not know."""

    def __init__(self, why: str, kind: str = "Misconfigured") -> None:
        super().__init__(why)
        self.kind = kind
        """As that of ``Fatal``."""


class Binary(Protocol):
    """The assignor of one member: what stands behind it may be a model or a jar.

    Pure: equal arguments, equal answers. ``initial`` raises ``Misconfigured``, the others ``Fatal``.
    """

    @property
    def settings(self) -> Settings: ...
    @property
    def latest(self) -> int:
        """The newest metadata version that it knows."""
        ...

    @property
    def supports(self) -> Sequence[str]:
        """Rebalance protocols that it offers: ``eager``, ``cooperative``."""
        ...

    def initial(self) -> Memory: ...
    def subscribe(self, memory: Memory, topics: tuple[str, ...], /) -> tuple[Memory, Blob]: ...
    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        """By id; members in the order in which they joined. ``topics``: all that the brokers know of, internal ones
        only where they exist already."""
        ...

    def assigned(self, memory: Memory, share: Share, /) -> Heard: ...


def by_topic(partitions: Sequence[Partition]) -> Partitions:
    """In the order in which tasks and partitions are paired: topics as Java compares strings, then numbers."""
    return tuple(sorted(partitions, key=lambda each: (each[0].encode("utf-16-be"), each[1])))
