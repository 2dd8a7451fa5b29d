"""Starts programs that are members of a group, and reads what they print: a word, a time in nanoseconds, and a rest.

The time is CLOCK_MONOTONIC's, taken in the program at the begin of what it reports.
"""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, final

from kipcheck.conformance.core.values.untrusted_text import clean
from kipcheck.conformance.targets.transport import process_tree

ENDS_S: Final = 30.0
"""How long a program may take to end after SIGTERM, on a busy machine; then it is killed."""
STOPPING: Final = "stopping"
"""A line of kipcheck's own, before SIGTERM."""
ERRORS: Final = 200
"""Lines of stderr that are kept."""


@final
@dataclass(frozen=True, slots=True)
class Line:
    """What a program printed. ``process`` names it: ``a-2`` is the second process of member a."""

    at_ns: int
    process: str
    what: str
    rest: str


@final
@dataclass(frozen=True, slots=True)
class Begun:
    """A process was started."""

    at_ns: int
    process: str


@final
@dataclass(frozen=True, slots=True)
class Killed:
    """SIGKILL is sent next."""

    at_ns: int
    process: str


@final
@dataclass(frozen=True, slots=True)
class Exited:
    """A process has ended. ``errors``: the end of its stderr."""

    at_ns: int
    process: str
    code: int
    errors: str


Event = Line | Begun | Killed | Exited


class Running(Protocol):
    """A member that was started."""

    @property
    def ended(self) -> "asyncio.Future[None]":
        """Is done once it has ended, and all that it reported is read."""
        ...

    async def stop(self) -> None:
        """Lets it end, without a LeaveGroup."""
        ...

    async def kill(self) -> None: ...


@dataclass(slots=True)
class MemberProcess:
    name: str
    process: asyncio.subprocess.Process
    guard: process_tree.Guard
    take: Callable[[Event], None]
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=ERRORS))
    ended: "asyncio.Future[None]" = field(init=False)

    @classmethod
    async def start(
        cls, name: str, argv: Sequence[str], environment: Mapping[str, str], take: Callable[[Event], None]
    ) -> "MemberProcess":
        """Errors: OSError."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "KIPCHECK_"))}
        take(Begun(time.monotonic_ns(), name))
        process = await asyncio.create_subprocess_exec(
            *argv, env={**kept, **environment}, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        found = cls(name, process, process_tree.Guard(process.pid), take)
        found.ended = asyncio.ensure_future(found._read())
        return found

    async def _read(self) -> None:
        """Until the process has ended and all that it printed is read."""
        await asyncio.gather(self._lines(), self._errors(), self.process.wait())
        self.guard.dismiss()
        code = self.process.returncode
        self.take(Exited(time.monotonic_ns(), self.name, code or 0, "\n".join(self.errors)))

    async def _lines(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while data := await stream.readline():
            what, _, rest = data.decode(errors="replace").rstrip("\n").partition(" ")
            at, _, rest = rest.partition(" ")
            if at.isdigit() and data.endswith(b"\n"):
                self.take(Line(int(at), self.name, what, clean(rest)))

    async def _errors(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        while data := await stream.readline():
            self.errors.append(clean(data.decode(errors="replace").rstrip())[:400])

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL if it does not end in time."""
        self.take(Line(time.monotonic_ns(), self.name, STOPPING, ""))
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.ended), ENDS_S)
        await self.kill()

    async def kill(self) -> None:
        if not self.ended.done():
            self.take(Killed(time.monotonic_ns(), self.name))
            process_tree.kill_group(self.process.pid)
        await self.ended
