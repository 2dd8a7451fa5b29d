"""The Streams assignors of jars up to 2.3, each asked what a member says, sends, and makes of what it is sent."""

import random
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from kipcheck.conformance.clients.java.streams_members import Unanswerable
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.blobs import read_subscription, write_assignment, write_subscription
from kipcheck.conformance.protocols.streams.members_ops import plain_memory
from kipcheck.conformance.protocols.streams.model.members import (
    AssignmentInfo,
    AssignmentResult,
    Fatal,
    Joining,
    Memory,
    Misconfigured,
    Rejoin,
    Share,
    Store,
    SubscriptionInfo,
    Subtopology,
    TaskId,
    Topology,
)
from kipcheck.conformance.protocols.streams.ops import STATELESS
from kipcheck.conformance.tests.support.streams_jars import (
    THREE,
    Members,
    future,
    joining,
    led,
    opened,
    partitions,
    reported,
    tasks,
)

pytestmark = pytest.mark.jars

USUAL: Final = ("0.10.0.1", "2.0.1")
"""A thread's and a task manager's assignor."""
EVERY: Final = {
    "0.10.0.0": 1, "0.10.0.1": 1, "0.10.1.0": 2, "0.10.1.1": 2, "0.10.2.0": 2, "0.10.2.1": 2, "0.10.2.2": 2,
    "0.11.0.0": 2, "0.11.0.1": 2, "0.11.0.2": 2, "0.11.0.3": 2, "1.0.0": 2, "1.0.1": 2, "1.0.2": 2, "1.1.0": 2,
    "1.1.1": 2, "2.0.0": 3, "2.0.1": 3, "2.1.0": 4, "2.1.1": 4, "2.2.0": 4, "2.2.1": 4, "2.2.2": 4, "2.3.0": 4,
    "2.3.1": 4,
}  # fmt: skip
"""And the newest metadata version of each."""
BACKPORTED: Final = ("0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1")
"""They know ``upgrade.from`` of 0.10.0, and nothing else of it."""
BEFORE_IT: Final = tuple(each for each in EVERY if EVERY[each] <= 2 and each not in BACKPORTED)
PROBING: Final = tuple(each for each in EVERY if EVERY[each] >= 3)
FIXED: Final = ("2.2.2", "2.3.1")
"""Each thread gets back what it had itself, and the second number is what all have in common (KAFKA-8649)."""
CHAIN: Final = Topology(
    (
        Subtopology(0, ("t",), ("r",)),
        Subtopology(1, ("r",), ("q",), (Store("s"),)),
        Subtopology(2, ("q", "u"), (), (Store("z", logged=False),), (("q", "u"),)),
    ),
    standbys=1,
)
ENDLESS: Final = Topology((Subtopology(0, ("t",), ("r",)), Subtopology(1, ("r",), ("q",)), Subtopology(2, ("q",))))


@pytest.fixture(scope="module")
def old() -> Iterator[Members]:
    with opened(USUAL) as found:
        yield found


@pytest.fixture(scope="module")
def every() -> Iterator[Members]:
    with opened(tuple(EVERY)) as found:
        yield found


# What can be asked of all


def asked_of_all(old: Members, release: str, latest: int) -> None:
    plain, threads = old.member(release), old.member(release, "b")
    assert (plain.latest, tuple(plain.supports), plain.initial()) == (latest, ("eager",), Memory(latest))
    memory = Memory(latest, active=tasks("0_0 0_1"), standby=tasks("0_2"))
    after, data = plain.subscribe(memory, ("t",))
    assert after == memory
    assert isinstance(data, bytes)
    assert read_subscription(data, release) == SubscriptionInfo(
        latest, latest if latest >= 3 else -1, plain.settings.process, memory.active, memory.standby
    )
    shares = led(plain, joining(plain, "a"), joining(threads, "b1"), joining(threads, "b2"))
    assert sorted(each for share in shares.values() for each in share.partitions) == list(partitions("t0 t1 t2"))
    for share in shares.values():
        ((_, number),) = share.partitions
        assert plain.assigned(plain.initial(), share) == AssignmentResult(Memory(latest, active=(TaskId(0, number),)))


def has_state_standbys_and_end_points(old: Members, release: str) -> None:
    """A chain of topics that are written and read, with a join at its end. Two instances stand by for each other."""
    one, other = (old.member(release, name, CHAIN, end_point=f"{name}:9092") for name in "ab")
    group = (joining(one, "a"), joining(other, "b"))
    topics = (Topic("t", 2), Topic("u", 2))
    if release.startswith("0.10.0."):
        # It looks for a topic that it makes under the name without the application's.
        with pytest.raises(Fatal, match="External source topic not found") as caught:
            led(one, *group, topics=topics)
        assert caught.value.kind.endswith("TopologyBuilderException")
        return
    shares = led(one, *group, topics=topics)
    found = {id: reported(share, release) for id, share in shares.items()}
    everywhere = [each for share in shares.values() for each in share.partitions]
    assert sorted(everywhere) == list(partitions("q0 q1 r0 r1 t0 t1 u0 u1"))
    assert set(found["a"].active) | set(found["b"].active) == set(tasks("0_0 0_1 1_0 1_1 2_0 2_1"))
    for mine, others in (("a", "b"), ("b", "a")):
        assert len(found[mine].active) == len(shares[mine].partitions)
        assert {task for task, _ in found[mine].standby} == set(found[others].active)
        assert {host: set(owned) for host, owned in found[mine].hosts} == {
            f"{id}:9092": set(share.partitions) for id, share in shares.items()
        }
        received = one.assigned(one.initial(), shares[mine])
        assert set(received.memory.active) == set(found[mine].active)
        assert set(received.memory.standby) == set(found[others].active)


def keeps_tasks_where_they_were(old: Members, release: str) -> None:
    one, other = old.member(release), old.member(release, "b")
    had = Memory(EVERY[release], active=tasks("0_0 0_2")), Memory(EVERY[release], active=tasks("0_1"))
    shares = led(one, joining(one, "a", had[0]), joining(other, "b", had[1]))
    assert [sorted(shares[each].partitions) for each in "ab"] == [list(partitions("t0 t2")), list(partitions("t1"))]


@pytest.mark.parametrize("release", USUAL)
def test_a_member_is_asked_for_its_subscription_and_led_and_told(old: Members, release: str) -> None:
    asked_of_all(old, release, EVERY[release])
    has_state_standbys_and_end_points(old, release)
    keeps_tasks_where_they_were(old, release)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", EVERY)
def test_so_it_is_with_every_release(every: Members, release: str) -> None:
    asked_of_all(every, release, EVERY[release])
    has_state_standbys_and_end_points(every, release)
    keeps_tasks_where_they_were(every, release)


def test_two_releases_share_a_group(old: Members) -> None:
    before = old.member("0.10.0.1", "b")
    later = old.member("2.0.1", upgrade_from="0.10.0")
    assert later.initial() == Memory(1)
    for leader in (before, later):
        shares = led(leader, joining(before, "b"), joining(later, "a"))
        assert {reported(share, "0.10.0.1").used for share in shares.values()} == {1}
        assert all(each.assigned(each.initial(), shares[id]).applied for id, each in (("b", before), ("a", later)))


# What a configuration is refused for


@pytest.mark.parametrize(
    ("more", "why"),
    [({"upgrade_from": "2.0"}, "upgrade.from"), ({"end_point": "h"}, "host:port"), ({"end_point": "h:p"}, "host:port")],
)
def test_a_release_refuses_what_it_does_not_know(old: Members, more: Mapping[str, Any], why: str) -> None:
    with pytest.raises(Misconfigured, match=why) as caught:
        old.member("2.0.1", **more).initial()
    assert caught.value.kind.endswith(".ConfigException")
    # There is no such setting yet, and what nobody knows nobody looks at.
    assert old.member("0.10.0.1", **more).initial() == Memory(1)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", EVERY)
def test_upgrades_are_from_releases_that_each_release_knows(every: Members, release: str) -> None:
    for value in ("0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1", "2.0", "2.3", ""):
        binary = every.member(release, upgrade_from=value)
        if release in BEFORE_IT:
            assert binary.initial() == Memory(EVERY[release])
        elif value == "0.10.0":
            assert binary.initial() == Memory(1)
        elif release in PROBING and value in ("0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"):
            assert binary.initial() == Memory(2)
        else:
            with pytest.raises(Misconfigured, match=r"upgrade\.from"):
                binary.initial()


# Topologies that a release has in another way, or not at all


@pytest.mark.parametrize(
    ("topology", "why"),
    [
        (Topology((Subtopology(1, ("t",)),)), "assigns an id other than 1"),
        (Topology((Subtopology(0, ("t",)), Subtopology(0, ("u",)))), "two subtopologies have the id 0"),
        (Topology((Subtopology(0, ("t",), topology="n"),)), "have no names"),
        (Topology((Subtopology(0, ()),)), "reads nothing"),
    ],
)
@pytest.mark.parametrize("release", USUAL)
def test_other_topologies_are_not_asked_about(old: Members, release: str, topology: Topology, why: str) -> None:
    with pytest.raises(Unanswerable, match=why):
        old.member(release, topology=topology).initial()


def test_a_release_with_one_version_has_no_other(old: Members) -> None:
    with pytest.raises(Unanswerable, match="subscribes in version 1 and in no other"):
        old.member("0.10.0.1").subscribe(Memory(2), ("t",))


# Orders and nothing else


def test_what_was_asked_before_does_not_matter(old: Members) -> None:
    """In any order, and after whatever else: nothing is left over, and nothing is drawn by lot."""
    orders = []
    for release in USUAL:
        for topology in (STATELESS, replace(CHAIN, subtopologies=CHAIN.subtopologies[:2])):
            for name, memory in (("a", Memory(1)), ("b", Memory(1, active=tasks("0_1"), standby=tasks("0_2")))):
                binary = old.member(release, name, topology, end_point=f"{name}:1")
                members = tuple(
                    joining(old.member(release, each, topology), f"{each}{thread}") for each in "abc" for thread in "12"
                )
                share = Share(partitions("t0"), write_assignment(AssignmentInfo(1, active=tasks("0_0")), release))
                orders += [
                    binary.configuring(),
                    binary.subscribing(memory, tuple(sorted(topology.source_topics))),
                    binary.leading(memory, THREE, members),
                    binary.assigning(memory, share),
                ]
    first = old.raw(*orders)
    assert {each["status"] for each in first} == {"accepted"}
    for seed in range(3):
        places = random.Random(seed).sample(range(len(orders)), len(orders))
        assert old.raw(*(orders[place] for place in places)) == [first[place] for place in places]


def lives_on(members: Members, release: str) -> None:
    """What an assignor keeps from one rebalance to the next is in the memory that is told, and nothing else is."""
    short = replace(CHAIN, subtopologies=CHAIN.subtopologies[:2])
    binary = members.member(release, "a", short, end_point="a:1")
    group = joining(binary, "a"), joining(members.member(release, "b", short), "b")
    memory, topics = binary.initial(), tuple(sorted(short.source_topics))
    shares = [*led(binary, *group).values()]
    if EVERY[release] == 4:
        # It probes, and comes up again.
        shares += [
            Share(partitions("t0"), write_assignment(AssignmentInfo(3, supported, tasks("0_0")), "2.2.2"))
            for supported in (3, 4)
        ]
    steps = [binary.subscribing(memory, topics), binary.leading(memory, THREE, group)]
    steps += [each for share in shares for each in (binary.assigning(memory, share), *steps)]
    (reported,) = members.raw({**steps[0], "op": "stream-live", "steps": steps})
    carried = plain_memory(memory)
    for step, found in zip(steps, reported["answers"], strict=True):
        (alone,) = members.raw({**step, "memory": carried})
        assert alone == {**found, "status": "accepted"}
        carried = alone["memory"]


def test_an_assignor_that_lives_on_says_the_same(old: Members) -> None:
    lives_on(old, "2.0.1")


@pytest.mark.all_jars
@pytest.mark.parametrize("release", EVERY)
def test_so_does_that_of_every_release(every: Members, release: str) -> None:
    lives_on(every, release)


# Defects that came and went


def endless(old: Members, release: str) -> None:
    """A topic is missing that topics hang on which are written and read (KAFKA-5037)."""
    binary = old.member(release, topology=ENDLESS)
    order = binary.leading(binary.initial(), (), (joining(binary, "a"),))
    after = binary.configuring()
    found = old.raw(order, after, order, order, after, cpu_ms=200)
    assert [each["status"] for each in found] == ["died", "accepted", "died", "died", "accepted"]
    assert {each["cause"] for each in found if each["status"] == "died"} == {"timeout"}
    assert "PartitionAssignor.assign" in found[0]["evidence"]
    assert not old.pipe.over


def test_who_never_comes_back_is_given_up_and_the_jvm_goes_on(old: Members) -> None:
    endless(old, "2.0.1")


@pytest.mark.all_jars
@pytest.mark.parametrize("release", [each for each in EVERY if EVERY[each] < 4])
def test_a_missing_topic_is_passed_over_or_waited_for(every: Members, release: str) -> None:
    plain = every.member(release)
    if release in ("0.10.0.0", "0.10.0.1", "0.10.1.0"):
        with pytest.raises(Fatal, match="Topic not found during partition assignment: t"):
            led(plain, joining(plain, "a"), topics=())
    else:
        assert led(plain, joining(plain, "a"), topics=())["a"].partitions == ()
    endless(every, release)
    once = every.member(release, topology=Topology((Subtopology(0, ("t",), ("r",)), Subtopology(1, ("r",)))))
    (found,) = every.raw(once.leading(once.initial(), (), (joining(once, "a"),)), cpu_ms=200)
    # Up to 0.10.1 it waits until the topic in between has fewer partitions than none.
    assert found["status"] == ("died" if release.startswith(("0.10.0.", "0.10.1.")) else "accepted")


@pytest.mark.all_jars
@pytest.mark.parametrize("release", [each for each in EVERY if EVERY[each] == 4])
@pytest.mark.parametrize("topology", [STATELESS, ENDLESS])
def test_a_missing_topic_is_an_error_later(every: Members, release: str, topology: Topology) -> None:
    binary = every.member(release, topology=topology)
    share = led(binary, joining(binary, "a"), topics=())["a"]
    assert reported(share, release) == AssignmentInfo(4, 4, error=1)
    had = Memory(4, active=tasks("0_1"))
    assert binary.assigned(had, share) == AssignmentResult(had, applied=False, error=1)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", [each for each in EVERY if EVERY[each] >= 2])
def test_a_member_of_version_1_is_answered_in_it_since_the_fix(every: Members, release: str) -> None:
    """KAFKA-6054"""
    before, leader = every.member("0.10.0.1", "b"), every.member(release)
    shares = led(leader, joining(leader, "a"), joining(before, "b"))
    if release in BEFORE_IT:
        with pytest.raises(Fatal, match="Unknown assignment data version: 2") as caught:
            before.assigned(before.initial(), shares["b"])
        assert caught.value.kind.endswith("TaskAssignmentException")
    else:
        assert before.assigned(before.initial(), shares["b"]).applied
    with pytest.raises(Fatal, match="unable to decode subscription data: version"):
        led(before, joining(before, "b"), joining(leader, "a"))


def probed(old: Members, release: str) -> None:
    leader, latest = old.member(release), EVERY[release]
    ran = [joining(leader, f"a{number}", Memory(latest, active=(TaskId(0, number),))) for number in (0, 1)]
    shares = led(leader, *ran, Joining("f", ("t",), future(latest)))
    both = partitions("t0 t1")
    mine = [partitions(f"t{number}") for number in (0, 1)] if release in FIXED else [both, both]
    assert [shares[each].partitions for each in ("a0", "a1", "f")] == [*mine, ()]
    assert reported(shares["f"], release) == AssignmentInfo(latest, latest)
    with pytest.raises(Fatal, match="incompatible pre Kafka") as caught:
        led(leader, joining(leader, "a", Memory(2)), Joining("f", ("t",), future(latest)))
    assert caught.value.kind.endswith("IllegalStateException")


def test_threads_of_an_instance_are_given_the_same_while_one_probes(old: Members) -> None:
    """KAFKA-8649, in part"""
    probed(old, "2.0.1")


@pytest.mark.all_jars
@pytest.mark.parametrize("release", PROBING)
def test_so_are_they_until_the_fix(every: Members, release: str) -> None:
    probed(every, release)


def test_a_member_goes_up_to_a_version_that_it_does_not_have(old: Members) -> None:
    """KAFKA-8649: as a leader of 2.1 answers"""
    binary = old.member("2.0.1")
    data = write_assignment(AssignmentInfo(3, 4, tasks("0_1")), "2.1.1")
    received = binary.assigned(binary.initial(), Share(partitions("t1"), data))
    assert received == AssignmentResult(Memory(4, active=tasks("0_1")))
    with pytest.raises(Fatal, match="version must be between 1 and 3; was: 4"):
        binary.subscribe(received.memory, ("t",))


@pytest.mark.all_jars
@pytest.mark.parametrize("release", [each for each in EVERY if EVERY[each] == 4])
def test_a_member_that_probes_keeps_its_tasks_and_joins_again(every: Members, release: str) -> None:
    """KAFKA-8972: what it owns and what it runs are two things until then."""
    leader, binary = every.member("2.0.1"), every.member(release)
    shares = led(leader, joining(leader, "a"), Joining("b", ("t",), future(3)))
    had = Memory(4, active=tasks("0_1"), standby=tasks("0_2"))
    received = binary.assigned(had, shares["b"])
    assert received == AssignmentResult(replace(had, used=3), Rejoin("again"), applied=False)
    # By now all know a later one.
    data = write_assignment(AssignmentInfo(3, 4, tasks("0_0")), "2.1.1")
    up = binary.assigned(received.memory, Share(partitions("t0"), data))
    assert up == (
        AssignmentResult(had, Rejoin("again"), applied=False)
        if release in FIXED
        else AssignmentResult(Memory(4, active=tasks("0_0")))
    )


@pytest.mark.all_jars
@pytest.mark.parametrize("release", BACKPORTED)
def test_version_1_of_the_back_ports_has_the_fields_of_version_2(every: Members, release: str) -> None:
    binary = every.member(release, upgrade_from="0.10.0", end_point="h:1")
    _, data = binary.subscribe(binary.initial(), ("t",))
    assert (
        data == write_subscription(SubscriptionInfo(1, process=binary.settings.process)) + struct.pack(">i", 3) + b"h:1"
    )
    leader = every.member(release, "b", end_point="h:1")
    share = led(leader, joining(leader, "b"), joining(binary, "a"))["a"]
    assert isinstance(share.data, bytes)
    assert share.data[:4] == struct.pack(">i", 1)
    assert b"\0\1h" + struct.pack(">i", 1) in share.data
    assert binary.assigned(binary.initial(), share).applied


@pytest.mark.all_jars
@pytest.mark.parametrize("leading", ["0.10.2.2", "1.1.1", "2.0.1", "2.2.2", "2.3.1"])
def test_releases_lead_each_other_in_one_jvm(every: Members, leading: str) -> None:
    """In the highest version that both know."""
    leader = every.member(leading)
    for other in EVERY:
        binary = every.member(other, "b")
        memory = (
            Memory(min(EVERY[leading], EVERY[other])) if other in PROBING or other in BACKPORTED else binary.initial()
        )
        shares = led(leader, joining(leader, "a"), joining(binary, "b", memory))
        assert sorted((*shares["a"].partitions, *shares["b"].partitions)) == list(partitions("t0 t1 t2"))
        received = binary.assigned(memory, shares["b"])
        assert received.applied
        assert len(received.memory.active) == len(shares["b"].partitions)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", [each for each in EVERY if not each.startswith("0.10.0.")])
def test_a_topic_that_is_joined_is_as_wide_as_its_other_side(every: Members, release: str) -> None:
    """From 0.10.2 to 1.0 so it is made, but tasks are made as if it were as wide as what is written to it."""
    binary = every.member(release, topology=CHAIN)
    owned = led(binary, joining(binary, "a"), topics=(Topic("t", 2), Topic("u", 3)))["a"].partitions
    narrow = release.startswith(("0.10.2.", "0.11.", "1.0."))
    assert sorted(owned) == list(
        partitions("q0 q1 r0 r1 t0 t1 u0 u1 u2" if narrow else "q0 q1 q2 r0 r1 t0 t1 u0 u1 u2")
    )
