"""What a run is asked for, and which units of work that makes."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from conformance.checks import CHECKS, Check, Subject
from conformance.core.edition import Edition, edition
from conformance.core.requirement import requirements
from conformance.invariants.registry import all_invariants
from conformance.targets.protocol import TargetInfo
from conformance.wire.schema import messages, spec
from conformance.work import Unit

WORKERS = min(2, os.cpu_count() or 1)
"""Processes, where none are asked for: the verdicts are the same whatever their number."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to run."""

    targets: tuple[str, ...] = ("kafka-python",)
    edition: str = "apache"
    checks: tuple[str, ...] = ("*",)
    """Globs over the ids of checks."""
    messages: tuple[str, ...] = ("*",)
    """Globs over the names of messages."""
    seed: int = 0
    cases: int | None = None
    """Values drawn for every check and every version of every message; None for each check's own number."""
    workers: int = WORKERS
    out: Path = Path("kipcheck-out")
    dry_run: bool = False
    budget: float | None = None
    """Seconds after which no further work is begun; what was not reached is undecided."""


class Misused(Exception):
    """The options ask for what there is not. Says what there is."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The options, understood."""

    options: Options
    edition: Edition
    checks: tuple[Check, ...]

    @classmethod
    def of(cls, options: Options) -> "Selection":
        """Errors: ``Misused``."""
        try:
            found = edition(options.edition)
            messages(found)
        except LookupError as unknown:
            raise Misused(str(unknown)) from None
        for glob in options.checks:
            if not any(fnmatchcase(id, glob) for id in CHECKS):
                raise Misused(f"no check is called {glob!r}; there are {', '.join(CHECKS)}")
        checks = tuple(each for id, each in CHECKS.items() if any(fnmatchcase(id, glob) for glob in options.checks))
        if not checks:
            raise Misused("no check is selected")
        if not options.targets:
            raise Misused("no target is selected")
        return cls(options, found, checks)

    def units(self, name: str, info: TargetInfo, check: Check) -> Iterator[Unit]:
        """One for each version of each message that the target claims and the edition has."""
        for message in messages(self.edition):
            if message not in info.claims or not any(fnmatchcase(message, glob) for glob in self.options.messages):
                continue
            low, high = info.claims[message]
            for layout in spec(self.edition, message):
                if low <= layout.version <= high and check.versions(layout):
                    yield Unit(
                        name, str(self.edition), check.id, message, layout.version, self.options.seed,
                        check.number(self.options.cases), compared=len(self.options.targets) > 1,
                    )  # fmt: skip

    def plan(self, name: str, info: TargetInfo) -> Iterator[Mapping[str, Any]]:
        """What a run would hold with the target, one row for each check and message."""
        for check in self.checks:
            by_message: dict[str, list[Unit]] = {}
            for unit in self.units(name, info, check):
                by_message.setdefault(unit.message, []).append(unit)
            for message, units in by_message.items():
                row = self._row(name, check, message, units)
                if row["cases"]:
                    yield row

    def _row(self, name: str, check: Check, message: str, units: list[Unit]) -> Mapping[str, Any]:
        by_id = {each.id: each for each in all_invariants(check.role)}
        shown = [by_id[id] for id in check.invariants]
        wanted = dict.fromkeys(id for each in shown for id in each.covers(str(self.edition), message))
        assert wanted.keys() <= requirements().keys()
        versions = [unit.version for unit in units]
        subjects = [Subject(str(self.edition), spec(self.edition, message).at(version)) for version in versions]
        return {
            "target": name,
            "check": check.id,
            "grade": "/".join(dict.fromkeys(each.grade.value for each in shown)),
            "requirements": list(wanted),
            "message": message,
            "versions": versions,
            "cases": sum(
                sum(1 for _ in check.samples(subject, unit.seed, unit.values))
                for subject, unit in zip(subjects, units, strict=True)
            ),
        }
