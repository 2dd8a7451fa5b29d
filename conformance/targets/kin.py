"""Who goes down with whom: a process must not outlive the one that started it, however that one ends.

Linux has both halves of it: a signal at the death of the parent, and orphans that are handed to an ancestor. Elsewhere
what is left is that a child reads the end of a pipe.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Final

LINUX: Final = sys.platform == "linux"
PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
"""Both of linux/prctl.h."""
BURIED_S: Final = 5.0
"""What it may take until killed processes are gone."""

_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if LINUX else None
"""Looked up at once: it is called between fork and exec."""


def die_with(parent: int) -> None:
    """From now on this process is killed when ``parent``, which started it, ends in whatever way. Linux only."""
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
