"""Runs shards in child processes of a fork server, one after the other, and returns a row for each in any case."""

import os
import pickle
import platform
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from types import TracebackType
from typing import IO, Final, Self

from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.process import child_outcome, server_start
from kipcheck.conformance.campaign.process.fork_server import LENGTH, READY
from kipcheck.conformance.campaign.process.journal import ROOM, Journal
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.targets.toolchains import maven

STORAGE: Final = "HYPOTHESIS_STORAGE_DIRECTORY"
RUN: Final = "kipcheck.conformance.campaign.shard:run_shard"
MOST_CRASHES: Final = 2
"""The number of fork servers that one shard may crash."""
GRACE_S: Final = 60.0
"""Time beyond all limits: a fork server that has not reported the end of its child by then is killed."""
STOP_S: Final = 10.0
"""The time for a fork server to end its children and itself."""
START_S: Final = 300.0
"""The time for all imports, on a busy machine."""


class CannotRunShards(RuntimeError):
    """No fork server can be started here, or it cannot read its orders; the shard is not the cause."""


@dataclass(slots=True)
class _Work:
    order: child_outcome.ShardOrder
    snapshot: bytes
    attempt: int
    until: float
    """``time.monotonic()``."""
    crashes: int = 0


class ShardRunner:
    """Runs one shard at a time. ``hold`` waits for its row; ``begin``, ``fileno`` and ``advance`` allow other
    waiting.
    """

    def __init__(
        self, run: str = RUN, bounds: child_outcome.BoundsOf = child_outcome.usual, path: Sequence[str] = ()
    ) -> None:
        """``run``: module:function, as ``run_shard``. ``path``: additional folders in which the fork server and its
        children find modules.
        """
        self._run, self._bounds, self._path = run, bounds, tuple(path)
        self._file = _shared_file()
        self._journal = Journal(self._file.fileno())
        self._noise = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as this object
        self._process: server_start.Server | None = None
        self._read = b""
        self._ready = False
        self._known: bytes | None = None
        """The snapshot that the fork server has."""
        self._work: _Work | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self._journal.close()
        self._file.close()
        self._noise.close()

    def run_shard(self, shard: Shard, snapshot: bytes, times: float = 1.0) -> Row:
        """``times``: a factor for the bounds of the shard. If its row ``is_doubtful``, the shard is run once more, here
        and at once, with ``AGAIN`` times as much, and the second row counts. Errors: ``CannotRunShards``.
        """
        row = self.run_once(shard, snapshot, times)
        return (
            self.run_once(shard, snapshot, times * child_outcome.RETRY_FACTOR, attempt=1)
            if child_outcome.is_doubtful(row)
            else row
        )

    def run_once(self, shard: Shard, snapshot: bytes, times: float = 1.0, attempt: int = 0) -> Row:
        """As ``hold``, but returns a row that ``is_doubtful``."""
        self.begin(shard, snapshot, times, attempt)
        try:
            while True:
                select.select([self], [], [], max(0.0, self.until - time.monotonic()))
                if (row := self.advance()) is not None:
                    return row
        finally:
            if self.busy:
                self.stop()

    def begin(self, shard: Shard, snapshot: bytes, times: float = 1.0, attempt: int = 0) -> None:
        """Errors: ``CannotRunShards``."""
        assert self._work is None
        bounds = child_outcome.stretched(self._bounds(shard), times)
        self._work = _Work(child_outcome.ShardOrder(shard, bounds, None), snapshot, attempt, 0.0)
        self._send()

    @property
    def busy(self) -> bool:
        return self._work is not None

    @property
    def shard(self) -> Shard:
        """The shard that is running."""
        assert self._work is not None
        return self._work.order.shard

    @property
    def until(self) -> float:
        """The latest time (``time.monotonic()``) to call ``advance``, even if nothing can be read."""
        assert self._work is not None
        return self._work.until

    def fileno(self) -> int:
        """Readable when ``advance`` has work to do."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def advance(self) -> Row | None:
        """Reads without waiting; returns the row once it is complete. Errors: ``CannotRunShards``."""
        assert self._work is not None
        work = self._work
        if time.monotonic() >= work.until:
            return self._restart_or_fail("sent nothing in time")
        try:
            while data := os.read(self.fileno(), 1 << 20):
                self._read += data
                if (message := self._message()) is not None:
                    return self._row(work, message)
        except BlockingIOError:
            return None
        return self._restart_or_fail("crashed")

    def stop(self) -> None:
        """Kills the running shard at once: it leaves no row and no process."""
        self._work = None
        self._known, self._read, self._ready = None, b"", False
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _send(self) -> None:
        assert self._work is not None
        work = self._work
        fresh = self._process is None
        if fresh:
            self._start()
        order = replace(work.order, snapshot=None if work.snapshot == self._known else work.snapshot)
        self._known = work.snapshot
        work.until = time.monotonic() + work.order.bounds.wall_s + GRACE_S + (START_S if fresh else 0.0)
        data = pickle.dumps(order)
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has crashed, which ``advance`` notices
            self._process.stdin.write(LENGTH.pack(len(data)) + data)
            self._process.stdin.flush()

    def _start(self) -> None:
        self._noise.seek(0)
        self._noise.truncate(0)
        self._journal.clear()
        known = [*self._path, *filter(None, [os.environ.get("PYTHONPATH")])] if self._path else []
        environment = {
            # Otherwise Hypothesis creates a folder in the working directory.
            STORAGE: os.environ.get(STORAGE, str(maven.cache() / "hypothesis")),
            **({"PYTHONPATH": os.pathsep.join(known)} if known else {}),
        }
        self._process = server_start.started(self._run, self._file.fileno(), self._noise, environment)
        os.set_blocking(self.fileno(), False)

    def _message(self) -> object | None:
        """The next message of the fork server, once it is complete."""
        if len(self._read) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._read)
        if len(self._read) < LENGTH.size + length:
            return None
        data, self._read = self._read[LENGTH.size :][:length], self._read[LENGTH.size + length :]
        message: object = pickle.loads(data)
        if message == READY:
            self._ready = True
            return self._message()
        return message

    def _row(self, work: _Work, message: object) -> Row:
        self._work = None
        if not isinstance(message, child_outcome.ChildOutcome):
            self._known = None
            raise CannotRunShards(f"the corpus of shard {work.order.shard.shard} cannot be read: {message}")
        row = child_outcome.row_of(work.order.shard, work.order.bounds, message, self._journal.read())
        return replace(
            _here(row), attempt=work.attempt, wall_ms=message.wall_ms, cpu_ms=message.cpu_ms, started=message.started
        )

    def _restart_or_fail(self, why: str) -> Row | None:
        """The fork server has ended: restarts it with the same shard, unless the shard has crashed too many."""
        assert self._work is not None
        work, ready, entry = self._work, self._ready, self._journal.read()
        if self._process is not None and why == "sent nothing in time":
            self._process.kill()
        self.stop()
        if not ready:
            raise CannotRunShards(f"the fork server for shards cannot be started: {self._last_line()}")
        work.crashes += 1
        if work.crashes < MOST_CRASHES:
            self._work = work
            self._send()
            return None
        row = child_outcome.failed_row(
            work.order.shard, "crashed", f"the fork server {why} with it, {work.crashes} times", entry
        )
        return replace(_here(row), attempt=work.attempt)

    def _last_line(self) -> str:
        size = self._noise.seek(0, os.SEEK_END)
        self._noise.seek(max(0, size - 2000))
        output = self._noise.read().decode("utf-8", "replace").strip()
        return output.rpartition("\n")[2] or "it crashed without output"


def _shared_file() -> IO[bytes]:
    """The file of a journal, in memory if possible: writing to a mapped file on a full disk kills the process."""
    if sys.platform == "linux":
        file: IO[bytes] = os.fdopen(os.memfd_create("journal"), "w+b")
        os.ftruncate(file.fileno(), ROOM)
        return file
    file = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the journal
    file.write(bytes(ROOM))
    file.flush()
    return file


def _here(row: Row) -> Row:
    return replace(row, host=_host(), python=platform.python_version())


@cache
def _host() -> str:
    return socket.gethostname()
