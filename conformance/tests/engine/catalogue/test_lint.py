"""The lint of metadata: nothing is wrong with what there is, and each thing that can be is found."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.core.files.remedies import FailureFix, Remedy
from kipcheck.conformance.core.files.tags import Tags, Vocabulary
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.failure_pattern import FailurePattern
from kipcheck.conformance.core.values.requirement import Half
from kipcheck.conformance.engine.catalogue import lint
from kipcheck.conformance.engine.catalogue.lint import LintInput, coverage_counts, lint_input, troubles

FIRST = lint_input().checks[0]
INVARIANT = next(each for each in lint_input().invariants if each.id == FIRST.invariants[0])
TAGS = lint_input().tags


def with_tags(of: LintInput, id: str, tags: Tags) -> LintInput:
    return replace(of, tags=Vocabulary(of.tags.classes, of.tags.effects, {**of.tags.invariants, id: tags}))


def with_rules(of: LintInput, rules: dict[str, object]) -> LintInput:
    return replace(of, rules={"share-coordinator": rules})


def test_what_there_is_is_in_order() -> None:
    assert list(troubles(lint_input())) == []


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda of: replace(of, checks=(*of.checks, FIRST)), "named 2 times"),
        (
            lambda of: replace(of, effects=[each for each in of.effects if each.pattern.invariant != INVARIANT.id]),
            f"{INVARIANT.id}: its last entry in effects.toml must be one for any failure",
        ),
        (
            lambda of: replace(of, fixes=[FailureFix(FailurePattern("wire/sings"), "Sing.")]),
            "wire/sings: remedies.toml has an entry for an unknown invariant",
        ),
        (lambda of: with_rules(of, {}), "share-coordinator.takes-epoch-0: no invariant reads this rule"),
        (lambda of: with_rules(of, {"sings": "Nobody hears it."}), "sings: rule_laws.toml has a rule that"),
        (lambda of: with_rules(of, {"takes-epoch-0": ""}), "takes-epoch-0: name invariants, or state"),
        (lambda of: with_rules(of, {"takes-epoch-0": ["wire/sings"]}), "takes-epoch-0: unknown invariant 'wire/sings'"),
        (lambda of: replace(of, invariants=(*of.invariants, INVARIANT)), "named 2 times"),
        (lambda of: replace(of, checks=(replace(FIRST, id="Wire Trip"), *of.checks[1:])), "Wire Trip: invalid id"),
        (lambda of: replace(of, checks=(replace(FIRST, sentence=""), *of.checks[1:])), "its sentence"),
        (lambda of: replace(of, checks=(replace(FIRST, invariants=()), *of.checks[1:])), "it has no invariants"),
        (
            lambda of: replace(of, checks=(replace(FIRST, invariants=("wire/sings",)), *of.checks[1:])),
            "unknown invariant 'wire/sings'",
        ),
        (
            lambda of: replace(of, checks=(replace(FIRST, invariants=(INVARIANT.id,) * 2), *of.checks[1:])),
            "named 2 times by wire",
        ),
        (
            lambda of: replace(of, invariants=(*of.invariants, replace(INVARIANT, id="wire/unheld"))),
            "wire/unheld: no check uses it",
        ),
        (
            lambda of: replace(of, invariants=(replace(INVARIANT, checks=("wire/trip",)), *of.invariants)),
            f"{INVARIANT.id}: it names the check 'wire/trip', which does not use it",
        ),
        (
            lambda of: replace(of, invariants=(*of.invariants, replace(INVARIANT, role=Role.BROKER))),
            "is for another role than",
        ),
        (
            lambda of: replace(of, invariants=(*of.invariants, replace(INVARIANT, id="Odd Id"))),
            "Odd Id: invalid id of an invariant",
        ),
        (
            lambda of: replace(of, invariants=(*of.invariants, replace(INVARIANT, requirements=("grp-00",)))),
            "unknown requirement 'grp-00'",
        ),
        (
            lambda of: replace(
                of, invariants=(*of.invariants, replace(INVARIANT, requirements=(), extra_requirements={}))
            ),
            "it covers no requirement",
        ),
        (
            lambda of: replace(
                of, invariants=(*of.invariants, replace(INVARIANT, extra_requirements={("kip-0", "X"): ()}))
            ),
            "unknown edition 'kip-0'",
        ),
        (
            lambda of: replace(of, remedies={k: v for k, v in of.remedies.items() if k != "grp-05"}),
            "grp-05: it has no remedy",
        ),
        (lambda of: replace(of, remedies={**of.remedies, "x-1": Remedy("y")}), "x-1: remedy for an unknown"),
        (
            lambda of: replace(of, requirements={**of.requirements, "grp5": of.requirements["grp-05"]}),
            "grp5: invalid id of a requirement",
        ),
        (
            lambda of: replace(
                of, requirements={**of.requirements, "grp-05": replace(of.requirements["grp-05"], role="cook")}
            ),
            "unknown role 'cook'",
        ),
        (lambda of: with_tags(of, "wire/sings", TAGS.invariants["survives"]), "tags for an unknown invariant"),
        (lambda of: with_tags(of, "survives", Tags("mood", ("crash",), ())), "unknown class of mistakes 'mood'"),
        (lambda of: with_tags(of, "survives", Tags("bounds", ("rain",), ())), "unknown effect 'rain'"),
        (lambda of: with_tags(of, "survives", Tags("bounds", (), ())), "it has no effects"),
        (lambda of: with_tags(of, "survives", Tags("bounds", ("crash",), ("KAFKA-0",))), "invalid link 'KAFKA-0'"),
        (
            lambda of: replace(of, tags=Vocabulary(TAGS.classes, {**TAGS.effects, "rain": ""}, TAGS.invariants)),
            "rain: unused tag",
        ),
        (lambda of: replace(of, tags=Vocabulary(TAGS.classes, TAGS.effects, {})), "survives: it has no tags"),
        (
            lambda of: replace(
                of,
                requirements={**of.requirements, "grp-05": replace(of.requirements["grp-05"], tests=("a.py::test_a",))},
            ),
            "grp-05: tests of kipcheck show it, and an invariant covers it",
        ),
    ],
)
def test_what_is_wrong_is_found(change: Callable[[LintInput], LintInput], wanted: str) -> None:
    found = list(troubles(change(lint_input())))
    assert any(wanted in each for each in found), found


def test_how_much_is_covered_is_told_by_role_and_grade() -> None:
    counted = {(role, grade): (covered, there) for role, grade, covered, there in coverage_counts(lint_input())}
    covered, there = counted["codec", "MUST"]
    assert 0 < covered <= there
    assert sum(there for _, there in counted.values()) == len(lint_input().requirements)


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "words", lambda of: iter(()))  # test_lint_words.py reads those
    assert command(["checks", "--lint"]) == 0
    assert "codec         MUST" in capsys.readouterr().out
    odd = replace(lint_input(), remedies={})
    monkeypatch.setattr(lint, "lint_input", lambda: odd)
    assert command(["checks", "--lint"]) == 1
    assert "grp-05: it has no remedy" in capsys.readouterr().err
    monkeypatch.setattr(lint, "lint_input", lint_input)
    monkeypatch.setattr(lint, "words", lambda of: iter(["a.py:1: planted"]))
    assert command(["checks", "--lint"]) == 1
    assert "a.py:1: planted" in capsys.readouterr().err


def test_tags_are_shown_with_the_checks_and_remedies_with_a_requirement(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["checks", "--json"]) == 0
    assert '"tags": {"class": "bounds", "effects": ["wrong-data"], "links": ["CWE-130"]}' in capsys.readouterr().out
    assert command(["requirements", "grp-05"]) == 0
    shown = capsys.readouterr().out
    assert "Meaning: Reading is the inverse" in shown and "How to fix a violation: Compare every length" in shown


SIGN = next(each for each in lint_input().invariants if "258-04" in each.requirements)
"""An invariant of KIP-258."""


@pytest.mark.parametrize(
    ("does", "wanted"),
    [
        (None, "258-04: state does, or why it is absent"),
        (Half(""), "258-04: does needs either a text, or why it is absent"),
        (Half("It reads.", absent="nothing"), "258-04: does needs either a text, or why it is absent"),
        (Half("It reads."), "258-04: does needs invariants and mutants"),
        (Half("It reads.", ("group/joins",), ("m",)), "258-04: does names group/joins, which does not cover"),
        (Half("It reads.", (SIGN.id,), ("other",)), "258-04: does names the mutant other, which breaks group/joins"),
        (Half("It reads.", (SIGN.id,), ("gone",)), "258-04: does names the mutant gone, which breaks nothing"),
        (Half("It reads.", (SIGN.id,), ("m", "any")), ""),
        (Half("", absent="It only forbids."), ""),
    ],
)
def test_both_halves_of_a_requirement_are_stated(does: Half | None, wanted: str) -> None:
    never = Half("It drops a byte.", (SIGN.id,), ("m",))
    stated = {"258-04": replace(lint_input().requirements["258-04"], does=does, never=never)}
    mutants = {"m": SIGN.id, "other": "group/joins", "any": "*"}
    found = list(lint.halves(replace(lint_input(), requirements=stated), mutants))
    assert any(wanted in each for each in found) if wanted else not found, found
