"""The ledger of a run or a campaign: JSON Lines with a header, verdicts, failures and a footer.

A campaign has too many cases for a line each: it has tallies in place of verdicts, and a line for each round. A ledger
without a footer was cut off. It contains all that a report shows. ``lines`` and ``failure`` define the lines, and
``reports/ledger.schema.json`` is generated from them.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic, Self, TextIO, TypeVar, cast

from kipcheck.conformance.core.ledger.failure import (
    FAILURE_FORMAT,
    FAILURE_FORMATS,
    BrokenRequirement,
    ByteRow,
    BytesExhibit,
    Exhibit,
    Failure,
    FiledFailure,
    FirstFound,
    Follower,
    Grade,
    KnownEntry,
    SequenceExhibit,
    SequenceStep,
    TableExhibit,
    TableRow,
    exhibits_of,
    united_followers,
)
from kipcheck.conformance.core.ledger.guard import ID, check_failure
from kipcheck.conformance.core.ledger.header import (
    FORMAT,
    AboutInvariant,
    AboutRequirement,
    Campaign,
    Header,
    MergedFrom,
    RunOptions,
)
from kipcheck.conformance.core.ledger.lines import (
    TYPES,
    USUAL,
    Begin,
    Cause,
    CheckDone,
    Counts,
    Difference,
    Exchanges,
    Expected,
    Flaky,
    Footer,
    HeldBack,
    Inconclusive,
    LeastCases,
    LedgerLine,
    Place,
    PlayedCells,
    PlayedScript,
    Round,
    Skip,
    Stale,
    Tally,
    Target,
    Trouble,
    Unknown,
    Verdict,
)
from kipcheck.conformance.core.ledger.record import Json, Malformed, Record, plain
from kipcheck.conformance.core.ledger.versions import numbers, places_of, spans, where_of
from kipcheck.conformance.core.values.untrusted_text import harmless_json

__all__ = [
    "FAILURE_FORMAT", "FAILURE_FORMATS",
    "FORMAT", "ID", "NAME", "TYPES", "AboutInvariant", "AboutRequirement", "Begin", "BrokenRequirement", "ByteRow",
    "BytesExhibit", "Campaign", "Cause", "CheckDone", "Counts", "Difference", "Exchanges", "Exhibit", "Expected",
    "Failure",
    "FiledFailure",
    "FirstFound", "Flaky", "Follower", "Footer", "Grade", "Header", "HeldBack", "Inconclusive", "Json", "KnownEntry",
    "LeastCases", "Ledger", "LedgerLine", "Malformed",
    "MergedFrom", "Place", "PlayedCells", "PlayedScript", "Record", "Round", "RunOptions", "SequenceExhibit",
    "SequenceStep", "Skip",
    "Stale",
    "TableExhibit", "TableRow", "Tally", "Target", "Trouble", "Unknown", "Verdict", "Writer", "check_failure",
    "count", "exhibits_of", "lines", "missing", "numbers", "places_of", "plain", "read", "spans", "type_of",
    "united_followers",
    "unlike_formats", "where_of",
]  # fmt: skip

NAME: Final = "ledger.jsonl"
R = TypeVar("R", bound=Record)
_text: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_BY_TYPE: Final[Mapping[str, type[Record]]] = {str(getattr(each, "TYPE")): each for each in TYPES}  # noqa: B009
_USUAL_VERDICT: Final = ("type", *USUAL)


class Writer:
    """Writes a ledger. Lines reach the disk at every ``flush`` and at the end.

    Every line but the verdicts is written to ``events`` too, and flushed.
    """

    def __init__(self, path: Path, events: TextIO | None = None) -> None:
        self.path = path
        self._events = events
        # Half of a surrogate pair has no UTF-8: it is written as its escape in JSON.
        self._file: TextIO = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")

    def write(self, line: LedgerLine, /) -> None:
        text = text_of(line)
        self._file.write(text)
        if self._events is not None and not isinstance(line, Verdict):
            self._events.write(text.encode("utf-8", "backslashreplace").decode())
            self._events.flush()

    def flush(self) -> None:
        self._file.flush()

    def cut(self) -> None:
        """Gives up after a write that failed, as on a full disk: leaves the complete lines that are in the file."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())  # where the rest of the buffer goes when it is closed
        os.close(nowhere)
        with suppress(OSError), self.path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def text_of(line: LedgerLine) -> str:
    """The line as it is written, with its end."""
    text = _text({"type": type_of(line), **line.plain}) + "\n"
    # Few verdicts contain a text of a target.
    return text if isinstance(line, Verdict) and line.why is None else harmless_json(text)


def type_of(line: LedgerLine) -> str:
    """The value of ``type`` in the line."""
    return line.type if isinstance(line, Unknown) else line.TYPE


class LinesOf(Generic[R]):
    """An attribute of a ledger: its lines of one type."""

    def __init__(self, kind: type[R]) -> None:
        self._type: str = getattr(kind, "TYPE")  # noqa: B009 - each line has one, and Record has none

    def __get__(self, ledger: "Ledger", owner: type) -> Sequence[R]:
        return cast("Sequence[R]", ledger.lines.get(self._type, ()))


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that a report reads. The verdicts of single cases stay in the file: ``verdicts`` reads them."""

    path: Path
    header: Header
    lines: Mapping[str, Sequence[LedgerLine]] = field(default_factory=dict)
    """All lines but header and verdicts, by type."""
    cases: Mapping[Place, Counter[str]] = field(default_factory=dict)
    """The number of cases in each place, by result."""
    held: Mapping[tuple[Place, str], Counter[str]] = field(default_factory=dict)
    """The same by invariant."""
    unreached: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Target, check and reason -> units that were not run."""
    not_begun: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Target, check and reason -> skipped cases that the target cannot begin."""

    targets = LinesOf(Target)
    failures = LinesOf(Failure)
    causes = LinesOf(Cause)
    """The gravest of each target first; none in the ledger of a campaign or of an interrupted run."""
    skips = LinesOf(Skip)
    inconclusive = LinesOf(Inconclusive)
    """Why the run shows too little."""
    held_back = LinesOf(HeldBack)
    """Cases that were not run, because they look like those in which the target died."""
    expected = LinesOf(Expected)
    """Cases whose failures are all known deviations."""
    troubles = LinesOf(Trouble)
    differences = LinesOf(Difference)
    """Cases with different results or answers of several targets."""
    stale = LinesOf(Stale)
    """Entries of lists of known deviations that are no longer true."""
    flaky = LinesOf(Flaky)
    """Failures that did not occur, or not every time, when their cases were run alone."""
    checks = LinesOf(CheckDone)
    """Each check with each target, when it was done."""
    tallies = LinesOf(Tally)
    exchanges = LinesOf(Exchanges)
    """The exchanges of each watch."""
    scripts = LinesOf(PlayedScript)
    """Conversations of which the run was to report all exchanges."""
    cells = LinesOf(PlayedCells)
    """What the cases of each check played, where they are chosen from a table."""
    rounds = LinesOf(Round)
    """Of all campaigns."""

    def opened(self, target: str) -> str:
        """The name under which a target of the results is opened again: another if it is a command."""
        return next((each.command for each in self.targets if each.target == target and each.command), target)

    @property
    def campaigns(self) -> Sequence[Campaign]:
        """The campaigns of the header; none in a ledger of runs alone."""
        return self.header.campaigns or ()

    @property
    def footer(self) -> Footer | None:
        """None: the run was cut off."""
        return next(iter(cast("Sequence[Footer]", self.lines.get(Footer.TYPE, ()))), None)

    @property
    def failure_format(self) -> int:
        """The format of its failures: only those of equal formats have comparable ids and shapes."""
        return 1 if self.header.failure_format is None else self.header.failure_format

    @property
    def complete(self) -> bool:
        return self.footer is not None and self.footer.complete

    @property
    def undecided(self) -> int:
        """Cases, and units of work that were not run."""
        return sum(counted.get("UNKNOWN", 0) for counted in self.cases.values())

    @property
    def held_back_cases(self) -> int:
        """The undecided cases that look like those in which a target died."""
        return sum(each.cases for each in self.held_back if each.result == "UNKNOWN")

    @property
    def counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Target -> check -> result -> cases, whether the run is complete or not."""
        found: dict[str, dict[str, Counter[str]]] = {}
        for place, counted in self.cases.items():
            found.setdefault(place.target, {}).setdefault(place.check, Counter()).update(counted)
        return {name: {check: dict(each) for check, each in by.items()} for name, by in found.items()}

    def verdicts(self) -> Iterator[Verdict]:
        return (line for line in lines(self.path) if isinstance(line, Verdict))


def read(path: Path) -> Ledger:
    """Errors: FileNotFoundError; ValueError if the file is not a ledger of this format."""
    following = _objects(path)
    _, first = next(following, (1, None))
    if first is None or first.get("type") != Header.TYPE or first.get("format") != FORMAT:
        raise ValueError(f"{path} is not a ledger: its first line must be a header of format {FORMAT}")
    header = _line(first, path, 1)
    assert isinstance(header, Header)
    if (header.failure_format or 1) not in FAILURE_FORMATS:
        known = " and ".join(map(str, FAILURE_FORMATS))
        raise ValueError(f"{path}: its failures have format {header.failure_format}; this kipcheck reads {known}")
    by_type: dict[str, list[LedgerLine]] = {}
    totals = _Totals()
    for number, found in following:
        if tuple(found) == _USUAL_VERDICT:  # there are many: no line is made of them
            kind, target, check, subject, version, case, result, by = found.values()
            if kind == Verdict.TYPE and case is not None and type(by) is dict:
                totals.add(Place(target, check, subject, version), result, by)
                continue
        line = _line(found, path, number)
        if isinstance(line, Verdict):
            totals.add(line.place, line.result, line.by or {})
            if line.case is None:
                totals.unreached[line.target, line.check, line.why or ""] += 1
            elif line.why:
                totals.not_begun[line.target, line.check, line.why] += 1
            continue
        by_type.setdefault(type_of(line), []).append(line)
        if isinstance(line, Tally):
            totals.add_all(line)
        elif isinstance(line, HeldBack | Expected):
            count(totals.cases.setdefault(line.place, Counter()), line)
    return Ledger(path, header, by_type, totals.cases, totals.held, totals.unreached, totals.not_begun)


def count(cases: Counter[str], line: HeldBack | Expected) -> None:
    """Applies the line to the cases of its place, or of its check."""
    if isinstance(line, HeldBack):
        cases[line.result] += line.cases
        return
    for result, number in line.results.items():
        cases["KNOWN"] += number
        cases[result] -= number
        if not cases[result]:
            del cases[result]


@dataclass(slots=True)
class _Totals:
    """Counts the cases of a ledger by place and result."""

    cases: dict[Place, Counter[str]] = field(default_factory=dict)
    held: dict[tuple[Place, str], Counter[str]] = field(default_factory=dict)
    unreached: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    not_begun: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, place: Place, result: str, by: Mapping[str, str]) -> None:
        if (counted := self.cases.get(place)) is None:
            counted = self.cases[place] = Counter()
        counted[result] += 1
        for invariant, came in by.items():
            key = place, invariant
            if (counted := self.held.get(key)) is None:
                counted = self.held[key] = Counter()
            counted[came] += 1

    def add_all(self, line: Tally) -> None:
        place = line.place
        self.cases.setdefault(place, Counter()).update(line.results)
        for invariant, results in line.by.items():
            self.held.setdefault((place, invariant), Counter()).update(results)


def unlike_formats(one: Ledger, other: Ledger) -> str:
    """What keeps failures of the two from being compared, to begin an error message; empty if nothing does."""
    if one.failure_format == other.failure_format:
        return ""
    about = (f"{each.path.parent} has failures of format {each.failure_format}" for each in (one, other))
    return f"{' and '.join(about)}: the same failure has another id and shape in each"


def missing(folder: Path) -> str:
    """An error message for a folder without a ledger."""
    if (folder / "manifest.json").is_file():
        again = f"kipcheck campaign --resume {folder}"
        return f"{folder} contains a campaign that was cut off before its first report: resume it with {again}"
    return f"{folder} contains no {NAME}: name a folder that kipcheck run or kipcheck campaign wrote with --out"


def lines(path: Path) -> Iterator[LedgerLine]:
    """The lines in their order. The last line may be cut off: then it is left out.

    Errors: FileNotFoundError; ValueError, with path and line, if a line is not one of a ledger.
    """
    return (_line(found, path, number) for number, found in _objects(path))


def _objects(path: Path) -> Iterator[tuple[int, Json]]:
    """The number of each line, from 1 on, and its JSON object."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, 1):
            if not text.endswith("\n"):
                return  # the run was killed while it wrote this line
            try:
                found: Any = json.loads(text)
            except (ValueError, RecursionError):
                raise ValueError(f"{path} is not a ledger: line {number} is not JSON: {text[:60]!r}") from None
            if not isinstance(found, dict) or not isinstance(found.get("type"), str):
                what = f"line {number} is not an object with a type: {text[:60]!r}"
                raise ValueError(f"{path} is not a ledger: {what}")  # noqa: TRY004
            yield number, found


def _line(found: Json, path: Path, number: int) -> LedgerLine:
    """Reads the object of a line, and takes its ``type`` away. Errors: ValueError with path and line."""
    kind = found.pop("type")
    if kind == Failure.TYPE or (kind == Flaky.TYPE and found.get("id")):
        check_failure(found, f"{path}:{number}")
    known = _BY_TYPE.get(kind)
    if known is None:
        return Unknown(type=kind, others=found, keys=tuple(found))
    try:
        return cast("LedgerLine", known.of(found))
    except Malformed as wrong:
        raise ValueError(f"{path}:{number}: {kind}: {wrong}") from None
