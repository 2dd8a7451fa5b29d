"""A run: draw, converse, judge, shrink, write the ledger. The exit code says what came of it."""

import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from importlib import metadata
from pathlib import Path
from typing import Any

from conformance import evidence
from conformance.checks import CHECKS, Check, Subject
from conformance.core.case import Case
from conformance.core.edition import Edition, edition as edition_of
from conformance.core.ledger import FORMAT, Writer
from conformance.core.requirement import requirements
from conformance.core.verdict import Grade, Result
from conformance.invariants.readings import Disagreement
from conformance.invariants.registry import Invariant, all_invariants
from conformance.runner import converse, judge
from conformance.targets.protocol import Broken, Session, Target, TargetInfo, Unavailable, Unstable
from conformance.targets.roll import target as target_of
from conformance.wire.schema import messages, spec
from conformance.work import Finding, Results, Unit, UnitResult, Worker, shared, shrunk

CONFORMANT, FAILED, USAGE, BROKEN, UNSTABLE, STALE, UNDECIDED, OURS = 0, 1, 2, 3, 4, 5, 6, 70
PRECEDENCE = (OURS, USAGE, BROKEN, FAILED, STALE, UNSTABLE, UNDECIDED, CONFORMANT)
MEANINGS: Mapping[int, str] = {
    CONFORMANT: "conformant",
    FAILED: "an unexpected failure",
    USAGE: "wrong usage, or nothing selected",
    BROKEN: "a target did not start or broke the protocol",
    UNSTABLE: "an unstable target",
    STALE: "stale expectations",
    UNDECIDED: "undecided within the budget",
    OURS: "a bug of kipcheck's own",
}


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
    workers: int = 1
    out: Path = Path("kipcheck-out")
    dry_run: bool = False
    budget: float | None = None
    """Seconds after which no further work is begun; what was not reached is undecided."""


@dataclass(frozen=True, slots=True)
class Outcome:
    exit_code: int
    ledger: Path | None
    """None for a dry run."""
    failures: int = 0
    """Distinct ones of grade MUST."""
    warnings: int = 0
    """Distinct ones of grade SHOULD."""
    plan: tuple[Mapping[str, Any], ...] = ()
    """For a dry run: target, check, grade, requirements, message, versions, cases."""
    why: str = ""
    """One line where the run was cut short."""


class Misused(Exception):
    """The options ask for what there is not. Says what there is."""


def run(options: Options) -> Outcome:
    """Hold every selected check with every target. Raises nothing: what goes wrong is an exit code and a line."""
    if options.dry_run:
        try:
            return Outcome(CONFORMANT, None, plan=tuple(_dry_run(options)))
        except Misused as why:
            return Outcome(USAGE, None, why=str(why))
        except (Broken, Unavailable) as why:
            return Outcome(BROKEN, None, why=str(why))
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        writer = Writer(options.out / "ledger.jsonl")
    except OSError as denied:
        return Outcome(USAGE, None, why=f"{options.out} cannot be written: {denied}")
    for old in (options.out / "failures").glob("*.json"):
        old.unlink()  # of an earlier run: what is fixed leaves
    with writer:
        return _Run(options, writer).outcome()


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a failure when it was run again."""

    exit_code: int
    """1 it fails again, 0 it is gone, 6 it cannot be judged any more; 2, 3 and 70 as for a run."""
    says: str


def replay(path: Path) -> Replayed:
    """Run the case of ``failures/ID.json`` again, with the target that it names. Raises nothing."""
    try:
        filed = json.loads(path.read_text("utf-8"))
        case, target, wanted = Case.of(filed["case"]), str(filed["target"]), str(filed["invariant"])
    except OSError as missing:
        return Replayed(USAGE, f"{path} cannot be read: {missing.strerror}")
    except (ValueError, KeyError, TypeError) as wrong:
        return Replayed(USAGE, f"{path} holds no failure: {wrong!r}")
    invariant = next((each for each in all_invariants(case.role) if each.id == wanted), None)
    if invariant is None:
        return Replayed(UNDECIDED, f"no invariant is called {wanted!r} any more")
    try:
        with target_of(target).open(case.edition, case.role) as session:
            return _replayed(session, case, invariant)
    except (LookupError, Unavailable) as gone:
        return Replayed(UNDECIDED, str(gone))
    except (Broken, Unstable) as down:
        return Replayed(BROKEN, str(down))
    except Disagreement as ours:
        return Replayed(OURS, str(ours))


def _replayed(session: Session, case: Case, invariant: Invariant) -> Replayed:
    about = f"{session.info.name} {session.info.version}, {invariant.id}"
    (history,) = converse([case], session)
    verdict = next(judge(history, (invariant,)), None)
    if verdict is None or verdict.result in (Result.SKIP, Result.UNKNOWN):
        return Replayed(UNDECIDED, f"{about}: the case can no longer be judged")
    if verdict.result is Result.PASS:
        return Replayed(CONFORMANT, f"{about}: gone")
    return Replayed(FAILED, f"{about}: fails again: {verdict.violations[0].why}")


@dataclass(slots=True)
class _Run:
    options: Options
    writer: Writer
    exits: set[int] = field(default_factory=set)
    why: str = ""
    counts: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    """target -> check -> result -> cases"""
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    infos: dict[str, TargetInfo] = field(default_factory=dict)
    failures: Counter[Grade] = field(default_factory=Counter)
    begun: float = field(default_factory=time.monotonic)

    def outcome(self) -> Outcome:
        stopped = None
        self._header()
        try:
            self._selected()
        except Misused as why:
            stopped = self._stop(USAGE, str(why))
        except KeyboardInterrupt:
            stopped = self._stop(UNDECIDED, "interrupted")
        except Disagreement as ours:
            stopped = self._stop(OURS, str(ours))
        except Exception as ours:  # noqa: BLE001 - a report is written on every path
            traceback.print_exc()
            stopped = self._stop(OURS, f"{type(ours).__name__}: {ours}")
        code = next(each for each in PRECEDENCE if each in self.exits or each == CONFORMANT)
        self.writer.write(
            "footer",
            {
                "complete": stopped is None,
                "stopped_by": stopped,
                "exit": code,
                "meaning": MEANINGS[code],
                "counts": {name: {check: dict(c) for check, c in by.items()} for name, by in self.counts.items()},
                "seconds": round(time.monotonic() - self.begun, 1),
            },
        )
        failures, warnings = self.failures[Grade.MUST], self.failures[Grade.SHOULD]
        return Outcome(code, self.writer.path, failures, warnings, why=self.why)

    def _stop(self, code: int, why: str) -> str:
        self.exits.add(code)
        self.why = why
        return why

    def _header(self) -> None:
        o = self.options
        self.writer.write(
            "header",
            {
                "format": FORMAT,
                "kipcheck": metadata.version("kipcheck"),
                "python": ".".join(map(str, sys.version_info[:3])),
                "options": {**asdict(o), "out": str(o.out)},
                "checks": {each.id: each.sentence for each in CHECKS.values()},
            },
        )

    def _selected(self) -> None:
        edition, checks = _edition(self.options), _checks(self.options)
        targets = _targets(self.options)
        judged = False
        for name, made in targets.items():
            worker = Worker(name, made)
            try:
                judged |= self._hold(name, worker, edition, checks)
            except (Unavailable, Broken, Unstable) as gone:
                self._gone(name, gone, alone=len(targets) == 1)
            finally:
                worker.close()
        if not judged and not self.exits:
            raise Misused("nothing is selected: no check, message and version that a target claims is left")

    def _gone(self, name: str, gone: Exception, alone: bool) -> None:
        self.writer.write("trouble", {"target": name, "why": str(gone)})
        self.why = self.why or str(gone)
        if isinstance(gone, Unstable):
            self.exits.add(UNSTABLE)
        elif isinstance(gone, Broken) or alone:
            self.exits.add(BROKEN)
        else:
            self.writer.write("skip", {"target": name, "check": "*", "why": str(gone)})

    def _hold(self, name: str, worker: Worker, edition: Edition, checks: list[Check]) -> bool:
        session = worker.session(str(edition))
        self.infos[name] = session.info
        info = session.info
        about = {"version": info.version, "language": info.language, "issues": info.issues}
        self.writer.write("target", {"target": name, **about})
        with self._results(worker) as results:
            found, total = self._all(name, info, edition, checks, results)
        self._report(name, worker, found)
        return total > 0

    def _all(
        self, name: str, info: TargetInfo, edition: Edition, checks: list[Check], results: Results
    ) -> tuple[list[Finding], int]:
        """What failed, and how many units were held."""
        found: list[Finding] = []
        by_check = self.counts.setdefault(name, {})
        total = 0
        for check in checks:
            units = list(_units(name, info, check, edition, self.options))
            counts = by_check.setdefault(check.id, Counter())
            if not units:
                why = "it claims no version of a message that this is about"
                self.writer.write("skip", {"target": name, "check": check.id, "why": why})
                continue
            begun = time.monotonic()
            for result in results(units, self._left):
                total += 1
                self._record(name, check, result, counts)
                found += result.findings
            self.writer.flush()
            if not counts:
                why = "there are no cases for the messages that it claims"
                self.writer.write("skip", {"target": name, "check": check.id, "why": why})
            cases, failed = sum(counts.values()), counts["FAIL"]
            took = time.monotonic() - begun
            _say(f"{name} {info.version}  {check.id:<22}{cases:>7} cases{failed:>6} failed  {took:5.1f} s")
        return found, total

    def _results(self, worker: Worker) -> AbstractContextManager[Results]:
        if self.options.workers > 1:
            return shared(self.options.workers)
        return nullcontext(
            lambda units, left: (worker.hold(unit) if left() else UnitResult(unit, unreached=True) for unit in units)
        )

    def _left(self) -> bool:
        budget = self.options.budget
        return budget is None or time.monotonic() - self.begun < budget

    def _record(self, name: str, check: Check, result: UnitResult, counts: Counter[str]) -> None:
        unit = result.unit
        for trouble in result.troubles:
            self.writer.write("trouble", {"target": name, "why": trouble})
            self.exits.add(UNSTABLE)
        if result.unreached:
            counts[Result.UNKNOWN.name] += 1
            self.exits.add(UNDECIDED)
            self.writer.write("verdict", {
                "target": name, "check": check.id, "message": unit.message, "version": unit.version, "case": None,
                "result": Result.UNKNOWN.name, "why": "not reached within the budget",
            })  # fmt: skip
        for case, verdict, judged in result.cases:
            counts[verdict] += 1
            if verdict == Result.UNKNOWN.name:
                self.exits.add(UNDECIDED)
            self.writer.write("verdict", {
                "target": name, "check": check.id, "message": unit.message, "version": unit.version, "case": case,
                "result": verdict, "by": judged,
            })  # fmt: skip

    def _report(self, name: str, worker: Worker, found: list[Finding]) -> None:
        """Shrink one case of each kind, and write one block for each distinct failure."""
        info = self.infos[name]
        distinct: dict[tuple[str, str, tuple[str, ...]], list[Finding]] = {}
        groups = _grouped(found)
        if groups:
            _say(f"{name} {info.version}  looking for the least case of {len(groups)} kinds of failure")
        for group in groups:
            least = shrunk(worker, group[0])
            if least is None:
                self.exits.add(UNSTABLE)
                first = group[0]
                self.writer.write("trouble", {
                    "target": name,
                    "why": f"{first.unit.check} {first.unit.message} v{first.unit.version}: {first.violation.why}; "
                           f"run alone the case does not fail ({first.case.id})",
                })  # fmt: skip
                continue
            key = (least.unit.check, least.invariant, least.shape)
            distinct.setdefault(key, []).extend([least, *group[1:]])
        for members in distinct.values():
            line = evidence.failure(info, members, self.options.out)
            self.failures[Grade(line["grade"])] += 1
            if line["grade"] == Grade.MUST.value:
                self.exits.add(FAILED)
            self.writer.write("failure", line)


def _grouped(found: list[Finding]) -> list[list[Finding]]:
    """Those that are likely one: the same check, invariant, message and shape. Only the first of each is shrunk."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for each in found:
        message = each.unit.message if CHECKS[each.unit.check].shrinks else ""
        groups.setdefault((each.unit.check, each.invariant, message, each.violation.shape), []).append(each)
    return list(groups.values())


def _edition(options: Options) -> Edition:
    try:
        found = edition_of(options.edition)
        messages(found)
    except LookupError as unknown:
        raise Misused(str(unknown)) from None
    return found


def _checks(options: Options) -> list[Check]:
    for glob in options.checks:
        if not any(fnmatchcase(id, glob) for id in CHECKS):
            raise Misused(f"no check is called {glob!r}; there are {', '.join(CHECKS)}")
    found = [each for id, each in CHECKS.items() if any(fnmatchcase(id, glob) for glob in options.checks)]
    if not found:
        raise Misused("no check is selected")
    return found


def _targets(options: Options) -> dict[str, Target | Unavailable]:
    if not options.targets:
        raise Misused("no target is selected")
    found: dict[str, Target | Unavailable] = {}
    for name in options.targets:
        try:
            found[name] = target_of(name)
        except LookupError as unknown:
            raise Misused(str(unknown)) from None
        except Unavailable as missing:
            found[name] = missing
    return found


def _units(name: str, info: TargetInfo, check: Check, edition: Edition, options: Options) -> Iterator[Unit]:
    for message in messages(edition):
        if message not in info.claims or not any(fnmatchcase(message, glob) for glob in options.messages):
            continue
        low, high = info.claims[message]
        for layout in spec(edition, message):
            if low <= layout.version <= high and check.versions(layout):
                yield Unit(name, str(edition), check.id, message, layout.version, options.seed, options.cases)


def _dry_run(options: Options) -> Iterator[Mapping[str, Any]]:
    edition, checks = _edition(options), _checks(options)
    for name, made in _targets(options).items():
        worker = Worker(name, made)
        try:
            info = worker.session(str(edition)).info
        finally:
            worker.close()
        for check in checks:
            by_message: dict[str, list[Unit]] = {}
            for unit in _units(name, info, check, edition, options):
                by_message.setdefault(unit.message, []).append(unit)
            for message, units in by_message.items():
                row = _row(name, check, message, units, edition)
                if row["cases"]:
                    yield row


def _row(name: str, check: Check, message: str, units: list[Unit], edition: Edition) -> Mapping[str, Any]:
    by_id = {each.id: each for each in all_invariants(check.role)}
    shown = [by_id[id] for id in check.invariants]
    wanted = dict.fromkeys(id for each in shown for id in each.covers(str(edition), message))
    assert wanted.keys() <= requirements().keys()
    return {
        "target": name,
        "check": check.id,
        "grade": "/".join(dict.fromkeys(each.grade.value for each in shown)),
        "requirements": list(wanted),
        "message": message,
        "versions": [unit.version for unit in units],
        "cases": sum(
            sum(1 for _ in check.samples(Subject(str(edition), layout), unit.seed, unit.values))
            for unit in units
            for layout in (spec(edition, message).at(unit.version),)
        ),
    }


def _say(line: str) -> None:
    with suppress(BrokenPipeError):
        print(line, file=sys.stderr, flush=True)
