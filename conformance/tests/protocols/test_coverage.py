"""What ``kipcheck requirements`` calls covered can be broken: each statement of its own, in the edition it is about."""

from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.engine.catalogue.tables import requirement
from kipcheck.conformance.engine.execution.worker import Unit, Worker
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.codec.mutants.codec import everywhere
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused

CODECS = [each for each in CHECKS.values() if each.role is Role.CODEC]
BESIDES = sorted(
    {
        (edition, message, each.id, id)
        for each in all_invariants(Role.CODEC)
        for (edition, message), ids in each.extra_requirements.items()
        for id in ids
    }
)


LATER = ("kip-429", "kip-584", "apache@1.1.1")
"""Editions whose every subject takes seconds."""


class Twisted(Reference):
    """Wrong in all that it does: reads what it should refuse, and numbers and texts otherwise than they are."""

    def read(self, layout: Layout, data: bytes) -> dict[str, Any]:
        try:
            value = super().read(layout, data)
        except Refused:
            return layout.defaults()
        return {name: everywhere(each, twisted) for name, each in value.items()}

    def write(self, layout: Layout, value: dict[str, Any]) -> bytes:
        return super().write(layout, value)[::-1] + b"\1"


WRONG = {"wire/skips-unknown-tags": MUTANTS["refuses-unknown-tags"].made}
"""Where what is wrong in all is not judged, something that is wrong in nothing else."""


def twisted(leaf: Any) -> Any:
    if isinstance(leaf, bool):
        return not leaf
    return -1 - leaf if isinstance(leaf, int) else f"{leaf}'" if isinstance(leaf, str) else leaf


@for_each(BESIDES)
@pytest.mark.integration
def test_a_statement_that_is_covered_in_an_edition_can_be_broken_there(
    edition: str, message: str, invariant: str, id: str
) -> None:
    checks = [each for each in CODECS if invariant in each.invariants and each.id != "wire/vectors"]
    subjects = [(check, each) for check in checks for each in check.family.subjects(edition) if each.name == message]
    assert subjects, f"{edition} has no {message}: nothing is covered"
    worker = Worker("twisted", InProcess(WRONG.get(invariant, Twisted)()))
    found = {
        id
        for check, subject in subjects
        if check.about(subject)
        for finding in worker.run(Unit("twisted", edition, check.id, message, subject.version, 0, 2)).findings
        if finding.invariant == invariant
        for id in next(each for each in all_invariants(Role.CODEC) if each.id == invariant).covers(edition, message)
    }
    assert id in found
    assert invariant in requirement(id)["invariants"]


@pytest.mark.integration
@pytest.mark.parametrize("edition", ["kip-268", *LATER])
def test_the_reference_keeps_all_that_a_draft_or_an_old_release_asks(edition: str) -> None:
    reference = Reference()
    assert reference.configure(edition) is None
    worker, claims = Worker("reference", InProcess(reference)), reference.claims()
    for check in CODECS:
        for subject in check.family.subjects(edition):
            if check.family.claimed(subject, claims) and check.about(subject) and not check.heavy:
                result = worker.run(Unit("reference", edition, check.id, subject.name, subject.version, 0, 1))
                assert {word for _, word, _ in result.cases} <= {"PASS"}, (check.id, subject)
