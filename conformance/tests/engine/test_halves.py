"""Both halves of the requirements: all are stated, with invariants and mutants, and generic mutants are found."""

from dataclasses import replace

import pytest

from kipcheck.conformance.core.values.requirement import Half, requirements
from kipcheck.conformance.engine.catalogue import lint
from kipcheck.conformance.engine.catalogue.lint import lint_input
from kipcheck.conformance.engine.strength.generic_mutation_test import unfound
from kipcheck.conformance.protocols.generic_mutants import GENERIC
from kipcheck.conformance.protocols.mutants import MUTANTS


def test_both_halves_of_each_requirement_are_stated_with_invariants_and_mutants() -> None:
    mutants = {**dict.fromkeys(GENERIC, "*"), **{name: each.invariant for name, each in MUTANTS.items()}}
    wrong = [*lint.halves(lint_input(), mutants)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.integration
def test_a_generic_mutant_that_a_half_names_is_found_by_one_of_its_invariants() -> None:
    assert [*unfound(requirements())] == []


def test_a_generic_mutant_that_no_invariant_of_the_half_finds_is_reported() -> None:
    of = requirements()["584-55"]
    admits = Half("It registers.", ("kraft-brokers/admits-compatible",), ("refuses-everything",))
    refuses = Half("It registers all.", ("kraft-brokers/refuses-incompatible",), ("refuses-everything", "other"))
    stated = {of.id: replace(of, does=admits, never=refuses)}
    assert [*unfound(stated)] == [f"{of.id}: never names refuses-everything, which none of its invariants finds"]
