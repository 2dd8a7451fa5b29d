"""A child process that uses the testee protocol on its stdin and stdout."""

import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.targets.transport.channel import BaseLink, Descriptors, Ended
from kipcheck.conformance.targets.transport.framing import Framing

__all__ = ["DUMPS", "Command", "Ended", "Framing", "Pipe", "half_of_memory", "own_python", "why_no_program"]

DUMPS: Final = ("SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGABRT")
"""Signals that a testee may request at a time-out, to write to stderr where it hangs."""
DUMP_SECONDS: Final = 2.0
"""How long such a dump may take."""
DUMP_PAUSE: Final = 0.3
"""A dump has ended when no data came for this long."""
DUMP_BYTES: Final = 64 << 10
"""Bytes of a dump that are kept: the thread that hangs may stand first in it."""
GRACE: Final = 5.0
"""Seconds to answer bye, to exit after it, and to exit after SIGTERM."""
LINGER = 2.0
"""Seconds between the end of its stdout and its exit, within which its exit code is awaited."""


def half_of_memory() -> int:
    """Half of the machine's memory, in bytes: no limit exceeds it."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@dataclass(frozen=True, slots=True)
class Command:
    """The command line and environment of the child."""

    argv: tuple[str, ...]
    env: Mapping[str, str] | None = None
    """None: the environment of this process."""
    cwd: str | None = None
    memory: int | None = None
    """Bytes of address space; None for no limit (a JVM reserves far more than it uses)."""
    renews: bool = False
    """Whether it is kipcheck's own child, which forgets what it was sent when it is configured again."""


class NoProgram(OSError):
    """The command line names no program that the system can start, so there is no testee. The text says why."""


class Pipe(BaseLink):
    """A running child. Errors: ``NoProgram``, or another OSError, where it cannot be started."""

    def __init__(self, command: Command) -> None:
        self._memory, self._parent = command.memory, os.getpid()
        try:
            self._process = subprocess.Popen(
                command.argv, env=command.env and dict(command.env), cwd=command.cwd, bufsize=0, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                preexec_fn=self._confine,  # noqa: PLW1509 - no threads here: workers are processes
            )  # fmt: skip
        except OSError as denied:
            raise NoProgram(why_no_program(command.argv[0], denied, command.env)) from None
        self._guard = process_tree.Guard(self._process.pid)
        streams = self._process.stdin, self._process.stdout, self._process.stderr
        ends = Descriptors(*(each.fileno() for each in streams if each is not None))
        for fd in (ends.write_fd, ends.read_fd, ends.stderr_fd):
            assert fd is not None
            os.set_blocking(fd, False)
        self._ends = ends
        super().__init__(self, ends)
        self._killed = False

    def _confine(self) -> None:
        process_tree.die_with_parent(self._parent)
        for number in (signal.SIGINT, signal.SIGTERM):  # ignored signals are inherited, handlers are not
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for each in (resource.RLIMIT_AS, resource.RLIMIT_CPU):  # the soft limits are this process's own
            hard = resource.getrlimit(each)[1]
            resource.setrlimit(each, (hard, hard))
        if self._memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (self._memory, self._memory))

    @property
    def pid(self) -> int:
        """Of the child, and of its process group."""
        return self._process.pid

    def gone(self) -> bool:
        return self._process.poll() is not None

    def end(self, cause: str, detail: str) -> tuple[str, str]:
        if cause == "timeout" and self.dump_signal is not None:
            self._dump(signal.Signals[self.dump_signal])
        if cause == "crashed":
            code = self._left(LINGER)
            if code is None:
                detail = "closed its stdout and lived on"
            elif code == -signal.SIGPROF:
                cause, detail = "timeout", "more processor time than a case may take"
            else:
                detail = f"{exit_text(code)} {detail}".rstrip()
        self.kill()
        return cause, detail

    def _dump(self, number: signal.Signals) -> None:
        """Collects the dump, from stdout too, where some runtimes write it (a JVM does): no answer is expected
        there.
        """
        self.channel.kept += DUMP_BYTES
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)
        until, size = time.monotonic() + DUMP_SECONDS, 0
        with selectors.DefaultSelector() as wait:
            for fd in (self._ends.read_fd, self._ends.stderr_fd):
                wait.register(fd, selectors.EVENT_READ)  # type: ignore[arg-type]
            while wait.get_map() and size < DUMP_BYTES and time.monotonic() < until:
                ready = wait.select(DUMP_PAUSE)
                if not ready:
                    return
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 14)
                    self.channel.record_stderr(data)
                    size += len(data)
                    if not data:
                        wait.unregister(key.fd)

    def _left(self, seconds: float) -> int | None:
        """The exit code, or minus the signal; None if the child is still running after ``seconds``."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self, last: Mapping[str, Any], seconds: float = GRACE) -> str:
        """Sends ``last``, then ends the child. Returns what was needed to end it."""
        try:
            self.exchange(last, seconds)
        except Ended as death:
            return str(death)
        return self.leave(seconds)

    def leave(self, seconds: float = GRACE) -> str:
        """Closes its stdin, then terminates and kills it, ``seconds`` apart. Returns which of these was needed."""
        if self._killed:
            return ""
        assert self._process.stdin is not None
        self._process.stdin.close()
        found = ""
        if self._left(seconds) is None:
            found = f"SIGTERM was needed: it did not end within {seconds:g} s of the end of its stdin"
            self._process.terminate()
            if self._left(seconds) is None:
                found = f"SIGKILL was needed: it did not end within {seconds:g} s of SIGTERM"
        self.channel.over = True
        self.kill()
        return found

    def kill(self) -> None:
        """Kills the child at once, with its own children."""
        if self._killed:
            return
        self._killed = self.channel.over = True
        process_tree.kill_group(self._process.pid)  # it has a session of its own: its children are killed too
        self._process.wait()
        self._guard.dismiss()
        with suppress(OSError):
            self.channel.drain_stderr()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


def why_no_program(program: str, denied: OSError, env: Mapping[str, str] | None = None) -> str:
    """``env``: in which it was to be started, if not that of this process."""
    path = (env or os.environ).get("PATH")
    why = denied.strerror or str(denied)
    if os.path.isdir(program):
        return f"{program!r} is a folder, not a program ({why})"
    if shutil.which(program, mode=os.F_OK, path=path) is None:
        where = "" if "/" in program else " on the PATH"
        return f"there is no program {program!r}{where} ({why})"
    if isinstance(denied, FileNotFoundError):
        return f"{program!r} names an interpreter in its first line that does not exist ({why})"
    if isinstance(denied, PermissionError):
        return f"{program!r} is not executable ({why})"
    return f"{program!r} is not a program that the system can start ({why})"


def exit_text(code: int) -> str:
    """How a process ended, by its exit code or minus the signal."""
    if code >= 0:
        return f"left with exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"killed by signal {-code}"


def own_python(module: str, *arguments: str) -> Sequence[str]:
    """The command that runs a module of kipcheck in a child, in any working directory."""
    return (sys.executable, "-P", "-m", module, *arguments)
