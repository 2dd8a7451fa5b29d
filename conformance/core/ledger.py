"""The stream of all verdicts of a run, one JSON object a line: header, verdicts, failures, footer.

A campaign holds too many cases to tell of each: it has tallies in the place of verdicts, and a line for each round.
A ledger without a footer was cut off. Whatever a report shows stands in it, so that a report needs nothing else.
``reports/ledger.schema.json`` says what each line holds.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TextIO, TypeAlias

from kipcheck.conformance.core.foreign import harmless_json

FORMAT = 2
NAME = "ledger.jsonl"
ID = re.compile(r"[0-9a-f]{12}")
"""Of a failure: it is the name of a file, and a part of addresses."""
Line: TypeAlias = dict[str, Any]
Counts: TypeAlias = dict[str, dict[str, dict[str, int]]]
"""target -> check -> result -> cases"""


class Writer:
    """Writes one ledger. Lines reach the disk at every ``flush`` and at the end.

    ``events`` gets each line that is no verdict too, at once: what somebody who looks on wants to know.
    """

    def __init__(self, path: Path, events: TextIO | None = None) -> None:
        self.path = path
        self._events = events
        # What is half of a surrogate pair has no UTF-8: it is written as the escape that JSON has for it.
        self._file: TextIO = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")

    def write(self, kind: str, line: Mapping[str, Any], /) -> None:
        text = json.dumps({"type": kind, **line}, ensure_ascii=False, separators=(",", ":")) + "\n"
        if kind != "verdict" or "why" in line:  # there are many verdicts, and few with a text of a target's in them
            text = harmless_json(text)
        self._file.write(text)
        if self._events is not None and kind != "verdict":
            self._events.write(text.encode("utf-8", "backslashreplace").decode())
            self._events.flush()

    def flush(self) -> None:
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


class Place(NamedTuple):
    """A unit of work: where verdicts were given."""

    target: str
    check: str
    subject: str
    version: int | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a report reads. The verdicts of single cases stay in the file: ``verdicts`` goes through them."""

    path: Path
    header: Line
    lines: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    """All lines but the verdicts, by their type."""
    cases: Mapping[Place, Counter[str]] = field(default_factory=dict)
    """What came of the cases of each unit."""
    held: Mapping[tuple[Place, str], Counter[str]] = field(default_factory=dict)
    """The same by invariant."""
    unreached: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Target, check and reason -> units whose cases were not held."""

    @property
    def targets(self) -> Sequence[Line]:
        return self.lines.get("target", ())

    @property
    def failures(self) -> Sequence[Line]:
        return self.lines.get("failure", ())

    @property
    def skips(self) -> Sequence[Line]:
        return self.lines.get("skip", ())

    @property
    def troubles(self) -> Sequence[Line]:
        return self.lines.get("trouble", ())

    @property
    def differences(self) -> Sequence[Line]:
        """Where several targets were not of one mind about the same cases."""
        return self.lines.get("difference", ())

    @property
    def flaky(self) -> Sequence[Line]:
        """What failed, and did not, or not always, when it was run alone."""
        return self.lines.get("flaky", ())

    @property
    def campaigns(self) -> Sequence[Line]:
        """What the header tells of each campaign that this is of; none where it is of runs alone."""
        return tuple(self.header.get("campaigns") or ())

    @property
    def rounds(self) -> Sequence[Line]:
        """Of all its campaigns."""
        return self.lines.get("round", ())

    @property
    def footer(self) -> Line | None:
        """None: the run was cut off."""
        return next(iter(self.lines.get("footer", ())), None)

    @property
    def complete(self) -> bool:
        return self.footer is not None and bool(self.footer["complete"])

    @property
    def counts(self) -> Counts:
        """What came of all cases, whether the run came to its end or not."""
        found: dict[str, dict[str, Counter[str]]] = {}
        for place, counted in self.cases.items():
            found.setdefault(place.target, {}).setdefault(place.check, Counter()).update(counted)
        return {name: {check: dict(each) for check, each in by.items()} for name, by in found.items()}

    def verdicts(self) -> Iterator[Line]:
        return (line for line in lines(self.path) if line["type"] == "verdict")


def read(path: Path) -> Ledger:
    """Errors: FileNotFoundError; ValueError where the file is no ledger of a format that we read."""
    following = lines(path)
    header = next(following, None)
    if header is None or header.get("type") != "header" or header.get("format") != FORMAT:
        raise ValueError(f"{path} is no ledger of format {FORMAT}")
    by_type: dict[str, list[Line]] = {}
    cases: dict[Place, Counter[str]] = {}
    held: dict[tuple[Place, str], Counter[str]] = {}
    unreached: Counter[tuple[str, str, str]] = Counter()
    for line in following:
        if line["type"] != "verdict":
            by_type.setdefault(line["type"], []).append(line)
            if line["type"] == "tally":
                _tally(line, cases, held)
            continue
        place = place_of(line)
        if (counted := cases.get(place)) is None:
            counted = cases[place] = Counter()
        counted[line["result"]] += 1
        if line["case"] is None:
            unreached[place.target, place.check, line.get("why", "")] += 1
        for invariant, result in line.get("by", {}).items():
            key = place, invariant
            if (counted := held.get(key)) is None:
                counted = held[key] = Counter()
            counted[result] += 1
    return Ledger(path, header, by_type, cases, held, unreached)


def place_of(line: Line) -> Place:
    """Of a verdict, or of a tally."""
    return Place(line["target"], line["check"], line["subject"], line["version"])


def _tally(line: Line, cases: dict[Place, Counter[str]], held: dict[tuple[Place, str], Counter[str]]) -> None:
    place = place_of(line)
    cases.setdefault(place, Counter()).update(line["results"])
    for invariant, results in line["by"].items():
        held.setdefault((place, invariant), Counter()).update(results)


def missing(folder: Path) -> str:
    """What is said of a folder without a ledger, and what would do."""
    if (folder / "manifest.json").is_file():
        again = f"kipcheck campaign --resume {folder}"
        return f"{folder} holds a campaign that was cut off before anything was told of it: {again} goes on with it"
    return f"{folder} holds no {NAME}: a folder is wanted that kipcheck run wrote with --out, or kipcheck campaign"


def lines(path: Path) -> Iterator[Line]:
    """Errors: FileNotFoundError; ValueError where a line is none of a ledger. The last line may be cut off."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, 1):
            if not text.endswith("\n"):
                return  # the run died while it wrote this line
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                raise ValueError(f"{path} is no ledger: {text[:60]!r} is not JSON") from None
            if not isinstance(line, dict) or not isinstance(line.get("type"), str):
                raise ValueError(f"{path} is no ledger: {text[:60]!r} is no object with a type")  # noqa: TRY004
            if line["type"] == "failure" or (line["type"] == "flaky" and line.get("id")):
                check_failure(line, f"{path}:{number}")
            yield line


def check_failure(line: Mapping[str, Any], at: str) -> None:
    """Of a failure in a file, what becomes a path or a command for the reader. ``at``: the file, for the error.

    Errors: ValueError that names the key and what would do.
    """
    id, again = line.get("id"), line.get("reproduce", "")
    if not isinstance(id, str) or not ID.fullmatch(id):
        raise ValueError(f'{at}: "id" is {_brief(id)}: the id of a failure is 12 hex digits')
    if not isinstance(again, str) or not _is_ours(again):
        raise ValueError(f'{at}: "reproduce" is {_brief(again)}: that is no single command of kipcheck')


def _brief(found: object) -> str:
    text = repr(found)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _is_ours(command: str) -> bool:
    """Is it one command line of kipcheck, quoted as we quote it? Empty: it is not known yet."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return not command or (words[:1] == ["kipcheck"] and shlex.join(words) == command)


def spans(numbers: Iterable[int]) -> str:
    """``0-4, 6``."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{low}-{high}" if low != high else str(low) for low, high in found)


def numbers(spans: str) -> set[int]:
    """What ``spans`` wrote."""
    found: set[int] = set()
    for each in filter(None, spans.split(", ")):
        low, _, high = each.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found
