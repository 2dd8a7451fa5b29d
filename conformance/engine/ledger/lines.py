"""Writes the ledger of a run, which begins with its first unit of work."""

import os
import shutil
import stat
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from kipcheck import reports
from kipcheck.conformance.core.files.output_folder import FAILURES, REPORTS, OutputFolder, Unusable
from kipcheck.conformance.core.files.unreadable_file import unwritable
from kipcheck.conformance.core.ledger import NAME, LedgerLine, Writer, text_of


class LedgerLost(Exception):
    """The ledger cannot be written any more. What was written before is in it; later lines are kept in memory."""


class LedgerLines:
    """The lines of a ledger, kept in memory until the run begins with its first unit.

    So a run that does not start, because its options are wrong, keeps the results of an earlier run.
    """

    def __init__(self, folder: OutputFolder, events: str | None) -> None:
        """``events``: as ``Options`` has it. Errors: OSError if they cannot be written."""
        self._folder, self._early, self._stack = folder, list[LedgerLine](), ExitStack()
        self._writer: Writer | None = None
        self._later: list[LedgerLine] | None = None
        """The lines since the ledger was lost."""
        self.lost = ""
        """Why it was."""
        self._settled = False
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
            made = self._stack.enter_context(Writer(path, self._events))
            try:
                for line in self._early:
                    made.write(line)
                made.flush()
            except OSError:
                made.cut()
                raise
        except OSError as denied:
            raise Unusable(unwritable(denied, self.path)) from None
        self._writer = made

    def write(self, line: LedgerLine) -> None:
        """Errors: ``LedgerLost``, once, and not after ``settle``."""
        if self._writer is None:
            self._early.append(line)
        elif self._later is not None:
            self._later.append(line)
        else:
            try:
                self._writer.write(line)
            except OSError as denied:
                self._lose(self._writer, denied, line)

    def flush(self) -> None:
        """Errors: ``LedgerLost``, once, and not after ``settle``."""
        if self._writer is not None and self._later is None:
            try:
                self._writer.flush()
            except OSError as denied:
                self._lose(self._writer, denied)

    def settle(self) -> None:
        """From now on a loss raises nothing: the run ends anyway."""
        self._settled = True

    def _lose(self, writer: Writer, denied: OSError, *lines: LedgerLine) -> None:
        self._later = [*lines]
        writer.cut()
        why = f"{self.path} cannot be written: {denied.strerror}; what was judged before is in it"
        self.lost = f"{why}. Make room, or name another folder with --out, and run again"
        if not self._settled:
            raise LedgerLost(self.lost) from None

    def shown(self) -> str:
        """The report for a terminal, of the lines in the ledger and those since it was lost; empty if it was not."""
        if self._later is None:
            return ""
        try:
            with tempfile.TemporaryDirectory() as folder:
                whole = Path(folder) / NAME
                shutil.copy(self.path, whole)
                with whole.open("a", encoding="utf-8") as file:
                    file.writelines(map(text_of, self._later))
                return reports.render(whole, "brief")
        except OSError:  # it is on the same disk
            return reports.render(self.path, "brief")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        if self._made and self._events is not None and not self.begun:
            Path(self._events.name).unlink(missing_ok=True)
        self._stack.close()
