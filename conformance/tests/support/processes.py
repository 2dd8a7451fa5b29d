"""A kipcheck of its own for a test, and all processes that come of it, wherever they end up."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kipcheck.conformance.targets.transport import process_tree

MARK: Final = "KIPCHECK_TEST_PROCESS"
"""Variable of the environment of all of them: it is inherited, and /proc shows it."""
IGNORES: Final = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
BEGINS_S: Final = 60.0
GONE_S: Final = 10.0


class Started:
    """Call it through ``started``."""

    def __init__(self, argv: Sequence[str], ignored: bool, cwd: Path) -> None:
        self._mark = secrets.token_hex(8)
        self._seen: dict[int, str] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", IGNORES, *argv] if ignored else argv, cwd=cwd, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            env={**os.environ, MARK: self._mark},
        )  # fmt: skip

    def below(self) -> dict[int, str]:
        """Its descendants, with their command lines: those that were seen below it, and those that bear its mark."""
        parents = {pid: parent for pid in _all() if (parent := _parent(pid)) is not None}
        found = {self.process.pid, *self._seen}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        found |= {pid for pid in parents if f"{MARK}={self._mark}".encode() in _read(pid, "environ").split(b"\0")}
        here = {pid: line for pid in found - {self.process.pid} if (line := _line(pid))}
        self._seen |= here
        return here

    def wait_for(self, begun: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + BEGINS_S
        while not begun():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise AssertionError(f"{what}: {self.process.communicate()}")
            time.sleep(0.02)

    def left(self) -> dict[int, str]:
        """Of its descendants, those that are there when all should be gone."""
        until = time.monotonic() + GONE_S
        while (found := self.below()) and time.monotonic() < until:
            time.sleep(0.02)
        return found

    def end(self) -> None:
        self.process.kill()
        for pid in self.below():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()


@contextmanager
def started(*arguments: object, ignored: bool = False, program: Sequence[str] = (), cwd: Path) -> Iterator[Started]:
    """``python -m kipcheck ARGUMENTS``, or another program; ``ignored``: as a shell begins a job with ``&``."""
    made = Started([sys.executable, *(program or ("-m", "kipcheck")), *map(str, arguments)], ignored, cwd)
    try:
        yield made
    finally:
        made.end()


def _all() -> Iterator[int]:
    return map(int, filter(str.isdigit, os.listdir("/proc")))


def _parent(pid: int) -> int | None:
    with suppress(OSError):
        return process_tree.parent_of(pid)
    return None


def _read(pid: int, what: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{what}").read_bytes()
    return b""


def _line(pid: int) -> str:
    """The command line; nothing for one that has ended, whether or not somebody has taken note of it."""
    state = _read(pid, "stat").rpartition(b")")[2].split()[:1]
    if state in ([], [b"Z"], [b"X"]):
        return ""
    return _read(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
