"""Ends child processes, and what they started, when their parent ends in whatever way, ``kill -9`` included.

Three means. On Linux the kernel kills a child at the death of its parent (``die_with``) and hands orphans to an
ancestor (``adopt_orphans``). Anywhere, a small shell reads a pipe of which the parent has the other end, and kills a
whole process group when the pipe ends (``Guard``): this also finds the programs that a testee or a build tool started.
What starts a session of its own leaves the group, and is killed by its ancestor at most.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

LINUX: Final = sys.platform == "linux"
PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
"""Both of linux/prctl.h."""
BURIED_S: Final = 5.0
"""What it may take until killed processes are gone."""

SHELL: Final = "/bin/sh"
AT_THE_END: Final = 'read -r _; kill -s KILL -- "-$1"'
"""What a guard does: nothing is ever written to its pipe, so it reads until the pipe ends."""

_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if LINUX else None
"""Looked up at once: it is called between fork and exec."""


def die_with(parent: int) -> None:
    """From now on the kernel kills this process when ``parent``, which started it, ends in whatever way. Linux only.

    It does so at the end of the thread that started this process, even where the parent lives on: start processes
    from a thread that lasts as long as they do.
    """
    if _prctl is None:
        return
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), signal.SIGKILL)


def die_at_the_end_of(fd: int) -> None:
    """The same anywhere, for a process that leads its group, by a pipe of which only the parent has the other end: the
    whole group goes. It takes a thread, so what hangs with the lock of the interpreter held is left to its limits.
    """

    def wait() -> None:
        while os.read(fd, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    Thread(target=wait, daemon=True).start()


class Guard:
    """Kills a process group when this process ends, for whatever reason. Where there is no shell nothing is guarded."""

    def __init__(self, group: int) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen(
                [SHELL, "-c", AT_THE_END, "guard", str(group)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True, cwd="/", env={},
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self.dismiss()

    def dismiss(self) -> None:
        """The group is left alone from now on. To be called after it was killed, or has come to its end by itself."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()  # first: at the end of the pipe it would kill whoever has the group's number by now
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


def kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def run(argv: Sequence[str], seconds: float | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run`` with ``capture_output`` and text, for a tool that starts programs of its own.

    It has a session and no input. All of it is killed at a time-out (``subprocess.TimeoutExpired``), when this call is
    interrupted, and when this process ends. ``more``: for ``subprocess.Popen``. Errors: OSError where it cannot start.
    """
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    text = {"encoding": "utf-8", "errors": "replace"}
    with (
        subprocess.Popen(argv, start_new_session=True, **{**streams, **text, **more}) as process,
        Guard(process.pid),
    ):
        try:
            said, complained = process.communicate(timeout=seconds)
        except BaseException:
            kill_group(process.pid)
            raise
        return subprocess.CompletedProcess(argv, process.returncode, said, complained)


def adopt_orphans() -> None:
    """What descendants of this process leave behind becomes its child. Linux only."""
    if _prctl is not None:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_children() -> int:
    """Kill all children of this process, and what they leave behind as long as orphans are adopted. How many it were.

    A session of its own, or a second fork, hides nobody. Where there is no /proc nobody is found. For processes without
    threads.
    """
    ended, until = 0, time.monotonic() + BURIED_S
    while (found := _children()) and time.monotonic() < until:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        ended += len(found)
    return ended


def parent_of(pid: int) -> int:
    """Errors: OSError where there is no such process, or no /proc."""
    # The name of the program, in parentheses, may hold anything.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _children() -> list[int]:
    me = os.getpid()
    with suppress(OSError):
        return list(map(int, Path(f"/proc/self/task/{me}/children").read_text().split()))
    found = []
    with suppress(OSError):  # a kernel without that file may still tell of each process whose child it is
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if parent_of(int(name)) == me:
                    found.append(int(name))
    return found
