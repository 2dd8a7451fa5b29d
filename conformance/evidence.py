"""What the ledger says of a distinct failure: everything that a report shows, annotated bytes included."""

import hashlib
import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.checks import CHECKS
from conformance.core.case import Case, Step
from conformance.core.requirement import requirements
from conformance.core.verdict import Violation
from conformance.invariants.readings import brief, layout_of
from conformance.invariants.registry import all_invariants
from conformance.invariants.wire import canonical
from conformance.targets.protocol import TargetInfo

if TYPE_CHECKING:
    from conformance.work import Finding

EXPLAINED = 2048
"""Longer inputs are shown by their beginning only."""
SHORT = 4096
"""Cases of more hex digits than this stand in their file and not in the ledger."""


def failure(info: TargetInfo, members: Sequence["Finding"], out: Path) -> dict[str, Any]:
    """The ledger's line, and ``failures/ID.json`` beside it. Of ``members`` the one with the least case is shown."""
    shown = min(members, key=lambda each: (bool(not each.shape), _size(each.case)))
    check = CHECKS[shown.unit.check]
    invariant = next(each for each in all_invariants(check.role) if each.id == shown.invariant)
    path = (out / "failures" / f"{_id(info, shown)}.json").absolute()
    step = shown.case.steps[shown.violation.at[-1]]
    line = {
        "id": path.stem,
        "target": info.name,
        "version": info.version,
        "check": check.id,
        "invariant": invariant.id,
        "grade": invariant.grade.value,
        "sentence": invariant.statement,
        "requirements": [
            {"id": each.id, "clause": each.clause, "text": each.text}
            for each in map(requirements().__getitem__, invariant.covers(shown.unit.edition, shown.unit.message))
        ],
        "edition": shown.unit.edition,
        "message": shown.unit.message,
        "message_version": shown.unit.version,
        "why": shown.violation.why,
        "expected": shown.violation.expected,
        "observed": shown.violation.observed,
        "path": shown.violation.path,
        "offset": shown.violation.offset,
        "shape": list(shown.shape),
        "cases": len({each.case.id for each in members}),
        "where": _where(members),
        "steps": [_described(each) for each in shown.case.steps],
        "guilty_step": shown.violation.at[-1],
        "bytes": annotated(shown.case, step, shown.violation),
        "case_id": shown.case.id,
        "reproduce": f"kipcheck replay {shlex.quote(str(path))}",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    filed = {"format": 1, **line, "case": shown.case.plain}
    path.write_text(json.dumps(filed, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return line


def _id(info: TargetInfo, finding: "Finding") -> str:
    text = json.dumps([info.name, finding.unit.check, finding.invariant, finding.shape])
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _size(case: Case) -> tuple[int, str]:
    return sum(len(json.dumps(dict(step.body))) for step in case.steps), case.id


def _where(members: Iterable["Finding"]) -> dict[str, str]:
    """Message -> versions in which it was seen, as spans."""
    seen: dict[str, set[int]] = {}
    for each in members:
        seen.setdefault(each.unit.message, set()).add(each.unit.version)
    return {message: spans(versions) for message, versions in sorted(seen.items())}


def spans(numbers: Iterable[int]) -> str:
    """``0-4, 6``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{low}-{high}" if low != high else str(low) for low, high in found)


def _described(step: Step) -> dict[str, Any]:
    body = {key: each for key, each in step.body.items() if key != "hex" or len(each) <= SHORT}
    if "hex" in step.body and "hex" not in body:
        body["hex"] = f"{step['hex'][:64]}... ({len(step['hex']) // 2} bytes)"
    return {"verb": step.verb, **body}


def annotated(case: Case, step: Step, violation: Violation) -> list[dict[str, Any]]:
    """The bytes that the step carried (of a value to encode: those it should give), a row for each field.

    The guilty row is the one at the violation's offset or path.
    """
    from conformance.wire.explain import explain  # brings construct: only a run with failures needs it

    layout = layout_of(case.edition, step["message"], step["version"])
    data = bytes.fromhex(step["hex"]) if "hex" in step.body else canonical(layout, step)
    if data is None:
        return []
    if len(data) > EXPLAINED:
        beginning = {"offset": 0, "bytes": data[:32].hex(), "path": "", "type": "", "value": f"... {len(data)} bytes"}
        return [{**beginning, "guilty": True}]
    explained = explain(layout, data)
    rows: list[dict[str, Any]] = [
        {
            "offset": row.offset,
            "bytes": data[row.offset : row.offset + row.size].hex(),
            "path": row.path,
            "type": row.type,
            "value": brief(row.value) if not isinstance(row.value, bytes) else row.value.hex(),
            "guilty": False,
        }
        for row in explained.rows
    ]
    if explained.damage is not None and explained.damage.offset is not None:
        offset = explained.damage.offset
        rows = [row for row in rows if row["type"] != "not read"]
        rows.append(
            {
                "offset": offset,
                "bytes": data[offset : offset + 16].hex(),
                "path": explained.damage.path,
                "type": explained.damage.kind,
                "value": explained.damage.why,
                "guilty": False,
            }
        )
    for row in _guilty(rows, violation):
        row["guilty"] = True
    return rows


def _guilty(rows: list[dict[str, Any]], violation: Violation) -> list[dict[str, Any]]:
    by_path = [row for row in rows if violation.path and row["path"] == violation.path]
    if by_path:
        return by_path
    if violation.offset is None:
        return []
    return [row for row in rows if row["offset"] <= violation.offset][-1:]
