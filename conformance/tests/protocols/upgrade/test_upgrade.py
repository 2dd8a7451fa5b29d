"""Upgrades of a group, step by step: the machine by hand, what its checks draw, and the planted defects."""

from collections.abc import Iterator

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Result, Verdict
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.machine_targets import machine_adapters
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.protocols.upgrade.checks import (
    CHECKS as UPGRADE_CHECKS,
    UPGRADED,
    UPGRADES,
    editions,
    with_failures,
)
from kipcheck.conformance.protocols.upgrade.invariants.ownership import observations
from kipcheck.conformance.protocols.upgrade.model.upgrade import has_upgrade, upgrade_model
from kipcheck.conformance.protocols.upgrade.ops import (
    BOUNCE,
    OBSERVED,
    OPERATIONS,
    Counted,
    Failed,
    Formed,
    Gave,
    Rests,
    SteppedDown,
    StreamsLed,
)
from kipcheck.conformance.protocols.upgrade.strategies import PLANS, streams, upgrade_scripts
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.strategies.parse import belongs

UPGRADERS = {name: mutant for name, mutant in MUTANTS.items() if mutant.check.startswith("bounce/")}
OURS = [each for each in all_invariants(Role.OPERATOR_TOOL) if each.id.startswith("bounce/")]
DRAFT, NEWEST = "kip-429", "apache@4.4.0"


def executed(adapter: Adapter, where: str, *texts: str) -> list[History]:
    with InProcess(adapter).open(where, Role.OPERATOR_TOOL) as session:
        return [
            *converse(
                [Case("bounce/upgrade", where, Role.OPERATOR_TOOL, OPERATIONS.parse_shorthand(each)) for each in texts],
                session,
            )
        ]


def played(where: str, text: str) -> History:
    return executed(Reference(), where, text)[0]


def broken(history: History) -> dict[str, Verdict]:
    return {each.invariant: each for each in judge(history, OURS) if each.result is Result.FAIL}


def generations(history: History) -> list[Formed]:
    return [each.seen for each in observations(history) if isinstance(each.seen, Formed)]


BOTH = "roll a old; roll b old; settle; roll a ready; settle; roll b ready; settle; roll a cooperative; settle; "


@pytest.mark.parametrize("where", [DRAFT, NEWEST])
def test_two_bounces_end_in_a_group_whose_rebalances_are_incremental(where: str) -> None:
    """429-04, 429-19: up to the last step somebody gives up everything, and after it nobody does."""
    history = played(where, BOTH + "roll b cooperative; settle; roll c cooperative; settle")
    assert not broken(history)
    formed = generations(history)
    assert {each.version for each in formed[0].members} == {0}
    assert [(each.member, each.version) for each in sorted(formed[-1].members, key=str)] == [
        ("a", 1), ("b", 1), ("c", 1),
    ]  # fmt: skip
    last = len(history.ops) - 1
    given_up = [each.seen for each in observations(history) if each.step == last and isinstance(each.seen, Gave)]
    assert [len(each.partitions) for each in given_up] == [1], "what c gets, and nothing else"


def test_as_released_who_has_nothing_in_common_is_turned_away() -> None:
    history = played(NEWEST, "roll a old; settle; roll b cooperative; settle")
    assert [each.seen for each in observations(history) if isinstance(each.seen, Failed)] == [
        Failed("b", "INCONSISTENT_GROUP_PROTOCOL")
    ]
    assert not broken(history)


def test_a_group_left_mixed_counts_at_every_generation_and_reads_nothing_twice() -> None:
    """429-10, 429-11, 429-13"""
    history = played(DRAFT, "roll a cooperative; roll b cooperative; settle; roll c ready; settle; stop b; settle")
    assert not broken(history)
    assert [each.seen for each in observations(history) if isinstance(each.seen, Counted)][-1].total >= 2
    assert isinstance([*observations(history)][-1].seen, Rests)


def test_an_old_binary_cannot_read_the_error_and_gets_nothing() -> None:
    history = played(DRAFT, "roll a cooperative; settle; roll c old; settle")
    assert not broken(history)
    assert not [each for each in observations(history) if isinstance(each.seen, Counted)]


def test_one_new_member_leads_at_once() -> None:
    """429-09, 429-12"""
    history = played(DRAFT, "roll a cooperative; roll b cooperative; settle; roll b later; settle; crash b; settle")
    assert not broken(history)
    assert [each.leader for each in generations(history)] == ["a", "b", "a"]


SKIPPED = "old-brokers; roll a old; settle; roll b cooperative; settle; roll c old; settle"


def test_who_skips_the_path_has_two_owners_which_is_told_and_does_not_fail() -> None:
    """429-06"""
    found = broken(played(DRAFT, SKIPPED))
    assert set(found) == {"bounce/skipped-path"}
    assert {each.grade for each in OURS if each.id in found} == {Grade.INFO}
    assert not broken(played(DRAFT, SKIPPED.removeprefix("old-brokers; "))), "brokers of the draft see to it"


def test_a_streams_group_is_probed_unless_its_newest_instance_leads() -> None:
    """429-18"""

    def rounds(text: str) -> tuple[int, int]:
        seen = [each.seen for each in observations(played(DRAFT, text))]
        return sum(isinstance(each, StreamsLed) for each in seen), sum(isinstance(each, SteppedDown) for each in seen)

    assert rounds("streams a 6; streams b 11") == (2, 0)
    assert rounds("old-brokers; streams a 6; streams b 11") == (3, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("move a", "nothing runs"), ("crash a; revive a; lose a; expire a; stop a", "nothing ever ran"),
        ("roll a old; old-brokers", "too late"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_done_does_nothing(text: str, why: str) -> None:
    assert [*observations(played(DRAFT, text))] == [], why


def test_who_was_taken_for_dead_comes_back() -> None:
    history = played(NEWEST, "roll a cooperative; roll b cooperative; settle; expire b; settle")
    assert not broken(history)
    reported = [OBSERVED.describe(each.seen) for each in observations(history) if each.step == 3]
    assert reported == ["the coordinator removes b from the group"]
    assert len(generations(history)[-1].members) == 2


# What is drawn


def cases(where: str, check: str, most: int) -> Iterator[Case]:
    found = CHECKS[check]
    for sample in found.samples(Subject(where, BOUNCE), 0, most):
        assert belongs(found.declaration(Subject(where, BOUNCE)), sample.value)
        yield sample.case


@pytest.mark.parametrize("where", [DRAFT, NEWEST])
def test_what_is_drawn_says_everything_and_the_reference_keeps_every_invariant(where: str) -> None:
    verbs: dict[str, int] = {}
    first = len(CHECKS["bounce/ownership"].first)
    for number, case in enumerate([*cases(where, "bounce/ownership", first + 25)][first:]):
        for step in case.steps:
            verbs[step.verb] = verbs.get(step.verb, 0) + 1
        if number > 8:
            continue
        (history,) = executed(Reference(), where, OPERATIONS.shorthand(case.steps))
        assert set(broken(history)) <= {"bounce/skipped-path"}, OPERATIONS.shorthand(case.steps)
    assert set(verbs) | {"old-brokers"} == {*upgrade_scripts(where).events, "old-brokers"}


def test_a_failure_follows_every_step() -> None:
    assert [*with_failures("roll a old; settle")] == [
        "roll a old; settle",
        "roll a old; crash a; revive a; settle",
        "roll a old; move a; lose a; settle",
    ]
    assert len(UPGRADED) > 40
    assert set(PLANS) > {"path", "skipped"}
    assert set(streams(DRAFT).events) == {"roll-streams"}


def test_there_is_something_to_upgrade_to_from_2_4_on_and_in_the_draft() -> None:
    assert [*editions("apache")] == ["apache", DRAFT]
    assert [*editions("apache@2.4.1"), *editions("apache@2.3.1"), *editions("kip-584")] == ["apache@2.4.1"]
    assert BOUNCE in machine_adapters(edition("apache@2.4.1"))
    assert BOUNCE not in machine_adapters(edition("apache@2.3.1"))
    assert not has_upgrade(edition("kip-268"))
    with pytest.raises(ValueError, match="no cooperative members to upgrade to"):
        upgrade_model(edition("apache@2.3.1"))


# Planted defects


def test_every_invariant_has_a_vice_and_a_check() -> None:
    ids = {each.id for each in OURS}
    assert ids == {mutant.invariant for mutant in UPGRADERS.values()}
    assert ids == {id for check in UPGRADE_CHECKS for id in check.invariants}
    assert {each.id: each.grade for each in OURS if each.grade is not Grade.MUST} == {
        "bounce/skipped-path": Grade.INFO,
        "bounce/no-probing": Grade.SHOULD,
    }


def test_a_failure_shows_what_was_seen_step_by_step() -> None:
    (history,) = executed(MUTANTS["gives-twice"].made(), NEWEST, "roll a old; roll b old; settle")
    found = broken(history)["bounce/one-owner"].violations[0]
    (exhibit,) = UPGRADES.exhibits(history, found)
    steps = [each["says"] for each in exhibit["steps"] if each.get("first", True)]
    assert steps == ["roll a old", "roll b old", "settle"]
    last = [each for each in exhibit["steps"] if each["guilty"]]
    assert last[0]["says"] == "settle"
    assert "a takes over t-0, t-1 (generation 1)" in {each["says"] for each in last[1:]}
