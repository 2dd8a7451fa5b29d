"""What all forms of a report say, gathered once from the ledger: tables, failures in order, coverage, the last word."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from kipcheck.conformance.core.ledger import Ledger, Line, Place, spans
from kipcheck.reports.phrases import some

RESULTS = ("PASS", "FAIL", "WARN", "NOTE", "UNKNOWN", "SKIP")
SEVERITY = ("FAIL", "UNKNOWN", "WARN", "NOTE", "PASS", "SKIP")
"""What a cell with several results is called: the first of them that it has."""
KNOWN = "KNOWN"
"""What FAIL and WARN are called where every failure behind them is a known deviation."""
FLAKY = "FLAKY"
"""What they are called where none is behind them, in a whole run: alone, the cases do not fail every time."""
GRADES: Mapping[str, int] = {"MUST": 0, "SHOULD": 1, "INFO": 2}
WORDS: Mapping[str, str] = {"MUST": "FAIL", "SHOULD": "WARN", "INFO": "NOTE"}
"""What a breach is called, by the grade of what it breaks."""
Versions: TypeAlias = set[int]


@dataclass(slots=True)
class Cell:
    """What came of the cases of a check with a target, in all or on one subject."""

    counts: Counter[str] = field(default_factory=Counter)
    versions: dict[str, Versions] = field(default_factory=dict)
    """Result -> the versions in which it was seen; empty for what has no versions."""
    called: str = ""
    """KNOWN or FLAKY, where what fails here is that."""

    def add(self, version: int | None, counts: Mapping[str, int]) -> None:
        self.counts.update(counts)
        if version is not None:
            for result in counts:
                self.versions.setdefault(result, set()).add(version)

    @property
    def worst(self) -> str:
        return next((each for each in SEVERITY if self.counts[each]), "SKIP")

    @property
    def word(self) -> str:
        """The worst that came of it; what is expected is less than what is not known."""
        worst = self.worst
        if self.called and worst in ("FAIL", "WARN"):
            return "UNKNOWN" if self.counts["UNKNOWN"] else self.called
        return worst

    @property
    def cases(self) -> int:
        return self.counts.total()

    @property
    def where(self) -> str:
        """The versions behind ``word``."""
        return spans(self.versions.get(self.worst, ()))


@dataclass(frozen=True, slots=True)
class Reached:
    """A requirement, and how far this run went into it."""

    id: str
    about: Line
    """Clause, grade, role, text: as the header has it."""
    checks: tuple[str, ...]
    """Those of this run that can break it."""
    by: Mapping[str, Mapping[str, Cell]]
    """Target -> subject -> cases."""

    @property
    def cases(self) -> int:
        return sum(cell.cases for subjects in self.by.values() for cell in subjects.values())

    def cell(self, target: str) -> Cell:
        """All subjects in one."""
        whole = Cell()
        for each in self.by.get(target, {}).values():
            whole.counts.update(each.counts)
        return whole

    @property
    def units(self) -> int:
        """Subjects and versions reached by any target, each counted once."""
        found: dict[str, Versions] = {}
        for subjects in self.by.values():
            for name, cell in subjects.items():
                found.setdefault(name, set()).update(*cell.versions.values())
        return sum(len(versions) or 1 for versions in found.values())


@dataclass(frozen=True)
class Summary:
    """Computed when it is first asked for, and then kept: every form asks for the same."""

    ledger: Ledger

    @property
    def header(self) -> Line:
        return self.ledger.header

    @property
    def options(self) -> Line:
        return dict(self.header.get("options", {}))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """In the order of the run; those that did not start too."""
        started = [each["target"] for each in self.ledger.targets]
        besides = (*self.ledger.skips, *self.ledger.troubles)
        others = [each["target"] for each in besides if each.get("target", "*") != "*"]
        return tuple(dict.fromkeys([*started, *(place.target for place in self.ledger.cases), *others]))

    @cached_property
    def versions(self) -> Mapping[str, str]:
        return {each["target"]: each["version"] for each in self.ledger.targets}

    def called(self, target: str) -> str:
        """With its version, where it told one that its name does not tell."""
        version = self.versions.get(target) or ""
        return target if not version or target.endswith(version) else f"{target} {version}"

    @cached_property
    def failures(self) -> tuple[Line, ...]:
        """What decides comes first: unexpected before known, MUST before SHOULD before INFO; within that as found."""
        return tuple(sorted(self.ledger.failures, key=lambda each: (bool(each.get("known")), GRADES[each["grade"]])))

    @cached_property
    def cells(self) -> Mapping[str, Mapping[str, Mapping[str, Cell]]]:
        """Check -> subject -> target -> what came of it."""
        found: dict[str, dict[str, dict[str, Cell]]] = {id: {} for id in self.header.get("checks", {})}
        for place, counts in self.ledger.cases.items():
            by = found.setdefault(place.check, {}).setdefault(place.subject, {})
            by.setdefault(place.target, Cell()).add(place.version, counts)
        for check, subjects in found.items():
            for subject, by in subjects.items():
                for target, cell in by.items():
                    cell.called = self._called(target, check, subject)
        return {check: subjects for check, subjects in found.items() if subjects}

    @cached_property
    def table(self) -> Mapping[str, Mapping[str, Cell]]:
        """Check -> target -> what came of it."""
        found: dict[str, dict[str, Cell]] = {}
        for check, subjects in self.cells.items():
            for by in subjects.values():
                for target, cell in by.items():
                    found.setdefault(check, {}).setdefault(target, Cell()).counts.update(cell.counts)
            for target, cell in found[check].items():
                cell.called = self._called(target, check)
        return found

    @cached_property
    def _breaches(self) -> Mapping[tuple[str, str], list[Line]]:
        found: dict[tuple[str, str], list[Line]] = {}
        for each in self.ledger.failures:
            if each["grade"] != "INFO":
                for check in each["checks"]:
                    found.setdefault((each["target"], check), []).append(each)
        return found

    def breaches(self, target: str, check: str, subject: str | None = None) -> list[Line]:
        """The failures, of more than INFO, that were seen there."""
        there = self._breaches.get((target, check), [])
        return [each for each in there if subject is None or subject in each["where"]]

    def _called(self, target: str, check: str, subject: str | None = None) -> str:
        there = self.breaches(target, check, subject)
        if not there:
            return FLAKY if self.complete else ""
        return KNOWN if all(each.get("known") for each in there) else ""

    @property
    def stale(self) -> Sequence[Line]:
        """Entries of known deviations that do not say what is, any more."""
        return self.ledger.lines.get("stale", ())

    @property
    def flaky(self) -> Sequence[Line]:
        """What failed, and did not, or not always, when it was run alone."""
        return self.ledger.flaky

    @property
    def elsewhere(self) -> Iterable[Line]:
        """Failures that no case shows: what a profile asks for and is not there."""
        return (each for each in self.failures if not any(check in self.table for check in each["checks"]))

    @cached_property
    def unexplained(self) -> Mapping[tuple[str, str], int]:
        """(target, check) -> failed cases of which no failure tells: the run ended before it looked into them."""
        return (
            {}
            if self.complete
            else {
                (target, check): cell.counts["FAIL"] + cell.counts["WARN"]
                for check, by in self.table.items()
                for target, cell in by.items()
                if cell.counts["FAIL"] + cell.counts["WARN"] and not self.breaches(target, check)
            }
        )

    @property
    def open_ends(self) -> Sequence[tuple[str, str, str]]:
        """Target, check, and what is not known of it: what was not reached, and what failed and was not looked into."""
        late = [
            (target, check, f"{some(units, 'unit')} of work undecided: {why}")
            for (target, check, why), units in self.ledger.unreached.items()
        ]
        begun = () if self.complete else self.options.get("targets", ())
        late += [(each, "all checks", "not begun") for each in begun if each not in self.targets]
        return late + [
            (target, check, f"{some(cases, 'case')} failed and were not looked into before the run ended")
            for (target, check), cases in self.unexplained.items()
        ]

    # ---- coverage

    @cached_property
    def coverage(self) -> tuple[Reached, ...]:
        """Every requirement, in the order of the header."""
        by: dict[str, dict[str, dict[str, Cell]]] = {}
        for (place, invariant), counts in self.ledger.held.items():
            for id in self._covered(invariant, place):
                subjects = by.setdefault(id, {}).setdefault(place.target, {})
                subjects.setdefault(place.subject, Cell()).add(place.version, counts)
        checks = self._checks_by_requirement
        return tuple(
            Reached(id, about, checks.get(id, ()), by.get(id, {}))
            for id, about in self.header.get("requirements", {}).items()
        )

    def _covered(self, invariant: str, place: Place) -> Iterable[str]:
        about = self.header.get("invariants", {}).get(invariant)
        if about is None:
            return ()
        return (*about["requirements"], *about.get("besides", {}).get(place.subject, ()))

    @cached_property
    def _checks_by_requirement(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for about in self.header.get("invariants", {}).values():
            ids = {*about["requirements"], *(id for more in about.get("besides", {}).values() for id in more)}
            for id in ids:
                found.setdefault(id, {}).update(dict.fromkeys(about["checks"]))
        return {id: tuple(checks) for id, checks in found.items()}

    @property
    def reached(self) -> tuple[Reached, ...]:
        return tuple(each for each in self.coverage if each.cases)

    @property
    def coverage_line(self) -> str:
        """Empty where the ledger does not say what there is to cover."""
        if not self.coverage:
            return ""
        units = {(place.subject, place.version) for place in self.ledger.cases}
        return (
            f"{len(self.reached)} of {len(self.coverage)} requirements reached, "
            f"on {some(len(units), 'version')} of {some(len({name for name, _ in units}), 'subject')}"
        )

    # ---- the last word

    @property
    def complete(self) -> bool:
        return self.ledger.complete

    @property
    def exit(self) -> int | None:
        """None: the run was cut off before it had one."""
        return None if self.ledger.footer is None else int(self.ledger.footer["exit"])

    @property
    def meaning(self) -> str:
        return "" if self.ledger.footer is None else str(self.ledger.footer["meaning"])

    @property
    def seconds(self) -> float:
        return 0.0 if self.ledger.footer is None else float(self.ledger.footer["seconds"])

    @property
    def state(self) -> str:
        """``complete``, or INCOMPLETE and why."""
        if self.ledger.footer is None:
            what = "the campaign goes on, or was cut off" if self.ledger.campaigns else "the run was cut off"
            return f"INCOMPLETE: the ledger ends before its footer; {what}"
        return "complete" if self.complete else f"INCOMPLETE ({self.ledger.footer['stopped_by']})"

    @property
    def counted(self) -> str:
        """``2 distinct failures, 1 warning, 3 known deviations``"""
        new = [each for each in self.failures if not each.get("known")]
        must = sum(each["grade"] == "MUST" for each in new)
        should = sum(each["grade"] == "SHOULD" for each in new)
        known = len(self.failures) - len(new)
        told = [some(must, "distinct failure"), some(should, "warning")]
        told += [some(known, "known deviation")] if known else []
        left = sum(self.unexplained.values())
        told += [f"{some(left, 'failed case')} not looked into"] if left else []
        stale = len(self.stale)
        return ", ".join([*told, *([f"{stale} stale {'entry' if stale == 1 else 'entries'}"] if stale else [])])

    @property
    def verdict(self) -> str:
        """The last line of a report, without the place of the ledger."""
        if self.ledger.footer is None:
            return f"{self.state}: {self.counted}"
        return f"{self.state}: {self.counted}; exit {self.exit}, {self.meaning}"


def summary(ledger: Ledger) -> Summary:
    return Summary(ledger)


def ways_to_differ(rows: Sequence[Line]) -> list[tuple[str, tuple[str, ...], list[Line]]]:
    """Check, cells by target and rows: what fails somebody and not others is first, then what is seen most often."""
    targets = list(dict.fromkeys(name for row in rows for name in row["cells"]))
    alike: dict[tuple[str, tuple[str, ...]], list[Line]] = {}
    for each in rows:
        alike.setdefault((each["check"], tuple(each["cells"].get(name, "SKIP") for name in targets)), []).append(each)
    found = [(check, cells, members) for (check, cells), members in alike.items()]
    return sorted(found, key=lambda way: (all_pass(way[2][0]), -sum(int(row["cases"]) for row in way[2])))


def all_pass(row: Line) -> bool:
    return all(cell.startswith(("PASS", "SKIP")) for cell in row["cells"].values())
