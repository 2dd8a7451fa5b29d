"""Streams assignors as models, driven by hand: what each release does, and the draft; tasks and who gets them."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import permutations

import pytest
from hypothesis import given, settings as budget, strategies as st

from kipcheck.conformance.core.edition import KIP_268, Edition, edition
from kipcheck.conformance.core.release import Release, releases
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, Topic
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER
from kipcheck.conformance.protocols.streams.model import leader as leading, member as following, rules as ruling
from kipcheck.conformance.protocols.streams.model.binaries import binary
from kipcheck.conformance.protocols.streams.model.deviations import DEVIATIONS, Deviation, deviations
from kipcheck.conformance.protocols.streams.model.group_model import process_of
from kipcheck.conformance.protocols.streams.model.leader import written
from kipcheck.conformance.protocols.streams.model.members import (
    FUTURE,
    LATEST_OFFSET,
    NO_REBALANCE,
    NO_VERSION,
    AssignmentInfo,
    AssignmentResult,
    Binary,
    Endless,
    Fatal,
    Joining,
    Memory,
    Misconfigured,
    Settings,
    Share,
    Store,
    SubscriptionInfo,
    Subtopology,
    TaskId,
    Topology,
    by_topic,
)
from kipcheck.conformance.protocols.streams.model.rules import LATEST, LINES, NEWEST_VERSION, Rules
from kipcheck.conformance.protocols.streams.model.tasks import Client, Consumer, Placement, order, place, spread, work
from kipcheck.conformance.protocols.streams.ops import STATELESS, TOPICS

NEWEST = edition("apache@4.3.1")
STATEFUL = Topology((Subtopology(0, ("t",), stores=(Store("s"),)),))
CHAINED = Topology(
    (Subtopology(0, ("t",), ("r",)), Subtopology(1, ("r",), ("q",)), Subtopology(2, ("q",), stores=(Store("s"),)))
)


class Group:
    """Members by name, as ``a=2.0.1``, ``a=2.4.1<2.3`` or ``a=2.0.1@i`` (a thread of instance i)."""

    def __init__(
        self,
        text: str,
        where: Edition = NEWEST,
        fitted: bool = True,
        topology: Topology = STATELESS,
        ends: bool = False,
    ) -> None:
        self.where, self.fitted, self.topology, self.ends = where, fitted, topology, ends
        self.topics: tuple[Topic, ...] = TOPICS
        self.members: dict[str, Binary] = {}
        self.memories: dict[str, Memory] = {}
        self.owned: dict[str, tuple[Partition, ...]] = {}
        self.told: dict[str, SubscriptionInfo] = {}
        self.shares: Mapping[str, Share] = {}
        for each in text.split():
            self.start(*each.split("="))

    def start(self, name: str, text: str) -> None:
        release, _, instance = text.partition("@")
        release, _, upgrade_from = release.partition("<")
        process = process_of(instance or name)
        end_point = f"{name}:9092" if self.ends else None
        settings = Settings(release, self.topology, process, upgrade_from or None, end_point)
        self.members[name] = binary(settings, self.where, self.fitted)
        self.memories[name] = self.members[name].initial()
        self.owned[name] = ()

    def subscribe(self, name: str) -> SubscriptionInfo:
        self.memories[name], info = self.members[name].subscribe(self.memories[name], ("t",))
        assert isinstance(info, SubscriptionInfo)
        self.told[name] = info
        return info

    def lead(self, leader: str) -> dict[str, AssignmentInfo]:
        """All subscribe, and one of them assigns."""
        joining = tuple(
            Joining(each, ("t",), self.subscribe(each), self.owned[each] if self.cooperative(each) else ())
            for each in self.members
        )
        self.memories[leader], self.shares = self.members[leader].lead(self.memories[leader], self.topics, joining)
        sent: dict[str, AssignmentInfo] = {}
        for name, share in self.shares.items():
            assert isinstance(share.data, AssignmentInfo)
            sent[name] = share.data
        return sent

    def cooperative(self, name: str) -> bool:
        return COOPERATIVE in self.members[name].supports

    def hear(self, name: str) -> AssignmentResult:
        share = self.shares[name]
        heard = self.members[name].assigned(self.memories[name], share)
        self.memories[name], self.owned[name] = heard.memory, share.partitions
        return heard

    def rebalance(self, leader: str) -> dict[str, AssignmentResult]:
        self.lead(leader)
        return {each: self.hear(each) for each in self.members}

    def rounds(self, leader: str, most: int = 6) -> int:
        """Rebalances until nobody asks for another one."""
        for number in range(1, most):
            heard = self.rebalance(leader)
            gave_up = any(self.waits(each) for each in self.members)
            if not gave_up and all(each.rejoin.when == "never" for each in heard.values()):
                return number
        raise AssertionError(f"not at rest after {most} rounds")

    def waits(self, name: str) -> bool:
        share = self.shares[name]
        return isinstance(share.data, AssignmentInfo) and share.data.next_ms == 0

    @property
    def used(self) -> list[int]:
        return [each.used for each in self.memories.values()]

    @property
    def active(self) -> list[TaskId]:
        return sorted((task for each in self.memories.values() for task in each.active), key=order)


ALL = [TaskId(0, number) for number in range(3)]


# Numbers and settings


@pytest.mark.parametrize(
    ("spans", "latest"),
    [
        ("0.10.0.0 0.10.0.1", 1),
        ("0.10.1.0 0.10.2.2 0.11.0.3 1.0.2 1.1.0 1.1.1", 2),
        ("2.0.0 2.0.1", 3),
        ("2.1.0 2.2.2 2.3.1", 4),
        ("2.4.0 2.4.1", 5),
        ("2.5.0 2.5.1", 6),
        ("2.6.0", 7),
        ("2.6.1 2.6.3 2.7.2", 8),
        ("2.8.0 2.8.2", 9),
        ("3.0.0 3.1.2", 10),
        ("3.2.0 3.9.2 4.0.0 4.3.1 4.4.0 5.0.0", 11),
    ],
)
def test_a_release_knows_its_latest_version_and_starts_with_it(spans: str, latest: int) -> None:
    for release in spans.split():
        for fitted in (True, False):
            rules = Rules.of(release, fitted)
            assert rules.latest == rules.used(None) == latest


@pytest.mark.parametrize("text", ["0.9.0.1", "3.9", "own", ""])
def test_what_is_no_release_of_streams_has_no_rules(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid release|0\.10\.0\.0"):
        Rules.of(text)


@pytest.mark.parametrize(
    ("release", "taken", "refused"),
    [
        ("0.10.2.2", "0.10.0", "0.10.1 0.10.2"),
        ("1.1.1", "0.10.0", "0.10.1 1.0"),
        ("2.0.0", "0.10.0 0.10.1 0.10.2 0.11.0 1.0 1.1", "2.0"),
        ("2.3.1", "1.1", "2.0 2.3"),
        ("2.4.0", "0.10.0 1.1 2.0 2.3", "2.4"),
        ("3.2.3", "2.3", "2.4 3.1"),
        ("3.3.2", "2.4 2.8 3.2", "3.3"),
        ("3.4.1", "3.3", "3.4"),
        ("3.5.1", "3.3", "3.4"),
        ("3.5.2", "3.4", "3.5"),
        ("3.6.1", "3.4", "3.5"),
        ("3.6.2", "3.5", "3.6"),
        ("3.7.2", "3.6", "3.7"),
        ("3.9.2", "0.10.0 2.3 3.8", "3.9"),
        ("4.0.0", "2.4 3.9", "2.3 0.10.0"),
        ("4.1.2", "4.0", "2.3 4.1"),
        ("4.2.1", "4.1", "1.1 4.2"),
        ("4.3.1", "2.4 4.2", "2.3 4.3"),
    ],
)
def test_a_release_takes_some_values_of_upgrade_from(release: str, taken: str, refused: str) -> None:
    """268-08, 268-09, 268-39, 268-55."""
    rules = Rules.of(release)
    for value in taken.split():
        old = LINES.index(value) <= LINES.index("1.1")
        assert rules.used(value) == (1 if value == "0.10.0" else 2 if old else rules.latest)
    for value in (*refused.split(), "nonsense"):
        with pytest.raises(Misconfigured) as wrong:
            rules.used(value)
        assert wrong.value.kind.endswith(("ConfigException", "IllegalArgumentException"))


def test_a_release_without_upgrade_from_does_not_look_at_it() -> None:
    assert Rules.of("1.1.0").used("0.10.0") == 2
    assert Rules.of("0.10.2.1").used("nonsense") == 2


def test_who_has_read_that_upgrade_from_grows_foresees_what_was_forgotten() -> None:
    assert "3.4" in Rules.of("3.5.1", fitted=False).accepts
    assert "3.5" in Rules.of("3.6.0", fitted=False).accepts


def test_4_0_and_4_1_say_why_there_is_no_live_upgrade() -> None:
    for release, explains in (("4.0.2", True), ("4.1.2", True), ("4.2.1", False)):
        with pytest.raises(Misconfigured) as wrong:
            Rules.of(release).used("2.3")
        assert ("no rolling upgrade" in str(wrong.value)) is explains


@pytest.mark.parametrize(
    ("release", "value", "protocols"),
    [
        ("2.3.1", None, (EAGER,)),
        ("2.4.0", None, (EAGER, COOPERATIVE)),
        ("2.4.0", "2.3", (EAGER,)),
        ("3.9.2", "0.10.0", (EAGER,)),
        ("3.9.2", "2.4", (EAGER, COOPERATIVE)),
        ("4.0.0", None, (COOPERATIVE,)),
        ("4.3.1", "3.9", (COOPERATIVE,)),
    ],
)
def test_a_member_offers_what_its_upgrade_leaves(release: str, value: str | None, protocols: tuple[str, ...]) -> None:
    """268-38, 268-39."""
    assert Rules.of(release).supports(value) == protocols


def test_each_departure_makes_a_difference_somewhere() -> None:
    asked = {
        each for module in (leading, following, ruling) for each in vars(module).values() if isinstance(each, Deviation)
    }
    assert asked == {*DEVIATIONS}


def test_departures_name_requirements_that_there_are() -> None:
    known = {
        each["id"]
        for each in tomllib.loads((files("kipcheck.conformance") / "requirements.toml").read_text())["requirement"]
    }
    named = {found for each in DEVIATIONS for found in re.findall(r"268-\d+", each.why)}
    assert named and named <= known


def test_departures_are_told_apart_and_belong_to_releases() -> None:
    assert len({each.id for each in DEVIATIONS}) == len(DEVIATIONS)
    known = [Release.parse(each) for each in (*LATEST, "2.2.2", "2.3.1", "3.6.1", "4.3.1")]
    for each in DEVIATIONS:
        assert any(at in each for at in known), each.id
    for at in known:
        foreseen = deviations(at, fitted=False)
        assert foreseen == {each for each in deviations(at) if each.foreseen}


# Who leads


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
    assert group.hear("c").error == 3
    with pytest.raises(Fatal, match="unable to decode"):
        group.hear("b")


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
    heard = group.hear("b")
    assert (heard.error, heard.applied, heard.memory.active) == (1, False, before["b"].active)


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
    for release, told in (("2.1.1", {"a"}), ("2.3.1", {"a"}), ("2.4.1", {"a", "b"})):
        group = Group(f"a={release} b={FUTURE}")
        group.topics = ()
        assert group.lead("a").keys() == told


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


# Who follows


def heard(release: str, used: int, info: AssignmentInfo, fitted: bool = True) -> AssignmentResult:
    """By a member that runs 0_7 and is given 0_0."""
    member = binary(Settings(release, STATELESS, process_of("a")), NEWEST, fitted)
    memory = Memory(used, active=(TaskId(0, 7),))
    return member.assigned(memory, Share((("t", 0),), written(replace(info, active=(TaskId(0, 0),)))))


NEW, OLD = (TaskId(0, 0),), (TaskId(0, 7),)


@pytest.mark.parametrize(("release", "used", "received", "after", "when", "active"), [
    # Up to 1.1 nobody asks for versions.
    ("0.10.0.1", 1, (1,), 1, "never", NEW), ("1.1.1", 2, (1,), 2, "never", NEW), ("1.1.1", 1, (2,), 1, "never", NEW),
    # 2.0 and those with the leader's version.
    ("2.1.1", 4, (3, 3), 3, "again", OLD), ("2.1.1", 4, (3, 4), 4, "again", OLD), ("2.0.1", 3, (3, 4), 4, "never", NEW),
    ("2.1.1", 3, (3, 4), 4, "never", NEW), ("2.3.0", 4, (4, 4), 4, "never", NEW), ("2.3.0", 4, (2,), 4, "never", NEW),
    # Those with the common version.
    ("2.2.2", 4, (3, 3), 3, "again", OLD), ("2.2.2", 3, (3, 4), 4, "again", OLD), ("2.3.1", 4, (3, 4), 4, "again", OLD),
    ("2.3.1", 4, (4, 4), 4, "never", NEW), ("2.3.1", 4, (1,), 4, "never", NEW),
    # It is applied, and then they leave;
    ("2.4.1", 5, (4, 4), 4, "again", NEW), ("2.5.1", 4, (4, 6), 6, "again", NEW), ("2.5.1", 6, (4, 6), 6, "again", NEW),
    ("2.4.1", 5, (2,), 5, "never", NEW),
    # or stay.
    ("2.6.0", 7, (4, 4), 4, "now", NEW), ("3.9.2", 9, (9, 11), 11, "now", NEW), ("3.9.2", 11, (9, 11), 11, "now", NEW),
    ("4.3.1", 11, (11, 11), 11, "never", NEW), ("3.9.2", 11, (1,), 11, "never", NEW),
])  # fmt: skip
def test_a_member_hears_in_which_version_to_go_on(
    release: str, used: int, received: tuple[int, ...], after: int, when: str, active: tuple[TaskId, ...]
) -> None:
    """268-17, 268-33, 268-35 to 268-37, 268-44, 268-48."""
    told = heard(release, used, AssignmentInfo(received[0], received[-1] if len(received) > 1 else NO_VERSION))
    assert (told.memory.used, told.rejoin.when, told.memory.active) == (after, when, active)
    assert told.applied is (active == NEW)


@pytest.mark.parametrize(("release", "used", "received", "kind"), [
    ("0.10.0.1", 1, (2,), "TaskAssignment"), ("1.1.1", 2, (3, 3), "TaskAssignment"),
    ("2.0.1", 3, (4, 4), "TaskAssignment"), ("2.1.1", 3, (4, 4), "IllegalState"),
    ("2.3.1", 3, (4, 4), "TaskAssignment"), ("2.3.1", 4, (4, 5), "TaskAssignment"),
    ("3.9.2", 9, (11, 11), "TaskAssignment"), ("3.9.2", 9, (9, 12), "TaskAssignment"),
])  # fmt: skip
def test_a_member_refuses_what_it_cannot_read_or_use(
    release: str, used: int, received: tuple[int, ...], kind: str
) -> None:
    with pytest.raises(Fatal) as thrown:
        heard(release, used, AssignmentInfo(received[0], received[-1] if len(received) > 1 else NO_VERSION))
    assert kind in thrown.value.kind


@pytest.mark.parametrize("fitted", [True, False])
def test_partitions_and_tasks_are_as_many(fitted: bool) -> None:
    few = Share((("t", 0), ("t", 1)), AssignmentInfo(2, active=(TaskId(0, 0),)))
    many = Share((), AssignmentInfo(2, active=(TaskId(0, 0),)))
    for release, share, fine in (("1.1.1", few, False), ("1.1.1", many, False), ("0.10.1.1", many, fitted)):
        member = binary(Settings(release, STATELESS, process_of("a")), NEWEST, fitted)
        if fine:
            assert member.assigned(Memory(2), share).memory.active == ()
        else:
            with pytest.raises(Fatal, match="active tasks"):
                member.assigned(Memory(2), share)


def test_what_was_scheduled_is_done_unless_something_is_more_urgent() -> None:
    later = AssignmentInfo(11, 11, next_ms=5000)
    assert heard("3.9.2", 11, later).rejoin == ("later", 5000)
    assert heard("3.9.2", 11, replace(later, next_ms=0)).rejoin == ("now", 0)
    assert heard("3.9.2", 9, AssignmentInfo(9, 11, next_ms=5000)).rejoin == ("now", 0)
    assert heard("2.5.1", 6, AssignmentInfo(6, 6, next_ms=5000)).rejoin.when == "never"


def test_a_member_whose_end_point_is_not_known_comes_back() -> None:
    """KAFKA-9568."""
    share = Share((), AssignmentInfo(6, 6, hosts=(("b:9092", ()),)))
    for release, when in (("2.5.1", "never"), ("2.6.0", "now"), ("3.9.2", "now")):
        member = binary(Settings(release, STATELESS, process_of("a"), end_point="a:9092"), NEWEST)
        version = member.latest
        told = replace(share, data=AssignmentInfo(version, version, hosts=(("b:9092", ()),)))
        assert member.assigned(Memory(version), told).rejoin.when == when
        alone = replace(share, data=AssignmentInfo(version, version))
        assert member.assigned(Memory(version), alone).rejoin.when == "never"


@pytest.mark.parametrize(
    ("release", "used", "told"),
    [
        ("1.1.1", 2, {"active": (TaskId(0, 1),), "standby": (TaskId(0, 2),)}),
        ("2.3.1", 4, {"active": (TaskId(0, 1),), "standby": (TaskId(0, 2),), "latest": 4}),
        ("2.4.1", 5, {"active": (), "standby": (TaskId(0, 2),), "latest": 5}),
        ("2.6.1", 6, {"active": (TaskId(0, 1),), "standby": (TaskId(0, 2),), "latest": 8}),
        ("2.6.0", 7, {"active": (), "standby": (), "sums": ((TaskId(0, 1), LATEST_OFFSET), (TaskId(0, 2), 5))}),
        ("2.6.1", 8, {"unique": 4, "sums": ((TaskId(0, 1), LATEST_OFFSET), (TaskId(0, 2), 5))}),
        ("2.8.0", 9, {"unique": 4, "error": 4, "tags": ()}),
        ("3.9.2", 11, {"unique": 4, "error": 4, "tags": (("zone", "x"),), "end_point": "a:1"}),
        ("0.10.0.1", 1, {"end_point": None, "latest": NO_VERSION}),
    ],
)
def test_a_member_tells_what_its_version_has_a_place_for(release: str, used: int, told: Mapping[str, object]) -> None:
    settings = Settings(release, STATEFUL, process_of("a"), end_point="a:1", tags=(("zone", "x"),))
    memory = Memory(used, 3, (TaskId(0, 1),), (TaskId(0, 1), TaskId(0, 2)), ((TaskId(0, 2), 5),), error=4)
    _, info = binary(settings, NEWEST).subscribe(memory, ("t",))
    assert isinstance(info, SubscriptionInfo)
    assert {name: getattr(info, name) for name in told} == told


def test_tasks_without_state_have_no_offsets() -> None:
    memory = Memory(9, active=(TaskId(0, 0),), standby=(TaskId(0, 1),))
    _, info = binary(Settings("2.8.0", STATELESS, process_of("a")), NEWEST).subscribe(memory, ("t",))
    assert isinstance(info, SubscriptionInfo) and info.sums == ()


def test_the_unique_byte_goes_round() -> None:
    """268-45."""
    member = binary(Settings("2.8.0", STATELESS, process_of("a")), NEWEST)
    memory, seen = member.initial(), []
    for _ in range(257):
        memory, info = member.subscribe(memory, ("t",))
        assert isinstance(info, SubscriptionInfo)
        seen.append(info.unique)
    assert seen[:2] == [1, 2] and seen[126:129] == [127, -128, -127] and seen[256] == 1


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
    assert (group.hear("a").rejoin.when, group.hear("b").rejoin.when) == ("now", "never")
    assert (group.subscribe("a").used, group.subscribe("a").latest) == (9, 11)
    assert group.rounds("c") == 1
    group.start("b", "3.9.2")
    assert group.rounds("c") == 2
    group.start("c", "3.9.2")
    last = group.lead("a")
    assert {(each.used, each.supported) for each in last.values()} == {(9, 11)}
    assert {group.hear(each).rejoin.when for each in "abc"} == {"now"}
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
        told = [group.hear(each).rejoin.when for each in "abc"]
        assert told == ["never", "never", "now" if announced == 0 else "never"]
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
        group.hear("a")


def test_leaders_without_the_fix_write_what_the_first_members_cannot_read() -> None:
    """KAFKA-6054: the KIP's reason to be."""
    for fitted in (True, False):
        group = Group("a=1.1.0 b=0.10.0.1", fitted=fitted)
        group.lead("a")
        with pytest.raises(Fatal, match="unable to decode"):
            group.hear("b")
        assert Group("a=1.1.1 b=0.10.0.1", fitted=fitted).rounds("a") == 1


@pytest.mark.parametrize(("leader", "follower"), [("2.1.1", "2.0.0"), ("2.4.1", "2.3.1"), ("3.9.2", "2.8.0")])
def test_older_members_cannot_read_that_there_is_an_error(leader: str, follower: str) -> None:
    """268-42."""
    group = Group(f"a={leader} b={follower}")
    group.topics = ()
    group.lead("a")
    with pytest.raises(Fatal, match="unable to decode"):
        group.hear("b")
    if Rules.of(follower).tells_errors:
        group = Group(f"a={leader} b={follower}", fitted=False)
        group.topics = ()
        group.lead("a")
        assert group.hear("b").error == 1


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
        assert heard(release, latest, AssignmentInfo(latest - 1, latest - 1), fitted).rejoin.when == when


def test_up_to_2_3_1_a_member_that_probes_keeps_its_old_tasks() -> None:
    """KAFKA-8972, 268-44: its consumer already has the new partitions."""
    for release, fitted, is_applied in (("2.3.1", True, False), ("2.3.1", False, True), ("2.4.1", True, True)):
        told = heard(release, Rules.of(release).latest, AssignmentInfo(3, 3), fitted)
        assert (told.applied, told.memory.active == NEW) == (is_applied, is_applied)


def test_a_member_probes_in_vain_where_its_leader_knows_its_version_and_another_member_does_not() -> None:
    """2.0.0 to 2.3.0: it never comes to rest, and by the KIP it would."""
    info = AssignmentInfo(3, 4)
    assert heard("2.1.1", 4, info).rejoin.when == "again"
    assert heard("2.1.1", 4, info, fitted=False).rejoin.when == "never"


def test_nobody_ends_the_upgrade_to_2_1_and_everybody_that_to_2_2_2() -> None:
    """268-36, 268-37."""
    for release, fitted, asks in (("2.1.1", True, set()), ("2.2.2", True, {"a", "b"}), ("2.1.1", False, {"a"})):
        group = Group(f"a={release} b={release}", fitted=fitted)
        group.memories = {each: replace(memory, used=3) for each, memory in group.memories.items()}
        told = group.rebalance("a")
        assert {each for each, it in told.items() if it.rejoin.when == "again"} == asks
        assert group.used == [4, 4]


def test_standbys_of_tasks_without_state_end_with_2_5() -> None:
    for release, fitted, copies in (("2.5.1", True, 3), ("2.6.0", True, 0), ("2.5.1", False, 0)):
        group = Group(f"a={release} b={release}", fitted=fitted, topology=replace(STATELESS, standbys=1))
        assert sum(len(each.standby) for each in group.lead("a").values()) == copies


# The draft


def test_the_draft_ends_with_one_rebalance_that_its_leader_alone_triggers() -> None:
    """268-19, 268-21: where the leader is bounced last; else none is needed."""
    group = Group("a=own b=own c=own", KIP_268)
    group.rounds("c")
    for each in "ab":
        group.start(each, FUTURE)
        assert group.rounds("c") == 2
    group.start("c", FUTURE)
    told = group.rebalance("a")
    assert {each: it.rejoin.when for each, it in told.items()} == {"a": "again", "b": "never", "c": "never"}
    assert group.used == [4, 4, 4]
    assert group.rounds("b") == 1
    assert {info.used for info in group.told.values()} == {4}


def test_the_draft_needs_no_rebalance_where_another_member_is_bounced_last() -> None:
    group = Group("a=own b=own c=own", KIP_268)
    for each in "ab":
        group.start(each, FUTURE)
        group.rounds("c")
    assert group.rounds("a") == 1, "the leader knows more than c, and all who can use it do from the next one on"
    assert group.used == [4, 4, 3]
    sent = group.lead("a")
    assert {(each.used, each.supported) for each in sent.values()} == {(3, 4)}
    assert {group.hear(each).rejoin.when for each in "abc"} == {"never"}
    group.start("c", FUTURE)
    assert group.rounds("a") == 1
    assert {info.used for info in group.told.values()} == {4}


@pytest.mark.parametrize("bounces", [*permutations("abc")])
def test_the_draft_comes_through_every_order(bounces: Iterable[str]) -> None:
    """268-22, 268-24."""
    group = Group("a=own b=own c=own", KIP_268)
    leader = "a"
    for each in bounces:
        group.start(each, FUTURE)
        leader = leader if each != leader else "bca"["abc".index(each)]
        assert group.rounds(leader) <= 2
        assert group.active == ALL
    group.rebalance(leader)
    assert {info.used for info in group.told.values()} == {4}


@pytest.mark.parametrize(("old", "line"), [("0.10.0.1", "0.10.0"), ("0.10.2.2", "0.10.2"), ("1.1.1", "1.1")])
def test_the_draft_comes_from_before_it_in_two_bounces(old: str, line: str) -> None:
    """268-10, 268-13."""
    group = Group(f"a={old} b={old}", KIP_268)
    group.rounds("a")
    for suffix in (f"<{line}", ""):
        for each, leader in (("a", "b"), ("b", "a")):
            group.start(each, f"own{suffix}")
            assert group.rounds(leader) == 1
            assert group.active == ALL
    assert {info.used for info in group.told.values()} == {3}


def test_the_drafts_fix_release_of_0_10_1_came_never() -> None:
    """268-09, 268-41, 268-53."""
    fixed = Group("a=0.10.0.1 b=0.10.1.2<0.10.0", KIP_268)
    assert fixed.rounds("a") == fixed.rounds("b") == 1
    with pytest.raises(Misconfigured):
        Group("a=0.10.1.2<0.10.1", KIP_268)
    with pytest.raises(Fatal):
        Group("a=0.10.0.1 b=0.10.1.2<0.10.0", NEWEST).lead("a")


def test_the_draft_takes_no_setting_of_its_own_and_knows_nobody_after_it() -> None:
    for value in ("2.0", "1.2", "nonsense"):
        with pytest.raises(Misconfigured):
            Group(f"a=own<{value}", KIP_268)
    for release in ("2.0.0", "0.9.0.1", "nonsense"):
        with pytest.raises(LookupError):
            Group(f"a={release}", KIP_268)
    with pytest.raises(LookupError):
        Group("a=nonsense")


def test_the_drafts_leader_throws_where_it_cannot_assign() -> None:
    """Of errors that are told nothing is written before 2.1."""
    group = Group("a=own", KIP_268)
    group.topics = ()
    with pytest.raises(Fatal, match="missing source"):
        group.lead("a")


@pytest.mark.parametrize("where", ["apache@2.0.1", "apache@3.9.2", "apache@4.3.1"])
def test_the_simulated_future_has_one_version_more_and_the_protocols_of_its_time(where: str) -> None:
    """268-27."""
    over = edition(where)
    member = binary(Settings(FUTURE, STATELESS, process_of("a")), over)
    assert member.latest == NEWEST_VERSION + 1
    assert tuple(member.supports) == Rules.of(over.release).protocols
    assert member.initial().used == member.latest
    assert binary(replace(member.settings, upgrade_from="1.1"), over).initial().used == 2
    with pytest.raises(Misconfigured):
        binary(replace(member.settings, upgrade_from="nonsense"), over).initial()


def test_equal_settings_have_one_binary() -> None:
    settings = Settings("own", STATELESS, process_of("a"))
    assert binary(settings, NEWEST) is binary(settings, NEWEST)
    assert binary(settings, NEWEST).settings.release == NEWEST.release
    assert binary(settings, KIP_268).settings.release == KIP_268.name


# Tasks


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


def test_the_table_of_versions_grows() -> None:
    assert [*LATEST.values()] == sorted(LATEST.values())
    assert all(Release.parse(each) in releases("0.10.0.0+") for each in LATEST)
