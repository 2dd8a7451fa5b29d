"""The matrix of upgrades: its releases, its scripts, and what they are folded into; played by our machines."""

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest

from kipcheck.conformance.clients.java.programs import PARTS
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.engine.known.files import InvalidKnownFile
from kipcheck.conformance.matrix.cells import BREAKS, OK, REFUSED, Cell, cells, outcome, verdict, verdict_of
from kipcheck.conformance.matrix.groups import mixed_group, reference_binaries
from kipcheck.conformance.matrix.known import listed, parse
from kipcheck.conformance.matrix.play import OUTCOMES, invariants, judged, played, rounds
from kipcheck.conformance.matrix.predictions import Prediction, committed, merged, predicted, read, written
from kipcheck.conformance.matrix.release_lines import (
    BEHAVIOURS,
    NEWEST,
    TABLE,
    THE_FUTURE,
    behaviours,
    has_star,
    in_table,
    lines,
    named,
    needs_fix,
)
from kipcheck.conformance.matrix.scenario_names import (
    BOUNCE,
    DOWNGRADE,
    FAILURE,
    JOIN,
    OFFLINE,
    SCENARIOS,
    TWO_BOUNCE,
    TWO_BOUNCE_FAILURE,
)
from kipcheck.conformance.matrix.scenarios import NAMES, SETTLE, Pair, Script, possible, scripts
from kipcheck.conformance.protocols.streams.model.rules import LINES
from kipcheck.conformance.protocols.streams.ops import OPERATIONS, Deploy, Event, Formed, ObservedEvent, Rests, Start
from kipcheck.conformance.protocols.upgrade.ops import Crash, Move, Settle


def pair(old: str, new: str) -> Pair:
    return Pair(named(old), named(new))


def played_as(scenario: str, old: str = "2.0", new: str = "2.4") -> list[Script]:
    return [*scripts(scenario, pair(old, new))]


def starts(script: Script) -> list[Start]:
    return [each for each in script if isinstance(each, Start)]


# Releases


def test_a_line_is_its_newest_patch_and_an_exact_patch_is_itself() -> None:
    assert [named(each).patch for each in ("0.10.2", "2.6", "2.6.0", "future")] == [
        "0.10.2.2", "2.6.3", "2.6.0", "future"
    ]  # fmt: skip
    assert named("0.11.0") < named("2.6.0") < named("2.6") < named("4.3") < THE_FUTURE


@pytest.mark.parametrize("text", ["", "5.0", "2.6.4", "2", "4.4.0", "4.2.2", "latest", "3.9.x", "0.10"])
def test_any_other_release_is_told_what_there_is(text: str) -> None:
    with pytest.raises(LookupError, match=r"0\.10\.0, .*4\.3.*future"):
        named(text)


def test_all_lines_are_there_and_all_of_them_have_jars() -> None:
    assert [each.name for each in lines()] == list(LINES)
    assert len(NEWEST) == 29
    assert all(Release.parse(each) in releases(PARTS["streams"]) for each in (*NEWEST, *BEHAVIOURS))
    assert 13 <= len(behaviours()) <= 15 and [*BEHAVIOURS] == sorted(BEHAVIOURS, key=Release.parse)


def test_the_table_of_the_kip_has_its_stars_and_one_row_that_they_are_about() -> None:
    there = [(old.name, new.name) for old in lines() for new in (*lines(), THE_FUTURE) if in_table(old, new)]
    assert len(there) == 28 and set(map(len, there)) == {2}
    stars = [each for each in there if has_star(*pair(*each))]
    assert len(stars) == 15 and not any(new in ("2.0", "future") for _, new in stars)
    assert [each for each in there if needs_fix(*pair(*each))] == [("0.10.0", new) for new in TABLE[1:-1]]


def test_join_is_played_between_all_lines_the_rest_between_behaviours_and_what_the_kip_has() -> None:
    asked = cells(SCENARIOS, (), ())
    assert len({each.key for each in asked}) == len(asked)
    count = Counter(each.scenario for each in asked)
    assert count[JOIN] == 29 * 30
    usual = len(BEHAVIOURS) * (len(BEHAVIOURS) + 1) // 2
    for scenario in set(SCENARIOS) - {JOIN}:
        assert count[scenario] == usual + 18
        assert {pair(*each) for each in (("1.0", "1.1"), ("1.1", "future"), ("2.6.0", "4.3"))} <= {
            each.pair for each in asked if each.scenario == scenario
        }
    assert len(cells([BOUNCE], (), (), full=True)) == 29 * 30 // 2


def test_there_is_no_cell_that_goes_the_wrong_way() -> None:
    assert possible(BOUNCE, pair("2.4", "2.0")) and possible(DOWNGRADE, pair("2.4", "2.0"))
    assert not possible(JOIN, pair("2.4", "2.0")) and not possible(JOIN, pair("2.4", "2.4"))
    assert possible(JOIN, Pair(THE_FUTURE, named("2.4")))
    assert cells([BOUNCE], [named("2.4")], [named("2.0")]) == []


# Scripts


def test_a_join_brings_one_new_member_to_a_group_that_the_old_release_leads() -> None:
    for each in played_as(JOIN):
        began = starts(each)
        assert [one.release for one in began] == ["2.0.1"] * (len(began) - 1) + ["2.4.1"]
        assert not any(isinstance(one, Crash) and one.member == "a" for one in each)


@pytest.mark.parametrize(("scenario", "first", "then"), [(BOUNCE, "2.0.1", "2.4.1"), (DOWNGRADE, "2.4.1", "2.0.1")])
def test_a_bounce_and_a_downgrade_take_every_order(scenario: str, first: str, then: str) -> None:
    orders = set()
    for each in played_as(scenario):
        began = starts(each)
        half = len(began) // 2
        assert [one.release for one in began] == [first] * half + [then] * half
        orders.add(tuple(one.member for one in began[half:]))
    assert orders >= {*permutations(NAMES)}
    assert {("a", "d", "b"), ("b", "a", "d")} <= orders, "an instance with two threads is bounced as one"


def test_two_bounces_set_upgrade_from_and_then_take_it_away() -> None:
    orders = set()
    for each in played_as(TWO_BOUNCE, "0.10.2", "2.4"):
        began = starts(each)
        third = len(began) // 3
        assert [one.upgrade_from for one in began] == [None] * third + ["0.10.2"] * third + [None] * third
        assert [one.release for one in began] == ["0.10.2.2"] * third + ["2.4.1"] * 2 * third
        orders.add(tuple(one.member for one in began[third : 2 * third]))
    assert orders >= {*permutations(NAMES)}


def test_offline_nobody_of_the_new_release_meets_the_old() -> None:
    for each in played_as(OFFLINE):
        last = max(number for number, one in enumerate(each) if isinstance(one, Crash))
        assert {one.release for one in starts(each[:last])} == {"2.0.1"}
        assert {one.release for one in starts(each[last:])} == {"2.4.1"}


def test_in_failures_each_member_dies_at_each_step_and_comes_back_as_either_release() -> None:
    found = set()
    for each in played_as(FAILURE):
        stops = [number for number, one in enumerate(each) if isinstance(one, Crash)]
        died, back = each[stops[-1]], each[stops[-1] + 2]
        assert isinstance(died, Crash) and isinstance(back, Start) and back.member == died.member
        so_far = tuple(one.member for one in starts(each[: stops[-1]])[3:])
        found.add((so_far, died.member, back.release, isinstance(each[stops[-1] - 1], Settle)))
        last = {one.member: one.release for one in starts(each)}
        assert set(last.values()) == {"2.4.1"}, "in the end the upgrade is complete"
        assert isinstance(each[-1], Settle)
    bounced = {("a",), ("a", "b"), ("a", "b", "c"), ("c",), ("c", "b"), ("c", "b", "a")}
    wanted = {
        (one, member, back, at_rest)
        for one in bounced
        for member in NAMES
        for back in ("2.0.1", "2.4.1")
        for at_rest in (True, False)
    }
    assert found == wanted


def test_a_failure_on_two_bounces_is_in_either_and_the_member_comes_back_as_before_or_after_that_bounce() -> None:
    found = set()
    for each in played_as(TWO_BOUNCE_FAILURE, "2.3", "3.9"):
        stops = [number for number, one in enumerate(each) if isinstance(one, Crash)]
        back = each[stops[-1] + 2]
        assert isinstance(back, Start) and back.member == getattr(each[stops[-1]], "member", None)
        second = any(one.release == "3.9.2" and one.upgrade_from is None for one in starts(each[: stops[-1]]))
        found.add((second, back.release, back.upgrade_from))
        last = {one.member: (one.release, one.upgrade_from) for one in starts(each)}
        assert set(last.values()) == {("3.9.2", None)}, "in the end the upgrade is complete"
    first = {(False, "2.3.1", None), (False, "3.9.2", "2.3")}
    assert found == first | {(True, "3.9.2", "2.3"), (True, "3.9.2", None)}


def test_stateful_groups_with_standbys_and_end_points_are_in_each_scenario_but_failures() -> None:
    for scenario in set(SCENARIOS) - {FAILURE, TWO_BOUNCE_FAILURE}:
        deployed = [each[0] for each in played_as(scenario) if isinstance(each[0], Deploy)]
        assert any(each.topology.standbys and each.end_points for each in deployed), scenario


# Playing


class Counting:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.steps = 0

    def initial(self) -> tuple[Event, ...]:
        return ()

    def step(self, state: tuple[Event, ...], event: Event, /) -> Transition[tuple[Event, ...], ObservedEvent]:
        self.steps += 1
        return Transition((*state, event), (Rests(len(state), ()),))


def test_what_scripts_have_in_common_is_played_once() -> None:
    fleet = Counting()
    wanted: list[Script] = [(Start("a"), SETTLE, Start("b")), (Start("a"), SETTLE, Crash("a")), (Start("a"),)]
    found = [*played(fleet, wanted)]
    assert fleet.steps == 4
    assert [script for script, _ in found] == wanted
    assert [len(seen) for _, seen in found] == [3, 3, 1]
    assert [each.generation for (each,) in found[1][1] if isinstance(each, Rests)] == [0, 1, 2]


def formed(count: int) -> tuple[ObservedEvent, ...]:
    return (*(Formed(number, "a", ()) for number in range(count)), Rests(count, ()))


@pytest.mark.parametrize(
    ("script", "counts", "expected"),
    [
        ((Start("a"), SETTLE), (0, 1), 1),
        ((Start("a"), SETTLE, Start("b"), SETTLE, Crash("a"), SETTLE), (0, 1, 0, 3, 0, 2), 3),
        ((Start("a"), Move("a", 2), SETTLE), (0, 1, 1), 2),
        ((Start("a"), SETTLE, SETTLE), (0, 1, 1), 2),
        ((), (), 0),
    ],
)
def test_rounds_are_counted_from_what_befell_a_group_until_it_rests(
    script: Script, counts: Sequence[int], expected: int
) -> None:
    assert rounds([OPERATIONS.step_of(each).verb for each in script], tuple(map(formed, counts))) == expected


def test_all_invariants_of_outcomes_are_there() -> None:
    assert {each.id for each in invariants()} > OUTCOMES


# Cells, by our machines


@pytest.mark.parametrize(
    ("scenario", "old", "new", "expected", "requirement"),
    [
        (JOIN, "2.1", "2.0", BREAKS, "268-33"),
        (JOIN, "2.0", "2.1", BREAKS, "268-43"),
        (JOIN, "2.3", "2.4", BREAKS, "268-38"),
        (JOIN, "2.3", "4.0", BREAKS, "268-39"),
        (BOUNCE, "0.10.0", "2.0", BREAKS, "268-14"),
        (TWO_BOUNCE, "0.10.0", "2.0", OK, None),
        (TWO_BOUNCE, "0.10.0", "0.10.1", BREAKS, "268-41"),
        (TWO_BOUNCE, "2.3", "4.0", REFUSED, "268-39"),
        (OFFLINE, "0.10.0", "4.3", OK, None),
        (JOIN, "2.2", "future", OK, None),
        (JOIN, "4.3", "future", OK, None),
    ],
)
def test_cells_that_are_known(scenario: str, old: str, new: str, expected: str, requirement: str | None) -> None:
    asked = Cell(scenario, pair(old, new))
    found = outcome(asked, reference_binaries(True, asked.edition))
    cell, history = found["cell"], found["history"]
    assert (cell["verdict"], cell["requirement"]) == (expected, requirement), cell["reason"]
    assert (cell["reason"] is None) == (expected == OK)
    assert (cell["rounds"] == 0) == (expected == REFUSED)
    assert (cell["broken"] > 0) == (expected == BREAKS) and cell["scripts"] >= 4
    assert history["case"] == cell["case"] and history["verdict"] == expected


@pytest.mark.parametrize(
    ("release", "setting", "requirement"),
    [
        ("4.3.1", "2.3", "268-39"),
        ("0.10.2.2", "0.10.1", "268-41"),
        ("2.1.1", "2.0", "268-08"),
        ("3.6.1", "3.5", "268-55"),
    ],
)
def test_a_refusal_is_on_the_clause_of_its_release(release: str, setting: str, requirement: str) -> None:
    script: Script = (Start("a", release, setting), SETTLE)
    ((_, seen),) = played(mixed_group(reference_binaries(fitted=True)), [script])
    reported = verdict_of(judged(script, seen, "matrix/two-bounce", "t"), TWO_BOUNCE)
    assert reported.verdict == REFUSED and reported.cause is not None
    assert (
        reported.cause.requirement == requirement
        and f"upgrade.from={setting} is refused by {release}" in reported.cause.reason
    )


def test_a_cell_is_as_bad_as_its_worst_script_and_shows_one_in_which_somebody_dies() -> None:
    cell = Cell(JOIN, pair("2.1", "2.0"))
    found = outcome(cell, reference_binaries(fitted=True))
    assert "died" in [seen["what"] for step in found["history"]["steps"] for seen in step["seen"]]
    assert found["history"]["script"] == "start a 2.1.1; settle; start b 2.0.1; settle", "the shortest one"
    assert verdict(cell, reference_binaries(fitted=True)) == BREAKS


def test_probing_costs_one_more_rebalance_than_to_join_at_once() -> None:
    same = outcome(Cell(JOIN, pair("2.2", "2.3")), reference_binaries(fitted=True))["cell"]
    newer = outcome(Cell(JOIN, pair("2.3", "2.4")), reference_binaries(fitted=True))["cell"]
    assert (same["rounds"], newer["rounds"]) == (1, 2)


# Predictions


def test_what_is_foretold_is_committed_for_every_cell_of_the_usual_run() -> None:
    known = committed()
    missing = [each.key for each in cells(SCENARIOS, (), ()) if known.of(each) is None]
    assert not missing, f"{len(missing)} are not: kipcheck matrix --predict conformance/matrix/predictions.json"


SOME = cells([JOIN, OFFLINE, DOWNGRADE, BOUNCE], (), ())[7::189]


@pytest.mark.parametrize("cell", SOME, ids=lambda cell: " ".join(cell.key))
def test_what_is_foretold_is_what_our_machines_say(cell: Cell) -> None:
    reported = committed().of(cell)
    assert reported is not None
    now = Prediction.of(predicted(cell))
    assert reported.verdict == now.verdict
    assert reported.rule == "observed" or reported == now


def test_what_is_mended_after_jars_were_played_is_observed() -> None:
    cell, other = Cell(JOIN, pair("2.0", "2.1")), Cell(JOIN, pair("2.0", "2.2"))
    before = merged({cell: "ok", other: ["ok", "breaks"]}, {"played": None, "cells": {}})
    assert before["cells"] == {"join": {"2.0.1": {"2.1.1": "ok", "2.2.2": ["ok", "breaks"]}}}
    again = merged({cell: "breaks", other: "ok"}, before)
    assert again["cells"]["join"]["2.0.1"] == {"2.1.1": "breaks", "2.2.2": "ok"}
    since = merged({cell: "breaks", other: "ok"}, {**before, "played": "2026-11-22"})
    assert since["cells"]["join"]["2.0.1"] == {"2.1.1": ["ok", "ok", "breaks"], "2.2.2": ["ok", "breaks", "ok"]}
    back = merged({cell: "ok", other: "breaks"}, since)
    assert back["cells"]["join"]["2.0.1"] == {"2.1.1": ["ok", "ok"], "2.2.2": ["ok", "breaks"]}
    rules = [Prediction.of(each).rule for each in ("ok", ["ok", "breaks"], ["ok", "ok", "breaks"])]
    assert rules == ["foreseen", "fitted", "observed"]


def test_the_file_of_predictions_is_read_as_it_is_written(tmp_path: Path) -> None:
    asked = cells([JOIN, BOUNCE], [named("2.0"), named("0.10.0")], [named("3.9")])
    table = merged(dict.fromkeys(asked, "ok"), {"played": None, "cells": {}})
    path = tmp_path / "p.json"
    path.write_text(written(table))
    assert read(path) == table
    assert [*table["cells"]] == [JOIN, BOUNCE] and [*table["cells"][JOIN]] == ["0.10.0.1", "2.0.1"]


# Known deviations

DEVIATION = """
[[deviation]]
scenario = "bounce"
from = "2.0.0-2.0.1"
to = "2.1.0+"
verdict = "breaks"
reason = "Its members take over what they do not know."
link = "https://issues.apache.org/jira/browse/KAFKA-8649"
"""


def test_known_deviations_are_of_releases() -> None:
    (known,) = parse(DEVIATION, "known.toml")
    assert known.names(Cell(BOUNCE, pair("2.0", "3.9"))) and known.expects(Cell(BOUNCE, pair("2.0", "2.1")), BREAKS)
    assert not known.expects(Cell(BOUNCE, pair("2.0", "2.1")), OK)
    for scenario, old, new in ((JOIN, "2.0", "2.1"), (BOUNCE, "1.1", "2.1"), (BOUNCE, "2.0", "future")):
        assert not known.names(Cell(scenario, pair(old, new)))
    (other,) = parse(DEVIATION.replace("2.1.0+", "future"), "known.toml")
    assert other.names(Cell(BOUNCE, pair("2.0", "future")))


@pytest.mark.parametrize(
    ("right", "wrong", "reported"),
    [
        ('"bounce"', '"bounces"', "use one of join, bounce"),
        ('"breaks"', '"broken"', "use one of ok"),
        ('"2.1.0+"', '"2.1"', "2.1"),
        ("Its members take over what they do not know.", "TODO", "must be written"),
        ("https://issues.apache.org/jira/browse/KAFKA-8649", "https://example.com/1", "link"),
        ("reason =", "because =", "because"),
        ("[[deviation]]", "[[deviations]]", "expected [[deviation]]"),
        ("[[deviation]]", "[[deviation", "not valid TOML"),
    ],
)
def test_a_file_of_known_deviations_that_cannot_be_used_tells_why(right: str, wrong: str, reported: str) -> None:
    with pytest.raises(InvalidKnownFile) as found:
        parse(DEVIATION.replace(right, wrong), "known.toml")
    assert reported in str(found.value)


def test_those_that_come_with_kipcheck_can_be_used() -> None:
    asked = cells(SCENARIOS, (), ())
    assert all(any(each.names(cell) for cell in asked) for each in listed())
