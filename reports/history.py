"""Several runs, the oldest first, by cause: what is new in the last one, what is fixed, and what comes and goes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from kipcheck.conformance.core.values.impacts import severity_rank
from kipcheck.conformance.core.values.untrusted_text import harmless
from kipcheck.reports.phrases import some
from kipcheck.reports.summary import CauseOf, Summary

NEW, OPEN, COMES_AND_GOES, FIXED, NOT_LOOKED_AT = "new", "open", "comes and goes", "fixed", "not looked at"
STATES: Final = (NEW, OPEN, COMES_AND_GOES, NOT_LOOKED_AT, FIXED)
"""What a cause is in the last run, in the order of the report."""
ABSENT, UNSEEN = "-", "?"
"""In place of a number of cases: the checks were run, and it did not occur; they were not run."""

LEGEND: Final = f"Numbers are distinct cases; {ABSENT}: its checks ran, and it did not occur; {UNSEEN}: not looked at."


@dataclass(slots=True)
class Track:
    """A cause over the runs."""

    target: str
    """Without its release."""
    title: str
    severity: str
    page: str
    checks: set[str] = field(default_factory=set)
    cases: dict[int, int] = field(default_factory=dict)
    """Place of a run -> distinct cases that show it."""

    def seen(self, runs: Sequence[Summary]) -> list[str]:
        """For each run the number of cases, ``-`` or ``?``."""
        return [
            str(self.cases[at]) if at in self.cases else ABSENT if self._is_looked_at(run) else UNSEEN
            for at, run in enumerate(runs)
        ]

    def _is_looked_at(self, run: Summary) -> bool:
        """Whether the run was complete, and each check that ever showed the cause was run with the target."""
        targets = [each for each in run.targets if _base(run, each) == self.target]
        return run.complete and any(
            all(each in run.table and target in run.table[each] for each in self.checks) for target in targets
        )


def state(seen: Sequence[str]) -> str:
    """What a cause is in the last run."""
    known = [each for each in seen if each != UNSEEN]
    if seen[-1] == UNSEEN:
        return NOT_LOOKED_AT
    changes = sum((one == ABSENT) != (other == ABSENT) for one, other in pairwise(known))
    if changes > 1:
        return COMES_AND_GOES
    if seen[-1] == ABSENT:
        return FIXED
    return NEW if changes else OPEN


def render(runs: Sequence[Summary]) -> str:
    """``runs``: the oldest first."""
    tracks = _tracks(runs)
    states = {key: state(each.seen(runs)) for key, each in tracks.items()}
    order = sorted(tracks, key=lambda key: (STATES.index(states[key]), severity_rank(tracks[key].severity)))
    numbers = ", ".join(f"{number} {word}" for word in STATES if (number := [*states.values()].count(word)))
    lines = [f"{some(len(runs), 'run')}, {some(len(tracks), 'cause')}{': ' if numbers else ''}{numbers}", ""]
    lines += [f"  {at}  {_about(run)}" for at, run in enumerate(runs, 1)]
    if tracks:
        widths = [max(3, len(str(at))) for at in range(1, len(runs) + 1)]
        lines += ["", _row("", "severity", [str(at) for at in range(1, len(runs) + 1)], widths, "cause")]
    for key in order:
        track = tracks[key]
        lines.append(_row(states[key], track.severity, track.seen(runs), widths, f"{track.target}: {track.title}"))
        lines += [f"{'':34}{track.page}"] if track.page else []
    lines += ["", LEGEND]
    return harmless("\n".join(lines)) + "\n"


def _tracks(runs: Sequence[Summary]) -> dict[tuple[str, ...], Track]:
    found: dict[tuple[str, ...], Track] = {}
    for at, run in enumerate(runs):
        for each in run.causes:
            if each.kind == "NOTE":
                continue
            first, cause = each.failures[0], each.cause
            page = cause.page or "" if cause is not None else ""
            target = _base(run, first.target)
            key = (target, page) if page else (target, first.invariant, *map(str, first.shape))
            title = _statement(run, first.invariant) if cause is None else cause.title
            severity = "no cause" if cause is None else cause.severity
            track = found.setdefault(key, Track(target, title, severity, page))
            track.checks |= {check for failure in each.failures for check in failure.checks}
            track.cases[at] = track.cases.get(at, 0) + _cases(each)
    return found


def _statement(run: Summary, invariant: str) -> str:
    about = run.header.invariants.get(invariant)
    return invariant if about is None else about.sentence


def _cases(each: CauseOf) -> int:
    return each.failures[0].cases if each.cause is None else each.cause.cases


def _base(run: Summary, target: str) -> str:
    """The target without its release, so that runs of two releases are compared."""
    version = run.versions.get(target) or ""
    return target.removesuffix(version).rstrip("@:") if version else target


def _about(run: Summary) -> str:
    targets = ", ".join(run.called(each) for each in run.targets)
    outcome = run.meaning if run.exit is not None else "not complete"
    return f"{run.header.begun or 'unknown date':20.16}  {targets}  seed {run.options.seed}: {outcome}"


def _row(state: str, severity: str, cells: Sequence[str], widths: Sequence[int], title: str) -> str:
    numbers = " ".join(f"{each:>{width}}" for each, width in zip(cells, widths, strict=True))
    return f"{state:15}{severity:19}{numbers}  {title}"
