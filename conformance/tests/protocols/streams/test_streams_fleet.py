"""Fleets of Streams members, played by our machines: what is seen of them, and how it is told."""

import json
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.model.members import Store, Subtopology, Topology
from kipcheck.conformance.protocols.streams.ops import (
    OBSERVED,
    OPERATIONS,
    Applied,
    Began,
    Deploy,
    Died,
    Formed,
    ObservedEvent,
    Refused,
    Rests,
    Start,
)
from kipcheck.conformance.protocols.streams.target import streams_group
from kipcheck.conformance.targets.machine_target import MachineAdapter


def player(name: str) -> MachineAdapter[Any, Any, Any]:
    found = streams_group(edition(name))
    assert found is not None
    return found


def played(name: str, *texts: str, deploy: Deploy | None = None) -> list[ObservedEvent]:
    """Through JSON, as a target answers."""
    with_it = player(name)
    steps = [
        *([OPERATIONS.step_of(deploy)] if deploy else ()),
        *(step for text in texts for step in OPERATIONS.parse_shorthand(text)),
    ]
    happened = []
    for each in steps:
        answer = json.loads(json.dumps(with_it.answer({"op": each.verb, "case": 0, **each.body})))
        assert answer["status"] == "accepted", answer
        happened += [OBSERVED.from_json(reported) for reported in answer["actions"]]
    return happened


def rounds(happened: list[ObservedEvent]) -> int:
    return sum(isinstance(each, Formed) for each in happened)


START = "start a {0}; start b {0}; start c {0}; settle"


def test_a_single_bounce_takes_two_rounds_for_each_member_and_ends_in_the_newer_version() -> None:
    # From 2.6 on tasks without state would wander to and from a stranger, which takes a round more.
    stateful = Deploy(Topology((Subtopology(0, ("t",), stores=(Store("s"),)),)))
    bounces = "start c; settle; start b; settle; start a; settle"
    happened = played("apache@3.9.2", START.format("2.8.2"), bounces, deploy=stateful)
    assert rounds(happened) == 1 + 3 * 2
    *_, rests = happened
    assert isinstance(rests, Rests)
    assert [(each.member, each.used) for each in rests.members] == [("a", 11), ("b", 11), ("c", 11)]
    assert sorted(each.partitions for each in rests.members) == [(("t", 0),), (("t", 1),), (("t", 2),)]


def test_the_draft_closes_with_one_more_round_that_the_leader_asks_for() -> None:
    happened = played("kip-268", "start a; start b; settle; start b future; settle; start a future; settle")
    raised = [each for each in happened if isinstance(each, Applied) and each.rejoin.when != "never" and each.used == 4]
    *_, leader, _ = [each.leader for each in happened if isinstance(each, Formed)]
    assert [each.member for each in raised] == [leader]


def test_a_member_that_dies_is_gone_and_the_others_go_on() -> None:
    happened = played("apache@3.9.2", "start a 1.1.1; start b 1.1.1; settle; start b 2.0.1; settle; restart a; settle")
    (died, *_) = [each for each in happened if isinstance(each, Died)]
    assert (died.member, died.during) == ("a", "lead")
    assert "version=3" in died.why
    assert isinstance(happened[-1], Rests)


def test_a_setting_that_a_release_does_not_know_keeps_it_from_starting() -> None:
    happened = played("apache@4.3.1", "start a own<2.3; settle; start b; settle")
    assert [each.member for each in happened if isinstance(each, Refused)] == ["a"]
    assert [each.member for each in happened if isinstance(each, Began)] == ["b"]


def test_what_an_application_is_reaches_its_members() -> None:
    stateful = Deploy(
        Topology((Subtopology(0, ("t",), stores=(Store("s"),)),), standbys=1), (Topic("t", 2),), end_points=True
    )
    *_, rests = played("apache@3.9.2", "start a; start b; settle", deploy=stateful)
    assert isinstance(rests, Rests)
    a, b = "a uses version 11 and runs 0_0 (standby 0_1)", "b uses version 11 and runs 0_1 (standby 0_0)"
    assert OBSERVED.describe(rests) == f"the group is at rest in generation 1: {a}; {b}"


def test_threads_of_an_instance_are_one_process() -> None:
    with_it = player("apache@3.9.2")
    for each in OPERATIONS.parse_shorthand("start a; start b own of a; settle"):
        answer = with_it.answer({"op": each.verb, "case": 0, **each.body})
    (formed, *_) = [each for each in map(OBSERVED.from_json, answer["actions"]) if isinstance(each, Formed)]
    one, other = (reported.data for reported in formed.members)
    assert isinstance(one, bytes) and isinstance(other, bytes)
    assert one[8:24] == other[8:24]


def test_a_fleet_is_deployed_before_anybody_starts() -> None:
    late = Deploy(topics=(Topic("t", 1),))
    with_it = player("apache@3.9.2")
    for each in (
        *OPERATIONS.parse_shorthand("start a"),
        OPERATIONS.step_of(late),
        *OPERATIONS.parse_shorthand("settle"),
    ):
        answer = with_it.answer({"op": each.verb, "case": 0, **each.body})
    assert "t-2" in OBSERVED.describe(OBSERVED.from_json(answer["actions"][-2])) + OBSERVED.describe(
        OBSERVED.from_json(answer["actions"][2])
    )


@pytest.mark.parametrize(
    "text",
    [
        "start a 2.0.1; start b 2.4.1<2.3; start c own; start d future of c",
        "move a 3; lose b; expire b; stop b; restart b; shut-down b; settle",
    ],
)
def test_the_shorthand_says_what_is_done(text: str) -> None:
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(text)) == text


@pytest.mark.parametrize("text", ["start", "start e", "move a far", "begin a", "start a own from b", "settle a"])
def test_what_is_no_step_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"invalid step '{text}': use start "):
        OPERATIONS.parse_shorthand(f"settle; {text}")


def test_a_step_that_no_fleet_has_is_told_as_such() -> None:
    answer = player("apache").answer({"op": "stream-start", "case": 0, "member": "z"})
    assert answer["status"] == "unsupported"
    assert "must be one of a, b, c, d" in answer["message"]


def test_steps_and_answers_come_back_as_they_were() -> None:
    for event in (Deploy(end_points=True, tags=(("zone", "x"),)), Start("d", "2.0.1", "1.1", "a")):
        assert OPERATIONS.event_of(OPERATIONS.step_of(event)) == event
    happened = played("apache@3.9.2", START.format("3.9.2"), "expire b; settle; shut-down a; settle")
    assert [*map(OBSERVED.from_json, OPERATIONS.answer_of(happened)["actions"])] == happened
