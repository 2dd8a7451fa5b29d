"""How a shard's child ended, and the row that is made of it: whatever it does becomes a row, never an exception."""

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
"""So many times its bounds has a shard that ran out of them, when it is run once more, before that counts."""
KILLED: Final = tuple(
    f"killed by {each.name}" for each in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
)
"""By a signal that no defect raises."""
EVIDENCE: Final = 4 << 10
"""Bytes of the end of what a child wrote that a row keeps."""
ROW: Final = b"row\n"
RAISED: Final = b"raised\n"
MEMORY: Final = b"memory\n"
"""What a result begins with; ``MEMORY`` is all of it, where a child ran out of memory and could still say so."""

BoundsOf: TypeAlias = Callable[[Shard], Bounds]


@dataclass(frozen=True, slots=True)
class Order:
    """What a zygote is asked for."""

    shard: Shard
    bounds: Bounds
    snapshot: bytes | None
    """``Snapshot.dump``, empty for none; None: that of the order before."""


@dataclass(frozen=True, slots=True)
class End:
    """How a child ended, as its zygote saw it."""

    code: int
    """Exit code, or minus a signal."""
    stopped: str
    """Why it was stopped, where it was."""
    result: bytes
    """What it gave back, to be believed only when it has been looked at."""
    noise: bytes
    """The end of what it wrote."""
    wall_ms: int
    cpu_ms: int
    """With that of its testees."""
    started: str


def usual(shard: Shard) -> Bounds:
    return shard.bounds


def stretched(bounds: Bounds, times: float) -> Bounds:
    """``times`` as much of everything; but no more memory than half of what the machine has, and never less memory."""
    memory = max(bounds.memory, min(int(bounds.memory * times), half_of_memory()))
    return replace(
        bounds,
        wall_s=bounds.wall_s * times,
        cpu_s=bounds.cpu_s * times,
        case_cpu_s=bounds.case_cpu_s * times,
        memory=memory,
    )


def is_doubtful(row: Row) -> bool:
    """Was it perhaps merely slow, or killed by somebody else: an operator, or a system without memory?

    It is run once more, with ``AGAIN`` times its bounds, before that counts.
    """
    return row.status in ("timeout", "memory") or (row.status == "crashed" and row.detail.startswith(KILLED))


def went_down(shard: Shard, status: Status, detail: str, entry: Entry | None = None) -> Row:
    """The row of a shard of which nothing is left but where it went down. It counts nothing."""
    at, case = (None, "") if entry is None else (entry.number, entry.text)
    return replace(shard.begun(), status=status, detail=detail, at_case=at, case=case).sealed()


def packed(row: Row) -> bytes:
    """What a child gives back."""
    return ROW + json.dumps(row.plain, separators=(",", ":")).encode()


def row_of(shard: Shard, bounds: Bounds, end: End, entry: Entry | None) -> Row:
    """``entry``: the journal of the child."""
    if end.stopped:
        return went_down(shard, "timeout", _with(end.stopped, end.noise), _if_long(entry, bounds))
    if end.code == -signal.SIGXCPU:
        if entry is not None and entry.watched:
            why = f"more than {bounds.case_cpu_s:g} s of processor time in one place"
            return went_down(shard, "timeout", _with(why, end.noise), entry)
        # It came on, and where it stood when the time was over is the clock's word.
        return went_down(shard, "timeout", _with(f"more than {bounds.cpu_s:g} s of processor time", end.noise))
    if end.code == 0 and end.result.startswith(ROW):
        return _given(shard, end, entry)
    if end.result == MEMORY:
        return went_down(shard, "memory", _with(f"more than {bounds.memory >> 20} MiB", end.noise), entry)
    if end.code == 1 and end.result.startswith(RAISED):
        why = "raised " + one_line(end.result[len(RAISED) :][:500].decode("utf-8", "replace"))
        return went_down(shard, "crashed", _with(why, end.noise), entry)
    if end.result and end.code == 0:
        why = f"{len(end.result)} bytes that are no row: {end.result[:40]!r}"
        return went_down(shard, "garbled", _with(why, end.noise), entry)
    left = way_out(end.code) + (" and gave nothing back" if end.code >= 0 else "")
    return went_down(shard, "crashed", _with(left, end.noise), entry)


def _if_long(entry: Entry | None, bounds: Bounds) -> Entry | None:
    """The case, where it is to blame: because nothing else was begun for a long time."""
    long = entry is not None and time.monotonic() - entry.since > bounds.wall_s / 2
    return entry if long else None


def _given(shard: Shard, end: End, entry: Entry | None) -> Row:
    try:
        plain: dict[str, Any] = json.loads(end.result[len(ROW) :])
        row = Row.of(plain)
        if row.key != shard.key or row.sealed().digest != row.digest:
            raise ValueError("it is of another shard, or not whole")
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        why = f"{len(end.result)} bytes that are no row: {type(wrong).__name__}: {wrong}"
        return went_down(shard, "garbled", _with(why, end.noise), entry)
    return row


def _with(why: str, noise: bytes) -> str:
    said = clean(noise[-EVIDENCE:].decode("utf-8", "replace").strip())
    return f"{why}\n{said}" if said else why
