"""Tables of checks and requirements with their coverage, computed from the checks and invariants."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from kipcheck.conformance.checks import CHECKS, Check
from kipcheck.conformance.core.remedy import remedies
from kipcheck.conformance.core.requirement import Requirement, requirements
from kipcheck.conformance.core.tags import Tags, vocabulary
from kipcheck.conformance.invariants.registry import Invariant, all_invariants


def checks_table() -> list[dict[str, Any]]:
    """Every check with its sentence, its role, and its invariants."""
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
                    "tags": _tags(vocabulary().invariants.get(each.id)),
                }
                for each in _shown(check)
            ],
        }
        for check in CHECKS.values()
    ]


def _tags(tags: Tags | None) -> dict[str, Any] | None:
    if tags is None:
        return None  # lint reports it
    return {"class": tags.bug, "effects": list(tags.effects), "links": list(tags.links)}


def requirements_table() -> list[dict[str, Any]]:
    """Every normative statement with the checks and invariants that cover it, if any."""
    coverage = _coverage()
    return [_row(each, coverage) for each in requirements().values()]


def requirement(id: str) -> dict[str, Any]:
    """Errors: LookupError with similar ids."""
    if id not in requirements():
        near = get_close_matches(id, requirements(), n=5) or [f"{family}-..." for family in _families()]
        raise LookupError(f"unknown requirement {id!r}; similar ids: {', '.join(near)}")
    return _row(requirements()[id], _coverage())


def _families() -> list[str]:
    return list(dict.fromkeys(id.rpartition("-")[0] for id in requirements()))


def _row(found: Requirement, coverage: list[tuple[str, str, str]]) -> dict[str, Any]:
    return {
        "id": found.id,
        "kip": found.kip,
        "clause": found.clause,
        "edition": found.edition,
        "releases": found.releases,
        "role": found.role,
        "grade": found.grade.value,
        "text": found.text,
        "means": remedies()[found.id].means,
        "fix": remedies()[found.id].fix,
        "checks": list(dict.fromkeys(check for id, check, _ in coverage if id == found.id)),
        "invariants": sorted({each for id, _, each in coverage if id == found.id}),
    }


def _coverage() -> list[tuple[str, str, str]]:
    """Triples of requirement, check and invariant."""
    return [(id, check.id, each.id) for check in CHECKS.values() for each in _shown(check) for id in _covered(each)]


def _shown(check: Check[Any]) -> Iterator[Invariant]:
    by_id: Mapping[str, Invariant] = {each.id: each for each in all_invariants(check.role)}
    return (by_id[id] for id in check.invariants)


def _covered(each: Invariant) -> set[str]:
    return {*each.requirements, *(id for more in each.extra_requirements.values() for id in more)}
