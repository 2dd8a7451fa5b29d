"""The tasks of an application, and their balanced and sticky placement on instances and consumers.

Kafka has several task assignors, and no law fixes their choice between equal places. This one is deterministic.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias, final

from kipcheck.conformance.protocols.assignment.model.assignment import Partition, Topic
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.streams.model.members import Subtopology, TaskId, Tasks, Topology, by_topic


@final
@dataclass(frozen=True, slots=True)
class Work:
    """All tasks of a topology, and the topics that prevent tasks."""

    partitions: Mapping[TaskId, Partitions]
    """Task -> its input partitions, sorted by topic."""
    stateful: frozenset[TaskId]
    """Tasks with a changelog: only they can have standbys."""
    task: Mapping[Partition, TaskId]
    """Partition -> the task that reads it."""
    missing: tuple[str, ...] = ()
    """External source topics that do not exist."""
    uneven: tuple[str, ...] = ()
    """The first co-partitioned group of unequal sizes, or the missing topics of the first incomplete group."""
    repartition: frozenset[str] = frozenset()
    """Topics that the leader creates."""
    unsized: frozenset[str] = frozenset()
    """Repartition topics whose size depends on missing topics."""
    endless: frozenset[str] = frozenset()
    """Those of ``unsized`` that depend on missing topics only through two or more steps."""
    one_step: frozenset[str] = frozenset()
    """Repartition topics without any existing upstream topic."""
    left_out: frozenset[str | None] = frozenset()
    """Topologies with a missing source topic."""

    @property
    def tasks(self) -> Tasks:
        return tuple(self.partitions)


@lru_cache(maxsize=256)
def work(topology: Topology, topics: tuple[Topic, ...]) -> Work:
    """The tasks of a topology; ``topics`` are the existing ones. A subtopology with a source without size has no tasks.

    Repartition topics have the size of the largest upstream topic, whether they exist or not; then those in a
    co-partitioned group get the size of the group.
    """
    known = {each.name: each.partitions for each in topics}
    written = frozenset(topic for each in topology.subtopologies for topic in each.repartition) & topology.source_topics
    sizes, unsized, endless = _resolve_sizes(
        topology, written, {name: size for name, size in known.items() if name not in written}
    )
    uneven = _resolve_copartitions(topology, written, sizes)
    wanting = {each for each in topology.source_topics if each not in written and each not in sizes}
    partitions: dict[TaskId, Partitions] = {}
    for each in sorted(topology.subtopologies, key=_place):
        sources = [sizes.get(topic) for topic in each.sources]
        if any(size is None for size in sources):
            continue
        for number in range(max((size or 0 for size in sources), default=0)):
            read = by_topic([(topic, number) for topic in each.sources if number < sizes[topic]])
            partitions[TaskId(each.id, number, each.topology)] = read
    return Work(
        partitions,
        frozenset(task for task in partitions if stateful(topology, task)),
        {partition: task for task, read in partitions.items() for partition in read},
        tuple(sorted(wanting)),
        uneven,
        written,
        unsized,
        endless,
        frozenset(each for each in written if not any(source in known for source in _upstream(topology, each))),
        frozenset(each.topology for each in topology.subtopologies if wanting & set(each.sources)),
    )


def _place(subtopology: Subtopology) -> tuple[str, int]:
    return subtopology.topology or "", subtopology.id


def stateful(topology: Topology, task: TaskId) -> bool:
    """Whether the task has a changelog."""
    return any(
        store.logged
        for each in topology.subtopologies
        if (each.id, each.topology) == (task.subtopology, task.topology)
        for store in each.stores
    )


def _upstream(topology: Topology, topic: str) -> list[str]:
    return [source for each in topology.subtopologies if topic in each.repartition for source in each.sources]


def _resolve_sizes(
    topology: Topology, written: frozenset[str], sizes: dict[str, int]
) -> tuple[dict[str, int], frozenset[str], frozenset[str]]:
    """Sizes with those of repartition topics, if they can be determined; the repartition topics without a size; and
    those of them without a missing topic directly upstream."""
    upstream = {topic: _upstream(topology, topic) for topic in sorted(written)}
    lacking = {topic for topic, sources in upstream.items() if any(_lacks(each, written, sizes) for each in sources)}
    pending = dict(upstream)
    while True:
        resolved = {
            topic: max(sizes[each] for each in sources if each in sizes)
            for topic, sources in pending.items()
            # An upstream topic whose size is not determined yet may be the largest.
            if any(each in sizes for each in sources) and not any(each in pending for each in sources if each != topic)
        } or {
            topic: max(sizes[each] for each in sources if each in sizes)
            for topic, sources in pending.items()
            if any(each in sizes for each in sources)
        }
        if not resolved:
            return sizes, frozenset(pending), frozenset(pending) - lacking
        sizes = {**sizes, **resolved}
        pending = {topic: sources for topic, sources in pending.items() if topic not in resolved}


def _lacks(source: str, written: frozenset[str], sizes: Mapping[str, int]) -> bool:
    return source not in written and source not in sizes


def _resolve_copartitions(topology: Topology, written: frozenset[str], sizes: dict[str, int]) -> tuple[str, ...]:
    """Gives repartition topics the size of their co-partitioned group. Returns the missing topics of the first invalid
    group, or all its topics if their sizes differ."""
    for group in (group for each in topology.subtopologies for group in each.copartition):
        given = [topic for topic in group if topic not in written]
        lacking = tuple(sorted(topic for topic in given if topic not in sizes))
        if lacking or len({sizes[topic] for topic in given}) > 1:
            return lacking or tuple(sorted(group))
        candidates = [sizes[topic] for topic in given or group if topic in sizes]
        if candidates:
            sizes.update(dict.fromkeys((topic for topic in group if topic in written), max(candidates)))
    return ()


# Placement


class Consumer(NamedTuple):
    id: str
    active: frozenset[TaskId] = frozenset()
    """Tasks that it ran."""
    standby: frozenset[TaskId] = frozenset()
    """Other tasks whose state it has."""


class Client(NamedTuple):
    """An instance; its consumers are its threads."""

    id: str
    consumers: tuple[Consumer, ...]

    @property
    def active(self) -> frozenset[TaskId]:
        return frozenset[TaskId]().union(*(each.active for each in self.consumers))

    @property
    def standby(self) -> frozenset[TaskId]:
        return frozenset[TaskId]().union(*(each.standby for each in self.consumers))


class Placed(NamedTuple):
    active: Tasks
    standby: Tasks


Placement: TypeAlias = Mapping[str, Placed]
"""Consumer id -> its tasks."""
Previous: TypeAlias = Mapping[str, Sequence[frozenset[TaskId]]]
"""Place -> sets of tasks that prefer it, by descending preference."""


def place(
    todo: Work, clients: Iterable[Client], standbys: int = 0, for_all: bool = False, wanders: bool = False
) -> Placement:
    """A balanced placement: instances differ by at most one task per consumer, consumers of an instance by at most one.

    Within these limits a task stays where it ran, or else goes where its state is; with ``wanders``, only if it is
    stateful. ``standbys``: number of standbys of each stateful task, on different instances that do not run it, as far
    as there are any; ``for_all``: also of stateless tasks.
    """
    ordered = sorted(clients)
    of_clients = {each.id: each for each in ordered}
    rooms = {each.id: len(each.consumers) for each in ordered}
    stay = todo.stateful if wanders else todo.partitions.keys()
    active = spread(todo.tasks, rooms, {each.id: (each.active, each.standby) for each in ordered}, stay)
    copied = [task for task in todo.tasks if for_all or task in todo.stateful]
    standby = _stand_by(copied, of_clients, active, standbys)
    placed: dict[str, Placed] = {}
    for each in ordered:
        room = dict.fromkeys(sorted(thread.id for thread in each.consumers), 1)
        ran = {thread.id: (thread.active, thread.standby) for thread in each.consumers}
        kept = {thread.id: (thread.standby, thread.active) for thread in each.consumers}
        runs = spread(active[each.id], room, ran, stay)
        keeps = spread(standby[each.id], room, kept)
        placed.update((id, Placed(runs[id], keeps[id])) for id in room)
    return placed


def spread(
    tasks: Iterable[TaskId], rooms: Mapping[str, int], previous: Previous, stay: Container[TaskId] | None = None
) -> Mapping[str, Tasks]:
    """Distributes tasks over places in proportion to their rooms: each gets its share, rounded up or down. Without
    places, no task is placed. ``stay``: tasks that prefer their previous places and come first; None: all tasks."""
    ordered = sorted(tasks, key=lambda task: (stay is not None and task not in stay, order(task)))
    given: dict[str, list[TaskId]] = {id: [] for id in rooms}
    whole = sum(rooms.values())
    if not whole:
        return {id: () for id in rooms}
    least = {id: len(ordered) * room // whole for id, room in rooms.items()}
    extra = len(ordered) - sum(least.values())
    left = dict.fromkeys(ordered)

    def give(id: str, task: TaskId) -> None:
        nonlocal extra
        extra -= len(given[id]) >= least[id]
        given[id].append(task)
        del left[task]

    for rank in range(2):
        # Tasks within the guaranteed share come first, so that an extra task does not take another place's room.
        for beyond in (False, True):
            for id in rooms:
                for task in [each for each in left if (stay is None or each in stay) and each in previous[id][rank]]:
                    if len(given[id]) < least[id] + (beyond and extra > 0 and len(given[id]) == least[id]):
                        give(id, task)
    for task in list(left):
        wanting = [id for id in rooms if len(given[id]) < least[id]]
        places = wanting or [id for id in rooms if len(given[id]) == least[id]]
        give(min(places, key=lambda id: len(given[id]) / rooms[id]), task)
    return {id: tuple(sorted(tasks, key=order)) for id, tasks in given.items()}


def _stand_by(
    tasks: Iterable[TaskId], clients: Mapping[str, Client], active: Mapping[str, Tasks], copies: int
) -> Mapping[str, Tasks]:
    given: dict[str, list[TaskId]] = {id: [] for id in clients}
    for task in tasks:
        free = [id for id in clients if task not in active[id]]
        free.sort(key=lambda id: (not _keeps(clients[id], task), len(given[id]) / len(clients[id].consumers)))
        for id in free[:copies]:
            given[id].append(task)
    return {id: tuple(tasks) for id, tasks in given.items()}


def _keeps(client: Client, task: TaskId) -> bool:
    return task in client.standby or task in client.active


def order(task: TaskId) -> tuple[str, int, int]:
    """The sort key of tasks: an unnamed topology comes first."""
    return task.topology or "", task.subtopology, task.partition
