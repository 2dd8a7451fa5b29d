"""Progress of a run on standard error: one live line on a terminal, else the same line now and then."""

import math
import os
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO, TypeVar

from kipcheck.conformance.core.values.untrusted_text import harmless, harmless_line, one_line
from kipcheck.reports.phrases import some
from kipcheck.reports.styled import beside_bar, with_bar

if TYPE_CHECKING:
    from kipcheck.conformance.engine.execution.worker import Unit
    from kipcheck.conformance.engine.findings.early_causes import EarlyCause

A = TypeVar("A")

OFTEN = 0.1
"""Seconds between two updates of the live line."""
SELDOM = 10.0
"""Seconds between two lines, if there is no live line."""

WIDE = 1000
"""Columns of a line that no terminal shows."""


@dataclass(slots=True)
class _Plan:
    """The work with one target, in units."""

    target: str = ""
    portions: Sequence[tuple[str, int]] = ()
    """Checks, each with units that are run one after the other; a check may have several portions."""
    number: int = -1
    """Of the current portion."""
    before: int = 0
    """Units of the portions before the current one."""
    cases: int = 0
    """Of these portions; so the next one."""
    failed: int = 0
    causes: int = 0
    begun: float = field(default_factory=lambda: time.monotonic())

    @property
    def total(self) -> int:
        return sum(units for _, units in self.portions)

    @property
    def here(self) -> tuple[str, int]:
        """The check of the current portion, and its units."""
        return self.portions[self.number] if self.number >= 0 else ("", 0)


class Progress:
    """Shows what is running, and causes as they are found; results are left to the report."""

    def __init__(self, stream: TextIO | None = None, live: bool | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._live = _is_terminal(self._stream) if live is None else live
        self._shown = False
        self._plan = _Plan()
        self._told = -math.inf

    @property
    def live(self) -> bool:
        """Whether there is a live line on a terminal."""
        return self._live

    def plan(self, target: str, portions: Sequence[tuple[str, int]]) -> None:
        """``portions``: the checks that follow, each with its number of units of work; a check may come again."""
        self._plan = _Plan(harmless_line(target), portions)

    def begin(self) -> None:
        """Begins the next portion."""
        plan = self._plan
        plan.before += plan.here[1]
        plan.number += 1
        if self._live:
            self._told = -math.inf
            self.step(0, 0, 0)

    def step(self, done: int, cases: int, failed: int) -> None:
        """``done``: subjects of the current portion; ``cases``, ``failed``: its cases so far."""
        now = time.monotonic()
        if now - self._told < (OFTEN if self._live else SELDOM):
            return
        self._told = now
        plan = self._plan
        self.say(self._line(done, cases, failed, now), (plan.before + done) / max(plan.total, 1))

    def end(self, cases: int, failed: int) -> None:
        plan = self._plan
        if not self._live:
            self.step(plan.here[1], cases, failed)
        plan.cases, plan.failed = plan.cases + cases, plan.failed + failed

    def found(self, cause: "EarlyCause", unit: "Unit") -> None:
        """Shows a cause when its first case is found; known ones are only counted."""
        self._plan.causes += 1
        if not cause.known:
            version = "" if unit.version is None else f" v{unit.version}"
            self.note(f"  {cause.word}: {cause.title}  ({unit.check} on {unit.subject}{version})")

    def shrinking(self, least: Iterable[A], total: int, limit_s: float | None = None) -> Iterator[A]:
        """The items of ``least``, which are computed one by one. ``limit_s``: of each."""
        if total:
            limit = "" if limit_s is None else f", for up to {limit_s:g} s each; --least 0 leaves it out"
            self.say(f"{self._plan.target}  searching for {some(total, 'least case')}{limit}")
        self._told = time.monotonic()
        for number, each in enumerate(least, 1):
            now = time.monotonic()
            if now - self._told >= (OFTEN if self._live else SELDOM):
                self._told = now
                self.say(f"{self._plan.target}  searching for the least cases: {number} of {total}", number / total)
            yield each

    def _line(self, done: int, cases: int, failed: int, now: float) -> str:
        plan = self._plan
        check, here = plan.here
        checks = [*dict.fromkeys(check for check, _ in plan.portions)]
        elapsed_s = now - plan.begun
        return fitted(
            [
                (plan.target, 5),
                (f"check {checks.index(check) + 1} of {len(checks)}", 0),
                (check, 1),
                (f"{done} of {here}", 6),
                (f"{some(plan.total - plan.before - done, 'subject')} left", 2),
                (f"{plan.failed + failed:,} failed", 7),
                (some(plan.causes, "cause"), 3),
                (span(elapsed_s), 4),
                (f"{(plan.cases + cases) / max(elapsed_s, 1):,.0f} cases/s", 8),
            ],
            beside_bar(_columns()) if self._live else WIDE,
        )

    def say(self, line: str, share: float | None = None) -> None:
        """Shows other work than checks. ``share``: of the work that is done, for the bar of the live line."""
        if self._live:
            self._show(line, share)
        else:
            self._print(line)

    def note(self, line: str) -> None:
        """Writes a line that stays."""
        self.close()
        self._print(line)

    def close(self) -> None:
        """Erases the live line, before other output."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _show(self, line: str, share: float | None) -> None:
        text = harmless_line(line)
        shown = text[: _columns()] if share is None else with_bar(text, share, _columns())
        self._write(f"\r\x1b[K{shown}")
        self._shown = True

    def _print(self, line: str) -> None:
        self._write(f"{harmless_line(line)}\n")

    def _write(self, text: str) -> None:
        with suppress(BrokenPipeError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def span(seconds: float) -> str:
    """``0:09``, ``1:02:03``."""
    total_seconds = int(seconds)
    hours, minutes = total_seconds // 3600, total_seconds // 60 % 60
    return f"{hours}:{minutes:02}:{total_seconds % 60:02}" if hours else f"{minutes}:{total_seconds % 60:02}"


def fitted(parts: Sequence[tuple[str, int]], width: int) -> str:
    """The parts of a line, each with its rank: as many as fit, those with the highest rank are left out first."""
    left = list(parts)
    while len(left) > 1 and len("  ".join(text for text, _ in left)) > width:
        left.remove(max(left, key=lambda part: part[1]))
    return "  ".join(text for text, _ in left)[:width]


def _columns() -> int:
    """The room on a line of the terminal; a line that fills it would wrap."""
    return shutil.get_terminal_size().columns - 1


def show_traceback() -> None:
    """Writes the traceback of the current exception to stderr, each line marked: it may contain text of a target."""
    lines = traceback.format_exc().splitlines()
    print(harmless("\n".join(f"| {one_line(line)}" for line in lines)), file=sys.stderr)


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
