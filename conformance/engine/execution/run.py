"""A run of checks against targets: draw cases, run them, judge, shrink, write the ledger. Gives the exit code."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from kipcheck import reports
from kipcheck.conformance.core.files.output_folder import OF_A_RUN, OutputFolder, Unusable
from kipcheck.conformance.core.files.unreadable_file import unwritable
from kipcheck.conformance.core.ledger import (
    NAME,
    Begin,
    CheckDone,
    PlayedCells,
    Skip,
    Target as TargetLine,
    Trouble,
)
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.exits import MEANINGS
from kipcheck.conformance.core.values.target_title import titled
from kipcheck.conformance.core.values.verdict import Disagreement, Grade
from kipcheck.conformance.engine.execution import interrupts
from kipcheck.conformance.engine.execution.failure_report import FailureReport
from kipcheck.conformance.engine.execution.progress import Progress, show_traceback
from kipcheck.conformance.engine.execution.selection import (
    NOTHING_SELECTED,
    InvalidOptions,
    Options,
    Selection,
)
from kipcheck.conformance.engine.execution.tally import Tally
from kipcheck.conformance.engine.execution.target_names import UNLABELED, labels_of, names_of
from kipcheck.conformance.engine.execution.worker import Unit, UnitResult, Worker
from kipcheck.conformance.engine.execution.workers import workers_of
from kipcheck.conformance.engine.findings.differences import Differences
from kipcheck.conformance.engine.known.match import known_deviations
from kipcheck.conformance.engine.ledger.header import header
from kipcheck.conformance.engine.ledger.judged_by_edition import JudgedByEdition
from kipcheck.conformance.engine.ledger.lines import LedgerLines, LedgerLost
from kipcheck.conformance.engine.search.least_cases import LeastCaseSearches
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.targets.protocol import Broken, Target, TargetInfo, Unavailable
from kipcheck.conformance.targets.registry import target as target_of

__all__ = ["MEANINGS", "Options", "Outcome", "run"]

OVERTIME: Final = 1.1
OVERTIME_S: Final = 20.0
"""Within the budget times the first plus the second a run is ended, whatever it waits for."""
EMPTY_OVERTIME_S: Final = 4.0
"""Instead of the second, while there is no result: a target that has shown nothing gets no more time."""
OVERDUE: Final = "the budget was used up, and what had begun did not end: a target is slow, or does not answer"

Find: TypeAlias = Callable[[str], Target]
"""A target by its name. Errors: LookupError, ``Unavailable``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    exit_code: int
    ledger: Path | None
    """None for a dry run."""
    failures: int = 0
    """Distinct ones of grade MUST."""
    warnings: int = 0
    """Distinct ones of grade SHOULD."""
    known: int = 0
    """Distinct ones of any grade that are known deviations, and count nowhere else."""
    plan: tuple[Mapping[str, Any], ...] = ()
    """For a dry run: target, check, grade, requirements, message, versions, cases."""
    why: str = ""
    """One line if the run was cut short."""
    text: str = ""
    """The report for a terminal; the other forms are files beside the ledger."""


def run(options: Options) -> Outcome:
    """Runs every selected check against every target. Raises nothing: an error is an exit code and a line of text."""
    if options.dry_run:
        return _planned(options)
    return execute(options, target_of, _reported)


def execute(options: Options, find: Find, reported: Callable[[Outcome], Outcome] = lambda outcome: outcome) -> Outcome:
    """As ``run``, with the targets that ``find`` gives, and with the reports of ``reported``: only the ledger is
    written otherwise."""
    folder = OutputFolder(options.out)
    try:
        folder.check(*OF_A_RUN)
        with folder.trial(NAME):
            with LedgerLines(folder, options.events) as lines:
                outcome = _Run(options, lines, find).outcome()
            return reported(outcome)
    except Unusable as why:
        return Outcome(exits.USAGE, None, why=str(why))
    except OSError as denied:
        return Outcome(exits.USAGE, None, why=unwritable(denied, options.out))


def _reported(outcome: Outcome) -> Outcome:
    if outcome.ledger is None or outcome.text:
        return outcome
    try:
        return replace(outcome, text=reports.write(outcome.ledger))
    except Unusable as why:
        return replace(outcome, exit_code=exits.USAGE, why=f"no report: {why}")
    except OSError as denied:
        said = outcome.why or f"no report in {outcome.ledger.parent}: {denied.strerror}; the ledger is there"
        return replace(outcome, exit_code=exits.USAGE, why=said, text=reports.render(outcome.ledger, "brief"))
    except Exception as ours:  # noqa: BLE001 - the ledger is written, with all results
        show_traceback()
        return replace(outcome, exit_code=exits.OURS, why=f"no report: {type(ours).__name__}: {ours}")


def _planned(options: Options) -> Outcome:
    rows: list[Mapping[str, Any]] = []
    try:
        selection = Selection.of(options)
        labels = labels_of(options)
        for name, made in _targets(options, target_of).items():
            with Worker(name, made, *labels.get(name, UNLABELED)) as worker:
                info = worker.info(str(selection.edition), selection.checks[0].role)
                selection.require_scripts(info)
                rows += selection.plan(info.name, info)
    except InvalidOptions as why:
        return Outcome(exits.USAGE, None, why=str(why))
    except (Broken, Unavailable) as why:
        return Outcome(exits.BROKEN, None, why=str(why))
    if not rows and options.part is None:
        return Outcome(exits.USAGE, None, why=NOTHING_SELECTED)
    return Outcome(exits.CONFORMANT, None, plan=tuple(rows))


def _targets(options: Options, find: Find) -> dict[str, Target | Unavailable]:
    targets: dict[str, Target | Unavailable] = {}
    for name in options.targets:
        try:
            targets[name] = find(name)
        except LookupError as unknown:
            raise InvalidOptions(str(unknown)) from None
        except Unavailable as missing:
            targets[name] = missing
    return targets


@dataclass(slots=True)
class _Run:
    options: Options
    writer: LedgerLines
    find: Find
    tally: Tally = field(init=False)
    failures: FailureReport = field(init=False)
    differences: Differences = field(init=False)
    begun: float = field(default_factory=time.monotonic)
    progress: Progress = field(default_factory=Progress)
    judged: bool = False
    """Whether there is a result."""
    is_enough: bool = False
    """Whether no more work is begun: there is a failure, and no further one is asked for."""
    ends_in: Callable[[float], None] = field(default=lambda seconds: None)
    """Sets the time, in seconds from now, after which it is ended."""

    def __post_init__(self) -> None:
        self.differences = Differences(tuple(dict.fromkeys(self.options.targets)))
        self.tally = Tally(self.options, self.writer)
        searches = LeastCaseSearches(self.options.targets, self.options.least, self.progress)
        self.failures = FailureReport(self.options, self.tally, searches)

    def outcome(self) -> Outcome:
        """Errors: ``Unusable`` if the folder cannot be written when the run begins."""
        stopped = None
        try:
            with interrupts.deferred():  # a ledger with a footer has a header
                self.writer.write(header(self.options))
                self.writer.flush()
            with interrupts.ends_after(self._most_s) as self.ends_in:
                self._all_targets(Selection.of(self.options))
        except (InvalidOptions, Unusable) as why:
            if not self.writer.begun:
                self.progress.close()
                return Outcome(exits.USAGE, None, why=str(why))
            stopped = self.tally.stop(exits.USAGE, str(why))
        except LedgerLost as lost:
            stopped = self.tally.stop(exits.USAGE, str(lost))
            with suppress(OSError):  # files of failures are on the same disk
                self.failures.write(None)
        except KeyboardInterrupt:
            interrupts.finish()
            stopped = self.tally.stop(exits.UNDECIDED, "interrupted" if not self._is_overdue else OVERDUE)
            self.failures.write(None)
        except Disagreement as ours:
            stopped = self.tally.stop(exits.OURS, str(ours))
            self.failures.write_despite_a_defect()
        except Exception as ours:  # noqa: BLE001 - a report is written on every path
            self.progress.close()
            show_traceback()
            stopped = self.tally.stop(exits.OURS, f"{type(ours).__name__}: {ours}")
            self.failures.write_despite_a_defect()
        interrupts.finish()
        self.progress.close()
        self.writer.begin()
        self.writer.settle()
        for row in self.differences.rows():
            self.writer.write(row)
        self.tally.conclude(stopped)
        if self.writer.lost and stopped is None:
            stopped = self.tally.stop(exits.USAGE, self.writer.lost)
        tally = self.tally
        known = self.failures.account.counts if self.options.known else None
        code = tally.footer(stopped, known, time.monotonic() - self.begun, self.failures.searches.line)
        failures, warnings = tally.failures[Grade.MUST], tally.failures[Grade.SHOULD]
        text = self.writer.shown()
        return Outcome(code, self.writer.path, failures, warnings, tally.known, why=tally.why, text=text)

    def _all_targets(self, selection: Selection) -> None:
        targets = _targets(self.options, self.find)
        self.failures.account = known_deviations(self.options)
        labels = labels_of(self.options)
        workers = {name: Worker(name, made, *labels.get(name, UNLABELED)) for name, made in targets.items()}
        names = names_of(workers, selection)
        self.differences = Differences(tuple(names.values()))
        self.tally.stale(self.failures.account.unknown_entries(names.values()))
        for check in map(CHECKS.__getitem__, selection.named):
            if not selection.in_edition(check):
                none = f"edition {selection.edition} has no selected subject for it{selection.elsewhere(check)}"
                raise InvalidOptions(f"--check {check.id}: {none}")
        unmet = set(selection.named)
        """Checks named in full that no target so far has a subject for."""
        judged = False
        for number, (name, worker) in enumerate(workers.items(), 1):
            try:
                with worker:
                    judged |= self._run_target(worker, selection, unmet, last=number == len(targets))
            except (Unavailable, Broken) as gone:
                self.tally.why = self.tally.why or str(gone)
                self.tally.exits.add(exits.BROKEN)
                self.writer.write(Trouble(target=name, why=str(gone)))
                self.failures.write(None)
        if not judged and not self.tally.exits:
            raise InvalidOptions(NOTHING_SELECTED)
        if unmet and not self.tally.exits & {exits.BROKEN, exits.USAGE}:
            self.tally.exits.add(exits.USAGE)
            self.tally.why = _unmet(unmet)

    def _run_target(self, worker: Worker, selection: Selection, unmet: set[str], last: bool) -> bool:
        """Whether there was any check to run. Removes the checks that the target has a subject for from ``unmet``.

        Errors: ``InvalidOptions`` if the ``last`` target has none for the rest, and nothing has been run.
        """
        info = worker.info(str(selection.edition), selection.checks[0].role)
        for id in [*unmet]:
            if CHECKS[id].role in info.roles and selection.has_case(info.opened, info, CHECKS[id]):
                unmet.discard(id)
        if unmet and last and not self.writer.begun and not self.tally.exits:
            raise InvalidOptions(_unmet(unmet))
        selection.require_scripts(info)
        plan = {
            check: list(selection.units(info.opened, info, check)) if check.role in info.roles else []
            for check in selection.checks
        }
        mine = {check: [unit for unit in units if self.options.takes(unit.subject)] for check, units in plan.items()}
        if any(units and check.role is Role.CLIENT for check, units in mine.items()):
            client = worker.info(str(selection.edition), Role.CLIENT)
            info = replace(info, version=client.version, played=client.played, unserved=client.unserved)
        line = TargetLine(
            target=info.name, version=info.version, language=info.language, issues=info.issues,
            command=info.command or None, played=info.played or None, unserved=info.unserved or None,
        )  # fmt: skip
        self.writer.write(line)
        self.failures.begin(info)
        for check, units in plan.items():
            if not units and not self.options.scripts:  # else no machine of the check plays the script
                why = _why_nothing(info, check, str(selection.edition))
                self.writer.write(Skip(target=info.name, check=check.id, why=why))
        portions = _portions(mine)
        self.progress.plan(titled(info.name, info.version), [(check.id, len(units)) for check, units in portions])
        with workers_of(worker, self.options.workers) as workers:
            # All portions are one stream: the last units of a check run beside the first ones of the next.
            stream = workers.results((unit for _, units in portions for unit in units), self._left)
            begun: dict[str, _BegunCheck] = {}
            for check, units in portions:
                if check.id not in begun:
                    begun[check.id] = _BegunCheck(check, len(mine[check]))
                    self.writer.begin()
                    self.writer.write(Begin(target=info.name, check=check.id, units=len(mine[check])))
                self._portion(info, begun[check.id], islice(stream, len(units)))
            self.failures.write(workers)
        return any(plan.values())

    def _portion(self, info: TargetInfo, begun: "_BegunCheck", results: Iterator[UnitResult]) -> None:
        check, counts = begun.check, self.tally.of(info.name, begun.check)
        before, since = counts.copy(), time.monotonic()
        self.progress.begin()
        for number, result in enumerate(results, 1):
            begun.add(result)
            self._add(info.name, check, result)
            for cause, finding in self.failures.early.add(result.findings):
                self.progress.found(cause, finding.unit)
                self.is_enough |= self.options.until_failure and not (cause.known or cause.noted)
            self.progress.step(number, counts.total() - before.total(), counts["FAIL"] - before["FAIL"])
        begun.seconds += time.monotonic() - since
        self.progress.end(counts.total() - before.total(), counts["FAIL"] - before["FAIL"])
        if not begun.left:
            self._end(info, begun, counts)
        self.writer.flush()

    def _end(self, info: TargetInfo, begun: "_BegunCheck", counts: Mapping[str, int]) -> None:
        check = begun.check
        done = CheckDone(
            target=info.name, check=check.id, units=begun.units, counts=dict(counts), seconds=round(begun.seconds, 3)
        )
        by_edition = begun.judged.lines()
        self.writer.write(done.update(judged=by_edition) if by_edition else done)
        if check.family.cells is not None and begun.cells and not self.options.scripts:
            table = check.family.cells.table(begun.cells, info.claims.limits)
            self.writer.write(PlayedCells(target=info.name, check=check.id, **table._asdict()))
        if not counts:
            claimed = "operations" if info.claims.operations else "subjects"
            why = f"there are no cases for the {claimed} that the target claims"
            self.writer.write(Skip(target=info.name, check=check.id, why=why))

    @property
    def _most_s(self) -> float | None:
        """When what has begun is ended, too."""
        overtime = OVERTIME_S if self.judged else EMPTY_OVERTIME_S
        return None if self.options.budget is None else self.options.budget * OVERTIME + overtime

    @property
    def _is_overdue(self) -> bool:
        return self._most_s is not None and time.monotonic() - self.begun >= self._most_s

    def _left(self) -> bool:
        budget = self.options.budget
        return not self.is_enough and (budget is None or time.monotonic() - self.begun < budget)

    def _add(self, name: str, check: Check[Any], result: UnitResult) -> None:
        if not self.judged and result.cases:
            self.judged = True
            if self._most_s is not None:
                self.ends_in(self.begun + self._most_s - time.monotonic())
        self.failures.add(result)
        self.differences.add(name, result)
        self.tally.record(name, check, result)


@dataclass(slots=True)
class _BegunCheck:
    """A check with one target, of which some units have been run."""

    check: Check[Any]
    units: int
    left: int = field(init=False)
    """Units that have not been run yet."""
    seconds: float = 0.0
    judged: JudgedByEdition = field(default_factory=JudgedByEdition)
    cells: dict[Any, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = self.units

    def add(self, result: UnitResult) -> None:
        self.left -= 1
        self.judged.add(result)
        self.cells |= {cell: self.cells.get(cell, why) and why for cell, why in result.cells.items()}


def _portions(units: Mapping[Check[Any], Sequence[Unit]]) -> list[tuple[Check[Any], list[Unit]]]:
    """The units of each check in the order in which they are run: what has no versions, as leaders and members, then
    the newest and the oldest version of each message, then the others. So most causes are known early, the gravest
    among them, and a short budget reaches every check.
    """
    portions: list[list[tuple[Check[Any], list[Unit]]]] = [[], [], []]
    for check, several in units.items():
        ranked: tuple[list[Unit], ...] = ([], [], [])
        for _, alike in groupby(several, lambda each: (each.edition, each.subject)):
            versions = [*alike]
            for each in versions:
                rank = 0 if each.version is None else 1 if each in (versions[0], versions[-1]) else 2
                ranked[rank].append(each)
        for of_all, of_check in zip(portions, ranked, strict=True):
            if of_check:
                of_all.append((check, of_check))
    return [portion for rank in portions for portion in rank]


def _unmet(checks: Iterable[str]) -> str:
    named = ", ".join(id for id in CHECKS if id in checks)
    roles = ", ".join(dict.fromkeys(CHECKS[id].role.value for id in CHECKS if id in checks))
    return (
        f"--check {named}: no target in the role {roles} claims a selected subject and its operations, so nothing is "
        "tested; omit it, or write it as a glob if it may be skipped"
    )


def _why_nothing(info: TargetInfo, check: Check[Any], edition: str) -> str:
    if not any(map(check.about, check.family.subjects(edition))):
        return f"edition {edition} has no subject for this check"
    if check.role in info.roles:
        return "the target does not claim any subject of this check"
    return f"the target does not play the role {check.role.value}"
