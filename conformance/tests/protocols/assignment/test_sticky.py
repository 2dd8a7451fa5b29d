"""The sticky assignors: what Kafka 3.9.2 gives, where they do otherwise, and that they come to an end.

The results of 3.9.2 are those of its jar; ``tests/clients/java/test_assignors.py`` compares them.
"""

from collections.abc import Mapping
from importlib.resources import files
from random import Random

import pytest

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.java_hash import string_hash
from kipcheck.conformance.protocols.assignment import strategies as membership
from kipcheck.conformance.protocols.assignment.model.assignment import (
    COOPERATIVE,
    STICKY,
    Group,
    Member,
    Partition,
    Topic,
)
from kipcheck.conformance.protocols.assignment.model.sticky import decided, owners, sticky
from kipcheck.conformance.protocols.assignment.model.sticky.deviations import (
    DEVIATIONS,
    ENDLESS,
    FORMER,
    GONE,
    LISTED,
    NEEDLESS,
    NEWER,
    NOTHING_ASKED,
    OLDER,
    UNEVEN,
    UNOBSERVED,
    Deviation,
    Deviations,
)
from kipcheck.conformance.protocols.assignment.model.sticky.fix_up import Shares, reverted
from kipcheck.conformance.protocols.assignment.model.sticky.hashing import (
    Partitions,
    in_table_order,
    share_a_cell,
)
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.tests.support.groups import anything, case, got, group, group_with_knobs
from kipcheck.conformance.tests.support.sessions import history_of
from kipcheck.strategies.compiled import compiled

GIVEN = {
    # Of what is owned the lowest numbers stay, of whatever topic.
    "sticky t0:3 t1:3; a[t0 t1]=t0-0,t0-1,t0-2,t1-0,t1-1,t1-2@5; b[t0 t1]": "a t0-0 t0-1 t1-0; b t0-2 t1-1 t1-2",
    "sticky t0:4; a[t0]=t0-0,t0-1@10; b[t0]=t0-2,t0-3@10; c[t0]": "a t0-0 t0-1; b t0-2; c t0-3",
    "cooperative-sticky t0:6; a[t0]; b[t0]=t0-0,t0-1,t0-2,t0-3@10; c[t0]": "a t0-4; b t0-0 t0-1; c t0-5",
    # Contested, and stale.
    "sticky t0:4; a[t0]=t0-0,t0-1,t0-2,t0-3@8; b[t0]=t0-0@8": "a t0-1 t0-2; b t0-0 t0-3",
    "cooperative-sticky t0:4; a[t0]=t0-0,t0-1,t0-2,t0-3@8; b[t0]=t0-0@8": "a t0-1 t0-2; b",
    "cooperative-sticky t0:6; a[t0]=t0-2,t0-3,t0-4@-1; b[t0]=t0-4,t0-5@-1; c[t0]": "a t0-2 t0-3; b t0-0 t0-5; c t0-1",
    "cooperative-sticky t0:4; a[t0]=t0-0@9; b[t0]=t0-0@9; c[t0]=t0-0,t0-1@10": "a; b t0-2; c t0-1 t0-3",
    "cooperative-sticky t0:4 t1:1; a[t1]=t1-0,t0-2@-1; b[t0]=t0-0,t0-1,t0-2,t0-3@-1": "a t1-0; b t0-0 t0-1 t0-2 t0-3",
    # With mixed subscriptions: back to who had it, and what goes instead of what.
    "sticky t0:1 t1:3; a[t0]; b[t0 t1]=t0-0@10; c[t0]": "a t0-0; b t1-0 t1-1 t1-2; c",
    "cooperative-sticky t0:4 t1:4; a[t0 t1]=t1-2@9; b[t0]; c[t0 t1]=t0-0,t0-1,t0-2,t0-3,t1-0,t1-1@8":
        "a t1-2 t1-3; b; c t0-2 t0-3 t1-0",
    "sticky t0:4 t1:4; a[t0 t1]=t0-0,t0-1,t0-2,t0-3,t1-1,t1-2,t1-3@10; b[t0 t1]; c[t0]":
        "a t0-2 t0-3 t1-3; b t1-0 t1-1 t1-2; c t0-0 t0-1",
    "cooperative-sticky t0:4 t1:4; a[t0 t1]=t0-0,t0-1,t0-2,t0-3,t1-1,t1-2,t1-3@10; b[t0 t1]; c[t0]":
        "a t0-2 t0-3 t1-3; b t1-0; c",
    "sticky t0:4 t1:5 t2:3 t3:5; a[t0 t3]=t3-0,t3-1,t3-2,t3-3,t3-4@10; b[t0 "
    "t1]=t0-2,t0-3,t1-0,t1-1,t1-2,t1-3,t1-4@10; c[t0 t2]=t0-0,t0-1,t2-0,t2-1,t2-2@10; d[t1 t2]; e[t1 t2]":
        "a t3-0 t3-1 t3-2 t3-3 t3-4; b t0-2 t0-3 t1-4; c t0-0 t0-1 t2-2; d t1-0 t1-2 t2-0; e t1-1 t1-3 t2-1",
    "sticky t0:2 t1:1; a[t0 gone]; b[t0 t1]=t0-0,t0-1@3; c[]": "a t0-0; b t0-1 t1-0; c",
    # Racks.
    "sticky t0:6 on r2,r0,r1,r2,r0,r1; a[t0]=t0-3,t0-4,t0-5@10 on r0; b[t0] on r0":
        "a t0-0 t0-1 t0-4; b t0-2 t0-3 t0-5",
    "cooperative-sticky t0:6 on r2,r0,r1,r2,r0,r1; a[t0]=t0-3,t0-4,t0-5@10 on r0; b[t0] on r0":
        "a t0-0 t0-1 t0-4; b t0-2",
    "sticky t0:4 on r0/r1,r0/r1,r0/r2,r0/r1; a[t0]; b[t0]; c[t0]; d[t0] on r0; e[t0]":
        "a t0-1; b t0-2; c t0-3; d t0-0; e",
    "sticky t0:4 on r0,r1,r0,r1 t1:1; a[t0]; b[t0 t1]=t0-0,t0-1,t0-2,t0-3@8 on r1; c[t0] on r1":
        "a t0-1 t0-2; b t0-3 t1-0; c t0-0",
    # Members are asked in the order of a hash table, and dealt to in that of their ids.
    "sticky t0:7; m10[t0]=t0-0,t0-1,t0-2@1; m2[t0]=t0-3,t0-4,t0-5@1; m33[t0]":
        "m10 t0-0 t0-1; m2 t0-3 t0-4 t0-5; m33 t0-2 t0-6",
    "cooperative-sticky t0:40; m1[t0]=t0-0,t0-1,t0-2,t0-3@1; m2[t0]=t0-4,t0-5,t0-6,t0-7@1; "
    "m3[t0]=t0-8,t0-9,t0-10@1; m4[t0]=t0-12,t0-13,t0-14,t0-15@1; m5[t0]; m6[t0]; m7[t0]; m8[t0]; m9[t0]; q1[t0]; "
    "q2[t0]; q3[t0]; q4[t0]=t0-36,t0-37,t0-38,t0-39@1":
        "m1 t0-0 t0-1 t0-2; m2 t0-4 t0-5 t0-6; m3 t0-8 t0-9 t0-10; m4 t0-12 t0-13 t0-14; m5 t0-20 t0-28; m6 t0-21 "
        "t0-29; m7 t0-11 t0-22 t0-30; m8 t0-23 t0-31; m9 t0-16 t0-24 t0-32; q1 t0-17 t0-25 t0-33; q2 t0-18 t0-26 "
        "t0-34; q3 t0-19 t0-27 t0-35; q4 t0-36 t0-37 t0-38 t0-39",
}  # fmt: skip
"""Asked, and what 3.9.2 gives."""
OTHERWISE: dict[Deviation, tuple[str, ...]] = {
    GONE: (
        "sticky t0:1; a[t0]=t0-1@10; b[t0]",
        "sticky t0:2 t1:1; a[t0]=t0-2@10; b[t0 t1]",
        "cooperative-sticky t0:3 t1:6; a[t0 t1]=t1-0,t1-1@10; b[t0 t1]; c[t0 t1]; d[t0 t1]=t0-3@10",
    ),
    NOTHING_ASKED: ("sticky t0:2; a[]; b[t0]", "cooperative-sticky t0:2; a[]; b[t0]"),
    FORMER: (
        "sticky t0:1 t1:1; a[t0 t1]; b[t0 t1]=t0-0,t1-0@10; c[t1]=t0-0@9",
        "sticky t0:2; a[t0]=t0-0,t0-1@10; b[]=t0-0@9; c[t0]",
        "cooperative-sticky t0:2; a[t0]=t0-0,t0-1@10; b[t0]; c[]=t0-0@9",
    ),
    ENDLESS: (
        (
            "sticky t0:6 t1:5 t2:1 t3:8; c0[t1]=t1-0,t1-1,t1-2,t1-3@1; c1[t0 t1]=t0-0,t0-2,t0-3,t0-5@1; "
            "c2[t2 t3]=t3-0,t3-2,t3-3,t3-4,t3-5,t3-6,t3-7@1; c3[t0 t1]; c4[t0 t3]"
        ),
    ),
    NEEDLESS: (
        "sticky t0:3 t1:1; a[t0 t1]=t0-0,t0-1,t0-2,t1-0@10; b[t0 t1]; c[t1]",
        "sticky t0:1 t1:3; a[t0 t1]; b[t1]; c[t0 t1]=t0-0,t1-0,t1-1@10",
    ),
    NEWER: ("sticky t0:4 t1:1; a[t0 t1]=t0-0@10; b[t0]=t0-0@9; c[t0]=t0-1,t0-2,t0-3@10",),
    OLDER: (
        "cooperative-sticky t0:1 t1:1; a[t0 t1]=t0-0@10; b[t0]=t0-0@9",
        "cooperative-sticky t0:1; a[t0]=t0-0@9; b[]=t0-0@10",
    ),
    LISTED: (
        (
            "sticky t0:4; BB[t0]=t0-0,t0-1@10; Aa[t0]=t0-2,t0-3@10; c[t0] | "
            "sticky t0:4; Aa[t0]=t0-2,t0-3@10; BB[t0]=t0-0,t0-1@10; c[t0]"
        ),
    ),
}
"""What 3.9.2 answers against a law, and these do not."""


def test_what_is_given_is_what_3_9_2_gives() -> None:
    for asked, wanted in GIVEN.items():
        decision = decided(asked.split()[0], group(asked))
        assert (got(decision.assignment), decision.departures) == (wanted, frozenset()), asked


@pytest.mark.parametrize("departure", OTHERWISE, ids=lambda each: each.id)
def test_each_departure_is_noted_and_keeps_the_laws_that_ask_for_it(departure: Deviation) -> None:
    laws = {law.id: law for law in all_invariants(Role.LEADER)}
    asking: set[str] = set()
    for text in OTHERWISE[departure]:
        asked = case(text)
        assert departure in decided(text.split()[0], group(text.split(" | ")[0])).departures
        history = history_of(Reference(), asked)
        assert not [law.id for law in laws.values() if list(law.search(history))], text
        asking |= {id for id, law in laws.items() if law.applies_to(asked, asked.steps[0])}
    assert {*departure.laws} <= asking


def test_every_departure_is_listed_with_a_case_or_as_unseen() -> None:
    assert {*OTHERWISE} | {*UNOBSERVED} == {*DEVIATIONS}
    assert not {*OTHERWISE} & {*UNOBSERVED}
    assert len({each.id for each in DEVIATIONS}) == len(DEVIATIONS)


def test_the_page_about_assignments_tells_of_every_departure() -> None:
    page = files("kipcheck.conformance.docs").joinpath("assignments.md").read_text("utf-8")
    for each in DEVIATIONS:
        laws = ", ".join(f"`{law}`" for law in each.laws)
        assert f"| `{each.id}` | {laws} | {each.kafka} | {each.ours} |" in page


def test_a_claim_to_what_does_not_exist_is_no_claim() -> None:
    draw, random = compiled(anything()), Random(3)
    ghosts = 0
    for _ in range(100):
        drawn = group_with_knobs(draw(random))
        real = Group(drawn.topics, tuple(_haunted_no_more(drawn, each) for each in drawn.members))
        ghosts += real != drawn
        for name in (STICKY, COOPERATIVE):
            assert decided(name, drawn).assignment == decided(name, real).assignment
    assert ghosts > 20


def _haunted_no_more(group: Group, member: Member) -> Member:
    owned = tuple((topic, number) for topic, number in member.owned if number < group.sizes.get(topic, 0))
    return Member(member.id, member.subscription, owned, member.generation, member.instance, member.rack)


def test_the_order_in_which_a_group_is_listed_makes_no_difference() -> None:
    draw, random = compiled(anything()), Random(5)
    for _ in range(60):
        drawn = group_with_knobs(draw(random))
        turned_around = Group(drawn.topics[::-1], drawn.members[::-1])
        for name in (STICKY, COOPERATIVE):
            assert decided(name, drawn) == decided(name, turned_around)


# The order of Java's tables


def test_texts_are_hashed_as_java_has_it() -> None:
    # As the documentation of String.hashCode computes them; the last is a pair of surrogates.
    reported = {"": 0, "a": 97, "Aa": 2112, "BB": 2112, "hello": 99162322, "\U0001f600": 31 * 0xD83D + 0xDE00}
    assert {text: string_hash(text) for text in reported} == reported


def test_ids_stand_in_the_order_of_a_table_that_grows() -> None:
    assert in_table_order(["t5", "t4", "t0", "t3"]) == ["t4", "t5", "t0", "t3"]
    assert in_table_order(["BB", "b", "Aa"]) == ["Aa", "BB", "b"]
    assert share_a_cell(["BB", "b", "Aa"]) and not share_a_cell(["a", "b"])
    twelve = [chr(65 + each) for each in range(12)]
    assert in_table_order([*twelve]) == twelve
    assert in_table_order([*twelve[:11], "P"]) == ["P", *twelve[:11]]
    assert in_table_order([*twelve, "P"]) == [*twelve, "P"]


def test_partitions_stand_in_the_order_of_a_table_that_never_shrinks() -> None:
    partitions = Partitions()
    for number in (10, 0):
        partitions.add(("t", number))
    assert partitions.order == (("t", 0), ("t", 10))
    for number in range(20, 32):
        partitions.add(("t", number))
    for number in range(20, 32):
        partitions.remove(("t", number))
    assert partitions.order == (("t", 10), ("t", 0))
    assert partitions.first() == ("t", 10)
    for number in (0, 10):
        partitions.remove(("t", number))
    assert not partitions


# Coming to an end


def test_each_change_of_the_mending_brings_it_nearer_to_its_end() -> None:
    draw, random = compiled(anything(membership.MIXED)), Random(7)
    changes = {"level": 0, "return_to_owner": 0, "honor_newest_claim": 0}
    for _ in range(250):
        drawn = group_with_knobs(draw(random))
        readers = {topic: [each.id for each in of] for topic, of in drawn.subscribers.items()}
        holders = {partition: random.choice(readers[partition[0]]) for partition in drawn.wanted}
        before = owners(drawn)
        shares = Shares(drawn, holders, before)
        shares.level()
        last = _measure(shares.holders, before)
        changes["level"] += last < _measure(holders, before)
        for change in ("honor_newest_claim", "return_to_owner"):
            while getattr(shares, change)():
                now = _measure(shares.holders, before)
                assert now < last
                last = now
                changes[change] += 1
                shares.level()
                assert _measure(shares.holders, before) <= last
                last = _measure(shares.holders, before)
    assert min(changes.values()) > 10, changes


def _measure(holders: Mapping[Partition, str], before: Mapping[Partition, str]) -> tuple[int, int]:
    sizes = [list(holders.values()).count(each) for each in set(holders.values())]
    return sum(size * size for size in sizes), sum(holders[each] != owner for each, owner in before.items())


def test_shares_out_of_balance_are_levelled_and_that_is_noted() -> None:
    asked = group("sticky t0:2 t1:1; a[t0]; b[t0 t1]; c[t1]")
    noted: Deviations = set()
    holders = reverted(asked, {("t0", 0): "a", ("t0", 1): "a", ("t1", 0): "c"}, noted)
    assert sorted(holders.values()) == ["a", "b", "c"]
    assert noted == {UNEVEN}
    noted.clear()
    assert reverted(asked, holders, noted) == holders
    assert not noted


def test_a_search_that_goes_in_circles_is_given_up() -> None:
    (endless,) = OTHERWISE[ENDLESS]
    assert got(sticky(group(endless))) == (
        "c0 t1-0 t1-1 t1-2 t1-3; c1 t0-0 t0-2 t0-3 t0-5; c2 t2-0 t3-4 t3-5 t3-6 t3-7; c3 t0-1 t0-4 t1-4; "
        "c4 t3-0 t3-1 t3-2 t3-3"
    )


def test_a_large_group_is_answered_in_reasonable_time() -> None:
    """A look at the balance goes through topics and not through partitions, and only after something has moved."""
    topics = tuple(Topic(f"t{number:02}", 30) for number in range(20))
    members = tuple(
        Member(f"m{at:02}", tuple(each.name for each in topics if (at + int(each.name[1:])) % 7)) for at in range(40)
    )
    first = sticky(Group(topics, members))
    assert sum(map(len, first.values())) == 600
    owning = tuple(Member(each.id, each.subscription, first[each.id], 1) for each in members[4:])
    again = sticky(Group(topics, (*owning, Member("new", tuple(each.name for each in topics)))))
    assert sum(map(len, again.values())) == 600
    assert max(map(len, again.values())) <= min(map(len, again.values())) + 1


def test_the_newest_claim_counts_and_of_two_equal_ones_none() -> None:
    assert owners(group("sticky t0:2; a[t0]=t0-0,t0-1@9; b[t0]=t0-0@10; c[t0]=t0-1@9; d[]=t0-1@10")) == {
        ("t0", 0): "b"
    }  # fmt: skip
