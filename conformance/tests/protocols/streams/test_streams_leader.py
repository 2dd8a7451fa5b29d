"""What the leader of a Streams group assigns, release by release."""

from dataclasses import replace

import pytest

from kipcheck.conformance.core.values.edition import KIP_268
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.model.members import (
    FUTURE,
    NO_VERSION,
    AssignmentInfo,
    Fatal,
    Subtopology,
    Topology,
)
from kipcheck.conformance.protocols.streams.model.rules import Rules
from kipcheck.conformance.protocols.streams.model.tasks import order
from kipcheck.conformance.tests.support.streams_members import ALL, NEWEST, STATEFUL, Group


@pytest.mark.parametrize("text", ["a=0.10.0.1 b=0.10.1.1", "a=0.10.0.0 b=2.0.1", "a=1.1.1 b=2.0.1", "a=1.0.0 b=3.9.2"])
def test_a_leader_from_before_probing_throws_at_a_version_above_its_own(text: str) -> None:
    """268-14, which the KIP says itself."""
    for fitted in (True, False):
        with pytest.raises(Fatal, match="unable to decode"):
            Group(text, fitted=fitted).lead("a")


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "2.2.1", "2.3.0"])
def test_a_first_prober_gets_nothing_but_the_leaders_version_and_the_others_what_they_claimed(release: str) -> None:
    """268-29, 268-30: the task of the member that was bounced stays idle for a round."""
    group = Group(f"a={release} b={release} c={release}")
    group.rebalance("a")
    group.start("c", FUTURE)
    sent = group.lead("a")
    latest = Rules.of(release).latest
    assert sent["c"] == AssignmentInfo(latest, latest)
    assert group.shares["c"].partitions == ()
    assert [len(sent[each].active) for each in "ab"] == [1, 1]
    assert group.rebalance("b")["c"].rejoin.when == "now"
    assert group.rebalance("b")["c"].rejoin.when == "never"
    assert group.active == ALL


@pytest.mark.parametrize("release", ["2.2.2", "2.3.1"])
def test_a_later_prober_gets_nothing_in_the_version_of_the_group(release: str) -> None:
    """268-29: the lowest used and the lowest supported version."""
    group = Group(f"a={release} b=2.0.1 c={FUTURE}")
    sent = group.lead("a")
    assert sent["c"] == AssignmentInfo(3, 3)
    assert group.shares["c"].partitions == ()


@pytest.mark.parametrize("release", ["2.4.1", "2.5.1", "2.6.0", "2.8.0", "3.9.2", "4.3.1"])
def test_from_2_4_on_strangers_take_part(release: str) -> None:
    """268-31: in the version of the group, and nothing stays idle."""
    group = Group(f"a={release} b={FUTURE} c={FUTURE}")
    sent = group.lead("a")
    latest = Rules.of(release).latest
    assert [len(each.active) for each in sent.values()] == [1, 1, 1]
    assert {(each.used, each.supported) for each in sent.values()} == {(latest, latest)}


def test_as_the_kip_has_it_strangers_get_nothing_and_the_others_everything() -> None:
    """268-15, 268-16, foreseen of a release and written in the draft."""
    for where, own, latest in ((NEWEST, "2.0.1", 3), (NEWEST, "2.8.0", 9), (KIP_268, "own", 3)):
        group = Group(f"a={own} b={own} c={FUTURE}", where, fitted=False)
        sent = group.lead("a")
        assert sent["c"] == AssignmentInfo(latest, latest)
        assert [*sent["a"].active, *sent["b"].active] == [ALL[0], ALL[1], ALL[2]] or len(sent["a"].active) == 2
        assert sorted([*sent["a"].active, *sent["b"].active], key=order) == ALL


@pytest.mark.parametrize("release", ["2.0.1", "2.3.1", "2.4.1", "2.6.1"])
def test_a_stranger_beside_a_member_from_before_probing_is_an_error(release: str) -> None:
    """268-32."""
    with pytest.raises(Fatal) as thrown:
        Group(f"a={release} b={release}<1.1 c={FUTURE}").lead("a")
    assert thrown.value.kind.endswith("IllegalStateException")


@pytest.mark.parametrize("release", ["2.7.0", "2.8.0", "3.9.2"])
def test_later_leaders_tell_that_error_to_all_in_a_version_that_the_old_one_cannot_read(release: str) -> None:
    """268-32, 268-42."""
    group = Group(f"a={release} b=1.1.1 c={FUTURE}")
    sent = group.lead("a")
    latest = Rules.of(release).latest
    assert set(sent.values()) == {AssignmentInfo(latest, latest, error=3)}
    assert group.receive("c").error == 3
    with pytest.raises(Fatal, match="unable to decode"):
        group.receive("b")


def test_nothing_in_the_kip_makes_that_an_error() -> None:
    for where in (NEWEST, KIP_268):
        own = "own" if where == KIP_268 else "2.0.1"
        group = Group(f"a={own} b={own}<1.1 c={FUTURE}", where, fitted=False)
        assert {each: info.used for each, info in group.lead("a").items()} == {"a": 2, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("text", "used", "second"),
    [
        ("a=1.1.1 b=1.1.1<0.10.0", 1, NO_VERSION),
        ("a=1.1.0 b=1.1.1<0.10.0", 2, NO_VERSION),
        ("a=2.0.1 b=2.0.1<0.10.0", 1, NO_VERSION),
        ("a=2.0.1 b=2.0.1<0.11.0", 2, NO_VERSION),
        ("a=2.1.1 b=2.0.1", 3, 4),
        ("a=2.3.0 b=2.0.1", 3, 4),
        ("a=2.2.2 b=2.0.1", 3, 3),
        ("a=2.3.1 b=2.0.1", 3, 3),
        ("a=3.9.2 b=2.8.0", 9, 9),
        ("a=3.9.2<1.1 b=3.9.2", 2, NO_VERSION),
    ],
)
def test_an_assignment_is_in_the_lowest_version_and_has_a_second_one(text: str, used: int, second: int) -> None:
    """268-11, 268-12, 268-20, 268-34; without the fix of KAFKA-6054 it is always in version 2."""
    sent = Group(text).lead("a")
    assert {(each.used, each.supported) for each in sent.values()} == {(used, second)}


@pytest.mark.parametrize(("text", "active", "standby"), [
    ("a=0.10.0.1 b=0.10.0.1", False, False), ("a=1.1.1 b=1.1.1", True, False), ("a=2.3.1 b=2.3.1", True, False),
    ("a=2.4.1 b=2.4.1", True, False), ("a=2.5.1 b=2.5.1", True, True), ("a=3.9.2 b=2.4.1", True, False),
    ("a=3.9.2 b=3.9.2<0.10.0", False, False), ("a=4.3.1 b=4.3.1", True, True),
])  # fmt: skip
def test_end_points_are_told_from_version_2_on_and_what_stands_by_from_6_on(
    text: str, active: bool, standby: bool
) -> None:
    group = Group(text, topology=replace(STATEFUL, standbys=1), ends=True)
    for info in group.lead("a").values():
        hosts = dict(info.hosts)
        assert (set(hosts) == {"a:9092", "b:9092"}) is active
        assert all(hosts[f"{each}:9092"] == group.shares[each].partitions for each in "ab" if active)
        assert {host: len(read) for host, read in info.standby_hosts} == ({"a:9092": 1, "b:9092": 2} if standby else {})


@pytest.mark.parametrize("release", ["2.1.0", "2.3.1", "2.4.1", "2.6.1", "2.8.0", "3.9.2", "4.3.1"])
def test_a_missing_source_is_told_as_an_error(release: str) -> None:
    """KAFKA-5037: code 1, and the member's task manager is left alone."""
    group = Group(f"a={release} b={release}")
    group.rebalance("a")
    before = dict(group.memories)
    group.topics = ()
    sent = group.lead("a")
    latest = Rules.of(release).latest
    assert set(sent.values()) == {AssignmentInfo(latest, latest, error=1)}
    received = group.receive("b")
    assert (received.error, received.applied, received.memory.active) == (1, False, before["b"].active)


@pytest.mark.parametrize("release", ["0.10.0.0", "0.10.1.0", "0.10.1.1", "0.10.2.0", "1.1.1", "2.0.1"])
def test_before_that_it_is_thrown_or_the_tasks_are_left_out(release: str) -> None:
    group = Group(f"a={release} b={release}")
    group.topics = ()
    if release in ("0.10.0.0", "0.10.1.0"):
        with pytest.raises(Fatal, match="missing source"):
            group.lead("a")
    else:
        assert {each.active for each in group.lead("a").values()} == {()}


def test_what_is_read_together_must_be_there_together() -> None:
    joined = Topology((Subtopology(0, ("t", "u"), copartition=(("t", "u"),)),))
    for release in ("0.10.0.0", "0.10.2.1", "1.1.1", "2.0.1"):
        group = Group(f"a={release}", topology=joined)
        with pytest.raises(Fatal, match="u"):
            group.lead("a")


def test_members_that_could_not_be_read_are_forgotten_where_the_others_are_told_an_error() -> None:
    for release, reported in (("2.1.1", {"a"}), ("2.3.1", {"a"}), ("2.4.1", {"a", "b"})):
        group = Group(f"a={release} b={FUTURE}")
        group.topics = ()
        assert group.lead("a").keys() == reported


def test_one_named_topology_without_its_source_does_not_stop_the_others() -> None:
    named = Topology((Subtopology(0, ("t",), topology="x"), Subtopology(0, ("gone",), topology="y")))
    sent = Group("a=3.2.0", topology=named).lead("a")
    assert {each.topology for each in sent["a"].active} == {"x"}
    assert Group("a=3.1.0", topology=named).lead("a")["a"].error == 1


def test_a_wish_to_shut_down_is_told_to_all_from_2_8_on() -> None:
    for release, code in (("2.8.0", 4), ("3.9.2", 4), ("2.7.0", 0)):
        group = Group(f"a={release} b={release} c={release}")
        group.memories["b"] = replace(group.memories["b"], error=4)
        assert {each.error for each in group.lead("a").values()} == {code}


@pytest.mark.parametrize(("release", "fitted", "chained", "passes"), [
    ("0.10.2.1", True, False, False), ("2.0.1", True, False, False), ("3.1.2", True, False, False),
    ("3.2.0", True, False, True), ("4.3.1", True, False, True), ("4.3.1", False, False, False),
    ("4.3.1", True, True, False),
])  # fmt: skip
def test_topics_that_are_read_together_must_be_of_one_size(
    release: str, fitted: bool, chained: bool, passes: bool
) -> None:
    """From 3.2.0 on nobody looks, unless there is a repartition topic somewhere."""
    joined = (Subtopology(0, ("t", "u"), copartition=(("t", "u"),)),)
    elsewhere = (Subtopology(1, ("t",), ("r",)), Subtopology(2, ("r",)))
    group = Group(f"a={release}", fitted=fitted, topology=Topology((*joined, *elsewhere) if chained else joined))
    group.topics = (Topic("t", 3), Topic("u", 2))
    if passes:
        assert len(group.lead("a")["a"].active) == 5
    else:
        with pytest.raises(Fatal, match="co-partitioned"):
            group.lead("a")
