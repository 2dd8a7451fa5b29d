"""The Streams assignors of jars since 2.4, each asked what a member says, sends, and makes of what it is sent."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from kipcheck.conformance.clients.java.streams_members import JarBinary, Unanswerable
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.blobs import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from kipcheck.conformance.protocols.streams.members_ops import plain_memory
from kipcheck.conformance.protocols.streams.model.members import (
    ASSIGNMENT_ERROR,
    INCOMPLETE_SOURCE_TOPICS,
    NEVER,
    NO_REBALANCE,
    NONE,
    SHUTDOWN_REQUESTED,
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

USUAL: Final = ("2.4.1", "4.3.1")
"""The first rules of this kind, in a task manager; and the newest, in a container."""
EVERY: Final = {
    "2.4.0": 5, "2.4.1": 5, "2.5.0": 6, "2.5.1": 6, "2.6.0": 7, "2.6.1": 8, "2.6.2": 8, "2.6.3": 8, "2.7.0": 8,
    "2.7.1": 8, "2.7.2": 8, "2.8.0": 9, "2.8.1": 9, "2.8.2": 9, "3.0.0": 10, "3.0.1": 10, "3.0.2": 10, "3.1.0": 10,
    "3.1.1": 10, "3.1.2": 10, "3.2.0": 11, "3.2.1": 11, "3.2.2": 11, "3.2.3": 11, "3.3.0": 11, "3.3.1": 11, "3.3.2": 11,
    "3.4.0": 11, "3.4.1": 11, "3.5.0": 11, "3.5.1": 11, "3.5.2": 11, "3.6.0": 11, "3.6.1": 11, "3.6.2": 11, "3.7.0": 11,
    "3.7.1": 11, "3.7.2": 11, "3.8.0": 11, "3.8.1": 11, "3.9.0": 11, "3.9.1": 11, "3.9.2": 11, "4.0.0": 11, "4.0.1": 11,
    "4.0.2": 11, "4.1.0": 11, "4.1.1": 11, "4.1.2": 11, "4.2.0": 11, "4.2.1": 11, "4.3.0": 11, "4.3.1": 11,
}  # fmt: skip
"""And the newest metadata version of each."""
BY_OFFSETS: Final = releases("2.6.0+")
HOSTS_OF_STANDBYS: Final = releases("2.5.0+")
PEERLESS: Final = releases("2.4.0-2.6.3")
"""They end when a future member meets one of version 1 or 2; later ones say that there was an error."""
TAGGED: Final = releases("3.2.0+")
NAMED: Final = releases("3.1.0+")
ONE_NAME: Final = releases("3.0.0-3.0.2")
EAGER: Final = releases("2.4.0-3.9.2")
"""They still speak the eager protocol, and are upgraded from releases that speak no other."""
UNASKED: Final = releases("3.2.0+")
"""Where no topic is written for another subtopology, the sizes of co-partitioned ones are not compared."""
UPGRADED_FROM: Final = {
    "2.3": ("2.4.0", "4.0.0"), "2.4": ("3.3.0", None), "3.2": ("3.3.0", None), "3.3": ("3.4.0", None),
    "3.4": ("3.5.2", None), "3.5": ("3.6.2", None), "3.6": ("3.7.0", None), "3.7": ("3.8.0", None),
    "3.8": ("3.9.0", None), "4.0": ("4.1.0", None), "4.1": ("4.2.0", None), "4.2": ("4.3.0", None),
}  # fmt: skip
"""``upgrade.from`` -> the first release that takes it, and the first that does so no more."""
STATEFUL: Final = Topology((Subtopology(0, ("t",), (), (Store("s"),)),))
STANDBYS: Final = replace(STATEFUL, standbys=1)
CHAIN: Final = Topology(
    (
        Subtopology(0, ("t",), ("r",)),
        Subtopology(1, ("r",), ("q",), (Store("s"),)),
        Subtopology(2, ("q", "u"), (), (Store("z", logged=False),), (("q", "u"),)),
    ),
    standbys=1,
)
NAMES: Final = Topology(
    (
        Subtopology(0, ("t",), ("r",), topology="x"),
        Subtopology(1, ("r",), (), (Store("s"),), topology="x"),
        Subtopology(0, ("u",), topology="y"),
    )
)
TWO: Final = (Topic("t", 2), Topic("u", 2))
FIRST_WITH_OFFSETS: Final = 7


@pytest.fixture(scope="module")
def recent() -> Iterator[Members]:
    with opened(USUAL) as found:
        yield found


@pytest.fixture(scope="module")
def every() -> Iterator[Members]:
    with opened(tuple(EVERY)) as found:
        yield found


def at(release: str) -> Release:
    return Release.parse(release)


def stated(binary: JarBinary, memory: Memory) -> SubscriptionInfo:
    """Of the newest version."""
    data = binary.subscribe(memory, ("t",))[1]
    assert isinstance(data, bytes)
    return read_subscription(data, binary.settings.release)


def in_version(used: int, supported: int | None = None, **more: Any) -> AssignmentInfo:
    return AssignmentInfo(used, used if supported is None else supported, **more)


def hears(binary: JarBinary, memory: Memory, info: AssignmentInfo, owned: str = "t0") -> AssignmentResult:
    return binary.assigned(memory, Share(partitions(owned), write_assignment(info, binary.settings.release)))


# What can be asked of all


def says_what_it_has(members: Members, release: str) -> None:
    binary = members.member(release, topology=STATEFUL)
    offers = ("eager", "cooperative") if at(release) in EAGER else ("cooperative",)
    latest = EVERY[release]
    assert (binary.latest, binary.supports, binary.initial()) == (latest, offers, Memory(latest))
    memory = Memory(latest, 0, tasks("0_0 0_1"), tasks("0_2"), ((TaskId(0, 5), 7),))
    after, data = binary.subscribe(memory, ("t",))
    unique = 1 if latest >= 8 else 0
    assert after == replace(memory, unique=unique)
    assert isinstance(data, bytes)
    info = read_subscription(data, release)
    assert (info.used, info.latest, info.process) == (latest, latest, binary.settings.process)
    if latest < FIRST_WITH_OFFSETS:
        # The consumer says what it owns.
        assert (info.active, info.standby) == ((), tasks("0_2"))
    else:
        running = {TaskId(0, 0): -2, TaskId(0, 1): -2, TaskId(0, 2): 0, TaskId(0, 5): 7}
        assert (dict(info.sums), info.unique) == (running, unique)
    # Two subscriptions in a row are told apart from 2.6.1 on, and only from then on (KAFKA-10455).
    assert (binary.subscribe(after, ("t",))[1] != data) is (latest >= 8)
    assert binary.subscribe(replace(memory, unique=127), ("t",))[0].unique == (-128 if latest >= 8 else 0)


def says_nothing_of_tasks_without_state(members: Members, release: str) -> None:
    info = stated(members.member(release), Memory(EVERY[release], active=tasks("0_0"), standby=tasks("0_1")))
    assert (info.active, info.sums) == ((), ())
    assert info.standby == (() if at(release) in BY_OFFSETS else tasks("0_1"))


def gives_up_its_tasks_where_it_is_eager(members: Members, release: str) -> None:
    """They do not run any more when it subscribes."""
    for upgraded, used in (("0.10.0", 1), ("1.1", 2), ("2.3", EVERY[release])):
        binary = members.member(release, topology=STATEFUL, upgrade_from=upgraded)
        assert (binary.supports, binary.initial()) == (("eager",), Memory(used))
        info = stated(binary, Memory(used, active=tasks("0_0"), standby=tasks("0_1")))
        if used >= FIRST_WITH_OFFSETS:
            assert dict(info.sums) == {TaskId(0, 0): 0, TaskId(0, 1): 0}
        elif at(release) in BY_OFFSETS:
            assert (info.active, set(info.standby)) == ((), set(tasks("0_0 0_1")))
        else:
            assert (info.active, info.standby) == (tasks("0_0"), tasks("0_1"))


def leads_and_is_led(members: Members, release: str) -> None:
    """A chain of topics that are written and read, with a join at its end. Two instances stand by for each other."""
    one, other = (members.member(release, name, CHAIN, end_point=f"{name}:9092") for name in "ab")
    shares = led(one, joining(one, "a"), joining(other, "b"), topics=TWO)
    found = {id: reported(share, release) for id, share in shares.items()}
    everywhere = [each for share in shares.values() for each in share.partitions]
    assert sorted(everywhere) == list(partitions("q0 q1 r0 r1 t0 t1 u0 u1"))
    for mine, others in (("a", "b"), ("b", "a")):
        info = found[mine]
        assert (info.used, info.supported, info.error) == (EVERY[release], EVERY[release], NONE)
        assert len(info.active) == len(shares[mine].partitions)
        # Those without a changelog stand by too, up to 2.5.
        stands = {each for each in found[others].active if each.subtopology == 1 or at(release) not in BY_OFFSETS}
        assert {task for task, _ in info.standby} == stands
        assert dict(info.hosts).keys() == {"a:9092", "b:9092"}
        assert set(dict(info.hosts)[f"{mine}:9092"]) == set(shares[mine].partitions)
        assert bool(info.standby_hosts) is (at(release) in HOSTS_OF_STANDBYS)
        received = one.assigned(one.initial(), shares[mine])
        after = Memory(EVERY[release], active=tuple(sorted({*info.active})), standby=tuple(sorted(stands)))
        assert received == AssignmentResult(after)


def answers_errors(members: Members, release: str) -> None:
    """In its own newest version, whatever the others can read."""
    latest = EVERY[release]
    leader, endless = members.member(release), members.member(release, topology=CHAIN)
    before = joining(members.member(release, "b"), "b", Memory(3))
    incomplete = in_version(latest, error=INCOMPLETE_SOURCE_TOPICS)
    shares = led(leader, joining(leader, "a"), before, topics=())
    assert [reported(share, release) for share in shares.values()] == [incomplete, incomplete]
    # Topics hang by two steps on the one that is missing (KAFKA-5037).
    assert reported(led(endless, joining(endless, "a"), topics=(Topic("u", 1),))["a"], release) == incomplete
    received = leader.assigned(leader.initial(), shares["a"])
    assert received == AssignmentResult(Memory(latest), NEVER, applied=False, error=INCOMPLETE_SOURCE_TOPICS)
    closing = joining(leader, "a", Memory(latest, error=SHUTDOWN_REQUESTED))
    answered = reported(led(leader, closing)["a"], release)
    if latest < 9:
        assert answered.error == NONE
    else:
        assert answered == in_version(latest, error=SHUTDOWN_REQUESTED)


def probes(members: Members, release: str) -> None:
    latest = EVERY[release]
    leader = members.member(release)
    mine, unknown = joining(leader, "a"), Joining("z", ("t",), future(11))
    shares = led(leader, mine, unknown)
    assert sorted(each for share in shares.values() for each in share.partitions) == list(partitions("t0 t1 t2"))
    assert all(share.partitions for share in shares.values())
    assert {(reported(each, release).used, reported(each, release).supported) for each in shares.values()} == {
        (latest, latest)
    }
    junk = (12).to_bytes(4, "big") * 2 + b"nobody knows"
    assert led(leader, mine, replace(unknown, data=junk)) == shares
    third = joining(members.member(release, "c"), "c", Memory(3))
    assert {reported(each, release).used for each in led(leader, mine, unknown, third).values()} == {3}
    old = Joining("o", ("t",), write_subscription(SubscriptionInfo(2), "1.1.1"))
    assert {reported(each, release).used for each in led(leader, mine, old).values()} == {2}
    if at(release) in PEERLESS:
        with pytest.raises(Fatal, match=r"incompatible pre Kafka 2\.0 subscription") as caught:
            led(leader, mine, unknown, old)
        assert caught.value.kind == "java.lang.IllegalStateException"
    else:
        answered = [reported(each, release) for each in led(leader, mine, unknown, old).values()]
        assert answered == [in_version(latest, error=ASSIGNMENT_ERROR)] * 3


def goes_down_and_up(members: Members, release: str) -> None:
    """Told of what the others can read it changes its version, takes its tasks, and joins once more."""
    latest = EVERY[release]
    binary = members.member(release, end_point="a:9092")
    again = Rejoin("now" if at(release) in BY_OFFSETS else "again")
    memory, mine = binary.initial(), tasks("0_0")
    took = replace(memory, active=mine)
    assert hears(binary, memory, in_version(4, active=mine)) == AssignmentResult(replace(took, used=4), again)
    assert hears(binary, memory, in_version(4, latest, active=mine)) == AssignmentResult(took, again)
    assert hears(binary, replace(memory, used=4), in_version(4, latest, active=mine)) == AssignmentResult(took, again)
    assert hears(binary, memory, in_version(2, -1, active=mine)) == AssignmentResult(took)
    assert hears(binary, memory, in_version(latest, active=mine)) == AssignmentResult(took)
    for info, owned in (
        (in_version(5, active=mine), "t0"),
        (in_version(4, latest + 1, active=mine), "t0"),
        (in_version(4, active=mine), "t0 t1"),
    ):
        with pytest.raises(Fatal) as caught:
            hears(binary, replace(memory, used=4), info, owned)
        assert caught.value.kind == "org.apache.kafka.streams.errors.TaskAssignmentException"
    elsewhere = in_version(latest, active=mine, hosts=(("b:9092", partitions("t1")),))
    assert hears(binary, memory, elsewhere).rejoin == (again if at(release) in BY_OFFSETS else NEVER)
    if latest >= FIRST_WITH_OFFSETS:
        later = Rejoin("later", 5000)
        assert hears(binary, memory, in_version(latest, active=mine, next_ms=5000)).rejoin == later
        assert hears(binary, memory, in_version(latest, active=mine, next_ms=0)).rejoin == again


def asked_of_all(members: Members, release: str) -> None:
    says_what_it_has(members, release)
    says_nothing_of_tasks_without_state(members, release)
    leads_and_is_led(members, release)
    answers_errors(members, release)
    probes(members, release)
    goes_down_and_up(members, release)


@pytest.mark.parametrize("release", USUAL)
def test_a_member_is_asked_for_its_subscription_and_led_and_told(recent: Members, release: str) -> None:
    asked_of_all(recent, release)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", EVERY)
def test_so_it_is_with_every_release(every: Members, release: str) -> None:
    asked_of_all(every, release)


def test_a_member_that_gives_up_its_tasks_says_so(recent: Members) -> None:
    gives_up_its_tasks_where_it_is_eager(recent, "2.4.1")


@pytest.mark.all_jars
@pytest.mark.parametrize("release", [each for each in EVERY if at(each) in EAGER])
def test_so_does_that_of_every_release_that_is_eager(every: Members, release: str) -> None:
    gives_up_its_tasks_where_it_is_eager(every, release)


# What some have


@pytest.mark.all_jars
@pytest.mark.parametrize("release", EVERY)
def test_upgrades_are_from_releases_that_each_release_knows(every: Members, release: str) -> None:
    """3.5.0 and 3.5.1 offer 3.4, and end with it."""
    for upgraded, (first, last) in UPGRADED_FROM.items():
        binary = every.member(release, upgrade_from=upgraded)
        if at(first) <= at(release) and (last is None or at(release) < at(last)):
            eager = upgraded == "2.3" or at(release) not in EAGER
            assert len(binary.supports) == (1 if eager else 2)
            assert binary.initial() == Memory(EVERY[release])
            continue
        with pytest.raises(Misconfigured) as caught:
            binary.initial()
        offered = upgraded == "3.4" and release in ("3.5.0", "3.5.1")
        kind = "java.lang.IllegalArgumentException" if offered else "org.apache.kafka.common.config.ConfigException"
        assert caught.value.kind == kind


def has_state_far_behind(members: Members, release: str) -> None:
    """Whoever is far behind keeps a task ready first; its leader sets a time for looking again (KIP-441)."""
    one, other = (members.member(release, name, STATEFUL) for name in "ab")
    memory = one.initial()
    mine = replace(joining(one, "a", replace(memory, active=tasks("0_0 0_1"))), owned=partitions("t0 t1"), generation=3)
    order = one.leading(memory, TWO[:1], (mine, joining(other, "b")))
    (found,) = members.raw({**order, "offsets": {"app-s-changelog": 200_000}, "nowMs": 77})
    infos = {each["id"]: read_assignment(bytes.fromhex(each["userData"]), release) for each in found["assignment"]}
    if at(release) in BY_OFFSETS:
        assert (infos["a"].active, infos["a"].next_ms) == (tasks("0_0 0_1"), 600_077)
        assert len(infos["b"].standby) == 1
    else:
        # What another one still has is given nobody yet.
        assert [infos["a"].active, infos["b"].active] == [tasks("0_0"), ()]
    assert infos["b"].next_ms == NO_REBALANCE


def spreads_over_tags(members: Members, release: str) -> None:
    kept = []
    for keys in ((), ("zone",)):
        binaries = [
            members.member(release, name, STANDBYS, tags=(("zone", zone),), tag_keys=keys)
            for name, zone in zip("abc", "xxy", strict=True)
        ]
        shares = led(binaries[0], *map(joining, binaries, "abc"), topics=TWO[:1])
        kept.append({id: len(reported(share, release).standby) for id, share in shares.items()})
    said_of = stated(binaries[0], binaries[0].initial()).tags
    if at(release) in TAGGED:
        assert kept[1] == {"a": 0, "b": 0, "c": 2}
        assert said_of == (("zone", "x"),)
    else:
        assert kept[0] == kept[1]
        assert said_of == ()


def may_have_names(members: Members, release: str) -> None:
    topics = (Topic("t", 2), Topic("u", 1))
    named = members.member(release, topology=NAMES)
    alone = members.member(release, topology=Topology(NAMES.subtopologies[:2]))
    if at(release) not in NAMED:
        with pytest.raises(Unanswerable, match="runs one topology" if at(release) in ONE_NAME else "have no names"):
            named.initial()
        if at(release) not in ONE_NAME:
            return
        expected = tasks("x__0_0 x__0_1 x__1_0 x__1_1")
        binary = alone
    else:
        expected = tasks("x__0_0 x__0_1 x__1_0 x__1_1 y__0_0")
        binary = named
    shares = led(binary, joining(binary, "a"), topics=topics)
    assert set(reported(shares["a"], release).active) == set(expected)
    after = binary.assigned(binary.initial(), shares["a"]).memory
    assert set(after.active) == set(expected)
    assert dict(stated(binary, after).sums) == dict.fromkeys(tasks("x__1_0 x__1_1"), -2)


def compares_sizes(members: Members, release: str) -> None:
    """3.2.0 and later do so only where topics are written and read too."""
    join = (("t", "u"),)
    written = Topology((Subtopology(0, ("t", "u"), ("r",), (), join), Subtopology(1, ("r",))))
    uneven = (Topic("t", 2), Topic("u", 3))
    for topology in (Topology((Subtopology(0, ("t", "u"), (), (), join),)), written):
        binary = members.member(release, topology=topology)
        if topology is written or at(release) not in UNASKED:
            with pytest.raises(Fatal, match="not co-partitioned") as caught:
                led(binary, joining(binary, "a"), topics=uneven)
            assert caught.value.kind == "org.apache.kafka.streams.errors.TopologyException"
        else:
            found = reported(led(binary, joining(binary, "a"), topics=uneven)["a"], release)
            assert found.active == tasks("0_0 0_1 0_0 0_1 0_2")


def has_what_some_have(members: Members, release: str) -> None:
    has_state_far_behind(members, release)
    spreads_over_tags(members, release)
    may_have_names(members, release)
    compares_sizes(members, release)


@pytest.mark.parametrize("release", USUAL)
def test_state_tags_and_names(recent: Members, release: str) -> None:
    has_what_some_have(recent, release)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", EVERY)
def test_state_tags_and_names_of_every_release(every: Members, release: str) -> None:
    has_what_some_have(every, release)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", EVERY)
def test_a_chain_may_begin_at_its_end(every: Members, release: str) -> None:
    """2.4.0 takes the size that it does not know yet for one (KAFKA-9335)."""
    backwards = Subtopology(0, ("q",)), Subtopology(1, ("r",), ("q",)), Subtopology(2, ("t",), ("r",))
    binary = every.member(release, topology=Topology(backwards))
    if release == "2.4.0":
        with pytest.raises(Fatal, match="Number of partitions must be at least 1"):
            led(binary, joining(binary, "a"))
        return
    found = reported(led(binary, joining(binary, "a"))["a"], release)
    assert set(found.active) == {TaskId(subtopology, number) for subtopology in range(3) for number in range(3)}


@pytest.mark.parametrize(
    ("topology", "why"),
    [
        (Topology((Subtopology(1, ("t",)),)), "an id other than 1"),
        (Topology((Subtopology(0, ("t",)), Subtopology(0, ("u",)))), "two subtopologies have the id 0"),
        (Topology((Subtopology(0, ()),)), "reads nothing"),
        (Topology((Subtopology(0, ("t",), topology="x"), Subtopology(0, ("u",)))), "others have none"),
        (Topology((Subtopology(0, ("t",), copartition=(("t", "u"),)),)), "u is co-partitioned but not read"),
    ],
)
def test_topologies_that_there_cannot_be_are_not_asked_about(recent: Members, topology: Topology, why: str) -> None:
    with pytest.raises(Unanswerable, match=why):
        recent.member("4.3.1", topology=topology).initial()


# Orders and nothing else


def lives_on(members: Members, release: str) -> None:
    """What an assignor keeps from one rebalance to the next is in the memory that is told, and nothing else is."""
    short = replace(CHAIN, subtopologies=CHAIN.subtopologies[:2])
    binary = members.member(release, "a", short, end_point="a:1")
    group = joining(binary, "a"), joining(members.member(release, "b", short), "b")
    memory, topics = binary.initial(), tuple(sorted(short.source_topics))
    shares = [*led(binary, *group).values()]
    # It probes, and comes up again.
    shares += [
        Share(partitions("t0"), write_assignment(in_version(4, supported, active=tasks("0_0")), release))
        for supported in (4, EVERY[release])
    ]
    steps = [binary.subscribing(memory, topics), binary.leading(memory, THREE, group)]
    steps += [each for share in shares for each in (binary.assigning(memory, share), *steps[:2])]
    (found,) = members.raw({**steps[0], "op": "stream-live", "steps": steps})
    carried = plain_memory(memory)
    for step, answer in zip(steps, found["answers"], strict=True):
        (alone,) = members.raw({**step, "memory": carried})
        assert alone == {**answer, "status": "accepted"}
        carried = alone["memory"]


@pytest.mark.parametrize("release", USUAL)
def test_an_assignor_that_lives_on_says_the_same(recent: Members, release: str) -> None:
    lives_on(recent, release)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", EVERY)
def test_so_does_that_of_every_release(every: Members, release: str) -> None:
    lives_on(every, release)


def orders_of(members: Members, release: str) -> list[dict[str, Any]]:
    """With members of the future among them, who are kept under an id that is drawn by lot."""
    orders: list[dict[str, Any]] = []
    for topology in (STATELESS, STANDBYS, CHAIN):
        for name in "ab":
            binary = members.member(release, name, topology, end_point=f"{name}:1")
            memory = Memory(EVERY[release], active=tasks("0_1"), standby=tasks("0_2"))
            threads = [joining(members.member(release, each, topology), f"{each}{n}") for each in "abc" for n in "12"]
            share = Share(partitions("t0"), write_assignment(in_version(4, active=tasks("0_0")), release))
            group = *threads, Joining("y", ("t",), future(11)), Joining("z", ("t",), future(11))
            orders += [
                {**binary.configuring()},
                {**binary.subscribing(memory, ("t",))},
                {**binary.leading(memory, (*THREE, Topic("u", 3)), group)},
                {**binary.assigning(memory, share)},
            ]
    return orders


def says_the_same_in_any_order(one: Members, releases: tuple[str, ...]) -> None:
    orders = [order for release in releases for order in orders_of(one, release)]
    first = one.raw(*orders, cpu_ms=10_000)
    assert {each["status"] for each in first} == {"accepted"}
    with opened(releases) as other:
        for seed in range(2):
            places = random.Random(seed).sample(range(len(orders)), len(orders))
            assert other.raw(*(orders[place] for place in places), cpu_ms=10_000) == [first[place] for place in places]


@pytest.mark.all_jars
def test_what_was_asked_before_does_not_matter(every: Members) -> None:
    """In any order, after whatever else, and in another process: nothing is left over, and nothing drawn by lot."""
    says_the_same_in_any_order(every, tuple(EVERY))


# Between releases


def test_error_assignments_are_written_past_older_members(recent: Members) -> None:
    """Whoever is to hear of the error ends otherwise."""
    leader, member = recent.member("4.3.1"), recent.member("2.4.1", "b")
    share = led(leader, joining(leader, "a"), joining(member, "b"), topics=())["b"]
    with pytest.raises(Fatal, match=r"[Uu]nable to decode assignment data") as caught:
        member.assigned(member.initial(), share)
    assert caught.value.kind == "org.apache.kafka.streams.errors.TaskAssignmentException"


@pytest.mark.parametrize(("old", "new"), [("2.4.1", "4.3.1")])
def test_an_upgrade_is_over_after_a_round_for_each_and_one_for_all(recent: Members, old: str, new: str) -> None:
    upgraded(recent, old, new)


@pytest.mark.all_jars
@pytest.mark.parametrize("old", [*EVERY][::6])
def test_so_is_that_of_others(every: Members, old: str) -> None:
    for new in ("2.6.1", "3.1.2", "4.3.1"):
        if EVERY[old] < EVERY[new]:
            upgraded(every, old, new)


def upgraded(members: Members, old: str, new: str) -> None:
    first, second = (members.member(old, name) for name in "ab")
    renewed = members.member(new, "b")
    memory = renewed.initial()
    shares = led(first, joining(first, "a"), joining(renewed, "b", memory))
    received = renewed.assigned(memory, shares["b"])
    assert received.memory.used == EVERY[old]
    assert received.rejoin.when == ("now" if at(new) in BY_OFFSETS else "again")
    shares = led(first, joining(first, "a"), joining(renewed, "b", received.memory))
    assert reported(shares["b"], new).supported == EVERY[old]
    assert renewed.assigned(received.memory, shares["b"]).rejoin == NEVER
    # Now the other one.
    latecomer = members.member(new, "a")
    shares = led(renewed, joining(latecomer, "a"), joining(renewed, "b", received.memory))
    assert {(reported(each, new).used, reported(each, new).supported) for each in shares.values()} == {
        (EVERY[old], EVERY[new])
    }
    raised = renewed.assigned(received.memory, shares["b"])
    assert (raised.memory.used, raised.rejoin.when) == (EVERY[new], received.rejoin.when)
    # Who had the newest version already is told to come down, and up again at once.
    assert latecomer.assigned(latecomer.initial(), shares["a"]).memory.used == EVERY[new]
    shares = led(renewed, joining(latecomer, "a"), joining(renewed, "b", raised.memory))
    assert {reported(each, new).used for each in shares.values()} == {EVERY[new]}
    assert second.initial() == Memory(EVERY[old])
