"""What the ledger says of a distinct failure: everything that a report shows, annotated bytes included."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kipcheck.conformance.checks import CHECKS
from kipcheck.conformance.core.case import Case, Step
from kipcheck.conformance.core.history import Died
from kipcheck.conformance.core.ledger import Line, spans
from kipcheck.conformance.core.requirement import requirements
from kipcheck.conformance.core.tags import tags_of
from kipcheck.conformance.engine.failures import file
from kipcheck.conformance.invariants.registry import all_invariants
from kipcheck.conformance.targets.protocol import TargetInfo

if TYPE_CHECKING:
    from kipcheck.conformance.engine.worker import Finding

SHORT = 4096
"""Cases of more hex digits than this stand in their file and not in the ledger."""


def failure(info: TargetInfo, members: Sequence["Finding"], out: Path) -> dict[str, Any]:
    """The ledger's line, and ``failures/ID.json`` beside it."""
    return file(*told(info, members), out)


def told(info: TargetInfo, members: Sequence["Finding"]) -> tuple[Line, Line]:
    """What the ledger says of the failure, and what its file holds. Of ``members`` the least that was shrunk is shown.

    How to reproduce it is left empty in both: that depends on where the file will be.
    """
    shown = min(members, key=lambda each: (-len(each.shape), _size(each.case)))
    check = CHECKS[shown.unit.check]
    invariant = next(each for each in all_invariants(check.role) if each.id == shown.invariant)
    line = {
        "id": _id(info, shown),
        "target": info.name,
        "version": info.version,
        "check": check.id,
        "checks": sorted({each.unit.check for each in members}),
        "shrunk": any(CHECKS[each.unit.check].shrinks for each in members),
        "invariant": invariant.id,
        "grade": invariant.grade.value,
        "sentence": invariant.statement,
        "requirements": [
            {"id": each.id, "clause": each.clause, "text": each.text}
            for each in map(requirements().__getitem__, invariant.covers(shown.unit.edition, shown.unit.subject))
        ],
        "tags": tags_of(invariant.id),
        "edition": shown.unit.edition,
        "subject": shown.unit.subject,
        "subject_version": shown.unit.version,
        "why": shown.violation.why,
        "expected": shown.violation.expected,
        "observed": shown.violation.observed,
        "path": shown.violation.path,
        "offset": shown.violation.offset,
        "shape": list(shown.shape),
        "cases": len({each.case.id for each in members}),
        "where": _where(members),
        "steps": [_described(op.step) for op in shown.history.ops],
        "guilty_step": shown.violation.at[-1],
        "exhibits": check.family.exhibits(shown.history, shown.violation),
        "case_id": shown.case.id,
        "reproduce": "",
    }
    return line, {"format": 1, **line, "case": shown.case.plain, **_stderr(shown)}


def _stderr(shown: "Finding") -> dict[str, str]:
    """What a target that went down wrote to stderr: where it hung, if it told that."""
    observation = shown.history.ops[shown.violation.at[-1]].observation
    return {"stderr": observation.evidence} if isinstance(observation, Died) and observation.evidence else {}


def _id(info: TargetInfo, finding: "Finding") -> str:
    text = json.dumps([info.name, finding.invariant, finding.shape])
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _size(case: Case) -> tuple[int, str]:
    return sum(len(json.dumps(dict(step.body))) for step in case.steps), case.id


def _where(members: Iterable["Finding"]) -> dict[str, str]:
    """Subject -> versions in which it was seen, as spans; empty for what has no versions."""
    seen: dict[str, set[int]] = {}
    for each in members:
        versions = seen.setdefault(each.unit.subject, set())
        if each.unit.version is not None:
            versions.add(each.unit.version)
    return {subject: spans(versions) for subject, versions in sorted(seen.items())}


def _described(step: Step) -> dict[str, Any]:
    body = {key: each for key, each in step.body.items() if key != "hex" or len(each) <= SHORT}
    if "hex" in step.body and "hex" not in body:
        body["hex"] = f"{step['hex'][:64]}... ({len(step['hex']) // 2} bytes)"
    return {"verb": step.verb, **body}
