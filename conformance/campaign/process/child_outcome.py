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
from kipcheck.conformance.core.values.untrusted_text import clean, one_line
from kipcheck.conformance.targets.transport.pipe import exit_text, half_of_memory

RETRY_FACTOR: Final = 10.0
"""The factor for the bounds of a shard that is run once more because it exceeded them."""
KILLED: Final = tuple(
    f"killed by {each.name}" for each in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
)
"""Killed by a signal that no defect raises."""
OUTPUT_LIMIT: Final = 4 << 10
"""The last bytes of a child's output that a row contains."""
ROW: Final = b"row\n"
RAISED: Final = b"raised\n"
MEMORY: Final = b"memory\n"
DAMAGED: Final = b"damaged\n"
"""The beginnings of a result; ``MEMORY`` is a whole result, if a child ran out of memory and could still report it."""
DONE: Final = b"\n%d\x04"
"""The end of a result whose child waits for its next order, with the milliseconds of processor time of the shard."""

BoundsOf: TypeAlias = Callable[[Shard], Bounds]


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """An order to the fork server."""

    shard: Shard
    bounds: Bounds
    snapshot: bytes | None
    """``Snapshot.dump``, empty for none; None: the same as in the order before."""


@dataclass(frozen=True, slots=True)
class ChildOutcome:
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


def failed_row(shard: Shard, status: Status, detail: str, entry: Entry | None = None) -> Row:
    """The row of a shard whose child failed, with the case at which it failed. It has no counts."""
    at, case = (None, "") if entry is None else (entry.number, entry.text)
    return replace(shard.empty_row(), status=status, detail=detail, at_case=at, case=case).sealed()


def packed(row: Row) -> bytes:
    """The result that a child writes."""
    return ROW + json.dumps(row.plain, separators=(",", ":")).encode()


def done(result: bytes | bytearray) -> tuple[bytes, int] | None:
    """A result without ``DONE``, and the milliseconds; None: it has no such end."""
    if result[-1:] != DONE[-1:]:
        return None
    content, _, took = bytes(result[:-1]).rpartition(DONE[:1])
    return (content, int(took)) if took.isdigit() else None


def row_of(shard: Shard, bounds: Bounds, end: ChildOutcome, entry: Entry | None) -> Row:
    """``entry``: the journal of the child."""
    if end.stopped:
        return failed_row(shard, "timeout", _with_output(end.stopped, end.noise), _if_long(entry, bounds))
    if end.code == -signal.SIGXCPU:
        if entry is not None and entry.watched:
            why = f"more than {bounds.case_cpu_s:g} s of processor time in one place"
            return failed_row(shard, "timeout", _with_output(why, end.noise), entry)
        # It made progress, so the case at the end of the time is accidental.
        return failed_row(shard, "timeout", _with_output(f"more than {bounds.cpu_s:g} s of processor time", end.noise))
    if end.code == 0 and end.result.startswith(ROW):
        return _row_of_result(shard, end, entry)
    if end.result == MEMORY:
        return failed_row(shard, "memory", _with_output(f"more than {bounds.memory >> 20} MiB", end.noise), entry)
    if end.code == 1 and end.result.startswith(RAISED):
        why = "raised " + one_line(end.result[len(RAISED) :][:500].decode("utf-8", "replace"))
        return failed_row(shard, "crashed", _with_output(why, end.noise), entry)
    if end.result and end.code == 0:
        why = f"{len(end.result)} bytes that are not a row: {end.result[:40]!r}"
        return failed_row(shard, "garbled", _with_output(why, end.noise), entry)
    way = exit_text(end.code) + (" without a result" if end.code >= 0 else "")
    return failed_row(shard, "crashed", _with_output(way, end.noise), entry)


def _if_long(entry: Entry | None, bounds: Bounds) -> Entry | None:
    """The case, if it ran for most of the time and so is the cause."""
    long = entry is not None and time.monotonic() - entry.since > bounds.wall_s / 2
    return entry if long else None


def _row_of_result(shard: Shard, end: ChildOutcome, entry: Entry | None) -> Row:
    try:
        plain: dict[str, Any] = json.loads(end.result[len(ROW) :])
        row = Row.of(plain)
        if row.key != shard.key or row.sealed().digest != row.digest:
            raise ValueError("it is of another shard, or incomplete")
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        why = f"{len(end.result)} bytes that are not a row: {type(wrong).__name__}: {wrong}"
        return failed_row(shard, "garbled", _with_output(why, end.noise), entry)
    return row


def _with_output(why: str, noise: bytes) -> str:
    output = clean(noise[-OUTPUT_LIMIT:].decode("utf-8", "replace").strip())
    return f"{why}\n{output}" if output else why
