"""A streams group (KIP-1071) as its coordinator describes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Task: TypeAlias = tuple[str, int]
"""Subtopology and partition."""
Tasks: TypeAlias = tuple[Task, ...]
Offsets: TypeAlias = tuple[tuple[Task, int], ...]


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of a member. Sorted."""

    active: Tasks
    standby: Tasks
    warm_up: Tasks


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member of a streams group."""

    id: str
    instance: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int
    topology_epoch: int
    process: str
    end_point: str | None
    """Of the application, not of a broker."""
    tags: Mapping[str, str]
    offsets: Offsets
    end_offsets: Offsets
    """As the member reported both, for the state of its tasks; brokers up to 4.4 keep none."""
    assigned: TaskSet
    target: TaskSet
    is_classic: bool


@dataclass(frozen=True, slots=True)
class Subtopology:
    id: str
    sources: tuple[str, ...]
    """The topics that it reads, internal ones too."""
    sinks: tuple[str, ...]
    """The internal topics that it writes for other subtopologies."""
    changelogs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """A streams group."""

    id: str
    coordinator: tuple[str, int]
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    """None: it has no topology."""
    subtopologies: tuple[Subtopology, ...]
    assignor: str | None
    """None: a broker before 4.4 does not report it."""
    members: tuple[StreamsMember, ...]

    @property
    def topics(self) -> frozenset[str]:
        """Those that its tasks read."""
        return frozenset(topic for each in self.subtopologies for topic in each.sources)


def read_streams_group(group: str, at: tuple[str, int], found: Mapping[str, Any]) -> StreamsGroup:
    """A row of StreamsGroupDescribe."""
    topology = found["topology"]
    return StreamsGroup(
        group, at, found["groupState"], found["groupEpoch"], found["assignmentEpoch"],
        None if topology is None else topology["epoch"],
        tuple(map(_subtopology, (topology or {}).get("subtopologies") or ())), found.get("assignorName"),
        tuple(map(_member, found["members"])),
    )  # fmt: skip


def _subtopology(found: Mapping[str, Any]) -> Subtopology:
    internal = [each["name"] for each in found["repartitionSourceTopics"]]
    return Subtopology(
        found["subtopologyId"],
        tuple(sorted([*found["sourceTopics"], *internal])),
        tuple(sorted(found["repartitionSinkTopics"])),
        tuple(sorted(each["name"] for each in found["stateChangelogTopics"])),
    )


def _member(found: Mapping[str, Any]) -> StreamsMember:
    end_point = found["userEndpoint"]
    return StreamsMember(
        found["memberId"],
        found["instanceId"],
        found["clientId"],
        found["clientHost"].removeprefix("/"),
        found["rackId"],
        found["memberEpoch"],
        found["topologyEpoch"],
        found["processId"],
        None if end_point is None else f"{end_point['host']}:{end_point['port']}",
        {each["key"]: each["value"] for each in found["clientTags"]},
        _offsets(found["taskOffsets"]),
        _offsets(found["taskEndOffsets"]),
        _task_set(found["assignment"]),
        _task_set(found["targetAssignment"]),
        found["isClassic"],
    )


def _offsets(found: Sequence[Mapping[str, Any]]) -> Offsets:
    return tuple(sorted(((each["subtopologyId"], each["partition"]), each["offset"]) for each in found))


def _task_set(found: Mapping[str, Any]) -> TaskSet:
    return TaskSet(*(_tasks(found[f"{kind}Tasks"]) for kind in ("active", "standby", "warmup")))


def _tasks(found: Sequence[Mapping[str, Any]]) -> Tasks:
    return tuple(sorted((each["subtopologyId"], number) for each in found for number in each["partitions"]))


def task_names(tasks: Tasks) -> str:
    """``0_0 0_1``; ``none``"""
    return " ".join(map(task_name, tasks)) or "none"


def task_name(task: Task) -> str:
    """As Kafka Streams names it."""
    return f"{task[0]}_{task[1]}"
