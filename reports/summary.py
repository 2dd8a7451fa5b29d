"""The content of all forms of a report: tables, failures in order, coverage, and the outcome in one line."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from kipcheck.conformance.core import ledger as records
from kipcheck.conformance.core.values.failure_group import severity
from kipcheck.conformance.core.values.impacts import severity_rank
from kipcheck.conformance.core.values.requirement import DRAFT, RELEASED, applies, side
from kipcheck.conformance.core.values.target_title import titled
from kipcheck.reports import cell_table
from kipcheck.reports.coverage import Editions, is_judged, is_own, judged_cases, parts_reached, unjudged
from kipcheck.reports.phrases import some
from kipcheck.reports.totals import Totals, by_kind, by_result, held_back

EVERY = "*"
"""All targets or checks, in lines of the ledger."""
KNOWN = "KNOWN"
"""All violations of a MUST or a SHOULD in the case are known deviations: it fails as expected."""
RESULTS = ("PASS", "FAIL", "WARN", "NOTE", KNOWN, "UNKNOWN", "SKIP")
SEVERITY = ("FAIL", "UNKNOWN", "WARN", KNOWN, "NOTE", "PASS", "SKIP")
"""The result of a cell is the first of these that one of its cases has."""
FLAKY = "FLAKY"
"""Replaces them if they have no failure in a complete run: alone, the cases do not fail every time."""
OUTCOMES = ("FAIL", "UNKNOWN", "WARN", KNOWN, FLAKY, "NOTE", "PASS", "SKIP")
"""What a cell is called, the worst first."""
WORDS: Mapping[str, str] = {"MUST": "FAIL", "SHOULD": "WARN", "INFO": "NOTE"}
"""The result of a case, by the grade of the invariant that it breaks."""
PLACE: Mapping[str, int] = {"FAIL": 0, "WARN": 0, KNOWN: 1, "NOTE": 2}
"""What is to be decided comes before what is known, and before what decides nothing."""
Versions: TypeAlias = set[int]
_Within: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(slots=True)
class Cell:
    """The results of the cases of a check with a target, in all or on one subject."""

    counts: Counter[str] = field(default_factory=Counter)
    versions: dict[str, Versions] = field(default_factory=dict)
    """Result -> the versions with that result; empty for subjects without versions."""
    called: str = ""
    """KNOWN or FLAKY, if its failures are."""

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
        """The worst result; known and flaky failures count less than UNKNOWN."""
        worst = self.worst
        if self.called and worst in ("FAIL", "WARN"):
            return "UNKNOWN" if self.counts["UNKNOWN"] else self.called
        return worst

    @property
    def cases(self) -> int:
        return self.counts.total()

    @property
    def tally(self) -> str:
        """``12 of 45, 2 skipped``: the cases that did not pass, of those that were not skipped."""
        judged, wrong = self.cases - self.counts["SKIP"], broken(self.counts)
        parts = [f"{wrong:,} of {judged:,}" if wrong else f"{judged:,}"] if judged else []
        return ", ".join([*parts, *([f"{self.counts['SKIP']:,} skipped"] if self.counts["SKIP"] else [])])

    @property
    def where(self) -> str:
        """The versions with the worst result."""
        return records.spans(self.versions.get(self.worst, ()))


@dataclass(frozen=True, slots=True)
class Reached:
    """A requirement, and the cases of this run that reached it."""

    id: str
    about: records.AboutRequirement
    checks: tuple[str, ...]
    """The checks of this run that can find it broken."""
    by: Mapping[str, Mapping[str, Cell]]
    """Target -> subject -> cases."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """For released Kafka and for drafts, whichever it is stated for: the parts of its sentence that were judged."""

    @property
    def all_parts(self) -> int:
        return len(self.about.parts or ()) or 1

    @property
    def judged(self) -> bool:
        """Whether a case that reached it was neither skipped nor undecided."""
        return any(is_judged(cell.counts) for subjects in self.by.values() for cell in subjects.values())

    @property
    def real(self) -> bool:
        """Whether a target answered that is not kipcheck's own reference, mutant or drill."""
        return bool(self.asked)

    @property
    def asked(self) -> tuple[str, ...]:
        """The targets that answered, without kipcheck's own."""
        return tuple(
            target for target, subjects in self.by.items()
            if not is_own(target) and any(is_judged(cell.counts) for cell in subjects.values())
        )  # fmt: skip

    @property
    def cases(self) -> int:
        return sum(cell.cases for subjects in self.by.values() for cell in subjects.values())

    def cell(self, target: str) -> Cell:
        """The results on all subjects."""
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


@dataclass(frozen=True, slots=True)
class Component:
    """A message, an assignor or a machine of a target, with the results of all checks on it."""

    target: str
    name: str
    cells: Mapping[str, Cell]
    """By check."""

    @property
    def word(self) -> str:
        """The worst result of a check."""
        return min((each.word for each in self.cells.values()), key=OUTCOMES.index)

    @property
    def counts(self) -> Counter[str]:
        return sum((each.counts for each in self.cells.values()), Counter[str]())


@dataclass(frozen=True, slots=True)
class CauseOf:
    """A cause with its failures."""

    cause: records.Cause | None
    """None: the ledger has no cause for the failure, as that of a campaign."""
    failures: tuple[records.Failure, ...]
    """Not empty."""

    @property
    def new(self) -> tuple[records.Failure, ...]:
        """Those that are no known deviations."""
        return tuple(each for each in self.failures if not each.known)

    @property
    def kind(self) -> str:
        """KNOWN if all its failures are known deviations, else FAIL, WARN or NOTE by the gravest of the new ones."""
        return WORDS[min((each.grade for each in self.new), key=severity)] if self.new else KNOWN


def broken(counts: Mapping[str, int]) -> int:
    """The number of cases that did not pass, without skipped ones."""
    return sum(number for result, number in counts.items() if result not in ("PASS", "SKIP"))


def _by_severity(each: CauseOf) -> tuple[int, bool, int, int, int]:
    cause = each.cause
    gravest = min(severity(line.grade) for line in each.failures)
    rank, cases = (0, each.failures[0].cases) if cause is None else (severity_rank(cause.severity), cause.cases)
    return PLACE[each.kind], cause is None, rank, gravest, -cases


def _by_grade(each: records.Failure) -> tuple[bool, int, int]:
    return bool(each.known), severity(each.grade), -each.cases


@dataclass(frozen=True)
class Summary:
    """Its properties are computed on first use and kept: all forms need the same."""

    ledger: records.Ledger

    @property
    def header(self) -> records.Header:
        return self.ledger.header

    @property
    def options(self) -> records.RunOptions:
        return self.header.options

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """In the order of the run, with those that did not start."""
        started = [each.target for each in self.ledger.targets]
        others = [*(each.target for each in self.ledger.skips), *(each.target for each in self.ledger.troubles)]
        others = [each for each in others if each != "*"]
        return tuple(dict.fromkeys([*started, *(place.target for place in self.ledger.cases), *others]))

    @cached_property
    def versions(self) -> Mapping[str, str]:
        return {each.target: each.version for each in self.ledger.targets}

    def called(self, target: str) -> str:
        """As ``titled``."""
        return titled(target, self.versions.get(target))

    @cached_property
    def failures(self) -> tuple[records.Failure, ...]:
        """By cause; new ones before known ones. Within a cause MUST before SHOULD before INFO."""
        every = [failure for each in self.causes for failure in each.failures]
        return tuple(sorted(every, key=lambda each: bool(each.known)))

    @cached_property
    def causes(self) -> tuple["CauseOf", ...]:
        """The gravest first: by severity, grade and cases; after them known ones, and notes.

        Failures without a cause, each alone, follow those of their kind.
        """
        by_id = {(each.target, each.id): each for each in self.ledger.failures}
        found: list[CauseOf] = []
        for cause in self.ledger.causes:
            members = [by_id.pop((cause.target, id)) for id in cause.failures if (cause.target, id) in by_id]
            if members:
                found.append(CauseOf(cause, tuple(sorted(members, key=_by_grade))))
        found += [CauseOf(None, (each,)) for each in by_id.values()]
        return tuple(sorted(found, key=_by_severity))

    def cause_of(self, failure: records.Failure) -> records.Cause | None:
        return self._causes.get((failure.target, failure.id))

    @cached_property
    def _causes(self) -> Mapping[tuple[str, str], records.Cause]:
        return {(each.target, id): each for each in self.ledger.causes for id in each.failures}

    @cached_property
    def cells(self) -> Mapping[str, Mapping[str, Mapping[str, Cell]]]:
        """Check -> subject -> target -> results."""
        found: dict[str, dict[str, dict[str, Cell]]] = {id: {} for id in self.header.checks}
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
        """Check -> target -> results."""
        found: dict[str, dict[str, Cell]] = {}
        for check, subjects in self.cells.items():
            for by in subjects.values():
                for target, cell in by.items():
                    found.setdefault(check, {}).setdefault(target, Cell()).counts.update(cell.counts)
            for target, cell in found[check].items():
                cell.called = self._called(target, check)
        return found

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The worst outcome first, and then the most cases that did not pass."""
        found: dict[tuple[str, str], dict[str, Cell]] = {}
        for check, subjects in self.cells.items():
            for subject, by in subjects.items():
                for target, cell in by.items():
                    found.setdefault((target, subject), {})[check] = cell
        every = (Component(*place, cells) for place, cells in found.items())
        return tuple(sorted(every, key=lambda each: (OUTCOMES.index(each.word), -broken(each.counts))))

    @cached_property
    def _breaches(self) -> Mapping[tuple[str, str], list[records.Failure]]:
        found: dict[tuple[str, str], list[records.Failure]] = {}
        for each in self.failures:
            if each.grade != "INFO":
                for check in each.checks:
                    found.setdefault((each.target, check), []).append(each)
        return found

    def breaches(self, target: str, check: str, subject: str | None = None) -> list[records.Failure]:
        """The failures of grade MUST and SHOULD that were found there."""
        there = self._breaches.get((target, check), [])
        return [each for each in there if subject is None or subject in each.where]

    def _called(self, target: str, check: str, subject: str | None = None) -> str:
        there = self.breaches(target, check, subject)
        if not there:
            return FLAKY if self.examined else ""
        return KNOWN if all(each.known for each in there) else ""

    @property
    def stale(self) -> Sequence[records.Stale]:
        """Entries of lists of known deviations that are no longer true."""
        return self.ledger.stale

    @property
    def flaky(self) -> Sequence[records.Flaky]:
        """Failures that did not occur, or not every time, when their cases were run alone."""
        return self.ledger.flaky

    @property
    def elsewhere(self) -> Iterable[records.Failure]:
        """Failures without cases: requirements of a profile that are not claimed."""
        return (each for each in self.failures if not any(check in self.table for check in each.checks))

    @cached_property
    def unexplained(self) -> Mapping[tuple[str, str], int]:
        """(target, check) -> failed cases without a failure: the run ended before it examined them."""
        return (
            {}
            if self.examined
            else {
                (target, check): cell.counts["FAIL"] + cell.counts["WARN"]
                for check, by in self.table.items()
                for target, cell in by.items()
                if cell.counts["FAIL"] + cell.counts["WARN"] and not self.breaches(target, check)
            }
        )

    @property
    def open_ends(self) -> Sequence[tuple[str, str, str]]:
        """Target, check and the reason why a part of it is undecided."""
        late = [
            (target, check, f"{some(units, 'unit')} of work undecided: {why}")
            for (target, check, why), units in self.ledger.unreached.items()
        ]
        late += [
            (
                "all targets" if each.target == EVERY else each.target,
                "all checks" if each.check == EVERY else each.check,
                each.why,
            )
            for each in self.ledger.inconclusive
        ]
        late += [
            (each.target, each.check, held_back(each)) for each in self.ledger.held_back if each.result == "UNKNOWN"
        ]
        begun = () if self.examined else self.options.targets
        known = {*self.targets, *(each.command for each in self.ledger.targets)}
        late += [(each, "all checks", "not begun") for each in begun if each not in known]
        return late + [
            (target, check, f"{some(cases, 'case')} failed and were not examined before the run ended")
            for (target, check), cases in self.unexplained.items()
        ]

    # ---- coverage

    @cached_property
    def _applicable(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], _Within]:
        return {}

    @cached_property
    def coverage(self) -> tuple[Reached, ...]:
        """Every requirement, in the order of the header."""
        by: dict[str, dict[str, dict[str, Cell]]] = {}
        judged: dict[str, dict[str, set[str]]] = {}
        for (place, invariant), counts in self.ledger.held.items():
            for id, sides in self._covered(invariant, place):
                subjects = by.setdefault(id, {}).setdefault(place.target, {})
                subjects.setdefault(place.subject, Cell()).add(place.version, counts)
                if is_judged(counts):
                    for each in sides:
                        judged.setdefault(id, {}).setdefault(each, set()).add(invariant)
        checks = self._checks_by_requirement
        return tuple(
            Reached(id, about, checks.get(id, ()), by.get(id, {}), parts_reached(about, judged.get(id, {})))
            for id, about in self.header.requirements.items()
        )

    def _covered(self, invariant: str, place: records.Place) -> Iterable[tuple[str, tuple[str, ...]]]:
        """Requirements, and whether the case is one of a draft or of released Kafka."""
        about = self.header.invariants.get(invariant)
        if about is None:
            return ()
        ids = (*about.requirements, *about.besides.get(place.subject, ()))
        return self._within(ids, self._editions.of(place, invariant))

    @cached_property
    def _editions(self) -> Editions:
        return Editions.of_ledger(self.ledger)

    def _within(self, ids: tuple[str, ...], editions: tuple[str, ...]) -> _Within:
        """The requirements that are stated for one of the editions."""
        key = ids, editions
        if key not in self._applicable:
            stated = self.header.requirements
            found = {
                id: tuple(each for each in editions if applies(id, about.edition, about.releases or "", each))
                for id in ids
                if (about := stated.get(id)) is not None
            }
            self._applicable[key] = tuple(
                (id, tuple({side(each) for each in some})) for id, some in found.items() if some
            )
        return self._applicable[key]

    @cached_property
    def _checks_by_requirement(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for about in self.header.invariants.values():
            ids = {*about.requirements, *(id for more in about.besides.values() for id in more)}
            for id in ids:
                found.setdefault(id, {}).update(dict.fromkeys(about.checks))
        return {id: tuple(checks) for id, checks in found.items()}

    @property
    def reached(self) -> tuple[Reached, ...]:
        return tuple(each for each in self.coverage if each.judged)

    @property
    def coverage_lines(self) -> list[str]:
        """Of the checks that choose their cases from tables, a line for each target; of the others, requirements."""
        tabled = {(each.target, each.check) for each in self.ledger.cells}
        others = any((place.target, place.check) not in tabled for place in self.ledger.cases)
        requirements = self.coverage_line if others or not tabled else ""
        return [*map(cell_table.line, self.ledger.cells), *([requirements] if requirements else [])]

    @property
    def coverage_line(self) -> str:
        """Empty if the ledger lists no requirements."""
        if not self.coverage:
            return ""
        units = {(place.subject, place.version) for place in self.ledger.cases}
        real = sum(each.real for each in self.reached)
        parts = ", ".join(
            f"{by} {sum(each.parts[by] for each in stated)} of {sum(each.all_parts for each in stated)}"
            for by in (RELEASED, DRAFT)
            if (stated := [each for each in self.coverage if by in each.parts])
        )
        return (
            f"{len(self.reached)} of {len(self.coverage)} requirements reached ({parts} parts), "
            f"{real} by a real target, "
            f"on {some(len(units), 'version')} of {some(len({name for name, _ in units}), 'subject')}"
        )

    # ---- the outcome

    @property
    def complete(self) -> bool:
        return self.ledger.complete

    @property
    def examined(self) -> bool:
        """Whether the run came to its end and examined every failed case, even if other cases are undecided."""
        return self.ledger.footer is not None and self.ledger.footer.stopped_by is None

    @property
    def undecided(self) -> int:
        """Cases, and units of work that were not run."""
        return self.ledger.undecided

    @property
    def exit(self) -> int | None:
        """None: the run was cut off."""
        return None if self.ledger.footer is None else self.ledger.footer.exit

    @property
    def meaning(self) -> str:
        return "" if self.ledger.footer is None else self.ledger.footer.meaning

    @property
    def seconds(self) -> float:
        return 0.0 if self.ledger.footer is None else self.ledger.footer.seconds

    @property
    def state(self) -> str:
        """``complete``, or INCOMPLETE and why."""
        if self.ledger.footer is None:
            what = "the campaign is still running, or was cut off" if self.ledger.campaigns else "the run was cut off"
            return f"INCOMPLETE: the ledger ends before its footer; {what}"
        if self.complete:
            return "complete"
        why = self.ledger.footer.stopped_by or f"{some(self.undecided, 'case')} undecided"
        return f"INCOMPLETE ({why})"

    @cached_property
    def totals(self) -> Totals:
        """What all forms count."""
        decide = [each.cause for each in self.causes if each.cause is not None and each.new and each.kind != "NOTE"]
        severities = Counter(each.severity for each in decide)
        return Totals(
            causes=by_kind(each.kind for each in self.causes),
            severities={each: severities[each] for each in sorted(severities, key=severity_rank)},
            failures=by_kind(KNOWN if each.known else WORDS[each.grade] for each in self.failures),
            cases=by_result(RESULTS, (cell.counts for by in self.table.values() for cell in by.values())),
            flaky=len(self.flaky),
            stale=len(self.stale),
            skipped=len(self.ledger.skips),
            unjudged=unjudged(self.ledger, self._editions),
            judged=judged_cases(self.ledger),
            exchanges=next(iter(self.ledger.exchanges), None),
            played={each.target: (each.played, each.unserved or "") for each in self.ledger.targets if each.played},
            least=None if self.ledger.footer is None else self.ledger.footer.least,
            held_back=[each for each in self.ledger.held_back if each.result == "SKIP"],
        )

    @property
    def counted(self) -> str:
        """``2 distinct failures, 1 warning, 3 known deviations``"""
        must, should, known = (self.totals.failures[each] for each in ("FAIL", "WARN", KNOWN))
        unlisted = sum(each.decides for each in self.failures if each.grade == "SHOULD")
        more = f" ({unlisted} not in the known list)" if unlisted else ""
        parts = [some(must, "distinct failure"), some(should, "warning") + more]
        parts += [some(known, "known deviation")] if known else []
        left = sum(self.unexplained.values())
        parts += [f"{some(left, 'failed case')} not examined"] if left else []
        stale = len(self.stale)
        return ", ".join([*parts, *([f"{stale} stale {'entry' if stale == 1 else 'entries'}"] if stale else [])])

    @property
    def verdict(self) -> str:
        """The last line of a report, without the path of the ledger."""
        if self.ledger.footer is None:
            return f"{self.state}: {self.counted}"
        return f"{self.state}: {self.counted}; exit {self.exit}, {self.meaning}"


def summary(ledger: records.Ledger) -> Summary:
    return Summary(ledger)


def ways_to_differ(rows: Sequence[records.Difference]) -> list[tuple[str, tuple[str, ...], list[records.Difference]]]:
    """Check, cells by target and rows: different results before different answers, then by the number of cases."""
    targets = list(dict.fromkeys(name for row in rows for name in row.cells))
    alike: dict[tuple[str, tuple[str, ...]], list[records.Difference]] = {}
    for each in rows:
        alike.setdefault((each.check, tuple(each.cells.get(name, "SKIP") for name in targets)), []).append(each)
    found = [(check, cells, members) for (check, cells), members in alike.items()]
    return sorted(found, key=lambda way: (all_pass(way[2][0]), -sum(int(row.cases) for row in way[2])))


def all_pass(row: records.Difference) -> bool:
    return all(cell.startswith(("PASS", "SKIP")) for cell in row.cells.values())
