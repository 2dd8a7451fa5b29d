"""A child process that speaks one JSON object a line, with a deadline and an end of file at every read."""

import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, final

LINE = 16 << 20
"""Longer lines are refused before they are gathered."""
EVIDENCE = 8 << 10
"""What is kept of the end of stderr, in bytes."""


@final
class Ended(Exception):
    """The child will answer no more: why, and what it last wrote to stderr."""

    def __init__(self, cause: str, detail: str, evidence: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        """``crashed``, ``timeout`` or ``garbled``."""
        self.detail = detail
        self.evidence = evidence


@dataclass(frozen=True, slots=True)
class Command:
    """How the child is started."""

    argv: tuple[str, ...]
    env: Mapping[str, str] | None = None
    """None: as ours."""
    cwd: str | None = None
    memory: int | None = None
    """Bytes of address space, None for no limit (a JVM reserves far more than it uses)."""


class Pipe:
    """One life of the child. Errors: OSError where it cannot be started at all."""

    def __init__(self, command: Command) -> None:
        self._memory = command.memory
        self._process = subprocess.Popen(
            command.argv, env=command.env and dict(command.env), cwd=command.cwd, bufsize=0, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=self._confine,  # noqa: PLW1509 - no threads here: workers are processes
        )  # fmt: skip
        streams = self._process.stdin, self._process.stdout, self._process.stderr
        self._in, self._out, self._err = (each.fileno() for each in streams if each is not None)
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
        self._read = bytearray()
        self._stderr = b""
        self._lines: list[bytes] = []
        self._over = False

    def _confine(self) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self._memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (self._memory, self._memory))

    @property
    def over(self) -> bool:
        """Has it ended?"""
        return self._over

    def exchange(self, line: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Say one line, and hear one. Errors: ``Ended``; the child is gone then."""
        if self._over:
            raise Ended("crashed", "it has ended already", "")
        if self._lines or self._read:
            raise self._end("garbled", f"it spoke unasked: {self._first()!r}")
        unsent = memoryview(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as wait:
            wait.register(self._out, selectors.EVENT_READ)
            wait.register(self._err, selectors.EVENT_READ)
            wait.register(self._in, selectors.EVENT_WRITE)
            while unsent or not self._lines:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._end("timeout", f"no answer within {seconds:g} s")
                for key, _ in wait.select(left):
                    if key.fd == self._in:
                        unsent = self._send(unsent)
                        if not unsent:
                            wait.unregister(self._in)
                    elif not self._receive(key.fd):
                        wait.unregister(key.fd)
        return self._object(self._lines.pop(0))

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._in, unsent[:65536]) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            return unsent[:0]  # what it still says, or the end of its stdout, tells more

    def _receive(self, fd: int) -> bool:
        try:
            data = os.read(fd, 1 << 20)
        except BlockingIOError:
            return True
        if fd == self._err:
            self._stderr = (self._stderr + data)[-EVIDENCE:]
        elif not data:
            raise self._end("crashed", "")
        else:
            self._gather(data)
        return bool(data)

    def _gather(self, data: bytes) -> None:
        for index, part in enumerate(data.split(b"\n")):
            if index:
                self._lines.append(bytes(self._read))
                self._read.clear()
            self._read += part
            if len(self._read) > LINE:
                raise self._end("garbled", f"a line of more than {LINE >> 20} MiB")

    def _object(self, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise self._end("garbled", f"not JSON: {line[:60]!r}") from None
        if not isinstance(found, dict):
            raise self._end("garbled", f"no object: {line[:60]!r}")
        return found

    def _first(self) -> bytes:
        return bytes(self._lines[0] if self._lines else self._read)[:60]

    def garbled(self, detail: str) -> Ended:
        """What it said makes no sense; it is stopped."""
        return self._end("garbled", detail)

    def _end(self, cause: str, detail: str) -> Ended:
        if cause == "crashed":
            code = self._gone(5)
            if code is None:
                cause, detail = "crashed", "closed its stdout and lived on"
            elif code == -signal.SIGPROF:
                cause, detail = "timeout", "more processor time than a case may take"
            else:
                detail = f"killed by {signal.Signals(-code).name}" if code < 0 else f"left with exit code {code}"
        self.kill()
        return Ended(cause, detail, self._stderr.decode("utf-8", "replace"))

    def _gone(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self, last: Mapping[str, Any], seconds: float = 5) -> None:
        """Say goodbye, then ask to end, then end it: each with ``seconds`` in between."""
        try:
            self.exchange(last, seconds)
        except Ended:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._gone(seconds) is None:
            self._process.terminate()
            self._gone(seconds)
        self.kill()

    def kill(self) -> None:
        """At once, with whatever it started."""
        if self._over:
            return
        self._over = True
        self._signal(signal.SIGKILL)
        self._process.wait()
        with suppress(OSError):  # nothing more to read, or a grandchild that keeps the stream open
            while data := os.read(self._err, 1 << 16):
                self._stderr = (self._stderr + data)[-EVIDENCE:]
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)  # its own session: whatever it started goes with it


def own_python(module: str, *arguments: str) -> Sequence[str]:
    """The command that runs one of our modules in a child, whatever the working directory holds."""
    return (sys.executable, "-P", "-m", module, *arguments)
