"""The entries of released bugs, what is recorded about them, and the page."""

import re
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Final

from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.recall import floor, power, record
from kipcheck.conformance.recall.bugs import KINDS, bugs, place_of
from kipcheck.conformance.recall.measure import edition_of, judging_checks
from kipcheck.conformance.targets.registry import PREFIXES
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.tests.recall.test_measure import BUG

LINK: Final = re.compile(r"https://[\w.-]+/[\w./#?=&%~+-]+")
RELEASED: Final = re.compile(r"(?P<name>.+)[@:](?P<release>\d[\w.+-]*)(?:\?preview)?")
LEAST: Final = {"live": 25, "coordinator": 10, "streams": 8}
"""Entries of a kind; features and formats are counted together."""


def test_every_invariant_that_counts_exists_in_the_role_of_the_entry() -> None:
    for bug in bugs().values():
        known = {each.id for each in all_invariants(bug.role)}
        for pattern in bug.counts:
            assert any(fnmatchcase(each, pattern.invariant) for each in known), (place_of(bug.id), pattern)
        assert bool(judging_checks(bug)) == bool(bug.counts), place_of(bug.id)


def test_every_requirement_exists() -> None:
    for bug in bugs().values():
        assert not {*bug.requirements} - requirements().keys(), place_of(bug.id)


def test_both_targets_are_releases_of_one_that_is_known() -> None:
    for bug in bugs().values():
        affected, fixed = (RELEASED.fullmatch(each) for each in (bug.affected, bug.fixed))
        assert affected is not None and fixed is not None, place_of(bug.id)
        assert affected["name"] == fixed["name"] and affected["release"] != fixed["release"], place_of(bug.id)
        prefix = affected["name"].partition(":")[0]
        assert prefix in (*PREFIXES, *target_entries()), place_of(bug.id)


def test_every_edition_has_a_subject_of_the_role() -> None:
    for bug in bugs().values():
        wanted = [CHECKS[id] for id in judging_checks(bug)]
        for target in (bug.affected, bug.fixed) if wanted else ():
            edition = edition_of(bug, target)
            assert any(check.about(each) for check in wanted for each in check.family.subjects(edition)), (
                place_of(bug.id), edition,
            )  # fmt: skip


def test_links_lead_to_pages_and_texts_are_sentences() -> None:
    for bug in bugs().values():
        assert LINK.fullmatch(bug.link), place_of(bug.id)
        assert re.fullmatch(r"[A-Z].{20,}\.", bug.observed, re.DOTALL), place_of(bug.id)


def test_there_are_as_many_entries_of_each_kind_as_the_figures_need() -> None:
    counted = Counter(each.kind for each in bugs().values())
    assert counted.total() >= 60
    assert all(counted[kind] >= least for kind, least in LEAST.items()), counted
    assert counted["features"] + counted["formats"] >= 5, counted


def test_a_third_of_the_entries_are_guards() -> None:
    guards = sum(each.is_guard for each in bugs().values())
    assert len(bugs()) * 0.2 <= guards <= len(bugs()) * 0.45


# ---- what is recorded


def test_today_is_the_recorded_result_and_first_is_one_that_was_decided() -> None:
    found = record.results()
    assert {bug.id: bug.today for bug in bugs().values() if bug.today} == {
        id: each.result for id, each in found.items()
    }
    for bug in bugs().values():
        assert bug.first in ("", *record.DECIDED), place_of(bug.id)
        assert bug.first or bug.today not in record.DECIDED, place_of(bug.id)


def test_the_recorded_results_are_sorted_and_a_line_each() -> None:
    path = files("kipcheck.conformance.recall") / record.RESULTS
    lines = path.read_text("utf-8").splitlines()[1:-1] if path.is_file() else []
    assert len(lines) == len(record.results()) and [*record.results()] == sorted(record.results())


def test_no_false_alarm_is_unexplained() -> None:
    assert not [bug.id for bug in bugs().values() if bug.today == "false alarm"]


def test_no_total_is_below_the_floor() -> None:
    assert floor.main() == 0
    assert not {kind for name in (floor.FOUND, floor.WITH_BUDGET) for kind in floor.floor()[name]} - {*KINDS}


def test_the_page_has_the_recorded_tables() -> None:
    page = (files("kipcheck.conformance") / "docs" / "internals" / "power.md").read_text("utf-8")
    for (begin, end), lines in power.sections(bugs().values(), record.results()):
        assert page.partition(begin)[2].partition(end)[0].splitlines() == lines, begin


def test_a_bug_is_a_guard_by_its_id_alone() -> None:
    """Ids are promises: a guard stays one."""
    assert [id for id in ("KAFKA-8715", "KAFKA-8653", "kafka-python-2617") if replace(BUG, id=id).is_guard] == [
        "KAFKA-8653"
    ]
