"""Every planted defect is found by its own invariant, in the values a check draws by default, and shrunk."""


import pytest

from conformance.checks import CHECKS
from conformance.core.case import Role
from conformance.invariants.registry import all_invariants
from conformance.targets.inprocess import InProcess
from conformance.targets.miniatures import VICES, Vice
from conformance.targets.protocol import Target
from conformance.targets.roll import target
from conformance.targets.testee import Limits
from conformance.work import Finding, Unit, Worker, shrunk

QUICK = Limits(cpu_s=0.3, batch_s=20)


def held(name: str, made: Target, vice: Vice) -> tuple[list[Finding], Worker]:
    worker = Worker(name, made)
    # What is deadly costs a process for each case that finds it, and has to be found with the first value.
    unit = Unit(name, "apache", vice.check, vice.message, vice.version, 0, 1 if vice.deadly else None)
    return worker.hold(unit).findings, worker


def shown(finding: Finding) -> object:
    step = finding.case.steps[finding.violation.at[-1]]
    return step.body["hex"] if "hex" in step.body else step.body["value"]


@pytest.mark.parametrize("name", VICES)
def test_each_vice_is_caught_by_its_own_invariant_in_its_least_case(name: str) -> None:
    vice = VICES[name]
    made = target(f"miniature/{name}", QUICK) if vice.deadly else InProcess(vice.made())
    findings, worker = held(name, made, vice)
    try:
        assert {each.invariant for each in findings} == {vice.invariant}
        least = shrunk(worker, findings[0])
    finally:
        worker.close()
    assert least is not None, "run alone the case does not fail"
    if vice.least is not ...:
        assert shown(least) == vice.least


def test_every_invariant_and_every_check_has_a_vice() -> None:
    assert {each.id for each in all_invariants(Role.CODEC)} == {each.invariant for each in VICES.values()}
    assert set(CHECKS) == {each.check for each in VICES.values()}
