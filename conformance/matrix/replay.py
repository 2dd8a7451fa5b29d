"""Replays a history of the matrix."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from kipcheck.conformance.apis.streams import event_of, shorthand
from kipcheck.conformance.apis.streams_sentences import words
from kipcheck.conformance.clients.java.streams_members import open_jars
from kipcheck.conformance.core.case import Case
from kipcheck.conformance.matrix.cells import BREAKS, Told, verdict_of
from kipcheck.conformance.matrix.groups import Made, Mixed, foretold, released
from kipcheck.conformance.matrix.play import judged, played
from kipcheck.conformance.models.streams.members import FUTURE
from kipcheck.conformance.models.streams.operations import Start


def again(path: Path) -> tuple[str, bool]:
    """Replays the history in a file. Returns its events as text, and whether it breaks.

    Errors: OSError; ValueError, LookupError, TypeError for an invalid file; ``Unavailable`` without JDK or jars.
    """
    filed = json.loads(path.read_text("utf-8"))
    case = Case.of(filed["plain"])
    script = tuple(map(event_of, case.steps))
    releases = sorted({each.release for each in script if isinstance(each, Start)} - {FUTURE})
    with open_jars(releases) if releases else nullcontext() as jars:
        made: Made = foretold(True, case.edition) if jars is None else released(jars.binary, case.edition)
        ((_, seen),) = played(Mixed(made), [script])
    told = verdict_of(judged(script, seen, case.check, str(filed["target"]), case.edition), str(filed["scenario"]))
    return "\n".join(_lines(told)) + "\n", told.verdict == BREAKS


def _lines(told: Told) -> Iterator[str]:
    for number, (step, seen) in enumerate(zip(told.judged.history.case.steps, told.judged.seen, strict=True)):
        yield f"{number:>3}  {shorthand([step])}"
        yield from (f"       {words(each)}" for each in seen)
    for each in told.judged.broken:
        yield f"broken: {each.invariant.id} ({', '.join(each.invariant.requirements)}): {each.violation.why}"
    if told.blame is not None:
        yield f"{told.verdict} {told.blame.requirement}: {told.blame.reason}"
    else:
        yield f"{told.verdict}, at most {told.judged.rounds} rebalances"
