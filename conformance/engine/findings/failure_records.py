"""Makes a failure of the ledger from findings: with everything that a report shows, annotated bytes included."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kipcheck.conformance.core.files.remedies import fix_of
from kipcheck.conformance.core.ledger import (
    BrokenRequirement,
    Failure,
    FiledFailure,
    Follower,
    exhibits_of,
    united_followers,
    where_of,
)
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died
from kipcheck.conformance.core.values.plain import short_digest
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.engine.execution.scripts import shorthand
from kipcheck.conformance.engine.findings.failures import DistinctFailure, file
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.check import Family
from kipcheck.conformance.protocols.invariants import all_invariants, tags_of
from kipcheck.conformance.targets.protocol import TargetInfo

if TYPE_CHECKING:
    from kipcheck.conformance.engine.execution.worker import Finding

SHORT = 4096
"""Longer bytes, in hex digits, are in the file of the failure only, and abridged in the ledger."""


def failure(info: TargetInfo, members: Sequence["Finding"], out: Path, family: Family[Any] | None = None) -> Failure:
    """The line of the ledger; ``failures/ID.json`` is written under ``out``."""
    return file(described(info, members, family), out).line


def described(info: TargetInfo, members: Sequence["Finding"], family: Family[Any] | None = None) -> DistinctFailure:
    """The failure that ``members`` show, with the least case of those that were shrunk the furthest.

    ``family``: the one that shows the histories, if it is not that of their check.

    ``reproduce`` is empty: the command depends on the place of the file.
    """
    shown = least(members)
    check = CHECKS[shown.unit.check]
    invariant = next(each for each in all_invariants(check.role) if each.id == shown.invariant)
    covered = map(requirements().__getitem__, invariant.covers(shown.unit.edition, shown.unit.subject))
    line = Failure(
        id=_id(info, shown),
        target=info.name,
        version=info.version,
        command=info.command or None,
        check=check.id,
        checks=tuple(sorted({each.unit.check for each in members})),
        shrunk=any(CHECKS[each.unit.check].shrinks and each.whole for each in members if each.shape),
        invariant=invariant.id,
        grade=invariant.grade.value,
        sentence=invariant.statement,
        requirements=tuple(BrokenRequirement(id=each.id, clause=each.clause, text=each.text) for each in covered),
        tags=tuple(tags_of(invariant.id, shown.shape, shown.unit.subject, shown.violation.answered)),
        fix=fix_of(invariant.id, shown.shape, shown.unit.subject),
        edition=shown.unit.edition,
        subject=shown.unit.subject,
        subject_version=shown.unit.version,
        why=shown.violation.why,
        expected=shown.violation.expected,
        observed=shown.violation.observed,
        path=shown.violation.path,
        offset=shown.violation.offset,
        shape=tuple(shown.shape),
        cases=len({each.case.id for each in members}),
        where=where_of((each.unit.subject, each.unit.version) for each in members),
        steps=tuple(_described(op.step) for op in shown.history.ops),
        guilty_step=shown.violation.at[-1],
        exhibits=exhibits_of((family or check.family).exhibits(shown.history, shown.violation)),
        case_id=shown.case.id,
        reproduce="",
        played=info.played or None,
        followed_by=_followers(members),
        cut_early=shown.cut or None,
        rate=shown.rate,
        script=shorthand(shown.unit.subject, shown.case.steps) or None,
    )
    return DistinctFailure(line, FiledFailure.holding(line, shown.case.plain, _stderr(shown)))


def _followers(members: Sequence["Finding"]) -> tuple[Follower, ...] | None:
    """What follows from the findings, once for each case."""
    found = {
        (member.case.id, invariant): Follower(invariant=invariant, why=violation.why, cases=1)
        for member in members
        for invariant, violation in member.consequences
    }
    return united_followers(found.values())


def least(members: Sequence["Finding"]) -> "Finding":
    """The one with the least case of those that were shrunk the furthest."""
    return min(members, key=lambda each: (-len(each.shape), each.case.size))


def _stderr(shown: "Finding") -> str | None:
    """The stderr of a target that crashed or was killed, if there is any."""
    observation = shown.history.ops[shown.violation.at[-1]].observation
    return observation.evidence if isinstance(observation, Died) and observation.evidence else None


def _id(info: TargetInfo, finding: "Finding") -> str:
    return short_digest([info.name, finding.invariant, finding.shape])


def _described(step: Step) -> dict[str, Any]:
    shown = {"verb": step.verb, **step.body}
    data: str = step.body.get("hex", "")
    if len(data) > SHORT:
        shown |= {"hex": f"{data[:64]}... ({len(data) // 2} bytes)"}
    return shown
