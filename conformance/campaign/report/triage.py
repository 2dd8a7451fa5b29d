"""What is new: the distinct failures of a run or a campaign, each beside what was known of it before."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from kipcheck.conformance.core.foreign import harmless_line
from kipcheck.conformance.core.ledger import NAME, Ledger, Line, Place, missing, read
from kipcheck.conformance.engine.failures import FLAKY, FOLDER, again, goes_to, where_places
from kipcheck.reports.phrases import some

Status: TypeAlias = Literal["new", "flaky", "known", "fixed"]
STATUSES: Final[tuple[Status, ...]] = ("new", "flaky", "known", "fixed")
"""In the order in which somebody wants to hear of them.

``new``: nothing tells of it. ``flaky``: it did not come again when it was run alone, or comes and goes. ``known``: it
is on a list of known deviations, or was there before. ``fixed``: it was there before, and where it was seen there were
cases now, and all of them passed.
"""
NOTE: Final = "INFO"
MOST: Final = 400
"""So much of a reason is told in a line."""
GRADES: Final = ("MUST", "SHOULD", NOTE)


class Unread(Exception):
    """There is no ledger that can be read. Says where, and what would do."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A distinct failure."""

    id: str
    target: str
    check: str
    requirements: tuple[str, ...]
    status: Status
    count: int
    """Cases that showed it."""
    case: Path | None
    """With its least case; None where none shows it, or the file is gone."""
    grade: str
    why: str

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "id": self.id, "target": self.target, "check": self.check, "requirements": list(self.requirements),
            "status": self.status, "count": self.count, "case": None if self.case is None else str(self.case),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Triage:
    failures: tuple[Judged, ...]
    complete: bool
    unseen: int
    """Of those that were there before: gone, or not looked for everywhere."""

    def count(self, status: Status) -> int:
        return sum(each.status == status for each in self.failures)

    @property
    def decides(self) -> bool:
        """Is something new that breaks a MUST or a SHOULD? Notes decide nothing, here as everywhere."""
        return any(each.status == "new" and each.grade != NOTE for each in self.failures)

    @property
    def plain(self) -> dict[str, Any]:
        return {"failures": [each.plain for each in self.failures], "complete": self.complete}


def triage(folder: Path, against: Path | None = None) -> Triage:
    """Errors: ``Unread``."""
    ledger = _read(folder)
    before = None if against is None else _read(against)
    found = [*_here(ledger, before)]
    gone: list[Line] = []
    fixed: list[Judged] = []
    if before is not None:
        gone = [each for each in before.failures if not _among(each, [*ledger.failures, *ledger.flaky])]
        fixed = [_judged(before, each, "fixed") for each in gone if _passes(ledger, each)]
    order = {status: number for number, status in enumerate(STATUSES)}
    found = sorted([*found, *fixed], key=lambda each: (order[each.status], GRADES.index(each.grade)))
    return Triage(tuple(found), ledger.complete, len(gone) - len(fixed))


def _read(folder: Path) -> Ledger:
    path = folder if folder.is_file() else folder / NAME
    try:
        return read(path)
    except FileNotFoundError:
        raise Unread(missing(folder)) from None
    except (OSError, ValueError) as wrong:
        raise Unread(str(wrong)) from None


def _here(ledger: Ledger, before: Ledger | None) -> Iterator[Judged]:
    flaky = {str(each["id"]): each for each in ledger.flaky if each.get("id")}
    failed, went = ([], []) if before is None else (before.failures, before.flaky)
    for line in ledger.failures:
        status: Status = "new"
        if line["id"] in flaky or _among(line, went):
            status = "flaky"
        elif line.get("known") or _among(line, failed):
            status = "known"
        yield _judged(ledger, line, status)
    told = {line["id"] for line in ledger.failures}
    for id, line in flaky.items():
        if id not in told:
            yield _flaky(ledger, line)


def _judged(ledger: Ledger, line: Line, status: Status) -> Judged:
    requirements = tuple(each["id"] for each in line["requirements"])
    return Judged(
        line["id"], line["target"], line["check"], requirements, status, line["cases"], _filed(ledger, line["id"]),
        line["grade"], line["why"],
    )  # fmt: skip


def _flaky(ledger: Ledger, line: Line) -> Judged:
    about: Mapping[str, Any] = ledger.header.get("invariants", {}).get(line["invariant"], {})
    return Judged(
        line["id"], line["target"], line["check"], tuple(line["requirements"]), "flaky", line["cases"],
        _filed(ledger, line["id"], FLAKY), about.get("grade", GRADES[0]), line["why"],
    )  # fmt: skip


def _filed(ledger: Ledger, id: str, below: str = "") -> Path | None:
    path = ledger.path.parent / FOLDER / below / f"{id}.json"
    return path if path.is_file() else None


def _among(line: Line, others: Sequence[Line]) -> bool:
    """Is it one of them? What was not shrunk tells less of itself, here or there."""
    return any(
        line["id"] == other.get("id")
        or (not line.get("shrunk", True) and "shape" in other and goes_to(line, other))
        or (not other.get("shrunk", True) and goes_to(other, line))
        for other in others
    )


def _passes(ledger: Ledger, line: Line) -> bool:
    """Was it looked for in all its places, and nothing found there?"""
    for place in where_places(line["where"]):
        held = (ledger.held.get((Place(line["target"], check, *place), line["invariant"])) for check in line["checks"])
        results = sum((each for each in held if each is not None), Counter[str]())
        if not results["PASS"] or results["FAIL"]:
            return False
    return True


def lines(found: Triage) -> Iterator[str]:
    """For people: a few lines for each failure, then the sum."""
    for each in found.failures:
        broken = f"{each.grade} {', '.join(each.requirements)}".rstrip()
        yield harmless_line(f"{each.status:<5} {each.id}  {each.target}  {each.check}  ({broken})")
        yield harmless_line(f"      {textwrap.shorten(each.why, MOST)}")
        if each.status != "fixed":
            command = f"; {again(each.case, each.target)}" if each.case is not None else ""
            yield f"      {some(each.count, 'case')}{command}"
    told = ", ".join(f"{found.count(status)} {status}" for status in STATUSES)
    more = f"; {found.unseen} of those before were not looked for in all their places" if found.unseen else ""
    yield f"{told}{more}; {'complete' if found.complete else 'INCOMPLETE'}"
