"""Triage: the distinct failures of a run or a campaign, each as new, flaky, known or fixed."""

import shlex
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from kipcheck.conformance.core import ledger as records
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.failure_group import GRADES, severity
from kipcheck.conformance.core.values.untrusted_text import harmless_line
from kipcheck.conformance.engine.execution.replay import ReplayResult, replay
from kipcheck.conformance.engine.findings.failures import FLAKY, FOLDER, again, is_among
from kipcheck.reports.phrases import some

Status: TypeAlias = Literal["new", "flaky", "known", "fixed"]
STATUSES: Final[tuple[Status, ...]] = ("new", "flaky", "known", "fixed")
"""In the order of the report.

``new``: it is not in the earlier ledger, and no list names it. ``flaky``: it did not occur, or not every time, when its
case was run alone. ``known``: it is on a list of known deviations, or in the earlier ledger. ``fixed``: it is in the
earlier ledger; in all places where it was found there were cases now, and all of them passed; and its stored case was
replayed now, and passed.
"""
Replay: TypeAlias = Callable[[Path], ReplayResult]
"""Runs the case in a file of a failure again."""
NOTE: Final = "INFO"
MOST: Final = 400
"""The most characters of a reason in a line."""


class Unread(Exception):
    """There is no ledger that can be read, or compared. The message names the folder and the remedy."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A distinct failure."""

    id: str
    target: str
    check: str
    requirements: tuple[str, ...]
    status: Status
    count: int
    """The number of cases that showed it."""
    case: Path | None
    """The file with its least case; None if no case shows it, or the file is gone."""
    grade: str
    why: str
    opened: str
    """The name under which the target is opened again."""
    since: str = ""
    """If it is fixed: with what it was found last, and with what it did not occur any more."""

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "id": self.id, "target": self.target, "check": self.check, "requirements": list(self.requirements),
            "status": self.status, "count": self.count, "case": None if self.case is None else str(self.case),
            **({"since": self.since} if self.since else {}),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Triage:
    failures: tuple[Judged, ...]
    complete: bool
    untested: str
    """Why the ledger shows too little for a verdict; empty: it does not."""
    unseen: int
    """The number of earlier failures that were not found, and not searched for in all their places."""
    unreplayed: tuple[str, ...] = ()
    """Why those that were searched for everywhere, and not found, could not be replayed."""

    def count(self, status: Status) -> int:
        return sum(each.status == status for each in self.failures)

    @property
    def decides(self) -> bool:
        """Whether a new failure breaks a MUST or a SHOULD: failures of grade INFO decide nothing."""
        return any(each.status == "new" and each.grade != NOTE for each in self.failures)

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "failures": [each.plain for each in self.failures],
            "complete": self.complete,
            "untested": self.untested,
        }


def triage(folder: Path, against: Path | None = None, replayed: Replay = replay) -> Triage:
    """Errors: ``Unread``, also if the ledgers have failures of different formats."""
    ledger = _read(folder)
    before = None if against is None else _comparable(ledger, _read(against))
    found = [*_here(ledger, before)]
    gone: list[records.Failure] = []
    unreplayed: list[str] = []
    unseen = 0
    if before is not None:
        gone = [each for each in before.failures if not is_among(each, [*ledger.failures, *ledger.flaky])]
        for each in gone:
            if not _passes(ledger, each):
                unseen += 1
                continue
            match _replayed(before, each, replayed):
                case "fixed":
                    found.append(replace(_judged(before, each, "fixed"), since=_since(ledger, before, each.target)))
                case "known" | "flaky" as status:
                    found.append(replace(_judged(before, each, status), count=0))
                case why:
                    unreplayed.append(f"{each.id}: {why}")
    order = {status: number for number, status in enumerate(STATUSES)}
    found = sorted(found, key=lambda each: (order[each.status], severity(each.grade)))
    empty = "" if ledger.cases or ledger.failures else "nothing was tested"
    untested = "; ".join(each.why for each in ledger.inconclusive) or empty
    return Triage(tuple(found), ledger.complete, untested, unseen, tuple(unreplayed))


def _replayed(before: records.Ledger, line: records.Failure, replayed: Replay) -> str:
    """What a replay of its stored case says of a failure: ``fixed``, ``known``, ``flaky``; otherwise why nothing."""
    path = _filed(before, line.id)
    if path is None:
        return f"there is no {before.path.parent / FOLDER / line.id}.json"
    result = replayed(path)
    decided = {exits.CONFORMANT: "fixed", exits.FAILED: "known", exits.UNSTABLE: "flaky"}
    return decided.get(result.exit_code, result.message)


def _since(ledger: records.Ledger, before: records.Ledger, target: str) -> str:
    """``not found since 2026-01-31 with kafka-python 3.0.12; last found 2026-01-30 with kafka-python 3.0.11``"""

    def when(one: records.Ledger) -> str:
        version = next((each.version for each in one.targets if each.target == target), "")
        return f"{one.header.begun or 'an unknown time'} with {target} {version}".rstrip()

    return f"not found since {when(ledger)}; last found {when(before)}"


def _read(folder: Path) -> records.Ledger:
    path = folder if folder.is_file() else folder / records.NAME
    try:
        return records.read(path)
    except FileNotFoundError:
        raise Unread(records.missing(folder)) from None
    except (OSError, ValueError) as wrong:
        raise Unread(str(wrong)) from None


def _comparable(ledger: records.Ledger, before: records.Ledger) -> records.Ledger:
    """The earlier ledger, if its ids mean the same. Errors: ``Unread``."""
    if unlike := records.unlike_formats(ledger, before):
        older = min(ledger, before, key=lambda each: each.failure_format).path.parent
        how = f"kipcheck replay {shlex.quote(str(older))}"
        raise Unread(
            f"{unlike}, so they cannot show what is new or fixed: run both with the same kipcheck, or use {how} to "
            "see which of the older failures still occur"
        )
    return before


def _here(ledger: records.Ledger, before: records.Ledger | None) -> Iterator[Judged]:
    flaky = {each.id: each for each in ledger.flaky if each.id}
    failed, went = ((), ()) if before is None else (before.failures, before.flaky)
    for line in ledger.failures:
        status: Status = "new"
        if line.id in flaky or is_among(line, went):
            status = "flaky"
        elif line.known or is_among(line, failed):
            status = "known"
        yield _judged(ledger, line, status)
    written = {line.id for line in ledger.failures}
    for id, each in flaky.items():
        if id not in written:
            yield _flaky(ledger, id, each)


def _judged(ledger: records.Ledger, line: records.Failure, status: Status) -> Judged:
    requirements = tuple(each.id for each in line.requirements)
    return Judged(
        line.id,
        line.target,
        line.check,
        requirements,
        status,
        line.cases,
        _filed(ledger, line.id),
        line.grade,
        line.why,
        line.opened,
    )


def _flaky(ledger: records.Ledger, id: str, line: records.Flaky) -> Judged:
    about = ledger.header.invariants.get(line.invariant)
    return Judged(
        id, line.target, line.check, line.requirements or (), "flaky", line.cases or 0, _filed(ledger, id, FLAKY),
        GRADES[0] if about is None else about.grade, line.why, ledger.opened(line.target),
    )  # fmt: skip


def _filed(ledger: records.Ledger, id: str, below: str = "") -> Path | None:
    path = ledger.path.parent / FOLDER / below / f"{id}.json"
    return path if path.is_file() else None


def _passes(ledger: records.Ledger, line: records.Failure) -> bool:
    """Whether there were cases in all places of the failure, and all of them passed."""
    for place in records.places_of(line.where):
        held = (ledger.held.get((records.Place(line.target, check, *place), line.invariant)) for check in line.checks)
        results = sum((each for each in held if each is not None), Counter[str]())
        if not results["PASS"] or results["FAIL"]:
            return False
    return True


def lines(found: Triage) -> Iterator[str]:
    """The report for a terminal: a few lines for each failure, then the totals."""
    for each in found.failures:
        broken = f"{each.grade} {', '.join(each.requirements)}".rstrip()
        yield harmless_line(f"{each.status:<5} {each.id}  {each.target}  {each.check}  ({broken})")
        yield harmless_line(f"      {textwrap.shorten(each.why, MOST)}")
        if each.status == "fixed":
            yield harmless_line(f"      its case passes now; {each.since}")
            continue
        command = f"; {again(each.case, each.opened)}" if each.case is not None else ""
        cases = some(each.count, "case") if each.count else "no case now, but its earlier one still fails"
        yield f"      {cases}{command}"
    counts = ", ".join(f"{found.count(status)} {status}" for status in STATUSES)
    yield from (harmless_line(f"not replayed: {each}") for each in found.unreplayed)
    more = f"; {found.unseen} of the earlier ones were not searched for in all their places" if found.unseen else ""
    state = "INCOMPLETE" if not found.complete else "inconclusive" if found.untested else "complete"
    yield harmless_line(f"{counts}{more}; {state}{f': {found.untested}' if found.untested else ''}")
