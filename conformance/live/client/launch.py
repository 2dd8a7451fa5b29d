"""Starts the program of a user for one script, and ends it: SIGTERM, then SIGKILL of its process group."""

import asyncio
import os
import re
import shlex
import signal
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final, Protocol, final

from kipcheck.conformance.core.values.untrusted_text import clean
from kipcheck.conformance.live.client.built_in import OPTIONAL, PREFIX, Settings
from kipcheck.conformance.targets.transport import process_tree

CASE: Final[ContextVar[str]] = ContextVar("CASE", default="")
"""The id of the case for which a program is started."""
LINES: Final = 5
"""Of stderr: this many from its beginning, and from its end."""
LONGEST_LINE: Final = 300
NEEDED: Final = ("{bootstrap}", "{group}", "{topics}")
PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)(\??)\}")
"""``{instance}``, which is empty where it is not given, or ``{instance?}``, without which its word is left out."""


CALLED: Final = "kipcheck: "
"""Begins a line of stderr with the name of a callback that the program is in, and the partitions of it."""
READ_S: Final = 0.2
"""The longest wait for the output of a program that has ended."""
LONGEST_READ: Final = 1 << 16
"""Bytes without an end of line."""


class Program(Protocol):
    """A consumer that runs."""

    on_call: Callable[[str], None]
    """Is called with what follows ``CALLED``."""

    @property
    def ended(self) -> "asyncio.Future[int]":
        """Its exit code, once it has ended."""
        ...

    @property
    def output(self) -> str:
        """The first and last lines of its stderr."""
        ...

    def freeze(self) -> None:
        """Sends SIGSTOP."""
        ...

    def thaw(self) -> None:
        """Sends SIGCONT."""
        ...

    def stop(self) -> None:
        """Sends SIGTERM."""
        ...

    async def kill(self) -> None:
        """Leaves nothing of it."""
        ...


class Launcher(Protocol):
    @property
    def ends_on_errors(self) -> bool:
        """Whether it is known that its programs end when an error is raised that no client recovers from."""
        ...

    def given(self, settings: Settings) -> Mapping[str, str]:
        """The settings that reach its programs, by placeholder."""
        ...

    async def start(self, settings: Settings) -> Program:
        """Errors: OSError."""
        ...


def placeholders(settings: Settings) -> dict[str, str]:
    """``bootstrap`` and so on, without those that are not given."""
    return {name.removeprefix(PREFIX).lower(): value for name, value in settings.environment.items()}


def named(text: str) -> set[str]:
    """The placeholders in a text, ``{instance}`` for both forms."""
    return {f"{{{name}}}" for name, _ in PLACEHOLDER.findall(text)}


def missing(command: str) -> list[str]:
    """The placeholders that a command must have and lacks."""
    return [each for each in NEEDED if each not in named(command)]


def unknown(command: str) -> list[str]:
    """What looks like a placeholder of a command and is none."""
    return sorted(named(command) - {*NEEDED, *(f"{{{each}}}" for each in OPTIONAL)})


def optional(command: str) -> frozenset[str]:
    """The optional placeholders of a command."""
    return frozenset(each for each in OPTIONAL if f"{{{each}}}" in named(command))


def short(command: str) -> str:
    """The words before the first placeholder, without an option that it belongs to. Errors: ValueError."""
    words = list(takewhile(lambda word: not PLACEHOLDER.search(word), shlex.split(command)))
    while len(words) > 1 and words[-1].startswith("-"):
        words.pop()
    return shlex.join(words)


@final
@dataclass(frozen=True, slots=True)
class Commands:
    """Starts a command, each of whose words may have placeholders."""

    words: tuple[str, ...]
    reads: frozenset[str] = frozenset()
    """The optional settings that the program reads from its environment."""
    ends_on_errors: bool = False

    @classmethod
    def of(cls, text: str) -> "Commands":
        """Errors: ValueError for unbalanced quotes."""
        return cls(tuple(shlex.split(text)))

    def argv(self, settings: Settings) -> list[str]:
        """The words with the settings in place of their placeholders. A setting that is not given is empty: a program
        that got ``{instance}`` itself would be a static member. A word with ``{instance?}`` is left out then.
        """
        given = dict.fromkeys((*(each.strip("{}") for each in NEEDED), *OPTIONAL), "") | placeholders(settings)

        def is_left_out(word: str) -> bool:
            return any(mark and not given.get(name, name) for name, mark in PLACEHOLDER.findall(word))

        return [
            PLACEHOLDER.sub(lambda found: given.get(found[1], found[0]), word)
            for word in self.words if not is_left_out(word)
        ]  # fmt: skip

    def given(self, settings: Settings) -> Mapping[str, str]:
        """Those that a word names, or that the program reads."""
        there = {each.strip("{}") for each in named(" ".join(self.words))} | self.reads
        return {name: value for name, value in placeholders(settings).items() if name in there}

    async def start(self, settings: Settings, more: Mapping[str, str] = {}) -> Program:
        """``more``: further variables of its environment. Errors: OSError.

        A program must not outlive this process: its next connection might reach the broker of another run.

        A guard sees to that, and not a function between fork and exec: with one the whole memory of this process is
        mapped anew, which stops the loop for 0.1 s for each gigabyte.
        """
        process = await asyncio.create_subprocess_exec(
            *self.argv(settings), env={**os.environ, **settings.environment, **more}, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        return _Process(process, process_tree.Guard(process.pid))


@final
@dataclass
class _Process:
    process: asyncio.subprocess.Process
    guard: process_tree.Guard
    first: list[str] = field(default_factory=list)
    last: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))
    ended: "asyncio.Future[int]" = field(init=False)
    _reading: "asyncio.Task[None]" = field(init=False)

    def __post_init__(self) -> None:
        self.on_call: Callable[[str], None] = lambda called: None
        self._reading = asyncio.ensure_future(self._read())
        self.ended = asyncio.ensure_future(self._wait())

    async def _wait(self) -> int:
        """Until it has ended and its output is read, which another process may keep open."""
        code = await self.process.wait()
        await asyncio.wait([self._reading], timeout=READ_S)
        return code

    async def _read(self) -> None:
        stderr: Any = self.process.stderr
        left = b""
        while data := await stderr.read(4096):
            *lines, left = (left + data).split(b"\n")
            if len(left) > LONGEST_READ:
                lines, left = [*lines, left], b""
            self._take(b"\n".join(lines))
        self._take(left)

    def _take(self, data: bytes) -> None:
        for line in data.decode(errors="replace").splitlines():
            if line.startswith(CALLED):
                self.on_call(line.removeprefix(CALLED))
            else:
                (self.first if len(self.first) < LINES else self.last).append(clean(line)[:LONGEST_LINE])

    @property
    def output(self) -> str:
        return "\n".join([*self.first, *self.last])

    def freeze(self) -> None:
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def _signal_all(self, number: signal.Signals) -> None:
        """To its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    async def kill(self) -> None:
        self._signal_all(signal.SIGKILL)
        await self.ended
        self.guard.dismiss()
        self._reading.cancel()
