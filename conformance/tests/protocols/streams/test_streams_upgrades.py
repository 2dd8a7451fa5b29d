"""Upgrades of Streams groups by hand, and what releases do that no KIP says."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import pytest

from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.model.members import (
    FUTURE,
    NO_REBALANCE,
    AssignmentInfo,
    Endless,
    Fatal,
    Subtopology,
    Topology,
)
from kipcheck.conformance.protocols.streams.model.rules import Rules
from kipcheck.conformance.protocols.streams.ops import STATELESS, TOPICS
from kipcheck.conformance.tests.support.streams_members import ALL, CHAINED, NEW, STATEFUL, Group, assignment_result

# Upgrades


def test_a_single_bounce_costs_two_rounds_for_each_member() -> None:
    """268-22, 268-37, and what everybody is told on the way (2.8.0 to 3.9.2)."""
    group = Group("a=2.8.0 b=2.8.0 c=2.8.0", topology=STATEFUL)
    assert group.rounds("c") == 1
    group.start("a", "3.9.2")
    assert (group.subscribe("a").used, group.subscribe("a").latest) == (11, 11)
    first = group.lead("c")
    assert {(each.used, each.supported) for each in first.values()} == {(9, 9)}
    assert len(first["a"].active) == 1
    assert (group.receive("a").rejoin.when, group.receive("b").rejoin.when) == ("now", "never")
    assert (group.subscribe("a").used, group.subscribe("a").latest) == (9, 11)
    assert group.rounds("c") == 1
    group.start("b", "3.9.2")
    assert group.rounds("c") == 2
    group.start("c", "3.9.2")
    last = group.lead("a")
    assert {(each.used, each.supported) for each in last.values()} == {(9, 11)}
    assert {group.receive(each).rejoin.when for each in "abc"} == {"now"}
    assert group.used == [11, 11, 11]
    assert group.rounds("a") == 1
    assert group.active == ALL


@pytest.mark.parametrize("bounces", [*permutations("abc")])
@pytest.mark.parametrize(
    ("old", "new"), [("2.4.1", "2.6.0"), ("2.6.3", "3.9.2"), ("3.1.2", "4.3.1"), ("3.9.2", FUTURE)]
)
@pytest.mark.parametrize("topology", [STATEFUL, STATELESS])
def test_every_order_of_bounces_ends_in_the_newest_version(
    bounces: Iterable[str], old: str, new: str, topology: Topology
) -> None:
    """268-22. From 2.6.0 on a member that is a stranger may push tasks without state aside: one more round."""
    group = Group(f"a={old} b={old} c={old}", topology=topology)
    leader = "a"
    group.rounds(leader)
    for each in bounces:
        group.start(each, new)
        leader = leader if each != leader else "bca"["abc".index(each)]
        assert group.rounds(leader) <= (2 if topology == STATEFUL else 3)
        assert group.active == ALL
    assert set(group.used) == {group.members["a"].latest}


def test_tasks_without_state_go_where_the_order_of_instances_puts_them() -> None:
    """From 2.6.0 on (KIP-441)."""
    for release, fitted, moved in (("2.5.1", True, False), ("2.6.0", True, True), ("2.6.0", False, False)):
        group = Group(f"a={release} b={release}", fitted=fitted)
        group.owned = {"a": (("t", 1),), "b": (("t", 0), ("t", 2))}
        group.lead("a")
        kept = {each: set(group.shares[each].partitions) for each in "ab"}
        assert kept == ({"a": set(), "b": set()} if moved else {"a": {("t", 1)}, "b": {("t", 0), ("t", 2)}})


@pytest.mark.parametrize(
    ("old", "new"), [("0.10.0.1", "1.1.1"), ("0.10.0.1", "2.0.1"), ("1.1.1", "2.0.1"), ("0.11.0.3", "2.3.1")]
)
def test_two_bounces_go_from_before_probing(old: str, new: str) -> None:
    """268-10, 268-13, 268-41."""
    line = old.rsplit(".", 1)[0]
    group = Group(f"a={old} b={old} c={old}")
    group.rounds("a")
    version = group.used[0]
    for suffix in (f"<{line}", ""):
        for each in "abc":
            group.start(each, new + suffix)
            assert group.rounds("c" if each == "a" else "a") == 1
            assert group.active == ALL
        assert {info.used for info in group.told.values()} == ({version} if suffix else {Rules.of(new).latest})
    assert {each.used for each in group.lead("a").values()} == {Rules.of(new).latest}


def test_what_a_cooperative_member_owns_still_is_withheld_and_comes_a_round_later() -> None:
    for release, announced in (("2.4.1", NO_REBALANCE), ("2.6.0", 0), ("3.9.2", 0)):
        group = Group(f"a={release} b={release}")
        group.rebalance("a")
        group.start("c", release)
        sent = group.lead("a")
        assert (sent["c"].active, sent["c"].next_ms) == ((), announced)
        assert sent["a"].next_ms == sent["b"].next_ms == NO_REBALANCE
        reported = [group.receive(each).rejoin.when for each in "abc"]
        assert reported == ["never", "never", "now" if announced == 0 else "never"]
        group.rebalance("a")
        assert group.active == ALL and [len(each.active) for each in group.memories.values()] == [1, 1, 1]


def test_an_older_version_has_no_place_for_that_time() -> None:
    group = Group("a=3.9.2 b=2.4.1")
    group.rebalance("a")
    group.start("c", "3.9.2")
    sent = group.lead("a")
    assert (sent["c"].active, sent["c"].next_ms, sent["c"].used) == ((), NO_REBALANCE, 5)


def test_a_consumer_that_waits_keeps_the_state_of_its_task_ready() -> None:
    for release, kept in (("2.5.1", 0), ("2.6.0", 1), ("3.5.1", 1), ("3.5.2", 0), ("4.3.1", 0)):
        group = Group(f"a={release} b={release}", topology=STATEFUL)
        group.rebalance("a")
        group.start("c", release)
        assert len(group.lead("a")["c"].standby) == kept
        group.memories["c"] = replace(group.memories["c"], standby=tuple(ALL))
        assert len(group.lead("a")["c"].standby) == (kept if release != "3.5.2" and release != "4.3.1" else 1)


# What is known of releases and in no KIP


@pytest.mark.parametrize("leader", ["2.1.1", "2.2.0", "2.3.0"])
def test_2_0_members_adopt_a_version_that_they_do_not_know(leader: str) -> None:
    """KAFKA-8649, 268-33: and throw when they subscribe."""
    group = Group(f"a={leader} b=2.0.1")
    group.rebalance("a")
    assert group.used[1] == 4
    with pytest.raises(Fatal, match="between 1 and 3; was: 4"):
        group.subscribe("b")
    for text, fitted in ((f"a={leader} b=2.0.1", False), ("a=2.3.1 b=2.0.1", True)):
        group = Group(text, fitted=fitted)
        group.rounds("a")
        assert group.subscribe("b").used == 3


@pytest.mark.parametrize(("release", "fitted", "shared"), [
    ("2.0.0", True, True), ("2.2.0", True, True), ("2.3.0", True, True), ("2.0.0", False, False),
    ("2.2.2", True, False), ("2.3.1", True, False),
])  # fmt: skip
def test_in_an_echo_threads_of_an_instance_get_each_others_partitions(release: str, fitted: bool, shared: bool) -> None:
    """KAFKA-8649, 268-43."""
    group = Group(f"a={release}@i b={release}@i", fitted=fitted)
    group.rebalance("a")
    group.start("c", FUTURE)
    group.lead("a")
    both = set(group.shares["a"].partitions) & set(group.shares["b"].partitions)
    assert bool(both) is shared
    assert len({each for share in group.shares.values() for each in share.partitions}) == 3


def test_that_echo_does_not_fit_tasks_of_two_partitions() -> None:
    joined = Topology((Subtopology(0, ("t", "u")),))
    group = Group("a=2.0.1 b=2.0.1", topology=joined)
    group.topics = (Topic("t", 2), Topic("u", 2))
    group.rebalance("a")
    group.start("b", FUTURE)
    group.lead("a")
    with pytest.raises(Fatal, match="2 assigned partitions and 1 active task"):
        group.receive("a")


def test_leaders_without_the_fix_write_what_the_first_members_cannot_read() -> None:
    """KAFKA-6054: the KIP's reason to be."""
    for fitted in (True, False):
        group = Group("a=1.1.0 b=0.10.0.1", fitted=fitted)
        group.lead("a")
        with pytest.raises(Fatal, match="unable to decode"):
            group.receive("b")
        assert Group("a=1.1.1 b=0.10.0.1", fitted=fitted).rounds("a") == 1


@pytest.mark.parametrize(("leader", "follower"), [("2.1.1", "2.0.0"), ("2.4.1", "2.3.1"), ("3.9.2", "2.8.0")])
def test_older_members_cannot_read_that_there_is_an_error(leader: str, follower: str) -> None:
    """268-42."""
    group = Group(f"a={leader} b={follower}")
    group.topics = ()
    group.lead("a")
    with pytest.raises(Fatal, match="unable to decode"):
        group.receive("b")
    if Rules.of(follower).tells_errors:
        group = Group(f"a={leader} b={follower}", fitted=False)
        group.topics = ()
        group.lead("a")
        assert group.receive("b").error == 1


SHORT = replace(CHAINED, subtopologies=(CHAINED.subtopologies[0], Subtopology(1, ("r",))))


@pytest.mark.parametrize(("release", "fitted", "topology", "topics", "ends"), [
    ("0.10.0.1", True, CHAINED, TOPICS, "endless"), ("0.10.1.0", True, CHAINED, TOPICS, "assigned"),
    ("0.10.0.1", True, CHAINED, (*TOPICS, Topic("r", 3)), "assigned"), ("0.10.0.1", True, SHORT, TOPICS, "assigned"),
    ("0.10.1.1", True, SHORT, (), "endless"), ("0.10.2.0", True, SHORT, (), "left out"),
    ("0.10.2.0", True, CHAINED, (), "endless"), ("1.1.1", True, CHAINED, (), "endless"),
    ("2.0.0", True, SHORT, (), "left out"), ("2.0.0", True, CHAINED, (), "endless"),
    ("2.0.0", False, CHAINED, (), "thrown"), ("2.1.1", True, CHAINED, (), "told"),
])  # fmt: skip
def test_a_size_that_hangs_on_nothing_may_be_looked_for_for_ever(
    release: str, fitted: bool, topology: Topology, topics: tuple[Topic, ...], ends: str
) -> None:
    """KAFKA-5037: up to 2.0.1, by one step or by two."""
    group = Group(f"a={release}", fitted=fitted, topology=topology)
    group.topics = topics
    if ends in ("endless", "thrown"):
        with pytest.raises(Endless if ends == "endless" else Fatal) as thrown:
            group.lead("a")
        assert isinstance(thrown.value, Endless) is (ends == "endless")
        return
    info = group.lead("a")["a"]
    assert info.error == (ends == "told")
    assert bool(info.active) is (ends == "assigned")


def test_2_6_0_stays_in_the_group_and_says_the_same_again() -> None:
    """KAFKA-10455: the coordinator may skip what does not differ."""
    for release, fitted, when, differ in (
        ("2.6.0", True, "now", False),
        ("2.6.1", True, "now", True),
        ("2.5.1", True, "again", False),
        ("2.6.0", False, "again", False),
    ):
        group = Group(f"a={release} b={release}", fitted=fitted)
        assert (group.subscribe("a") != group.subscribe("a")) is differ
        latest = Rules.of(release).latest
        assert assignment_result(release, latest, AssignmentInfo(latest - 1, latest - 1), fitted).rejoin.when == when


def test_up_to_2_3_1_a_member_that_probes_keeps_its_old_tasks() -> None:
    """KAFKA-8972, 268-44: its consumer already has the new partitions."""
    for release, fitted, is_applied in (("2.3.1", True, False), ("2.3.1", False, True), ("2.4.1", True, True)):
        reported = assignment_result(release, Rules.of(release).latest, AssignmentInfo(3, 3), fitted)
        assert (reported.applied, reported.memory.active == NEW) == (is_applied, is_applied)


def test_a_member_probes_in_vain_where_its_leader_knows_its_version_and_another_member_does_not() -> None:
    """2.0.0 to 2.3.0: it never comes to rest, and by the KIP it would."""
    info = AssignmentInfo(3, 4)
    assert assignment_result("2.1.1", 4, info).rejoin.when == "again"
    assert assignment_result("2.1.1", 4, info, fitted=False).rejoin.when == "never"


def test_nobody_ends_the_upgrade_to_2_1_and_everybody_that_to_2_2_2() -> None:
    """268-36, 268-37."""
    for release, fitted, asks in (("2.1.1", True, set()), ("2.2.2", True, {"a", "b"}), ("2.1.1", False, {"a"})):
        group = Group(f"a={release} b={release}", fitted=fitted)
        group.memories = {each: replace(memory, used=3) for each, memory in group.memories.items()}
        reported = group.rebalance("a")
        assert {each for each, it in reported.items() if it.rejoin.when == "again"} == asks
        assert group.used == [4, 4]


def test_standbys_of_tasks_without_state_end_with_2_5() -> None:
    for release, fitted, copies in (("2.5.1", True, 3), ("2.6.0", True, 0), ("2.5.1", False, 0)):
        group = Group(f"a={release} b={release}", fitted=fitted, topology=replace(STATELESS, standbys=1))
        assert sum(len(each.standby) for each in group.lead("a").values()) == copies
