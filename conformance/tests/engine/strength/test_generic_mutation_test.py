"""Mutants that fit every family: where one is the reference by construction, it answers the same; the others fail."""

import json
from importlib.resources import files

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import invariants_of
from kipcheck.conformance.engine.strength.generic_mutation_test import AT, differs, families, ids, run_generic
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.generic_mutants import EQUIVALENT, GENERIC
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.tests.support.sessions import history_of

SLOW = (
    "wire", "assign", "group", "group:kip-429", "member", "bounce", "bounce:kip-429",
    "streams", "streams:kip-268", "streams-mixed",
)  # fmt: skip
"""Families whose default cases take more than some seconds for each mutant: the nightly part ``mutants`` has them."""


def test_each_machine_of_the_reference_is_a_family_in_each_of_its_editions() -> None:
    assert {"kraft-features", "group", "group:kip-429", "streams-mixed:kip-268", "wire", "assign"} <= families().keys()
    assert not {"client", "damage", "failover"} & families().keys(), "they run in real time"
    assert {each.partition(AT)[2] for each in ids()} == families().keys()
    assert {each.partition(AT)[2] for each in ids(["nodes/*"])} == {"nodes"}


def test_a_mutant_is_found_in_a_family_by_an_invariant_that_demands_something() -> None:
    found = run_generic(f"refuses-everything{AT}kraft-brokers")
    assert found.caught_by == ("kraft-brokers/registrations",)
    assert "kraft-brokers/admits-compatible" in found.by_invariant
    assert 0 < found.failed <= found.cases and found.first is not None


def test_an_exception_names_a_mutant_a_family_and_a_reason() -> None:
    for (mutant, family), why in EQUIVALENT.items():
        assert mutant in GENERIC and family in families() and why, (mutant, family)
    assert run_generic(f"is-one-step-behind{AT}nodes").why_equivalent
    assert differs(f"is-one-step-behind{AT}log-files") == 0
    assert differs(f"answers-the-same-always{AT}log-files") > 0


@pytest.mark.parametrize(
    ("mutant", "family"),
    [
        pytest.param(*each, marks=pytest.mark.mutants if each[1] in SLOW else pytest.mark.integration)
        for each in EQUIVALENT
    ],
)
def test_where_a_mutant_is_the_reference_it_answers_the_same_in_all_default_cases(mutant: str, family: str) -> None:
    assert differs(f"{mutant}{AT}{family}") == 0


def test_the_page_has_the_recorded_table() -> None:
    from kipcheck.conformance.benchmarks.generic import BEGIN, END, table

    page = (files("kipcheck.conformance") / "docs" / "internals" / "mutants.md").read_text("utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0].strip().splitlines() == [*table()]


@pytest.mark.mutants
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("family", families())
def test_the_recorded_table_is_what_the_families_find(family: str) -> None:
    from kipcheck.conformance.benchmarks.generic import cell, recorded

    assert recorded()[family] == {
        mutant: json.loads(json.dumps(cell(run_generic(f"{mutant}{AT}{family}")))) for mutant in GENERIC
    }


@pytest.mark.parametrize("text", ["unload; join a", "unload; load; join a", "unload; load; rejoin a; join a"])
@pytest.mark.parametrize("edition", ["apache", "kip-429"])
def test_an_answer_that_cannot_be_right_is_judged(edition: str, text: str) -> None:
    """A coordinator without its groups puts a client into a generation that no JoinGroup began."""
    case = Case("group/generations", edition, Role.COORDINATOR, OPERATIONS.parse_shorthand(text))
    history = history_of(GENERIC["answers-the-same-always"].made(), case)
    assert any(each.violations for each in judge(history, invariants_of(CHECKS["group/generations"])))
