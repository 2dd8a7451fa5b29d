"""The options of a run, and the units of work that they select."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kipcheck.conformance.core.values.edition import EDITIONS, Edition, Standing, edition
from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.core.values.part import Part
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.engine.execution import scripts
from kipcheck.conformance.engine.execution.worker import Unit, samples_of
from kipcheck.conformance.protocols.checks import CHECKS, FAMILIES, Check
from kipcheck.conformance.protocols.declare.check import Sample, Subject, no_exchanges
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import Claims, TargetInfo

WORKERS = min(2, os.cpu_count() or 1)
"""The default number of processes; the verdicts do not depend on it."""


NOTHING_SELECTED = (
    "nothing is selected: no target plays a role of the selected checks and claims one of their subjects; "
    "kipcheck targets shows the roles"
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run."""

    targets: tuple[str, ...] = ("kafka-python",)
    edition: str = "apache"
    checks: tuple[str, ...] = ("*",)
    """Globs over the ids of checks."""
    messages: tuple[str, ...] = ("*",)
    """Globs over the names of subjects: messages, assignors, machines."""
    seed: int = 0
    cases: int | None = None
    """Values drawn for every check and subject; None: each check's own number. Of scripts: how often each is played."""
    workers: int = WORKERS
    out: Path = Path("kipcheck-out")
    dry_run: bool = False
    names: tuple[str, ...] = ()
    """Names of the targets that are commands (``cmd:``), in their order, instead of those in their hello."""
    known: tuple[str, ...] = ()
    """Files of known deviations; ``default`` for those shipped with kipcheck."""
    profiles: tuple[str, ...] = ()
    """Profiles that targets must meet: files, or names of shipped profiles."""
    budget: float | None = None
    """Seconds after which no further work starts; the rest is undecided."""
    part: Part | None = None
    """The part of the run that is executed; None: all of it."""
    require: tuple[str, ...] = ()
    """Globs over the ids of checks: each check that one matches must judge a case, else the run is inconclusive."""
    events: str | None = None
    """Where the lines of the ledger, except verdicts, also go at once: a file, or - for standard output."""
    least: float | None = None
    """The seconds of each search for a least case; 0: there is none. None: ``live_search.LIMIT_S`` where cases take
    real time, else no limit."""
    until_failure: bool = False
    """Whether no work is begun after the first failure that no list of known deviations has."""
    scripts: tuple[str, ...] = ()
    """In shorthand: the cases that are played, in place of those that are drawn."""
    trace: str = ""
    """The conversations whose exchanges are reported: ``failed``, ``all``, or none."""

    def takes(self, subject: str) -> bool:
        """Whether the subject belongs to this part of the run."""
        return self.part is None or self.part.includes(subject)


class InvalidOptions(Exception):
    """The options select something unknown; the message names the valid values."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The options, resolved."""

    options: Options
    edition: Edition
    checks: tuple[Check[Any], ...]

    @classmethod
    def of(cls, options: Options) -> "Selection":
        """Errors: ``InvalidOptions``."""
        try:
            found = edition(options.edition)
            for family in FAMILIES:
                next(iter(family.subjects(options.edition)), None)
        except LookupError as unknown:
            raise InvalidOptions(str(unknown)) from None
        for option, globs in (("--check", options.checks), ("--require", options.require)):
            for glob in globs:
                if not any(fnmatchcase(id, glob) for id in CHECKS):
                    near = hint(glob, CHECKS) or f"; kipcheck checks lists all {len(CHECKS)}"
                    raise InvalidOptions(f"{option}: no check matches {glob!r}{near}")
        checks = tuple(each for id, each in CHECKS.items() if any(fnmatchcase(id, glob) for glob in options.checks))
        if not checks:
            raise InvalidOptions("no check is selected")
        if found.standing is Standing.DRAFT:
            _require_text(found, checks)
        if not options.targets:
            raise InvalidOptions("no target is selected")
        _require_subjects(options, checks)
        return cls(options, found, checks)

    def units(self, name: str, info: TargetInfo, check: Check[Any]) -> Iterator[Unit]:
        """One unit for each subject that the edition has and the target claims."""
        for subject in subjects(check, str(self.edition), info):
            if not self._wanted(subject):
                continue
            given = tuple(each for each in self.options.scripts if scripts.suits(check, subject, each))
            if given or not self.options.scripts:
                yield Unit(
                    name, subject.edition, check.id, subject.name, subject.version, self.options.seed,
                    self.options.cases if given else check.number(self.options.cases), len(self.options.targets) > 1,
                    given, self._traced(check), frozenset(info.claims.limits),
                )  # fmt: skip

    def _traced(self, check: Check[Any]) -> str:
        """Conversations have exchanges that are worth a report, and values have none."""
        return self.options.trace if check.family.exchanges is not no_exchanges else ""

    def require_scripts(self, info: TargetInfo) -> None:
        """Errors: ``InvalidOptions`` for a script that no machine plays which the target claims."""
        asked = [
            (check, subject) for check in self.checks if check.role in info.roles
            for subject in subjects(check, str(self.edition), info) if self._wanted(subject)
        ]  # fmt: skip
        for text in self.options.scripts:
            if not any(scripts.suits(*each, text) for each in asked):
                raise InvalidOptions(scripts.why_unsuited(info.name, asked, text))

    def has_case(self, name: str, info: TargetInfo, check: Check[Any]) -> bool:
        """Whether there is a case of the check for the target; draws them only if it does not claim all operations."""
        units = self.units(name, info, check)
        return any(not info.claims.operations or any(_samples(check, unit, info.claims)) for unit in units)

    @property
    def named(self) -> tuple[str, ...]:
        """The checks that are named in full, not by a glob."""
        return tuple(each.id for each in self.checks if each.id in self.options.checks)

    def in_edition(self, check: Check[Any]) -> bool:
        """Whether the edition has a selected subject for the check."""
        return any(check.about(each) and self._wanted(each) for each in check.family.subjects(str(self.edition)))

    def elsewhere(self, check: Check[Any]) -> str:
        """For the end of an error message: the named editions that have a selected subject for the check."""
        named = [each for each in EDITIONS if any(check.about(one) for one in check.family.subjects(each))]
        return f"; --edition {' or '.join(named)} has" if named and str(self.edition) not in named else ""

    def _wanted(self, subject: Subject) -> bool:
        return any(fnmatchcase(subject.name, glob) for glob in self.options.messages)

    def plan(self, name: str, info: TargetInfo) -> Iterator[Mapping[str, Any]]:
        """What a run would execute with the target: a row for each check and message, assignor or machine."""
        for check in self.checks:
            by_name: dict[str, list[Unit]] = {}
            for unit in self.units(name, info, check) if check.role in info.roles else ():
                by_name.setdefault(unit.subject, []).append(unit)
            for subject, units in by_name.items():
                if not self.options.takes(subject):
                    continue
                row = self._row(info, name, check, subject, units)
                if row["cases"]:
                    yield row

    def _row(
        self, info: TargetInfo, name: str, check: Check[Any], subject: str, units: list[Unit]
    ) -> Mapping[str, Any]:
        by_id = {each.id: each for each in all_invariants(check.role)}
        shown = [by_id[id] for id in check.invariants]
        stated = requirements()
        editions = {unit.edition for unit in units}
        named = dict.fromkeys(id for each in shown for edition in editions for id in each.covers(edition, subject))
        covered = [id for id in named if any(stated[id].applies(each) for each in sorted(editions))]
        return {
            "target": name,
            "check": check.id,
            "grade": "/".join(dict.fromkeys(each.grade.value for each in shown)),
            "requirements": covered,
            "subject": subject,
            "versions": [unit.version for unit in units if unit.version is not None],
            "cases": sum(sum(1 for _ in _samples(check, unit, info.claims)) for unit in units),
        }


def _require_text(draft: Edition, checks: Sequence[Check[Any]]) -> None:
    """Errors: ``InvalidOptions`` if no check covers a requirement of the draft's own text."""
    text = f"{draft.name.removeprefix('kip-')}-"
    own = {each.id for each in requirements().values() if each.id.startswith(text) and each.edition != "shipped"}

    def covers(check: Check[Any]) -> bool:
        names = {(each.edition, each.name) for each in check.family.subjects(str(draft)) if check.about(each)}
        invariants = [each for each in all_invariants(check.role) if each.id in check.invariants]
        return any(own.intersection(each.covers(*name)) for each in invariants for name in names)

    if not any(map(covers, checks)):
        having = [id for id, each in CHECKS.items() if covers(each)]
        others = f"those that do: {', '.join(having)}" if having else "no check of kipcheck does"
        raise InvalidOptions(
            f"edition {draft} has nothing for the selected checks: none covers a requirement of {draft.name.upper()}; "
            f"{others}"
        )


def _require_subjects(options: Options, checks: Iterable[Check[Any]]) -> None:
    """Errors: ``InvalidOptions`` for a glob that matches no subject of the checks, whatever a target claims."""
    globs = [glob for glob in options.messages if glob != "*"]
    if not globs:
        return
    families = {id(check.family): check.family for check in checks}.values()
    names = sorted({subject.name for family in families for subject in family.subjects(options.edition)})
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in names):
            near = hint(glob, names) or f"; they have {len(names)}, for example {', '.join(names[:3])}"
            raise InvalidOptions(
                f"--message {glob!r} matches no message, assignor or machine of the selected checks{near}"
            )


def subjects(check: Check[Any], edition: str, info: TargetInfo) -> Iterator[Any]:
    """The subjects of the check that the target claims."""
    for subject in check.family.subjects(edition):
        if check.family.claimed(subject, info.claims) and check.about(subject):
            yield subject


def _samples(check: Check[Any], unit: Unit, claims: Claims) -> Iterator[Sample]:
    subject = check.family.subject(unit.edition, unit.subject, unit.version)
    samples = samples_of(unit) if unit.scripts else check.samples(subject, unit.seed, unit.values, unit.limits)
    return (each for each in samples if claims.supports(each.case))
