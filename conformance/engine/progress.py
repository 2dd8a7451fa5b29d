"""Progress of a run on standard error: one live line on a terminal, else a line for each check."""

import os
import shutil
import sys
import time
import traceback
from contextlib import suppress
from typing import TextIO

from kipcheck.conformance.core.foreign import harmless, harmless_line, one_line

OFTEN = 0.1
"""Seconds between two updates of the live line."""
SELDOM = 5.0
"""Seconds between two lines about one check, if there is no live line."""


class Progress:
    """Shows what is running; results are left to the report."""

    def __init__(self, stream: TextIO | None = None, live: bool | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._live = _is_terminal(self._stream) if live is None else live
        self._shown = False
        self._name = ""
        self._total = 0
        self._begun = self._told = 0.0

    @property
    def live(self) -> bool:
        """Whether there is a live line on a terminal."""
        return self._live

    def begin(self, target: str, check: str, total: int) -> None:
        """``total``: the number of units of work of the check."""
        self._name, self._total = f"{harmless_line(target)}  {check:<22}", total
        self._begun = self._told = time.monotonic()

    def step(self, done: int, cases: int, failed: int) -> None:
        now = time.monotonic()
        if now - self._told < (OFTEN if self._live else SELDOM):
            return
        self._told = now
        if self._live:
            rate = cases / max(now - self._begun, 0.001)
            self._show(f"{self._name} {done}/{self._total}  {cases:,} cases  {rate:,.0f}/s  {failed:,} failed")
        else:
            self._print(f"{self._name} {done} of {self._total} subjects")

    def end(self, cases: int, failed: int) -> None:
        took = time.monotonic() - self._begun
        if not self._live:
            self._print(f"{self._name}{cases:>7} cases{failed:>6} failed  {took:5.1f} s")

    def say(self, line: str) -> None:
        """Shows other work than checks."""
        (self._show if self._live else self._print)(line)

    def note(self, line: str) -> None:
        """Writes a line that stays."""
        self.close()
        self._print(line)

    def close(self) -> None:
        """Erases the live line, before other output."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _show(self, line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._write(f"\r\x1b[K{harmless_line(line)[:width]}")
        self._shown = True

    def _print(self, line: str) -> None:
        self._write(f"{harmless_line(line)}\n")

    def _write(self, text: str) -> None:
        with suppress(BrokenPipeError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def show_traceback() -> None:
    """Writes the traceback of the current exception to stderr, each line marked: it may contain text of a target."""
    lines = traceback.format_exc().splitlines()
    print(harmless("\n".join(f"| {one_line(line)}" for line in lines)), file=sys.stderr)


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
