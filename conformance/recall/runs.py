"""Runs the ordinary checks against a release in a child process, which knows of no entry, and keeps what comparisons of
releases need of each run.

Entries that name the same release share its runs: a run is kept by its target, edition, checks and seed, and by the
sources of kipcheck, so that a measurement that was interrupted continues.
"""

import json
import os
import re
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kipcheck.conformance.core.ledger import (
    NAME,
    CheckDone,
    Failure,
    Ledger,
    Record,
    SequenceExhibit,
    SequenceStep,
    Verdict,
    lines as lines_of,
    read,
)
from kipcheck.conformance.core.values.exits import BROKEN, OURS, USAGE
from kipcheck.conformance.core.values.plain import short_digest
from kipcheck.conformance.engine.execution.selection import NOTHING_SELECTED
from kipcheck.conformance.recall.sources import digest
from kipcheck.conformance.targets.toolchains.maven import cache as cache_folder
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.reports.phrases import numbered, operation

LIMIT: Final = "40m"
"""The budget of a run, as ``kipcheck run --budget`` takes it: a target that hangs does not stop a measurement."""
LEAST: Final = "5s"
"""The time of a search for a least case: enough to see whether a failure occurs again. What is found is not measured by
how short a case is, and a release with a bug has many failures."""
UNSTABLE: Final = re.compile(r", ([\w/-]+): .*; run alone the case does not fail", re.DOTALL)
"""In the line of a run about a failure that did not occur again."""
JUDGED: Final = frozenset({"PASS", "FAIL", "WARN", "NOTE", "KNOWN"})
BROKEN_BY: Final = frozenset({"FAIL", "WARN"})
FOLDERS: Final = re.compile(r"(?<![\w:/.])/(?:[^\s/'\"]+/)+")
WHY: Final = 400
"""The most characters of a reason that are kept."""
STEPS: Final = 30
STEP: Final = 200
"""The most steps of a least case that are kept, and characters of each."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run of one check against one target: entries that count other invariants share the checks that judge both."""

    target: str
    edition: str
    check: str
    """Its id."""
    seed: int

    @property
    def words(self) -> tuple[str, ...]:
        """The command, as a person would type it."""
        edition = () if self.edition == "apache" else ("--edition", self.edition)
        checks = ("--check", self.check, "--seed", str(self.seed))
        return ("kipcheck", "run", "--target", self.target, *edition, *checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing(Record):
    """A failure of a run, in one subject."""

    invariant: str
    shape: tuple[str, ...]
    subject: str
    grade: str
    least: tuple[str, ...]
    """The steps of the least case, in words."""

    @property
    def key(self) -> tuple[str, tuple[str, ...], str]:
        """What the failures of two releases are compared by: ids contain the target."""
        return self.invariant, self.shape, self.subject

    @property
    def text(self) -> str:
        words = f" ({', '.join(self.shape)})" if self.shape else ""
        return f"{self.invariant}{words} on {self.subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class First(Record):
    """The first case in which an invariant is violated on a subject."""

    cases: int
    """Up to it, in the order of the run."""
    cpu_s: float
    """Processor time of the run up to it, as far as the times of checks show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Record):
    """What a run found."""

    exits: tuple[int, ...]
    """All exit codes that apply."""
    why: str
    """Why it ended early, why a target did not start, or why it is inconclusive; else empty. Not: ``unstable``."""
    cases: int = 0
    cpu_s: float = 0.0
    """Processor time, that of searches for least cases included."""
    failures: tuple[Failing, ...] = ()
    first: Mapping[str, First] = field(default_factory=dict)
    """By invariant and subject, with a blank between them."""
    judged: Mapping[str, int] = field(default_factory=dict)
    """Invariant -> the cases in which it came to a verdict."""
    doubts: Mapping[str, int] = field(default_factory=dict)
    """Invariant -> the undecided cases in which it was UNKNOWN; ``*``: cases, and units of work, without any verdict. A
    case that fails for another reason is not undecided."""
    unstable: tuple[str, ...] = ()
    """Invariants with a failure that did not occur again when its case was run alone."""

    @property
    def is_unavailable(self) -> bool:
        """Whether the target did not start at all."""
        return BROKEN in self.exits and not self.cases

    @property
    def is_about_nothing(self) -> bool:
        """Whether the target has no subject for the check."""
        return USAGE in self.exits and self.why == NOTHING_SELECTED

    @property
    def can_be_kept(self) -> bool:
        """Not if it may end otherwise at the next attempt: without a network, a full disk, an interrupt."""
        return not self.is_unavailable and OURS not in self.exits


Runner = Callable[[Job], Run]


@dataclass(frozen=True, slots=True)
class KeptRuns:
    """Runs each job once."""

    folder: Path
    begins: Callable[[Job], None] = lambda job: None
    """Called before a job is run."""
    execute: Runner = field(default_factory=lambda: execute)

    def __call__(self, job: Job) -> Run:
        """Errors: OSError."""
        path = self.folder / _file(job, digest())
        if (kept := _kept(path)) is not None:
            return kept
        self.begins(job)
        run = self.execute(job)
        if run.can_be_kept:
            self.folder.mkdir(parents=True, exist_ok=True)
            staged = path.with_suffix(f".{os.getpid()}.part")
            content = {"command": " ".join(job.words), "run": run.plain}
            staged.write_text(json.dumps(content, ensure_ascii=False) + "\n", "utf-8")
            os.replace(staged, path)
        return run


def default_folder() -> Path:
    return cache_folder() / "recall"


def _file(job: Job, of: str) -> str:
    named = re.sub(r"[^A-Za-z0-9.@-]+", "-", f"{job.target}-{job.check}-{job.seed}")
    return f"{named}-{short_digest([job.target, job.edition, job.check, job.seed, of])}.json"


def _kept(path: Path) -> Run | None:
    try:
        return Run.of(json.loads(path.read_text("utf-8"))["run"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def execute(job: Job) -> Run:
    """Runs a job in a child process. Errors: OSError."""
    with temporary_folder("recall") as folder:
        glob = (
            f"{job.check[:-1]}[{job.check[-1]}]"  # a release may have no subject for a check that is not named in full
        )
        words = (glob if each == job.check else each for each in job.words)
        command = (sys.executable, "-m", *words, "--least", LEAST, "--budget", LIMIT, "--out", str(folder / "out"))
        env = {name: each for name, each in os.environ.items() if name != "KIPCHECK_PART"}
        before = _cpu_of_children()
        ended = process_tree.run(command, env=env)
        cpu_s = _cpu_of_children() - before
        try:
            return run_of(read(folder / "out" / NAME), cpu_s)
        except (OSError, ValueError):
            return _without_ledger(ended.returncode, f"{ended.stdout}\n{ended.stderr}")


def _cpu_of_children() -> float:
    """Seconds of those that have ended, with their own children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _without_ledger(code: int, output: str) -> Run:
    lines = [each.removeprefix("kipcheck: ") for each in output.splitlines() if each.strip()]
    why = lines[-1] if lines else "it printed nothing"
    if code in (USAGE, BROKEN):
        return Run(exits=(code,), why=_brief(why))
    return Run(exits=(OURS,), why=f"it ended with exit code {code} and without a ledger: {_brief(why)}")


def run_of(ledger: Ledger, cpu_s: float) -> Run:
    """What a comparison needs of a ledger. ``cpu_s``: the processor time of the run."""
    footer = ledger.footer
    if footer is None:
        return Run(exits=(OURS,), why=f"its ledger was cut off: {ledger.path}")
    seconds = footer.seconds or 1.0
    counted = _counted(ledger.path)
    troubles = [each.why for each in ledger.troubles if not UNSTABLE.search(each.why)]
    whys = [footer.stopped_by, *troubles, *(each.why for each in ledger.inconclusive)]
    unstable = (each for line in ledger.troubles for each in UNSTABLE.findall(line.why))
    return Run(
        exits=tuple(footer.exits),
        why="; ".join(dict.fromkeys(_brief(each) for each in whys if each)),
        cases=counted.cases,
        cpu_s=_rounded(cpu_s),
        failures=tuple(each for line in ledger.failures for each in _failing(line)),
        first={
            key: First(cases=cases, cpu_s=_rounded(cpu_s * until / seconds))
            for key, (cases, until) in counted.first.items()
        },
        judged=dict(counted.judged),
        doubts=dict(counted.doubts),
        unstable=tuple(dict.fromkeys(unstable)),
    )


def _brief(why: str) -> str:
    """The first and the last of its lines, without the folders of this machine."""
    lines = [each.strip() for each in why.splitlines() if each.strip()]
    text = " ... ".join(dict.fromkeys((lines[0], lines[-1]))) if lines else ""
    return FOLDERS.sub("", text)[:WHY]


def _rounded(seconds: float) -> float:
    """To two digits: no two runs take the same time."""
    return float(f"{seconds:.2g}")


@dataclass(slots=True)
class _Counted:
    by_check: Counter[str] = field(default_factory=Counter)
    """The cases of each check."""
    first: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Invariant and subject -> cases, and seconds, up to the first violation."""
    judged: Counter[str] = field(default_factory=Counter)
    doubts: Counter[str] = field(default_factory=Counter)

    @property
    def cases(self) -> int:
        return self.by_check.total()


def _counted(path: Path) -> _Counted:
    found = _Counted()
    seconds: dict[str, float] = {}
    first: dict[str, tuple[int, Counter[str]]] = {}
    """Invariant and subject -> cases up to the first violation, in all and by check: checks take turns."""
    for line in lines_of(path):
        if isinstance(line, Verdict):
            for key in _count(found, line):
                first.setdefault(key, (found.cases, found.by_check.copy()))
        elif isinstance(line, CheckDone):
            seconds[line.check] = line.seconds
    each_s = {check: total_s / max(1, found.by_check[check]) for check, total_s in seconds.items()}
    for key, (cases, by_check) in first.items():
        found.first[key] = cases, sum(each_s.get(check, 0.0) * number for check, number in by_check.items())
    return found


def _count(found: _Counted, line: Verdict) -> Iterator[str]:
    """Counts a case; returns the invariants that it violates, each with the subject."""
    if line.case is None:
        found.doubts["*"] += 1
        return
    found.by_check[line.check] += 1
    is_undecided = line.result == "UNKNOWN"
    if is_undecided and not line.by:
        found.doubts["*"] += 1
    for invariant, result in (line.by or {}).items():
        if result in JUDGED:
            found.judged[invariant] += 1
        elif is_undecided and result == "UNKNOWN":
            found.doubts[invariant] += 1
        if result in BROKEN_BY:
            yield f"{invariant} {line.subject}"


def _failing(line: Failure) -> Iterator[Failing]:
    """A failure in each of its subjects; none for a note."""
    if line.grade == "INFO":
        return
    least = tuple(_least(line))
    for subject in dict.fromkeys((line.subject, *line.where)):
        yield Failing(
            invariant=line.invariant, shape=tuple(map(str, line.shape)), subject=subject, grade=line.grade, least=least
        )


def _least(line: Failure) -> Iterator[str]:
    """The steps of its case, in words, without what followed from them: times differ from run to run."""
    sequence = next((each for each in line.exhibits if isinstance(each, SequenceExhibit)), None)
    if sequence is None:
        found = [": ".join(filter(None, operation(each))) for each in line.steps]
    else:
        found = [f"{number} {_step(each)}" for number, each in numbered(sequence.steps) if number]
    for text in found[:STEPS]:
        yield text if len(text) <= STEP else f"{text[: STEP - 3]}..."
    if len(found) > STEPS:
        yield f"({len(found) - STEPS} more)"


def _step(step: SequenceStep) -> str:
    to = "" if step.sender == step.receiver else f" -> {step.receiver}"
    return f"{step.sender}{to}: {step.says}" + (f"  <- {step.answer}" if step.answer else "")
