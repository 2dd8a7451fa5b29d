"""The end of a shard's child process, and the row for it: every end becomes a row, never an exception."""

import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from kipcheck.conformance.campaign.plan import Bounds, Shard
from kipcheck.conformance.campaign.process.journal import Entry
from kipcheck.conformance.campaign.rows import Row, Status
from kipcheck.conformance.core.foreign import clean, one_line
from kipcheck.conformance.targets.transport.pipe import half_of_memory, way_out

AGAIN: Final = 10.0
"""The factor for the bounds of a shard that is run once more because it exceeded them."""
KILLED: Final = tuple(
    f"killed by {each.name}" for each in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
)
"""Killed by a signal that no defect raises."""
EVIDENCE: Final = 4 << 10
"""The last bytes of a child's output that a row contains."""
ROW: Final = b"row\n"
RAISED: Final = b"raised\n"
MEMORY: Final = b"memory\n"
"""The beginnings of a result; ``MEMORY`` is a whole result, if a child ran out of memory and could still report it."""

BoundsOf: TypeAlias = Callable[[Shard], Bounds]


@dataclass(frozen=True, slots=True)
class Order:
    """An order to the fork server."""

    shard: Shard
    bounds: Bounds
    snapshot: bytes | None
    """``Snapshot.dump``, empty for none; None: the same as in the order before."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a child, as its fork server observed it."""

    code: int
    """Exit code, or minus a signal."""
    stopped: str
    """Why it was stopped, if it was."""
    result: bytes
    """What it returned; not verified yet."""
    noise: bytes
    """The end of its output."""
    wall_ms: int
    cpu_ms: int
    """Including its testees."""
    started: str


def usual(shard: Shard) -> Bounds:
    return shard.bounds


def stretched(bounds: Bounds, times: float) -> Bounds:
    """The bounds times ``times``; memory at most half of the machine's, and never less than before."""
    memory = max(bounds.memory, min(int(bounds.memory * times), half_of_memory()))
    return replace(
        bounds,
        wall_s=bounds.wall_s * times,
        cpu_s=bounds.cpu_s * times,
        case_cpu_s=bounds.case_cpu_s * times,
        memory=memory,
    )


def is_doubtful(row: Row) -> bool:
    """Whether the child may have been merely slow, or was killed from outside: by an operator, or for lack of memory.

    The shard is then run once more, with ``AGAIN`` times its bounds.
    """
    return row.status in ("timeout", "memory") or (row.status == "crashed" and row.detail.startswith(KILLED))


def went_down(shard: Shard, status: Status, detail: str, entry: Entry | None = None) -> Row:
    """The row of a shard whose child failed, with the case at which it failed. It has no counts."""
    at, case = (None, "") if entry is None else (entry.number, entry.text)
    return replace(shard.begun(), status=status, detail=detail, at_case=at, case=case).sealed()


def packed(row: Row) -> bytes:
    """The result that a child writes."""
    return ROW + json.dumps(row.plain, separators=(",", ":")).encode()


def row_of(shard: Shard, bounds: Bounds, end: End, entry: Entry | None) -> Row:
    """``entry``: the journal of the child."""
    if end.stopped:
        return went_down(shard, "timeout", _with(end.stopped, end.noise), _if_long(entry, bounds))
    if end.code == -signal.SIGXCPU:
        if entry is not None and entry.watched:
            why = f"more than {bounds.case_cpu_s:g} s of processor time in one place"
            return went_down(shard, "timeout", _with(why, end.noise), entry)
        # It made progress, so the case at the end of the time is accidental.
        return went_down(shard, "timeout", _with(f"more than {bounds.cpu_s:g} s of processor time", end.noise))
    if end.code == 0 and end.result.startswith(ROW):
        return _given(shard, end, entry)
    if end.result == MEMORY:
        return went_down(shard, "memory", _with(f"more than {bounds.memory >> 20} MiB", end.noise), entry)
    if end.code == 1 and end.result.startswith(RAISED):
        why = "raised " + one_line(end.result[len(RAISED) :][:500].decode("utf-8", "replace"))
        return went_down(shard, "crashed", _with(why, end.noise), entry)
    if end.result and end.code == 0:
        why = f"{len(end.result)} bytes that are not a row: {end.result[:40]!r}"
        return went_down(shard, "garbled", _with(why, end.noise), entry)
    left = way_out(end.code) + (" without a result" if end.code >= 0 else "")
    return went_down(shard, "crashed", _with(left, end.noise), entry)


def _if_long(entry: Entry | None, bounds: Bounds) -> Entry | None:
    """The case, if it ran for most of the time and so is the cause."""
    long = entry is not None and time.monotonic() - entry.since > bounds.wall_s / 2
    return entry if long else None


def _given(shard: Shard, end: End, entry: Entry | None) -> Row:
    try:
        plain: dict[str, Any] = json.loads(end.result[len(ROW) :])
        row = Row.of(plain)
        if row.key != shard.key or row.sealed().digest != row.digest:
            raise ValueError("it is of another shard, or incomplete")
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        why = f"{len(end.result)} bytes that are not a row: {type(wrong).__name__}: {wrong}"
        return went_down(shard, "garbled", _with(why, end.noise), entry)
    return row


def _with(why: str, noise: bytes) -> str:
    said = clean(noise[-EVIDENCE:].decode("utf-8", "replace").strip())
    return f"{why}\n{said}" if said else why
