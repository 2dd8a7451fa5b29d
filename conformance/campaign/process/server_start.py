"""Starts a fork server: as a fork of this process where that is like a new Python, and as a new Python elsewhere.

A new Python imports all of kipcheck, which takes as long as some thousand cases.
"""

import gc
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import IO, Final, Protocol

from kipcheck.conformance.campaign.process import fork_server
from kipcheck.conformance.targets.transport.pipe import own_python

POLL_S: Final = 0.01
HASH_SEED: Final = "PYTHONHASHSEED"


class Server(Protocol):
    """A running fork server: a ``subprocess.Popen``, or what is used of one."""

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    def wait(self, timeout: float | None = None) -> int:
        """Errors: ``subprocess.TimeoutExpired``."""
        ...

    def kill(self) -> None: ...


def started(run: str, journal: int, noise: IO[bytes], environment: Mapping[str, str]) -> Server:
    """``run`` and ``journal``: the arguments of a fork server. ``environment``: other variables of it."""
    environment = {**environment, HASH_SEED: "0"}
    if _is_like_new():
        return _Forked(run, journal, noise.fileno(), environment)
    # In a session of its own: only this process handles Ctrl-C in the terminal.
    return subprocess.Popen(
        own_python(fork_server.__name__, run, str(journal)), env={**os.environ, **environment}, pass_fds=(journal,),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=noise, start_new_session=True,
    )  # fmt: skip


def _is_like_new() -> bool:
    """Whether a fork of this process gives the same rows as a new Python: it has the hash seed of one, and no threads,
    which a fork would not have. Linux only, because other systems do not report the threads of native code.
    """
    if sys.flags.hash_randomization or "pyspark" in sys.modules:  # Spark's workers have state of their own
        return False
    with suppress(OSError):
        return len(os.listdir("/proc/self/task")) == 1
    return False


class _Forked:
    """A fork server that is a fork of this process. Used as a ``subprocess.Popen``."""

    def __init__(self, run: str, journal: int, noise: int, environment: Mapping[str, str]) -> None:
        import_module(run.partition(":")[0])
        fork_server.import_invariants()
        gc.freeze()  # the fork shares these pages for as long as nobody collects garbage in them
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        orders, results = os.pipe(), os.pipe()
        self._pid = os.fork()
        if not self._pid:
            _serve(run, journal, (orders[0], results[1], noise), environment)
        os.close(orders[0])
        os.close(results[1])
        self.stdin: IO[bytes] | None = os.fdopen(orders[1], "wb")
        self.stdout: IO[bytes] | None = os.fdopen(results[0], "rb")
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Errors: ``subprocess.TimeoutExpired``."""
        until = None if timeout is None else time.monotonic() + timeout
        while self._code is None:
            ended, status = os.waitpid(self._pid, 0 if until is None else os.WNOHANG)
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
            elif until is not None and time.monotonic() >= until:
                raise subprocess.TimeoutExpired("fork server", timeout or 0.0)
            else:
                time.sleep(POLL_S)
        return self._code

    def kill(self) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


def _serve(run: str, journal: int, streams: tuple[int, int, int], environment: Mapping[str, str]) -> None:
    """The fork: it has nothing of this process but its modules, and never returns."""
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for at, fd in enumerate(streams):
            os.dup2(fd, at)
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and fd != journal:
                with suppress(OSError):  # the folder itself was one
                    os.close(fd)
        os.environ.update(environment)
        if sys.path[0] in ("", os.getcwd()):
            del sys.path[0]  # as ``-P`` does
        fork_server.main([run, str(journal)])
        code = 0
    except BaseException:  # noqa: BLE001 - it must not return into a copy of its parent
        with suppress(Exception):
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(code)
