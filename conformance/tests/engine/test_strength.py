"""How strongly requirements are tested: the command, and its table in the docs."""

import json
from importlib.resources import files

import pytest

from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.engine import strength
from kipcheck.conformance.engine.strength import MODEL, REAL, TEST, Found, strengths, table
from kipcheck.conformance.protocols.mutants import MUTANTS


def test_requirements_that_stand_on_one_invariant_are_shown_as_one_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["requirements", "--strength", "384-10"]) == 0
    shown = capsys.readouterr().out
    assert "384-11" in shown.partition("one check with ")[2]
    (row,) = [each for each in strengths() if each.requirement.id == "384-10"]
    assert {"384-11", "384-12", "384-13", "384-14", "384-15"} <= {*row.shares["persistent-metadata/gated"]}


def test_what_stands_behind_a_requirement_is_read_from_a_run_and_not_from_a_plan() -> None:
    rows = {each.requirement.id: each for each in strengths({"384-10": ["java:kafka_2.13:4.4.0"]})}
    assert rows["384-10"].behind == REAL and rows["384-10"].asked == ("java:kafka_2.13:4.4.0",)
    assert rows["384-11"].behind == MODEL
    assert {each.behind for each in rows.values() if each.requirement.tests} == {TEST}


def test_counts_of_mutants_are_those_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(name for name, each in MUTANTS.items() if each.invariant == "persistent-metadata/gated")
    counts = {"by_seed": [4, 0, 5, 6, 3, 3, 3, 3, 3, 3], "enumerated": False}
    monkeypatch.setattr(strength, "recorded", lambda: {"mutants": {name: counts}, "asked": {}})
    (row,) = [each for each in strengths() if each.requirement.id == "384-10"]
    (found,) = [each for each in row.mutants if each.id == name]
    assert found.text == f"{name} (9 of 10 seeds, 3 cases)" and not found.is_thin
    assert Found("a", (3, 0, 0), False).is_thin and Found("a", (2, 2, 2), False).is_thin
    assert not Found("a", (1, 0, 0), True).is_thin and not Found("a").is_thin


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["requirements", "--strength", "--json", "584-01"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["strength"]
    assert row["id"] == "584-01" and row["behind"] in (REAL, MODEL)
    assert command(["requirements", "--strength", "584-999"]) == 2
    assert "unknown requirement '584-999'" in capsys.readouterr().err


def test_the_page_has_the_table() -> None:
    page = (files("kipcheck.conformance") / "docs" / "metadata.md").read_text("utf-8")
    shown = page.partition(strength.BEGIN)[2].partition(strength.END)[0]
    assert shown.strip().splitlines() == [*table(strengths())]
