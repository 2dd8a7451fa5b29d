"""The suite's own mutation test: what is planted is caught, and a survivor is told."""

import json
from dataclasses import replace

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.values.plain import plain
from kipcheck.conformance.engine.strength import mutation_test
from kipcheck.conformance.engine.strength.mutation_test import MutationResult, run_mutant, run_mutants, selected
from kipcheck.conformance.protocols.declare.mutant import Mutant
from kipcheck.conformance.protocols.generic_mutants import GENERIC
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference


@pytest.mark.parametrize(
    ("name", "by", "steps"),
    [
        ("forgets-the-sign", ("wire/two-readings", "wire/vectors"), 1),
        ("forgets-on-the-way", ("wire/round-trip",), 1),
        pytest.param("forgets-gate", ("features/gating",), 3, marks=pytest.mark.mutants),
        pytest.param(  # in a child, which goes down
            "leaves-quietly", ("wire/vectors", "wire/damage"), 1, marks=pytest.mark.mutants
        ),
    ],
)
def test_what_caught_it_is_told(name: str, by: tuple[str, ...], steps: int) -> None:
    found = run_mutant(name)
    assert (found.caught_by, found.least_steps) == (by, steps)
    assert found.cases is not None
    assert 0 < found.cases <= 300
    assert 0 < found.cpu_s < 60


def test_until_it_is_found_is_counted_in_its_own_check() -> None:
    own = run_mutant("forgets-the-sign", ("wire/two-readings",))
    assert own.cases == run_mutant("forgets-the-sign").cases
    other = run_mutant("forgets-the-sign", ("wire/vectors",))
    assert other.caught_by == ("wire/vectors",)


@pytest.mark.integration
def test_the_number_of_workers_changes_nothing() -> None:
    globs = ["features/brokers", "nodes/round-trip"]
    names = selected(globs)
    assert len(names) > 5
    alone, shared = (
        [(each.id, each.caught_by, each.cases, each.least_steps) for each in run_mutants(names, globs, workers=n)]
        for n in (1, 2)
    )
    assert alone == shared
    assert [id for id, *_ in alone] == names


@pytest.fixture
def harmless(monkeypatch: pytest.MonkeyPatch) -> str:
    mutant = MUTANTS["forgets-the-sign"]
    made = Mutant(Reference, "Does no harm.", mutant.check, mutant.invariant, mutant.subject, mutant.version, ...)
    monkeypatch.setitem(MUTANTS, "harmless", made)
    monkeypatch.setattr(mutation_test, "selected", lambda globs: ["harmless", "forgets-the-sign"])
    return "harmless"


def test_a_survivor_is_told_and_fails(harmless: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["mutants", "--check", "wire/two-readings", "--workers", "1"]) == 1
    printed = capsys.readouterr()
    assert "harmless" in printed.out
    assert "NOTHING" in printed.out
    assert "1 of 2 planted defects are caught" in printed.out
    assert printed.err == "kipcheck: not caught: harmless\n"


def test_as_json(harmless: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["vices", "--check", "wire/two-readings", "--workers", "1", "--json"]) == 1
    survivor, caught = json.loads(capsys.readouterr().out)["vices"]
    assert survivor == {
        "id": harmless, "caught_by": [], "cases": None, "cpu_s": survivor["cpu_s"], "least_steps": None,
        "reference_breaks": "", "declared_steps": None, "equivalent": "",
    }  # fmt: skip
    assert caught == {
        "id": "forgets-the-sign", "caught_by": ["wire/two-readings"], "cases": 5, "cpu_s": caught["cpu_s"],
        "least_steps": 1, "reference_breaks": "", "declared_steps": None, "equivalent": "",
    }  # fmt: skip
    assert plain(MutationResult("a", (), None, 0.5, None)).keys() == caught.keys()


def test_nothing_meant_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["vices", "--check", "wire/fantasy"]) == 2
    assert "unknown check 'wire/fantasy': use one of wire/round-trip" in capsys.readouterr().err


def test_only_the_defects_planted_for_a_check_are_held_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["mutants", "--check", "features/brokers", "--json", "--workers", "1"]) == 0
    rows = json.loads(capsys.readouterr().out)["vices"]
    planted = [each for each in rows if "@" not in each["id"]]
    assert {each["id"] for each in planted} == {
        name for name, mutant in MUTANTS.items() if mutant.check == "features/brokers"
    }
    assert {each["id"] for each in rows if each not in planted} == {f"{name}@features:kip-584" for name in GENERIC}
    assert all(each["caught_by"] == ["features/brokers"] for each in rows)


def test_a_reference_that_breaks_the_invariant_is_told_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutation_test, "Reference", MUTANTS["forgets-the-sign"].made)
    monkeypatch.setattr(mutation_test, "selected", lambda globs: ["forgets-the-sign"])
    mutation_test.reference_breaks.cache_clear()
    try:
        assert main.run(["mutants", "--check", "wire/two-readings", "--workers", "1"]) == 1
    finally:
        mutation_test.reference_breaks.cache_clear()
    invariant = MUTANTS["forgets-the-sign"].invariant
    printed = capsys.readouterr()
    assert printed.err == f"kipcheck: forgets-the-sign: the reference breaks {invariant}, too\n"
    assert f"wire/two-readings - the reference breaks {invariant}, too" in printed.out


def test_a_least_case_that_is_longer_than_declared_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(name for name, each in MUTANTS.items() if each.check == "feature-tool/commands" and each.least != ...)
    monkeypatch.setitem(MUTANTS, name, replace(MUTANTS[name], least="tool describe"))
    monkeypatch.setattr(mutation_test, "selected", lambda globs: [name])
    assert main.run(["mutants", "--check", "feature-tool/commands", "--workers", "1"]) == 0
    steps = run_mutant(name, ("feature-tool/commands",)).least_steps
    assert f" - its least case has {steps} steps, its declaration 1\n" in capsys.readouterr().out
