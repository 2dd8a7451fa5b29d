"""The tasks of an application, and who gets which: balanced over instances and their consumers, and sticky.

Kafka's own assignors are many; which of two equal places they choose is nobody's law. This one has no luck in it.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias, final

from kipcheck.conformance.models.assignment import Partition, Topic
from kipcheck.conformance.models.membership import Partitions
from kipcheck.conformance.models.streams.members import Subtopology, TaskId, Tasks, Topology, by_topic


@final
@dataclass(frozen=True, slots=True)
class Work:
    """All that there is to do."""

    partitions: Mapping[TaskId, Partitions]
    """Of each task what it reads, by topic."""
    stateful: frozenset[TaskId]
    """Those with a changelog: only they can stand by."""
    task: Mapping[Partition, TaskId]
    """Who reads a partition."""
    missing: tuple[str, ...] = ()
    """Sources that somebody should have made, and that do not exist."""
    uneven: tuple[str, ...] = ()
    """Sources of co-partitioned groups that are not of one size, or the first such group of which one is missing."""
    repartition: frozenset[str] = frozenset()
    """Topics that the leader makes."""
    unsized: frozenset[str] = frozenset()
    """Those of them whose size hangs on topics that are missing;"""
    endless: frozenset[str] = frozenset()
    """by two steps or more;"""
    one_step: frozenset[str] = frozenset()
    """and all of which nothing that is read upstream exists already."""
    left_out: frozenset[str | None] = frozenset()
    """Topologies of which something is missing."""

    @property
    def tasks(self) -> Tasks:
        return tuple(self.partitions)


@lru_cache(maxsize=256)
def work(topology: Topology, topics: tuple[Topic, ...]) -> Work:
    """``topics``: those that exist. A subtopology of which a source has no size has no tasks.

    Repartition topics have the size of the largest topic that is read upstream of them, whether they exist or not;
    then a co-partitioned group gives its size to those that are part of it.
    """
    known = {each.name: each.partitions for each in topics}
    written = frozenset(topic for each in topology.subtopologies for topic in each.repartition) & topology.source_topics
    sizes, unsized, endless = _chained(
        topology, written, {name: size for name, size in known.items() if name not in written}
    )
    uneven = _level(topology, written, sizes)
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
    """Has it a changelog?"""
    return any(
        store.logged
        for each in topology.subtopologies
        if (each.id, each.topology) == (task.subtopology, task.topology)
        for store in each.stores
    )


def _upstream(topology: Topology, topic: str) -> list[str]:
    return [source for each in topology.subtopologies if topic in each.repartition for source in each.sources]


def _chained(
    topology: Topology, written: frozenset[str], sizes: dict[str, int]
) -> tuple[dict[str, int], frozenset[str], frozenset[str]]:
    """Sizes of repartition topics as far as they can be told; those that have none, and those of them that have no
    missing topic right before them."""
    upstream = {topic: _upstream(topology, topic) for topic in sorted(written)}
    lacking = {topic for topic, sources in upstream.items() if any(_lacks(each, written, sizes) for each in sources)}
    pending = dict(upstream)
    while True:
        told = {
            topic: max(sizes[each] for each in sources if each in sizes)
            for topic, sources in pending.items()
            # What is read upstream and is still to be told may be the largest.
            if any(each in sizes for each in sources) and not any(each in pending for each in sources if each != topic)
        } or {
            topic: max(sizes[each] for each in sources if each in sizes)
            for topic, sources in pending.items()
            if any(each in sizes for each in sources)
        }
        if not told:
            return sizes, frozenset(pending), frozenset(pending) - lacking
        sizes = {**sizes, **told}
        pending = {topic: sources for topic, sources in pending.items() if topic not in told}


def _lacks(source: str, written: frozenset[str], sizes: Mapping[str, int]) -> bool:
    return source not in written and source not in sizes


def _level(topology: Topology, written: frozenset[str], sizes: dict[str, int]) -> tuple[str, ...]:
    """Repartition topics get the size of their co-partitioned group. What is wrong with the first group that is not
    right: the topics that are missing, or all."""
    for group in (group for each in topology.subtopologies for group in each.copartition):
        given = [topic for topic in group if topic not in written]
        lacking = tuple(sorted(topic for topic in given if topic not in sizes))
        if lacking or len({sizes[topic] for topic in given}) > 1:
            return lacking or tuple(sorted(group))
        candidates = [sizes[topic] for topic in given or group if topic in sizes]
        if candidates:
            sizes.update(dict.fromkeys((topic for topic in group if topic in written), max(candidates)))
    return ()


# Who gets what


class Consumer(NamedTuple):
    id: str
    active: frozenset[TaskId] = frozenset()
    """That it ran,"""
    standby: frozenset[TaskId] = frozenset()
    """and those of which it has state."""


class Client(NamedTuple):
    """An instance: several consumers are its threads."""

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
"""By consumer."""
Previous: TypeAlias = Mapping[str, Sequence[frozenset[TaskId]]]
"""Of a place the tasks that would rather stay there: those of the first set before those of the second."""


def place(
    todo: Work, clients: Iterable[Client], standbys: int = 0, for_all: bool = False, wanders: bool = False
) -> Placement:
    """No two instances differ by more than one task for each of their consumers, nor do two consumers of one.

    A task stays where it ran as far as that allows, else it goes where there is state of it; with ``wanders`` only if
    it has state. ``standbys``: copies of each task with state, each on another instance that does not run it, as many
    as there are; ``for_all``: also of tasks without state.
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
    """Tasks on places, by how much room each has: nowhere more than the share rounded up, or less than it rounded
    down. Nowhere, where there is no place. ``stay``: who is asked where it was, and comes first; None for all."""
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
        # What fits in anyway comes first, so that nobody's luck takes another one's room.
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
    """In which tasks are sorted: a topology without a name first."""
    return task.topology or "", task.subtopology, task.partition
