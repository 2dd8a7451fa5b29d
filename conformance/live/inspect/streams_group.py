"""The members and subtopologies of a streams group (KIP-1071) as its coordinator describes them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from kipcheck.conformance.core.operations.field_annotations import Wire, wire

Task: TypeAlias = tuple[str, int]
"""Subtopology and partition."""
Tasks: TypeAlias = tuple[Task, ...]
Offsets: TypeAlias = tuple[tuple[str, int, int], ...]
"""Subtopology, partition and offset."""
Names: TypeAlias = tuple[str, ...]
Id: TypeAlias = Annotated[str, wire("memberId")]
Instance: TypeAlias = Annotated[str | None, wire("instanceId")]
ClientId: TypeAlias = Annotated[str, wire("clientId")]
Host: TypeAlias = Annotated[str, wire("clientHost as host")]
Rack: TypeAlias = Annotated[str | None, wire("rackId")]
Epoch: TypeAlias = Annotated[int, wire("memberEpoch")]


def _tasks(field: str) -> Wire:
    return wire(f"{field}[].subtopologyId", f"{field}[].partitions[]", is_sorted=True)


def _offsets(field: str) -> Wire:
    return wire(f"{field}[].subtopologyId", f"{field}[].partition", f"{field}[].offset", is_sorted=True)


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of a member."""

    active: Annotated[Tasks, _tasks("activeTasks")]
    standby: Annotated[Tasks, _tasks("standbyTasks")]
    warm_up: Annotated[Tasks, _tasks("warmupTasks")]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member of a streams group."""

    id: Id
    instance: Instance
    client_id: ClientId
    host: Host
    rack: Rack
    epoch: Epoch
    topology_epoch: Annotated[int, wire("topologyEpoch")]
    process: Annotated[str, wire("processId")]
    end_point: Annotated[str | None, wire("userEndpoint as end_point")]
    """Of the application, not of a broker."""
    tags: Annotated[tuple[tuple[str, str], ...], wire("clientTags[].key", "clientTags[].value")]
    offsets: Annotated[Offsets, _offsets("taskOffsets")]
    end_offsets: Annotated[Offsets, _offsets("taskEndOffsets")]
    """As the member reported both, for the state of its tasks; brokers up to 4.4 keep none."""
    assigned: Annotated[TaskSet, wire("assignment")]
    target: Annotated[TaskSet, wire("targetAssignment")]
    is_classic: Annotated[bool, wire("isClassic")]


@dataclass(frozen=True, slots=True)
class Subtopology:
    id: Annotated[str, wire("subtopologyId")]
    source_topics: Annotated[Names, wire("sourceTopics[]")]
    sinks: Annotated[Names, wire("repartitionSinkTopics[]", is_sorted=True)]
    """The internal topics that it writes for other subtopologies."""
    changelogs: Annotated[Names, wire("stateChangelogTopics[].name", is_sorted=True)]
    repartition_sources: Annotated[Names, wire("repartitionSourceTopics[].name")] = ()

    @property
    def sources(self) -> Names:
        """The topics that it reads, internal ones too."""
        return tuple(sorted((*self.source_topics, *self.repartition_sources)))


def task_names(tasks: Iterable[Task]) -> str:
    """``0_0 0_1``; ``none``"""
    return " ".join(map(task_name, tasks)) or "none"


def task_name(task: Task) -> str:
    """As Kafka Streams names it."""
    return f"{task[0]}_{task[1]}"
