"""The first line of a ledger: what was asked for, and what there is to reach."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from kipcheck.conformance.checks import CHECKS
from kipcheck.conformance.core.ledger import FORMAT
from kipcheck.conformance.core.remedy import remedies
from kipcheck.conformance.core.requirement import Requirement, requirements
from kipcheck.conformance.engine.selection import Misused, Options, Selection
from kipcheck.conformance.engine.worker import invariants_of
from kipcheck.conformance.invariants.registry import Invariant


def header(options: Options) -> dict[str, Any]:
    """Where the options ask for what there is not, there is nothing to reach."""
    try:
        held = _held(Selection.of(options))
    except Misused:
        held = {}
    return {
        "format": FORMAT,
        "kipcheck": metadata.version("kipcheck"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "begun": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "options": {**asdict(options), "out": str(options.out)},
        "part": options.part,
        "checks": {each.id: each.sentence for each in CHECKS.values()},
        "invariants": held,
        "requirements": _requirements(held) if held else {},
    }


def _held(selection: Selection) -> dict[str, dict[str, Any]]:
    """Each invariant that a selected check holds its cases to, with what it covers, and covers besides by subject."""
    found: dict[str, dict[str, Any]] = {}
    for check in selection.checks:
        names = {(each.edition, each.name) for each in check.family.subjects(str(selection.edition))}
        for each in invariants_of(check):
            about = found.setdefault(each.id, _about(each))
            if each.role is not None or each.id in check.invariants:
                about["checks"].append(check.id)
            for edition, name in sorted(names):
                if more := [id for id in each.covers(edition, name) if id not in each.requirements]:
                    about["besides"][name] = more
    return found


def _about(invariant: Invariant) -> dict[str, Any]:
    return {
        "sentence": invariant.statement,
        "grade": invariant.grade.value,
        "checks": [],
        "requirements": list(invariant.requirements),
        "besides": {},
    }


def _requirements(held: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """All there are, in full where this run can break them."""
    within = {id for each in held.values() for ids in (each["requirements"], *each["besides"].values()) for id in ids}
    return {each.id: _requirement(each, each.id in within) for each in requirements().values()}


def _requirement(each: Requirement, in_full: bool) -> dict[str, Any]:
    brief = {"clause": each.clause, "grade": each.grade.value, "role": each.role, "edition": each.edition}
    if not in_full:
        return brief
    remedy = remedies().get(each.id)
    help_with = {"means": remedy.means, "fix": remedy.fix} if remedy is not None else {}
    return {**brief, "releases": each.releases, "text": each.text, **help_with}
