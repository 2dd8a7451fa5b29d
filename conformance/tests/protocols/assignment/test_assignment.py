"""Our own assignors: what they give is known where it is ruled, keeps every law, and comes to an end."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Op, Refused, Replied
from kipcheck.conformance.protocols.assignment import strategies as membership
from kipcheck.conformance.protocols.assignment.checks.known_hard_groups import CLAIMS
from kipcheck.conformance.protocols.assignment.group_answers import group as read_group
from kipcheck.conformance.protocols.assignment.model.assignment import (
    ASSIGNORS,
    COOPERATIVE,
    RANGE,
    ROUNDROBIN,
    STICKY,
    Assignment,
    Group,
    Member,
    Topic,
    in_order,
    java_order,
    range_,
    roundrobin,
)
from kipcheck.conformance.protocols.assignment.model.mixed_group import DRAFT
from kipcheck.conformance.protocols.assignment.model.sticky import cooperative_sticky, sticky
from kipcheck.conformance.protocols.assignment.ops import (
    assign,
    group_of,
    read_user_data,
    rejoined,
    shares,
    shorthand,
    user_data,
    user_data_version,
    with_user_data,
)
from kipcheck.conformance.protocols.assignment.strategies import group_with_knobs
from kipcheck.conformance.protocols.assignment.target import ALL
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.tests.support.groups import LEADING, answered, anything, case, got, group, step_of
from kipcheck.conformance.tests.support.sessions import history_of
from kipcheck.strategies import groups
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.nodes import Node, record
from kipcheck.strategies.parse import belongs, parse
from kipcheck.strategies.reduce import reduce


@pytest.mark.parametrize(
    ("assign", "asked", "wanted"),
    [
        (range_, "range t0:3; a[t0]; b[t0]", "a t0-0 t0-1; b t0-2"),
        (range_, "range t0:3 t1:3; b[t0 t1]; a[t0 t1]", "a t0-0 t0-1 t1-0 t1-1; b t0-2 t1-2"),
        (range_, "range t0:1; a[t0]; b(i0)[t0]", "a; b t0-0"),
        (range_, "range t0:2; a(i1)[t0]; b(i0)[t0]; c[t0]", "a t0-1; b t0-0; c"),
        (range_, "range t0:2; a[]; b[t0 gone]", "a; b t0-0 t0-1"),
        (roundrobin, "roundrobin t0:3; a[t0]; b[t0]", "a t0-0 t0-2; b t0-1"),
        (roundrobin, "roundrobin t0:1 t1:1 t2:1; a[t0 t1 t2]; b[t0 t1 t2]", "a t0-0 t2-0; b t1-0"),
        (roundrobin, "roundrobin t0:1 t1:1; a[t1]; b[t0]", "a t1-0; b t0-0"),
        (roundrobin, "roundrobin t0:1 t1:2; a[t0]; b(i0)[t1]", "a t0-0; b t1-0 t1-1"),
        (sticky, "sticky t0:3; a[t0]=t0-0,t0-1,t0-2@1; b[t0]", "a t0-0 t0-1; b t0-2"),
        (sticky, "sticky t0:2; a[]; b[t0]", "a; b t0-0 t0-1"),
        (sticky, "sticky t0:2; a[t0]=t0-0@9; b[t0]=t0-0@10", "a t0-1; b t0-0"),
        (sticky, "sticky t0:1 t1:1; a[t1]=t0-0@10,; b[t0]", "a t1-0; b t0-0"),
        (cooperative_sticky, "cooperative-sticky t0:2; a[t0]=t0-0,t0-1@10; b[t0]", "a t0-0; b"),
        (cooperative_sticky, "cooperative-sticky t0:1; a[]=t0-0@10; b[t0]", "a; b"),
        (cooperative_sticky, "cooperative-sticky t0:1; a[t0]=t0-0@9; b[t0]=t0-0@10", "a; b t0-0"),
        (cooperative_sticky, "cooperative-sticky t0:1; a[t0]=t0-0@9; b[t0]=t0-0@9", "a; b"),
    ],
)  # fmt: skip
def test_what_is_given(assign: Callable[[Group], Assignment], asked: str, wanted: str) -> None:
    assert got(assign(group(asked.replace("@10,", "@10")))) == wanted


def test_racks_come_first_and_quotas_stay() -> None:
    racks = tuple(map(frozenset, ("r1", "r0", "r1")))
    near = tuple(frozenset({"".join(sorted(each, reverse=True))}) for each in racks)
    members = (Member("a", ("t0",), rack="r0"), Member("b", ("t0",), rack="r1"))
    plain = Group((Topic("t0", 3),), members)
    assert got(range_(plain)) == "a t0-0 t0-1; b t0-2"
    assert got(range_(Group((Topic("t0", 3, near),), members))) == "a t0-1; b t0-0 t0-2"
    everywhere = (frozenset({"r0", "r1"}),) * 3
    assert got(range_(Group((Topic("t0", 3, everywhere),), members))) == "a t0-0 t0-1; b t0-2"


def test_partitions_of_one_number_meet_where_a_rack_has_them_all() -> None:
    two = (frozenset({"r1"}), frozenset({"r0"}))
    members = (Member("a", ("t0", "t1"), rack="r0"), Member("b", ("t0", "t1"), rack="r1"))
    assert got(range_(Group((Topic("t0", 2, two), Topic("t1", 2, two)), members))) == "a t0-1 t1-1; b t0-0 t1-0"
    # Where no member is near to both, they meet as if nothing were known of racks.
    other = (frozenset({"r0"}), frozenset({"r1"}))
    assert got(range_(Group((Topic("t0", 2, two), Topic("t1", 2, other)), members))) == "a t0-0 t1-0; b t0-1 t1-1"


def test_ids_are_ordered_as_java_has_it() -> None:
    low, high = "\U0001f600", "\uff5e"  # a pair of surrogates comes before the end of the first plane
    assert low > high and java_order(low) < java_order(high)
    assert [each.id for each in in_order((Member(high, ()), Member(low, ()), Member("z", (), instance=high)))] == [
        "z", low, high
    ]  # fmt: skip


@pytest.mark.parametrize("assignor", ASSIGNORS)
@settings(max_examples=60, deadline=None)
@given(groups(claims=True, static=True, racks=True))
def test_every_group_is_given_an_assignment_that_keeps_every_law(assignor: str, drawn: dict[str, object]) -> None:
    asked = step_of(f"{assignor} t0:1; a[t0]")
    asked = type(asked)(asked.actor, asked.verb, {**asked.body, **read_group(json.dumps(drawn))})
    history = history_of(Reference(), Case("test", "apache", Role.LEADER, (asked,)))
    for law in LEADING.values():
        if law.applies_to(history.case, asked):
            assert not list(law.search(history)), law.id


# Words


TEXTS = (
    "range t0:2 t1:1; a(i0)[t0 t1]; b[]",
    "sticky t0:2; a[t0]=t0-0,t0-1@10; b[t0]=gone-7@-1",
    "cooperative-sticky again t0:2; a[t0]",
)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_said_in_shorthand_is_said_back(text: str) -> None:
    assert shorthand([step_of(text)]) == text


def test_user_data_is_written_as_kafka_writes_it() -> None:
    written = user_data([("t", 0), ("t", 2)], 7)
    assert written.hex() == "0000000100017400000002000000000000000200000007"
    assert user_data([("t", 0), ("t", 2)], 7, version=0) == written[:-4]
    assert read_user_data(written) == ((("t", 0), ("t", 2)), 7)
    assert read_user_data(written[:-4]) == ((("t", 0), ("t", 2)), -1)
    assert [user_data_version(each) for each in (written, written[:-4], b"\0\1" + written, b"")] == [1, 0, None, None]


def test_sticky_goes_by_the_user_data_and_the_others_do_not() -> None:
    owning = step_of("sticky t0:1; a[t0]; b[t0]=t0-0@7")
    for version, generation in ((1, 7), (0, -1)):
        reported = with_user_data(owning, version)
        assert [each["owned"] for each in reported["members"]] == [[], []]
        assert group_of(reported).members[1] == Member("b", ("t0",), (("t0", 0),), generation)
    broken = {**owning.body, "members": [{**owning["members"][1], "userData": "00"}]}
    assert group_of(type(owning)("leader", "assign", broken)).members[0].owned == ()
    other = {**broken, "assignor": COOPERATIVE}
    assert group_of(type(owning)("leader", "assign", other)).members[0].owned == (("t0", 0),)


def test_a_round_goes_on_from_the_one_before() -> None:
    first, again = "sticky t0:2; a[t0]=t0-0@7; b[t0]", "sticky again t0:2; b[t0]; c[t0]"
    (op,) = answered(first, "a; b t0-0 t0-1").ops
    followed = rejoined(step_of(again), [op])
    assert followed is not None
    assert shorthand([followed]) == "sticky t0:2; b[t0]=t0-0,t0-1@8; c[t0]"
    refused = Op(0, op.step, Refused("KeyError"), 1)
    garbled = Op(0, op.step, Replied((("assignment", {"a": []}),)), 1)
    for before in ([], [refused], [garbled], [op, refused]):
        assert rejoined(step_of(again), before) is None


@pytest.mark.parametrize("answer", [{}, {"assignment": None}, {"assignment": [{"id": "a"}]},
                                    {"assignment": [{"id": "a", "partitions": [["t0"]]}]}])  # fmt: skip
def test_what_is_no_assignment_is_told_so(answer: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the answer is not a valid assignment"):
        shares(Replied(tuple(answer.items())))


# Draws


FAMILIES: tuple[Node, ...] = (membership.EQUAL, membership.MIXED, membership.CHAINED, membership.CROSSED)


@pytest.mark.parametrize("node", FAMILIES)
def test_all_groups_that_are_drawn_can_be_reduced_along_one_declaration(node: Node) -> None:
    draw, random = compiled(node), Random(7)
    for _ in range(50):
        assert belongs(membership.GROUPS, draw(random))


@pytest.mark.parametrize("node", FAMILIES)
def test_what_is_owned_is_consistent(node: Node) -> None:
    draw, random = compiled(node), Random(7)
    owning = 0
    for _ in range(50):
        drawn = membership.group_of(draw(random))
        assert all(drawn.subscribers.values())
        for partition, members in drawn.claims.items():
            assert len(members) == 1 and drawn.may_have(members[0], partition)
            assert members[0].generation == membership.GENERATION
        owning += len(drawn.claims)
    assert owning > 50


def test_every_knob_turns_something() -> None:
    draw, random = compiled(anything()), Random(7)
    seen = {"stale": 0, "double": 0, "gone": 0, "unsubscribed": 0, "static": 0, "racks": 0, "others": 0, "beyond": 0}
    for _ in range(200):
        drawn = group_with_knobs(draw(random))
        topics = {each.name for each in drawn.topics}
        seen["double"] += any(len(members) > 1 for members in drawn.claims.values())
        seen["others"] += any(not readers for readers in drawn.subscribers.values())
        seen["racks"] += any(each.racks for each in drawn.topics) and any(each.rack for each in drawn.members)
        for each in drawn.members:
            seen["static"] += each.instance is not None
            seen["stale"] += bool(each.owned) and each.generation < membership.GENERATION
            for topic, number in each.owned:
                seen["gone"] += topic not in topics
                seen["unsubscribed"] += topic in topics and topic not in each.subscription
                seen["beyond"] += topic in topics and number >= drawn.sizes[topic]
    assert min(seen.values()) > 20, seen


def test_a_group_is_reduced_to_the_least_that_fails_and_takes_the_first_names() -> None:
    def fails(value: dict[str, object]) -> bool:
        return any(len(each.owned) > 1 for each in group_with_knobs(value).members)

    node, random = record(group=membership.GROUPS), Random(3)
    draw = compiled(record(group=membership.USUAL))
    value = next(each for each in (draw(random) for _ in range(1000)) if fails(each))
    least = group_with_knobs(reduce(node, parse(node, value), fails))
    assert shorthand([assign(STICKY, least.topics, least.members)]) == "sticky t0:2; a[t0]=t0-0,t0-1@10"


@pytest.mark.parametrize("change", ["member", "more", "reader", "gone"])
def test_groups_change(change: str) -> None:
    value: dict[str, Any] = {
        "members": [True, True, *[False] * 6],
        "topics": [{"readers": None, "runs": [{"by": "a", "size": 2}]}, *[None] * 5],
    }
    reported: dict[str, tuple[dict[str, Any], str]] = {
        "member": ({"member": "b"}, "range t0:2; a[t0]=t0-0,t0-1@10"),
        "more": ({"topic": "t0", "more": 3}, "range t0:5; a[t0]=t0-0,t0-1@10; b[t0]"),
        "reader": ({"topic": "t0", "reader": "a"}, "range t0:2; a[]; b[t0]=t0-0,t0-1@10"),
        "gone": ({"topic": "t0", "gone": True}, "range ; a[]; b[]"),
    }
    (after,) = membership.stages(value, [reported[change][0]])
    assert shorthand([assign(RANGE, after.topics, after.members)]) == reported[change][1]
    (_, back) = membership.stages(value, [reported[change][0]] * 2)
    assert change == "more" or {each.name for each in back.topics} == {"t0"}


def test_the_reference_leads_with_all_assignors() -> None:
    assert tuple(ALL) == ASSIGNORS
    assert Reference().claims().assignors == (*ASSIGNORS, DRAFT)
    answer = history_of(Reference(), case(f"{ROUNDROBIN} t0:1; a[t0]")).ops[0].observation
    assert isinstance(answer, Replied)
    assert answer["assignment"] == [{"id": "a", "partitions": [["t0", 0]], "userData": None}]


def test_historic_groups_are_what_they_are_told_to_be() -> None:
    reported = [group_with_knobs(value(None)) for value in CLAIMS]
    node = record(group=membership.GROUPS, claims=membership.CLAIMS, generations=membership.STALE)
    assert all(belongs(node, value(None)) for value in CLAIMS)
    assert [shorthand([assign(STICKY, each.topics, each.members)]) for each in reported] == [
        "sticky t0:3; a[t0]=t0-0,t0-1@10; b[t0]=t0-2,t0-0@10; c[t0]",
        "sticky t0:3; a[t0]=t0-2@10; b[t0]=t0-0,t0-1@9; c[t0]",
        "sticky t0:2; a[t0]=t0-0,t0-1@10; b[t0]=t0-0@9",
        "sticky t0:2; a[t0]=t0-0@9; b[t0]=t0-0,t0-1@10",
        "sticky t0:1 t1:1; a[t0 t1]; b[t0 t1]=t0-0,t1-0@10; c[t1]=t0-0@9",
        "sticky t0:2; a[t0]=t0-0,t0-1@10; b[t0]; c[]=t0-0@9",
        "sticky t0:1 t1:1 t2:3; a[t0 t2]=t0-0,t2-0@10; b[t0 t1 t2]=t2-1,t2-2@10; c[t0 t2]=t0-0@9",
    ]
