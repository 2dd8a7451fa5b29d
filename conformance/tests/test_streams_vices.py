"""Planted defects of Streams fleets: each breaks its invariant in the least case, and ours does not."""

from collections.abc import Sequence

import pytest

from conformance.apis.streams import spoken
from conformance.checks import CHECKS
from conformance.checks.streams import STREAMS_CHECKS
from conformance.core.case import Case, Role
from conformance.core.history import History
from conformance.core.verdict import Grade
from conformance.runner import converse
from conformance.targets.inprocess import InProcess
from conformance.targets.miniatures import VICES
from conformance.tests.fleets import OURS, broken, case_of, played
from conformance.vices import subject_of

FLEETS = {name: vice for name, vice in VICES.items() if vice.check.startswith("streams/")}
IN_SHORTHAND = [name for name, vice in FLEETS.items() if isinstance(vice.least, str)]
DEPLOYED = [name for name in FLEETS if name not in IN_SHORTHAND]
AS_RELEASED = {"echoes-by-instance", "tells-errors-in-its-own-version"}
"""What is planted is what releases do: invariants of another grade tell of it."""


def held(name: str, cases: Sequence[Case]) -> list[History]:
    with InProcess(FLEETS[name].made()).open(subject_of(FLEETS[name]).edition, Role.OPERATOR_TOOL) as session:
        return [*converse(cases, session)]


@pytest.mark.parametrize("name", IN_SHORTHAND)
def test_the_least_case_is_one_and_no_step_can_be_left_out(name: str) -> None:
    vice = FLEETS[name]
    assert isinstance(vice.least, str)
    where, steps = subject_of(vice).edition, vice.least.split("; ")
    without = ["; ".join(steps[:n] + steps[n + 1 :]) for n in range(len(steps))]
    whole, *parts = held(name, [case_of(where, spoken(text)) for text in (vice.least, *without)])
    first = broken(whole)[vice.invariant].violations[0]
    for text, each in zip(without, parts, strict=True):
        found = broken(each).get(vice.invariant)
        assert found is None or found.violations[0].shape != first.shape, text
    sound = broken(played(where, vice.least))
    assert set(sound) == ({vice.invariant} if name in AS_RELEASED else set())
    assert name not in AS_RELEASED or OURS[vice.invariant].grade is Grade.INFO


@pytest.mark.parametrize("name", DEPLOYED)
def test_what_has_to_be_deployed_is_found_among_the_first_cases(name: str) -> None:
    vice, subject = FLEETS[name], subject_of(FLEETS[name])
    check = CHECKS[vice.check]
    cases = [each.case for each in check.samples(subject, 0, len(check.first))]
    assert any(vice.invariant in broken(each) for each in held(name, cases))


def test_every_invariant_has_a_vice_and_a_check() -> None:
    assert len(FLEETS) >= 25
    assert set(OURS) == {vice.invariant for vice in FLEETS.values()}
    assert set(OURS) == {id for check in STREAMS_CHECKS for id in check.invariants}
