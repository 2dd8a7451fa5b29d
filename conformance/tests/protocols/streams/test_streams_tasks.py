"""Tasks of a Streams topology, and who gets them."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings as budget, strategies as st

from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.model.members import (
    Fatal,
    Store,
    Subtopology,
    TaskId,
    Topology,
    by_topic,
)
from kipcheck.conformance.protocols.streams.model.rules import NEWEST_VERSION, Rules
from kipcheck.conformance.protocols.streams.model.tasks import Client, Consumer, Placement, order, place, spread, work
from kipcheck.conformance.tests.support.streams_members import Group


def test_sizes_are_handed_down_a_chain() -> None:
    topology = Topology(
        (
            Subtopology(0, ("t",), ("r",)),
            Subtopology(1, ("u",), ("r",)),
            Subtopology(2, ("r",), ("q",), (Store("s"), Store("m", logged=False))),
            Subtopology(3, ("q", "v"), copartition=(("q", "v"),), stores=(Store("m", logged=False),)),
        )
    )
    todo = work(topology, (Topic("t", 2), Topic("u", 4), Topic("v", 4)))
    sizes = {each: len([task for task in todo.tasks if task.subtopology == each]) for each in range(4)}
    assert sizes == {0: 2, 1: 4, 2: 4, 3: 4}
    assert todo.partitions[TaskId(3, 1)] == (("q", 1), ("v", 1))
    assert todo.stateful == {TaskId(2, number) for number in range(4)}
    assert todo.task[("r", 3)] == TaskId(2, 3)
    assert not (todo.missing or todo.uneven or todo.unsized or todo.endless)
    assert todo.repartition == {"r", "q"}


def test_a_co_partitioned_repartition_topic_takes_the_size_of_its_group() -> None:
    topology = Topology((Subtopology(0, ("t",), ("r",)), Subtopology(1, ("r", "v"), copartition=(("r", "v"),))))
    todo = work(topology, (Topic("t", 2), Topic("v", 5)))
    assert len(todo.tasks) == 2 + 5
    assert work(topology, (Topic("t", 2),)).missing == ("v",)


def test_a_task_reads_of_each_topic_what_is_there() -> None:
    todo = work(Topology((Subtopology(0, ("t", "u")),)), (Topic("t", 1), Topic("u", 2)))
    assert todo.partitions == {TaskId(0, 0): (("t", 0), ("u", 0)), TaskId(0, 1): (("u", 1),)}


ids = st.tuples(st.integers(0, 1), st.integers(0, 5)).map(lambda numbers: TaskId(*numbers))
tasks = st.lists(ids, unique=True, max_size=12).map(tuple)
rooms = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3), min_size=1, max_size=5)


@st.composite
def groups(draw: st.DrawFn) -> tuple[Topology, tuple[Client, ...]]:
    """Instances with threads, that claim whatever."""
    topology = Topology(
        (Subtopology(0, ("t",), ("r",)), Subtopology(1, ("r",), stores=(Store("s"),))), draw(st.integers(0, 3))
    )
    claimed = st.frozensets(ids, max_size=4)
    clients = []
    for process in range(draw(st.integers(1, 4))):
        count = draw(st.integers(1, 3))
        threads = tuple(Consumer(f"{process}{thread}", draw(claimed), draw(claimed)) for thread in range(count))
        clients.append(Client(f"p{process}", threads))
    return topology, tuple(clients)


@budget(max_examples=60, deadline=None)
@given(tasks, rooms, st.data())
def test_tasks_are_spread_evenly_and_stay_as_far_as_that_allows(
    wanted: tuple[TaskId, ...], room: dict[str, int], data: st.DataObject
) -> None:
    ran = {task: data.draw(st.sampled_from([*room, "nobody"])) for task in wanted}
    before = {each: frozenset(task for task, place in ran.items() if place == each) for each in room}
    after = spread(wanted, room, {each: (before[each], frozenset()) for each in room})
    assert sorted((task for each in after.values() for task in each), key=order) == sorted(wanted, key=order)
    for each, had in before.items():
        share = len(wanted) * room[each] / sum(room.values())
        assert int(share) <= len(after[each]) <= int(share) + 1
        assert len(had & set(after[each])) >= min(len(had), int(share)), "it could have kept more"


def previous(clients: Iterable[Client], placed: Placement) -> tuple[Client, ...]:
    return tuple(
        Client(
            each.id,
            tuple(
                Consumer(one.id, frozenset(placed[one.id].active), frozenset(placed[one.id].standby))
                for one in each.consumers
            ),
        )
        for each in clients
    )


@budget(max_examples=60, deadline=None)
@given(groups(), st.integers(0, 4))
def test_everybody_has_a_part_and_nothing_moves_without_need(
    group: tuple[Topology, tuple[Client, ...]], size: int
) -> None:
    topology, clients = group
    todo = work(topology, (Topic("t", size),))
    placed = place(todo, clients, topology.standbys)
    assert sorted((task for each in placed.values() for task in each.active), key=order) == [*todo.tasks]
    for client in clients:
        shares = [placed[each.id] for each in client.consumers]
        active = {task for each in shares for task in each.active}
        kept = [task for each in shares for task in each.standby]
        assert len(kept) == len(set(kept)) and not active & set(kept)
        for sizes in ([len(each.active) for each in shares], [len(each.standby) for each in shares]):
            assert max(sizes) - min(sizes) <= 1
    copies = [task for each in placed.values() for task in each.standby]
    wanted = min(topology.standbys, len(clients) - 1)
    assert {task: copies.count(task) for task in todo.tasks} == {
        task: wanted if task in todo.stateful else 0 for task in todo.tasks
    }
    assert place(todo, clients[::-1], topology.standbys) == placed
    assert place(todo, previous(clients, placed), topology.standbys) == placed


def test_partitions_are_paired_with_their_tasks_in_order() -> None:
    """268-51."""
    topology = Topology((Subtopology(0, ("b", "a")), Subtopology(1, ("c",))))
    group = Group("a=3.9.2", topology=topology)
    group.topics = (Topic("a", 2), Topic("b", 1), Topic("c", 1))
    info = group.lead("a")["a"]
    assert group.shares["a"].partitions == by_topic([("b", 0), ("c", 0), ("a", 1), ("a", 0)])
    assert info.active == (TaskId(0, 0), TaskId(0, 1), TaskId(0, 0), TaskId(1, 0))


def test_names_of_topologies_need_a_version_that_has_a_place_for_them() -> None:
    named = Topology((Subtopology(0, ("t",), topology="x", stores=(Store("s"),)),))
    group = Group("a=3.9.2 b=2.8.0", topology=named)
    assert {each.error for each in group.lead("a").values()} == {3}
    group.memories["b"] = replace(group.memories["b"], active=(TaskId(0, 0, "x"),))
    with pytest.raises(Fatal, match="name of a topology"):
        group.subscribe("b")


def test_the_newest_version_of_releases_grows() -> None:
    newest = [Rules.of(release).latest for release in patches()]
    assert newest == sorted(newest) and {newest[0], newest[-1]} == {1, NEWEST_VERSION}
