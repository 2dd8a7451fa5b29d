"""Ctrl-C and SIGTERM: both end a command, and neither costs it a report.

The first signal raises ``KeyboardInterrupt``. A command that has reports to write calls ``finish`` then, or when its
work is done; every later signal is answered with one line on standard error, and the reports become complete.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
ONE_REQUEST_S: Final = 2.0
"""Signals that follow each other faster are one request: ``timeout`` sends its signal to the process and to its group,
and people press Ctrl-C twice."""
PATIENCE: Final = b"kipcheck: the reports are being written; wait some seconds, or end it without reports: kill -9\n"


@dataclass(slots=True)
class _Handler:
    """Of both signals, while a command runs."""

    deferring: bool = False
    finishing: bool = False
    came: bool = False
    """While deferring."""
    last: float = -ONE_REQUEST_S
    """``time.monotonic()`` when an interrupt was raised."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.finishing:
            os.write(2, PATIENCE)
        elif self.deferring:
            self.came = True
        elif time.monotonic() - self.last >= ONE_REQUEST_S:
            self.last = time.monotonic()
            raise KeyboardInterrupt


def _handler() -> _Handler | None:
    found = signal.getsignal(signal.SIGINT)
    return found if isinstance(found, _Handler) else None


@contextmanager
def handled() -> Iterator[None]:
    """Within, SIGINT and SIGTERM raise ``KeyboardInterrupt``, also where this process inherited them as ignored.

    A shell that is not interactive starts a background job (``kipcheck run &`` in a script) with SIGINT ignored, so
    that Ctrl-C ends only what is in the foreground. Here ``kill -INT``, and a CI service that cancels a job that way,
    end such a job with reports all the same; in exchange Ctrl-C in the script's terminal ends it too. Start it with
    ``setsid`` where it shall go on. SIGHUP stays as it is, so ``nohup`` works.

    Outside of the main thread, which alone may handle signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    made = _Handler()
    before = [(number, signal.signal(number, made)) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def finish() -> None:
    """From now on nothing interrupts the command: it only writes what it knows. Without ``handled``: does nothing."""
    if (handler := _handler()) is not None:
        handler.finishing = True


@contextmanager
def deferred() -> Iterator[None]:
    """A signal that comes within interrupts at the end of the block: for files that belong together."""
    handler = _handler()
    if handler is None or handler.deferring or handler.finishing:
        yield
        return
    handler.deferring = True
    try:
        yield
    finally:
        handler.deferring = False
    if handler.came:
        handler.came = False
        handler.last = time.monotonic()
        raise KeyboardInterrupt
