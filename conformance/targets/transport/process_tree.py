"""Kills child processes and their descendants when their parent ends for any reason, ``kill -9`` included.

There are three ways. On Linux the kernel kills a child at the death of its parent (``die_with_parent``) and hands
orphans to an ancestor (``adopt_orphans``). On any system, a small shell reads a pipe whose other end the parent has,
and kills a process group when the pipe ends (``Guard``): that includes programs that a testee or a build tool
started. A process that starts a session of its own leaves the group; only an ancestor can then kill it.
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
"""Both from linux/prctl.h."""
REAP_S: Final = 5.0
"""The time limit for killed processes to disappear."""

SHELL: Final = "/bin/sh"
GUARD_SCRIPT: Final = 'read -r _; kill -s KILL -- "-$1"'
"""The script of a guard: nothing is ever written to its pipe, so it reads until the pipe ends."""

_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if LINUX else None
"""Looked up early, because it is called between fork and exec."""


def die_with_parent(parent: int) -> None:
    """From now on the kernel kills this process when its ``parent`` ends for any reason. Linux only.

    The kernel does so at the end of the thread that started this process, even if the parent lives on: start processes
    from a thread that lives at least as long.
    """
    if _prctl is None:
        return
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent has ended already
        os.kill(os.getpid(), signal.SIGKILL)


def die_with_pipe(fd: int) -> None:
    """The same on any system, for a process that leads its group: the group is killed when the pipe ends whose other
    end only the parent has. It uses a thread, so it does not work while native code holds the interpreter lock.
    """

    def wait() -> None:
        while os.read(fd, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    Thread(target=wait, daemon=True).start()


class Guard:
    """Kills a process group when this process ends, for whatever reason. Without a shell it does nothing."""

    def __init__(self, group: int) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen(
                [SHELL, "-c", GUARD_SCRIPT, "guard", str(group)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True, cwd="/", env={},
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self.dismiss()

    def dismiss(self) -> None:
        """Stops guarding the group. To be called after the group was killed or has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()  # first, because the end of the pipe would kill the group that may have reused the number
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


def kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def run(argv: Sequence[str], seconds: float | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """``subprocess.run`` with ``capture_output`` and text, for a tool that starts programs of its own.

    The tool has a session of its own and no input. Its whole group is killed at a time-out
    (``subprocess.TimeoutExpired``), when this call is interrupted, and when this process ends. ``more``: for
    ``subprocess.Popen``. Errors: OSError if it cannot start.
    """
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    text = {"encoding": "utf-8", "errors": "replace"}
    with (
        subprocess.Popen(argv, start_new_session=True, **{**streams, **text, **more}) as process,
        Guard(process.pid),
    ):
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException:
            kill_group(process.pid)
            raise
        return subprocess.CompletedProcess(argv, process.returncode, output, errors)


def adopt_orphans() -> None:
    """Orphaned descendants of this process become its children. Linux only."""
    if _prctl is not None:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_children() -> int:
    """Kills all children of this process, and adopted orphans in turn. Returns their number.

    It finds processes in other sessions and after a second fork, too, but none on systems without /proc. For processes
    without threads.
    """
    ended, until = 0, time.monotonic() + REAP_S
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
    """Errors: OSError if there is no such process, or no /proc."""
    # The name of the program, in parentheses, may contain any character.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def processor_time() -> float:
    """Seconds of processor time of this process and its children so far; without /proc, of children that ended."""
    me = os.times()
    return sum(me[:4]) + sum(map(taken_by, _children()))


def taken_by(pid: int) -> float:
    """Seconds of processor time of a process and of those of its children that it waited for; 0 without /proc."""
    try:  # in user and in system mode: proc(5)
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")


def _children() -> list[int]:
    me = os.getpid()
    with suppress(OSError):
        return list(map(int, Path(f"/proc/self/task/{me}/children").read_text().split()))
    found = []
    with suppress(OSError):  # a kernel without that file still has the parent of each process
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if parent_of(int(name)) == me:
                    found.append(int(name))
    return found
