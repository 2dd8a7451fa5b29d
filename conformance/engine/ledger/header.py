"""The header of a ledger: the options, and the checks, invariants and requirements that they select."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata

from kipcheck.conformance.core.files.remedies import remedies
from kipcheck.conformance.core.ledger import (
    FAILURE_FORMAT,
    FORMAT,
    AboutInvariant,
    AboutRequirement,
    Header,
    RunOptions,
)
from kipcheck.conformance.core.values.requirement import Requirement, requirements
from kipcheck.conformance.engine.execution.selection import InvalidOptions, Options, Selection
from kipcheck.conformance.engine.execution.worker import invariants_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import Invariant


def header(options: Options) -> Header:
    """Without invariants and requirements if the options select nothing."""
    editions: dict[str, dict[str, tuple[str, ...]]] = {}
    try:
        selection = Selection.of(options)
        selected, editions = _selected(selection), _editions(selection)
    except InvalidOptions:
        selected = {}
    made = Header(
        format=FORMAT,
        kipcheck=metadata.version("kipcheck"),
        python=".".join(map(str, sys.version_info[:3])),
        begun=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        options=RunOptions.of({**asdict(options), "out": str(options.out)}),
        part=options.part,
        checks={each.id: each.sentence for each in CHECKS.values()},
        invariants=selected,
        requirements=_requirements(selected) if selected else {},
        failure_format=FAILURE_FORMAT,
    )
    return made.update(editions=editions) if editions else made


def _editions(selection: Selection) -> dict[str, dict[str, tuple[str, ...]]]:
    """The editions of subjects that are not only in that of the run: drafts that a run of releases plays too."""
    usual = str(selection.edition)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for check in selection.checks:
        by_name: dict[str, dict[str, None]] = {}
        for each in check.family.subjects(usual):
            if check.about(each):
                by_name.setdefault(each.name, {})[each.edition] = None
        if others := {name: tuple(each) for name, each in by_name.items() if list(each) != [usual]}:
            found[check.id] = others
    return found


@dataclass(slots=True)
class _Use:
    """How the selected checks use an invariant."""

    invariant: Invariant
    checks: list[str] = field(default_factory=list)
    besides: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Subject -> requirements that it covers there, and not elsewhere."""

    @property
    def about(self) -> AboutInvariant:
        return AboutInvariant(
            sentence=self.invariant.statement, grade=self.invariant.grade.value, checks=tuple(self.checks),
            requirements=tuple(self.invariant.requirements), besides=self.besides,
        )  # fmt: skip


def _selected(selection: Selection) -> dict[str, AboutInvariant]:
    """Each invariant that a selected check applies to its cases, by id."""
    found: dict[str, _Use] = {}
    for check in selection.checks:
        names = {(each.edition, each.name) for each in check.family.subjects(str(selection.edition))}
        for each in invariants_of(check):
            use = found.setdefault(each.id, _Use(each))
            if each.role is not None or each.id in check.invariants:
                use.checks.append(check.id)
            for edition, name in sorted(names):
                if more := [id for id in each.covers(edition, name) if id not in each.requirements]:
                    use.besides[name] = tuple(more)
    return {id: each.about for id, each in found.items()}


def _requirements(selected: Mapping[str, AboutInvariant]) -> dict[str, AboutRequirement]:
    """All requirements, by id; with their texts those that this run can find broken."""
    within = {id for each in selected.values() for ids in (each.requirements, *each.besides.values()) for id in ids}
    return {each.id: _requirement(each, each.id in within) for each in requirements().values()}


def _requirement(each: Requirement, in_full: bool) -> AboutRequirement:
    brief = AboutRequirement(clause=each.clause, grade=each.grade.value, role=each.role, edition=each.edition)
    if each.parts:
        brief = brief.update(parts=tuple(part.invariants for part in each.parts))
    if not in_full:
        return brief
    full = brief.update(releases=each.releases, text=each.text)
    remedy = remedies().get(each.id)
    return full if remedy is None else full.update(means=remedy.means, fix=remedy.fix)
