"""A stored failure, held again."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.core.case import Case
from conformance.core.exits import BROKEN, CONFORMANT, FAILED, OURS, UNDECIDED, USAGE
from conformance.core.ledger import NAME
from conformance.core.verdict import Result
from conformance.failures import FOLDER
from conformance.invariants.readings import Disagreement
from conformance.invariants.registry import Invariant, all_invariants
from conformance.runner import converse, judge
from conformance.targets.protocol import Broken, Session, Unavailable, Unstable
from conformance.targets.roll import target as target_of


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a failure when it was run again."""

    exit_code: int
    """1 it fails again, 0 it is gone, 6 it cannot be judged any more; 2, 3 and 70 as for a run."""
    says: str


def stored(places: Iterable[Path]) -> Iterator[Path]:
    """The files of failures: those named, and all in the folders named, which may be of runs or of campaigns."""
    for place in places:
        of_run = (place / FOLDER).is_dir() or (place / NAME).is_file()
        within = place / FOLDER if of_run else place
        if of_run or within.is_dir():
            yield from sorted(within.glob("*.json"))
        else:
            yield within


def replay(path: Path, instead: str | None = None) -> Replayed:
    """Run the case of ``failures/ID.json`` again, with the target that it names, or ``instead``. Raises nothing."""
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
        with target_of(instead or target).open(case.edition, case.role) as session:
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
