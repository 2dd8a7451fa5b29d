"""Tables of checks and requirements with their coverage, computed from the checks and invariants."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from kipcheck.conformance.core.files.remedies import remedies
from kipcheck.conformance.core.files.tags import Tags
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import EDITIONS
from kipcheck.conformance.core.values.nearest import nearest
from kipcheck.conformance.core.values.requirement import DRAFT, RELEASED, SIDES, Requirement, requirements, side
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants, tags_vocabulary


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
                    "tags": _tags(tags_vocabulary().invariants.get(each.id)),
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


def of_every_check() -> frozenset[str]:
    """The ids of the invariants that are judged in the cases of every check."""
    return frozenset(each.id for role in Role for each in all_invariants(role) if each.role is None)


def requirements_table() -> list[dict[str, Any]]:
    """Every normative statement with the checks and invariants that cover it, if any."""
    return [_row(each) for each in requirements().values()]


def requirement(id: str) -> dict[str, Any]:
    """Errors: LookupError with similar ids."""
    if id not in requirements():
        near = nearest(id, requirements(), most=5) or [f"{family}-..." for family in _families()]
        raise LookupError(f"unknown requirement {id!r}; similar ids: {', '.join(near)}")
    return _row(requirements()[id])


def _families() -> list[str]:
    return list(dict.fromkeys(id.rpartition("-")[0] for id in requirements()))


def _row(found: Requirement) -> dict[str, Any]:
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
        "parts": [{"text": part.text, "invariants": list(part.invariants)} for part in found.parts],
        "tests": list(found.tests),
        "covered": {by: parts_covered(found, by) for by in SIDES[found.edition]},
        "checks": list(dict.fromkeys(check for id, check, _, _ in coverage() if id == found.id)),
        "invariants": sorted({each for id, _, each, _ in coverage() if id == found.id}),
        "does": found.does and found.does.plain,
        "never": found.never and found.never.plain,
    }


@cache
def coverage() -> tuple[tuple[str, str, str, str], ...]:
    """Requirement, check, invariant, and an edition with the requirement that the check judges."""
    return tuple(
        (id, check.id, each.id, where)
        for check in CHECKS.values()
        for each in _shown(check)
        for id in _covered(each)
        for where in sorted(_judged(check.id))
        if id in requirements() and requirements()[id].applies(where)
    )


@cache
def _judged(check_id: str) -> frozenset[str]:
    """The editions that the check judges in some run."""
    check = CHECKS[check_id]
    return frozenset(
        subject.edition for name in EDITIONS for subject in check.family.subjects(name) if check.about(subject)
    )


def parts_covered(found: Requirement, by: str) -> int:
    """Of the parts of its sentence, or of one if it has none, those that a check can find broken: of drafts, or of
    released Kafka (``by``).
    """
    judged = {each for id, _, each, where in coverage() if id == found.id and side(where) == by}
    if not found.parts:
        return int(bool(judged))
    return sum(bool(judged.intersection(part.invariants)) for part in found.parts)


def totals() -> Iterator[tuple[str, int, int]]:
    """For released Kafka and for drafts: how many parts of their requirements are covered, of how many."""
    for by in (RELEASED, DRAFT):
        stated = [each for each in requirements().values() if by in SIDES[each.edition]]
        yield by, sum(parts_covered(each, by) for each in stated), sum(len(each.parts) or 1 for each in stated)


def _shown(check: Check[Any]) -> Iterator[Invariant]:
    """Those that the check names, in its order, and those that are judged in the cases of every check."""
    by_id: Mapping[str, Invariant] = {each.id: each for each in all_invariants(check.role)}
    yield from (by_id[id] for id in check.invariants)
    yield from (each for id, each in by_id.items() if each.role is None and id not in check.invariants)


def _covered(each: Invariant) -> set[str]:
    return {*each.all_requirements}
