"""Writes the ledger of a run, which begins with its first unit of work."""

import os
import stat
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from kipcheck.conformance.core.ledger import NAME, LedgerLine, Writer
from kipcheck.conformance.core.output_folder import FAILURES, REPORTS, OutputFolder, Unusable


class LedgerLines:
    """The lines of a ledger, kept in memory until the run begins with its first unit.

    So a run that does not start, because its options are wrong, keeps the results of an earlier run.
    """

    def __init__(self, folder: OutputFolder, events: str | None) -> None:
        """``events``: as ``Options`` has it. Errors: OSError if they cannot be written."""
        self._folder, self._early, self._stack = folder, list[LedgerLine](), ExitStack()
        self._writer: Writer | None = None
        self._made = events not in (None, "-") and not os.path.lexists(str(events))
        self._events = None if events is None else self._opened(events)

    def _opened(self, events: str) -> TextIO:
        if events == "-":
            return sys.stdout
        return self._stack.enter_context(open(events, "a", encoding="utf-8", newline="\n"))

    @property
    def path(self) -> Path:
        return self._folder.path / NAME

    @property
    def begun(self) -> bool:
        return self._writer is not None

    def begin(self) -> None:
        """Removes the results of an earlier run, and writes the lines so far. Errors: ``Unusable``."""
        if self._writer is not None:
            return
        try:
            path = self._folder.claim(NAME)
            self._folder.remove(REPORTS, FAILURES)  # failures that are fixed have no file
            if self._events not in (None, sys.stdout) and stat.S_ISREG(os.fstat(self._events.fileno()).st_mode):
                self._events.truncate(0)
            self._writer = self._stack.enter_context(Writer(path, self._events))
        except OSError as denied:
            raise Unusable(f"{denied.filename or self.path} cannot be written: {denied.strerror}") from None
        for line in self._early:
            self._writer.write(line)
        self._writer.flush()

    def write(self, line: LedgerLine) -> None:
        if self._writer is None:
            self._early.append(line)
        else:
            self._writer.write(line)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        if self._made and self._events is not None and not self.begun:
            Path(self._events.name).unlink(missing_ok=True)
        self._stack.close()
