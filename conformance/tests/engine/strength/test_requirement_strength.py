"""How strongly requirements are tested: the command, and its table in the docs."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from kipcheck.conformance.benchmarks import thin
from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.engine.strength import requirement_strength
from kipcheck.conformance.engine.strength.mutation_test import subject_of
from kipcheck.conformance.engine.strength.requirement_strength import MODEL, REAL, TEST, Found, strengths, table
from kipcheck.conformance.protocols.mutants import MUTANTS


def test_requirements_that_stand_on_one_invariant_are_shown_as_one_check(capsys: pytest.CaptureFixture[str]) -> None:
    row, law = next((each, law) for each in strengths() for law, others in each.shares.items() if len(others) > 2)
    assert command(["requirements", "--strength", row.requirement.id]) == 0
    shown = capsys.readouterr().out
    assert row.shares[law][0] in shown.partition("one check with ")[2]
    assert all(law in each.shares for each in strengths() if each.requirement.id in row.shares[law])


def test_each_store_of_kip_384_has_an_invariant_of_its_own() -> None:
    ids = {"384-10", "384-11", "384-12", "384-13", "384-14", "384-15", "384-16", "384-20"}
    shares = [each.shares for each in strengths() if each.requirement.id in ids]
    assert all(any(not ids.intersection(others) for others in each.values()) for each in shares)


def test_what_stands_behind_a_requirement_is_read_from_a_run_and_not_from_a_plan() -> None:
    rows = {each.requirement.id: each for each in strengths({"384-10": ["java:kafka_2.13:4.4.0"]})}
    assert rows["384-10"].behind == REAL and rows["384-10"].asked == ("java:kafka_2.13:4.4.0",)
    assert rows["384-11"].behind == MODEL
    assert {each.behind for each in rows.values() if each.requirement.tests} == {TEST}


def test_counts_of_mutants_are_those_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(name for name, each in MUTANTS.items() if each.invariant == "persistent-metadata/gated")
    counts = {"by_seed": [4, 0, 5, 6, 3, 3, 3, 3, 3, 3], "enumerated": False}
    monkeypatch.setattr(requirement_strength, "recorded", lambda: {"mutants": {name: counts}, "asked": {}})
    (row,) = [each for each in strengths() if each.requirement.id == "384-04"]
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
    page = (files("kipcheck.conformance") / "docs" / "internals" / "metadata.md").read_text("utf-8")
    shown = page.partition(requirement_strength.BEGIN)[2].partition(requirement_strength.END)[0]
    assert shown.strip().splitlines() == [*table(strengths())]


def test_mutants_of_codecs_are_counted_over_several_messages() -> None:
    codec, machine = "forgets-the-sign", next(n for n, each in MUTANTS.items() if each.subject == "kraft-features")
    several = thin.subjects_of(codec)
    assert several[0] == subject_of(MUTANTS[codec]) and len({*several}) == len(several) == thin.OTHER_SUBJECTS + 1
    assert thin.subjects_of(machine) == (subject_of(MUTANTS[machine]),)


def test_counts_are_recorded_in_place_of_those_of_the_same_mutants(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, other = [*MUTANTS][:2]
    before = {"mutants": {one: {"by_seed": [1], "enumerated": False}, "gone": {}}, "asked": {"a": ["real"]}}
    monkeypatch.setattr(thin, "recorded", lambda: before)
    monkeypatch.setattr(thin, "PATH", tmp_path / requirement_strength.FILE)
    thin.write(requirement_strength.Found(other, (3, 4), enumerated=True))
    found = json.loads((tmp_path / requirement_strength.FILE).read_text("utf-8"))
    assert found == {
        "mutants": {one: {"by_seed": [1], "enumerated": False}, other: {"by_seed": [3, 4], "enumerated": True}},
        "asked": {"a": ["real"]},
    }
    thin.write(asked={"b": ["client:x"]})
    assert json.loads((tmp_path / requirement_strength.FILE).read_text("utf-8"))["asked"] == {"b": ["client:x"]}
