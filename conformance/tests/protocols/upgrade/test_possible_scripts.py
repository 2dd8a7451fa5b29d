"""What can happen in upgrade scripts of consumers and of Streams members: by hand, drawn, mutated and reduced."""

from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Case, Role, steps_from
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.engine.execution.judge import possible_part
from kipcheck.conformance.protocols.declare.check import Check
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.streams import ops as streams
from kipcheck.conformance.protocols.streams.checks import CHECKS as STREAMS_CHECKS, STREAMS_GROUPS
from kipcheck.conformance.protocols.upgrade import ops as upgrade_script
from kipcheck.conformance.protocols.upgrade.checks import CHECKS as UPGRADE_CHECKS, UPGRADES
from kipcheck.conformance.protocols.upgrade.script_checks import can_happen, impossible_steps
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.strategies.compiled import compiled

SCRIPTS = [
    # The faulty steps, counted from 0
    ("upgrade", "roll a old; roll b ready; move b 3; lose a; expire b; crash a; revive a; stop b; settle", []),
    ("upgrade", "roll a old; stop a; move a 2; crash a; settle", []),
    ("upgrade", "crash a; roll a old; crash a; move a; settle; crash a; roll a old", [0, 3, 5]),
    ("upgrade", "roll a old; stop a; stop a; settle; move a; revive a; move a", [2, 4]),
    ("upgrade", "revive a; roll b old; lose a; expire c", [0, 2, 3]),
    ("upgrade", "old-brokers; roll a old; old-brokers", [2]),
    ("upgrade", "streams a 6; streams a 11; settle", []),
    ("streams", "start a own; start b own of a; move b 2; shut-down a; stop a; restart a; settle", []),
    ("streams", "stop a; restart a; start a own; stop a; move a; stop a; restart a; lose a", [0, 1, 4, 5]),
    ("streams", "start a own; settle; shut-down b; expire b", [2, 3]),
]
BY_KIND: dict[str, Operations[Any, Any]] = {"upgrade": upgrade_script.OPERATIONS, "streams": streams.OPERATIONS}


def case_of(kind: str, text: str) -> Case:
    check, edition = ("bounce/upgrade", "kip-429") if kind == "upgrade" else ("streams/probing", "apache")
    return Case(check, edition, Role.OPERATOR_TOOL, BY_KIND[kind].parse_shorthand(text))


@pytest.mark.parametrize(("kind", "text", "steps"), SCRIPTS)
def test_only_a_process_that_runs_can_do_something(kind: str, text: str, steps: list[int]) -> None:
    case, operations = case_of(kind, text), BY_KIND[kind]
    assert [each.step for each in impossible_steps(operations, case, ())] == steps
    assert can_happen(operations, case.steps) == (not steps)


def test_an_explanation_names_the_rule_and_the_member() -> None:
    (found,) = impossible_steps(streams.OPERATIONS, case_of("streams", "start a own; move b"), ())
    assert (found.step, found.rule, found.idle) == (1, "needs-a-process", False)
    assert found.why.endswith("while its process runs. That of b does not.")


def test_a_step_that_causes_nothing_is_left_out_and_another_ends_what_is_judged() -> None:
    case = case_of("streams", "start a own; move b; settle")
    stated: dict[str, Any] = {"what": "ended", "member": "b"}
    for actions, steps in (([], [0, 2]), ([stated], [0])):
        observed = (Replied((("actions", actions if at == 1 else []),)) for at in range(3))
        ops = tuple(Op(at, case.steps[at], each, at + 1) for at, each in enumerate(observed))
        assert [each.index for each in possible_part(History(case, "somebody", ops)).ops] == steps


ALL = [(check, where) for check in UPGRADE_CHECKS for where in ("kip-429", "apache")]
ALL += [(check, where) for check in STREAMS_CHECKS for where in ("kip-268", "apache")]


def subjects(check: Check[Subject], where: str) -> list[Subject]:
    return [each for each in check.family.subjects(where) if check.about(each)]


@pytest.mark.parametrize(("check", "where"), some_by_default(ALL, 6), ids=lambda each: getattr(each, "id", each))
def test_first_and_drawn_cases_can_happen(check: Check[Subject], where: str) -> None:
    for subject in subjects(check, where):
        for sample in check.samples(subject, 3, len(check.first) + 6):
            assert not any(check.family.impossible(sample.case, ()))


@pytest.mark.parametrize("family", [UPGRADES, STREAMS_GROUPS], ids=["upgrade", "streams"])
def test_whatever_is_declared_becomes_as_many_steps_that_can_happen(family: Any) -> None:
    """So do cases that are mutated and reduced: they are values of the same declaration."""
    (subject, *_), check = family.subjects("apache"), (UPGRADE_CHECKS if family is UPGRADES else STREAMS_CHECKS)[1]
    draw, random, changed = compiled(family.node(subject)), Random(0), 0
    for _ in range(60):
        value = draw(random)
        (sent,) = check.conversations(subject, value, random)
        assert len(sent.steps) == len(value)
        assert not any(family.impossible(Case(check.id, "apache", Role.OPERATOR_TOOL, sent.steps), ()))
        changed += sent.steps != steps_from(value)
    assert changed > 20
