"""The lines of a ledger, after its header: one frozen dataclass for each type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self, TypeAlias

from kipcheck.conformance.core.ledger.failure import Failure, Grade, Number, Results, SequenceStep, Versions, Where
from kipcheck.conformance.core.ledger.header import Header, Index, Nested, Seconds, Shards
from kipcheck.conformance.core.ledger.record import LENIENT, NULLABLE, WRITTEN, Json, Record
from kipcheck.conformance.core.ledger.versions import spans
from kipcheck.conformance.core.operations.field_kinds import described, schema
from kipcheck.conformance.core.values.impacts import Severity

Counts: TypeAlias = Mapping[str, Mapping[str, Results]]
"""Target -> check -> result -> cases."""
Pairs: TypeAlias = Annotated[Mapping[str, Number], described("Reason -> pairs that no case played.")]
SeverityWord: TypeAlias = Annotated[str, schema(enum=[each.value for each in Severity])]
Result: TypeAlias = Annotated[str, schema(enum=["PASS", "FAIL", "WARN", "NOTE", "UNKNOWN", "SKIP"])]
HeldBackResult: TypeAlias = Annotated[str, schema(enum=["UNKNOWN", "SKIP"])]
InvariantResult: TypeAlias = Annotated[str, schema(enum=["PASS", "FAIL", "UNKNOWN", "SKIP"])]


class Place(NamedTuple):
    """A unit of work: the cases of a check on one version of a subject with a target."""

    target: str
    check: str
    subject: str
    version: int | None


# ---- targets, checks and cases


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Record):
    """A target started."""

    TYPE: ClassVar[str] = "target"

    target: str
    version: str
    language: str
    issues: str
    command: str | None = None
    """The target of the command line (``cmd:...``) if ``target`` is another name: that of hello, or of ``--name``."""
    played: str | None = None
    """The release of Kafka whose broker kipcheck played for the target, if it played one."""
    unserved: str | None = None
    """What the target sends that the newest release does not serve, if an older one was played for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin(Record):
    """A check begins with a target."""

    TYPE: ClassVar[str] = "begin"

    target: str
    check: str
    units: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace(Record):
    """A line about the cases of a check on one version of a subject."""

    target: str
    check: str
    subject: str
    version: int | None

    @property
    def place(self) -> Place:
        return Place(self.target, self.check, self.subject, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(InPlace):
    """The result of one case. Not among the events."""

    TYPE: ClassVar[str] = "verdict"

    case: str | None
    """Its id; null: the unit was not run, and ``why`` gives the reason."""
    result: Result
    by: Mapping[str, InvariantResult] | None = None
    """Invariant -> result."""
    why: str | None = None

    @property
    def plain(self) -> Json:
        """As ``Record.plain``, and fast for the usual line: there are many verdicts."""
        if self.keys or self.by is None or self.why is not None:
            return super(Verdict, self).plain
        return {
            "target": self.target, "check": self.check, "subject": self.subject, "version": self.version,
            "case": self.case, "result": self.result, "by": self.by,
        }  # fmt: skip

    @classmethod
    def _of(cls, found: Any, blank: bool = False) -> Self:
        """As ``Record._of``, and fast for the usual line: there are many verdicts."""
        if tuple(found) == USUAL and type(found["by"]) is dict and type(found["result"]) is str:
            return cls(**found)
        return super(Verdict, cls)._of(found, blank)


USUAL: Final = ("target", "check", "subject", "version", "case", "result", "by")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedScript(Record):
    """A conversation of a run with ``--trace``: all that was sent and answered. Its verdicts are in other lines."""

    TYPE: ClassVar[str] = "script"

    target: str
    subject: str
    """The machine."""
    case: str
    script: str
    """Its steps in shorthand."""
    broken: Mapping[str, str]
    """Invariant -> why it is broken."""
    steps: tuple[SequenceStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(InPlace):
    """The results of the cases in one place, in a campaign: it has too many cases for a line each."""

    TYPE: ClassVar[str] = "tally"

    results: Results
    by: Mapping[str, Results]
    """Invariant -> result -> cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack(InPlace):
    """Cases in one place that were not run, because they look like those in which the target died."""

    TYPE: ClassVar[str] = "held-back"

    cases: Number
    result: HeldBackResult
    """SKIP behind a known deviation, else UNKNOWN."""
    failure: str
    """The id of the failure in which the target died; empty if it did not die when the case was run alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected(InPlace):
    """Cases in one place whose failures are all known deviations: they count as KNOWN and not with these results."""

    TYPE: ClassVar[str] = "expected"

    results: Results


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDone(Record):
    """A check is done with a target."""

    TYPE: ClassVar[str] = "check"

    target: str
    check: str
    units: Number
    counts: Results
    seconds: float
    judged: Nested | None = None
    """Subject -> edition -> invariants judged there; absent: those with verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedCells(Record):
    """What the cases of a check played with a target, where they are chosen from a table."""

    TYPE: ClassVar[str] = "cells"

    target: str
    check: str
    dimensions: tuple[str, ...]
    """Of the table. A pair is two values of different dimensions that some cell has."""
    played: Number
    """Pairs that a case played."""
    pairs: Number
    """All pairs."""
    missing: Pairs
    rows: Mapping[str, Mapping[str, tuple[Number, Number]]]
    """The first dimensions together -> value of the last one -> different events that were played there, and all."""


# ---- causes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause(Record):
    """Failures of a target that come from one defect, as far as kipcheck can see. It decides no exit code."""

    TYPE: ClassVar[str] = "cause"

    id: str
    """For display and links within a report: it changes with the gravest failure."""
    target: str
    title: str
    """The effect that a user observes."""
    severity: SeverityWord
    cases: Number
    """Distinct cases that show one of the failures."""
    failures: tuple[str, ...]
    """Ids, the gravest failure first."""
    least: str
    """The id of the failure with the smallest case."""
    kafka: tuple[str, ...]
    """Clients of Apache Kafka that fail in the same way, each with a release."""
    at: str | None = None
    """The place in the library where the failures come from, if it is the same."""
    reason: str | None = None
    """The reason in the list of known deviations, of the run or of those that are shipped."""
    page: str | None = None
    """The findings page, relative to the package, or the address of an issue."""
    status: str | None = None
    """Whether the defect is new, as the findings page states."""


# ---- findings besides failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Record):
    """Cases with different results or answers of several targets."""

    TYPE: ClassVar[str] = "difference"

    check: str
    subject: str
    versions: Versions
    cells: Mapping[str, str]
    """Target -> result."""
    cases: Number
    case: str
    """The id of the first of them."""
    grade: Grade

    @classmethod
    def between(
        cls, targets: Sequence[str], place: tuple[str, ...], cases: Sequence[tuple[int | None, str]]
    ) -> "Difference":
        """``place``: check, subject and the cell of each target; ``cases``: the version and id of each.

        The grade is INFO: which target is right, the verdicts show.
        """
        check, subject, *cells = place
        versions = spans(version for version, _ in cases if version is not None)
        return cls(
            check=check, subject=subject, versions=versions, cells=dict(zip(targets, cells, strict=True)),
            cases=len(cases), case=cases[0][1], grade="INFO",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip(Record):
    """A check that was not run with a target, and the reason; * stands for all checks."""

    TYPE: ClassVar[str] = "skip"

    target: str
    check: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive(Record):
    """Why the run shows too little, exit code 7; * stands for all targets or all checks."""

    TYPE: ClassVar[str] = "inconclusive"

    target: str
    check: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanges(Record):
    """The requests that passed a watch, each with its answer: those that were judged, and those that were not."""

    TYPE: ClassVar[str] = "exchanges"

    judged: Results
    """By API."""
    left: Mapping[str, Results]
    """Reason -> API -> exchanges that were not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble(Record):
    """An error outside of the cases."""

    TYPE: ClassVar[str] = "trouble"

    target: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale(Record):
    """An entry of a list of known deviations that is no longer true."""

    TYPE: ClassVar[str] = "stale"

    kind: str
    entry: str
    """File and line of the entry."""
    why: str
    target: str
    checks: tuple[str, ...] | None = None
    invariant: str
    where: Where | None
    file: str | None = None
    line: int | None = None
    reason: str | None = None
    link: str | None = None
    expires: str | None = field(default=None, metadata=NULLABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaky(Record):
    """A failure that did not occur, or not every time, when its case was run alone."""

    TYPE: ClassVar[str] = "flaky"

    id: str | None = None
    """Of the failure, in a campaign."""
    target: str
    check: str
    invariant: str
    requirements: tuple[str, ...] | None = None
    subject: str
    version: int | None
    case: str
    cases: Index | None = None
    """The number of cases that showed it."""
    why: str
    alone: str
    """The result of running the case alone."""
    entry: str
    """File and line of the entry of a list of known deviations; empty: it is not listed."""
    file: str | None = None
    line: int | None = None
    reason: str | None = None
    link: str | None = None
    expires: str | None = field(default=None, metadata=NULLABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Record):
    """A round of a campaign."""

    TYPE: ClassVar[str] = "round"

    campaign: str
    """Its id."""
    round: Number
    planned: Number
    """Shards, of both stages."""
    shards: Shards
    cases: Number
    steps: Number
    seconds: Seconds
    cpu_seconds: Seconds
    coverage: Number
    """Kinds of behaviour that were observed until the end of the round."""
    new: Number
    """Those of them that the round added."""
    corpus: Number
    """Values kept at its end."""
    failures: tuple[str, ...]
    """Ids of the distinct failures that were first found in it."""
    growth: Mapping[str, tuple[tuple[Number, Number], ...]]
    """Target -> cases since the beginning, and kinds of behaviour that it had shown by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastCases(Record):
    """The searches for the least cases of failures, by what became of them."""

    found: Number = 0
    cut: Number = 0
    """Ended early, for lack of time or since the target could not be used any more: the least case so far counts."""
    gone: Number = 0
    """The case alone did not fail again."""
    left_out: Number = 0
    """Failures for which none began."""
    limit_s: float | None = field(default=None, metadata=NULLABLE)
    """The time of each search. Null: there was no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer(Record):
    """The last line. A ledger without it was cut off."""

    TYPE: ClassVar[str] = "footer"

    complete: bool
    """Whether every case was judged."""
    stopped_by: str | None
    """Why the run ended early; null also if all its work was done and cases are undecided."""
    exit: int
    exits: tuple[int, ...] = field(default=(), metadata=LENIENT)
    """All exit codes that apply; ``exit`` is the one that decides."""
    meaning: str
    counts: Counts
    """Target -> check -> result -> cases."""
    known: Mapping[str, Any] | None = field(default=None, metadata={**NULLABLE, **WRITTEN})
    """The number of entries of the lists of known deviations, by what became of them, and of known failures."""
    seconds: float
    least: LeastCases | None = None
    """Absent: no least case was searched for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Record):
    """A line of a type that this release does not know: reports pass over it, and merging copies it."""

    type: str = ""


LedgerLine: TypeAlias = (
    Header | Target | Begin | Verdict | PlayedScript | Tally | HeldBack | Expected | CheckDone | Failure | Cause
    | Difference | Skip | Inconclusive | Exchanges | PlayedCells | Trouble | Stale | Flaky | Round | Footer | Unknown
)  # fmt: skip
TYPES: Final[tuple[type[Record], ...]] = (
    Header, Target, Begin, Verdict, PlayedScript, Tally, HeldBack, Expected, CheckDone, Failure, Cause, Difference,
    Skip, Inconclusive, Exchanges, PlayedCells, Trouble, Stale, Flaky, Round, Footer,
)  # fmt: skip
"""In the order of the schema."""
