"""What there is to look up: checks, and requirements with what covers them, computed from the code that judges."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from conformance.checks import CHECKS, Check
from conformance.core.requirement import Requirement, requirements
from conformance.invariants.registry import Invariant, all_invariants


def checks_table() -> list[dict[str, Any]]:
    """Every check: its sentence, the role it is about, and the invariants that its cases are there to break."""
    return [
        {
            "id": check.id,
            "sentence": check.sentence,
            "role": check.role.value,
            "invariants": [
                {
                    "id": each.id,
                    "statement": each.statement,
                    "grade": each.grade.value,
                    "requirements": sorted(_covered(each)),
                }
                for each in _shown(check)
            ],
        }
        for check in CHECKS.values()
    ]


def requirements_table() -> list[dict[str, Any]]:
    """Every normative statement, with the checks and invariants that cover it: none is said plainly."""
    return [_row(each, *_coverage(each.id)) for each in requirements().values()]


def requirement(id: str) -> dict[str, Any]:
    """Errors: LookupError with some that there are."""
    if id not in requirements():
        near = get_close_matches(id, requirements(), n=5) or [f"{family}-..." for family in _families()]
        raise LookupError(f"no requirement {id!r}; there are {', '.join(near)}")
    return _row(requirements()[id], *_coverage(id))


def _families() -> list[str]:
    return list(dict.fromkeys(id.rpartition("-")[0] for id in requirements()))


def _row(found: Requirement, checks: list[str], invariants: list[str]) -> dict[str, Any]:
    return {
        "id": found.id,
        "kip": found.kip,
        "clause": found.clause,
        "edition": found.edition,
        "releases": found.releases,
        "role": found.role,
        "grade": found.grade.value,
        "text": found.text,
        "checks": checks,
        "invariants": invariants,
    }


def _coverage(id: str) -> tuple[list[str], list[str]]:
    checks = [check.id for check in CHECKS.values() if any(id in _covered(each) for each in _shown(check))]
    return checks, sorted({each.id for check in CHECKS.values() for each in _shown(check) if id in _covered(each)})


def _shown(check: Check) -> Iterator[Invariant]:
    by_id: Mapping[str, Invariant] = {each.id: each for each in all_invariants(check.role)}
    return (by_id[id] for id in check.invariants)


def _covered(each: Invariant) -> set[str]:
    return {*each.requirements, *(id for more in each.besides.values() for id in more)}
