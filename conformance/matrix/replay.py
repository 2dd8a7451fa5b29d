"""Replays a history of the matrix."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from kipcheck.conformance.clients.java.streams_members import open_jars
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.matrix.cells import BREAKS, ScriptResult, verdict_of
from kipcheck.conformance.matrix.groups import BinaryFactory, mixed_group, reference_binaries, released_binaries
from kipcheck.conformance.matrix.play import judged, played
from kipcheck.conformance.protocols.streams.model.members import FUTURE
from kipcheck.conformance.protocols.streams.ops import OBSERVED, OPERATIONS, Start


def replay(path: Path) -> tuple[str, bool]:
    """Replays the history in a file. Returns its events as text, and whether it breaks.

    Errors: OSError; ValueError, LookupError, TypeError for an invalid file; ``Unavailable`` without JDK or jars.
    """
    filed = json.loads(path.read_text("utf-8"))
    case = Case.of(filed["plain"])
    script = tuple(map(OPERATIONS.event_of, case.steps))
    releases = sorted({each.release for each in script if isinstance(each, Start)} - {FUTURE})
    with open_jars(releases) if releases else nullcontext() as jars:
        made: BinaryFactory = (
            reference_binaries(True, case.edition) if jars is None else released_binaries(jars.binary, case.edition)
        )
        ((_, events),) = played(mixed_group(made), [script])
    result = verdict_of(judged(script, events, case.check, str(filed["target"]), case.edition), str(filed["scenario"]))
    return "\n".join(_lines(result)) + "\n", result.verdict == BREAKS


def _lines(result: ScriptResult) -> Iterator[str]:
    for number, (step, events) in enumerate(zip(result.judged.history.case.steps, result.judged.seen, strict=True)):
        yield f"{number:>3}  {OPERATIONS.shorthand([step])}"
        yield from (f"       {OBSERVED.describe(each)}" for each in events)
    for each in result.judged.broken:
        yield f"broken: {each.invariant.id} ({', '.join(each.invariant.requirements)}): {each.violation.why}"
    if result.cause is not None:
        yield f"{result.verdict} {result.cause.requirement}: {result.cause.reason}"
    else:
        yield f"{result.verdict}, at most {result.judged.rounds} rebalances"
