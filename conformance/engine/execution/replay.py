"""``kipcheck replay``: runs stored failures again."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kipcheck.conformance.core.ledger import FAILURE_FORMAT, NAME, FiledFailure, SequenceStep
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.exits import BROKEN, CONFORMANT, FAILED, OURS, UNDECIDED, UNSTABLE, USAGE
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.target_title import titled
from kipcheck.conformance.core.values.untrusted_text import WATCHED, is_data, one_line
from kipcheck.conformance.core.values.verdict import Disagreement, Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.findings.failures import FOLDER, load
from kipcheck.conformance.engine.search import races
from kipcheck.conformance.protocols.checks import exchanges_of, family_of
from kipcheck.conformance.protocols.declare.check import Impossible
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.command import with_patience
from kipcheck.conformance.targets.protocol import Broken, Session, Unavailable, Unstable
from kipcheck.conformance.targets.registry import target as target_of

OLDER: Final = "the file is of format 1: a run now gives the failure another id and shape"


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of running a stored failure again."""

    exit_code: int
    """1 it fails again, 0 it is gone, 4 it is a race and fails too seldom to be a failure, 6 it cannot be judged any
    more; 2, 3 and 70 as for a run."""
    message: str
    exchanges: tuple[SequenceStep, ...] = ()
    """All that was sent and answered; none: the case was not run."""


def stored(places: Iterable[Path]) -> Iterator[Path]:
    """The files of failures: those given, and all in the given folders, which may be of runs or of campaigns."""
    for place in looked_in(places):
        if place.is_dir():
            yield from sorted(place.glob("*.json"))
        elif place.exists():
            yield place


def looked_in(places: Iterable[Path]) -> Iterator[Path]:
    """The files, and the folders whose files are failures: ``failures`` in that of a run or campaign."""
    for place in places:
        of_run = (place / FOLDER).is_dir() or (place / NAME).is_file() or not place.exists()
        yield place / FOLDER if of_run else place


def replay(
    path: Path, instead: str | None = None, trusted: bool = False, patience_s: float | None = None
) -> ReplayResult:
    """Runs the case of ``failures/ID.json`` again, with its own target or with ``instead``. Raises nothing.

    ``trusted``: a command in the file may be started. ``patience_s``: the longest back-off of a live client, in place
    of the one in the name of the target; None: that one.
    """
    try:
        filed, case = load(path)
    except OSError as missing:
        return ReplayResult(USAGE, f"{path} cannot be read: {missing.strerror}")
    except ValueError as wrong:
        return ReplayResult(USAGE, str(wrong))
    target, invariant_id = filed.opened, filed.invariant
    if instead is None and target.startswith(WATCHED):
        return ReplayResult(UNDECIDED, f"{path.stem} was seen in traffic that was watched: {WATCH_AGAIN}")
    older = filed.failure_format < FAILURE_FORMAT
    if instead is None and not trusted and not is_data(target):
        return ReplayResult(USAGE, untrusted_message(path, target))
    invariant = next((each for each in all_invariants(case.role) if each.id == invariant_id), None)
    if invariant is None:
        return ReplayResult(UNDECIDED, f"the invariant {invariant_id!r} does not exist any more")
    try:
        opened = target_of(with_patience(instead or target, patience_s))
    except LookupError as unknown:
        return ReplayResult(USAGE, str(unknown) if instead else f"{path} names a target that is unknown: {unknown}")
    except Unavailable as gone:
        return ReplayResult(UNDECIDED, str(gone))
    try:
        edition = f"apache@{filed.played}" if filed.played else case.edition
        with opened.open(edition, case.role) as session:
            named = filed.target if instead is None else session.info.name
            found = _replayed(session, case, invariant, filed, named)
            return replace(found, message=f"{found.message} ({OLDER})") if older else found
    except (LookupError, Unavailable) as gone:
        return ReplayResult(UNDECIDED, str(gone))
    except (Broken, Unstable) as down:
        return ReplayResult(BROKEN, str(down))
    except Disagreement as ours:
        return ReplayResult(OURS, str(ours))
    except (ValueError, TypeError, AttributeError, RecursionError) as wrong:
        return ReplayResult(USAGE, f"{path} contains no case that can be judged: {wrong!r}")


WATCH_AGAIN = "nothing can be run again; watch the client again with kipcheck watch"


def untrusted_message(path: Path, target: str) -> str:
    """The message for a file that names a command."""
    quoted = one_line(shlex.quote(target))
    return (
        f"{path} names the target {one_line(target)!r}, but kipcheck does not start commands from files: "
        f"to run that command, use --target {quoted} or --trust"
    )


def _replayed(session: Session, case: Case, invariant: Invariant, filed: FiledFailure, named: str) -> ReplayResult:
    """``named``: the target, as the result calls it."""
    about = f"{titled(named, session.info.version)}, {invariant.id}"
    if not session.info.claims.supports(case):
        return ReplayResult(UNDECIDED, f"{about}: the target does not claim an operation of the case")
    histories = [*converse([case] * (1 if filed.rate is None else races.PLAYS), session)]
    if filed.rate is None:
        found, shown = _judged(histories[0], invariant, filed.guilty_step, about), histories[0]
    else:
        found, shown = _rated(histories, invariant, about)
    return replace(found, exchanges=tuple(map(SequenceStep.of, exchanges_of(shown))))


def _rated(histories: Sequence[History], invariant: Invariant, about: str) -> tuple[ReplayResult, History]:
    """The result of a race, and the first play that fails, or else the first one."""
    rate = races.rate_of(histories, invariant)
    shown = next((each for each in histories if races.rate_of([each], invariant).failed), histories[0])
    plays = f"in {rate.failed} of {rate.judged} plays beside copies of its case"
    if not rate.judged:
        return ReplayResult(UNDECIDED, f"{about}: the case can no longer be judged"), shown
    if not rate.failed:
        return ReplayResult(CONFORMANT, f"{about}: gone ({plays})"), shown
    again = "fails again" if rate.is_failure else "fails too seldom to be a failure"
    return ReplayResult(FAILED if rate.is_failure else UNSTABLE, f"{about}: {again}, {plays}"), shown


def _judged(history: History, invariant: Invariant, guilty_step: int, about: str) -> ReplayResult:
    fault = _impossible(history)
    about += impossibility(history)
    verdict = next(judge(history, (invariant,)), None)
    if verdict is None or verdict.result in (Result.SKIP, Result.UNKNOWN):
        return ReplayResult(UNDECIDED, f"{about}: the case can no longer be judged")
    if verdict.result is Result.PASS and fault is not None and fault.step <= guilty_step:
        return ReplayResult(UNDECIDED, f"{about}: step {guilty_step + 1}, which failed, was not judged")
    if verdict.result is Result.PASS:
        return ReplayResult(CONFORMANT, f"{about}: gone")
    return ReplayResult(FAILED, f"{about}: fails again: {verdict.violations[0].why}")


def impossibility(history: History) -> str:
    """A remark about the first step that cannot happen, if there is one: no step from it on is judged."""
    fault = _impossible(history)
    return "" if fault is None else f" (step {fault.step + 1} cannot happen, {fault.rule}: {fault.why})"


def _impossible(history: History) -> Impossible | None:
    """The first step that cannot happen after what the target did."""
    faults = family_of(history.case).impossible(history.case, history.ops)
    return next((each for each in faults if not each.idle), None)
