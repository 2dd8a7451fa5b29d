"""Ctrl-C and SIGTERM: both end a command, and its reports are written all the same.

The first signal raises ``KeyboardInterrupt``. A command with reports then calls ``finish``, also when its work is done;
every later signal is answered with one line on standard error while the reports are completed.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
ONE_REQUEST_S: Final = 2.0
"""Signals within this time are one request: ``timeout`` sends its signal to the process and to its group, and people
press Ctrl-C twice."""
AGAIN_S: Final = 20.0
SWALLOWED_S: Final = 0.05
"""Until the next attempt, after an exception that was raised where Python ignores it, as in a callback of a weak
reference."""
PATIENCE: Final = b"kipcheck: writing the reports, please wait; kill -9 ends it without reports\n"


@dataclass(slots=True)
class _Handler:
    """Handles both signals while a command runs."""

    deferring: bool = False
    finishing: bool = False
    came: bool = False
    """Whether a signal came while deferring."""
    last: float = -ONE_REQUEST_S
    """``time.monotonic()`` of the last interrupt."""

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
    """Within, SIGINT and SIGTERM raise ``KeyboardInterrupt``, also if this process inherited them as ignored.

    A non-interactive shell starts a background job (``kipcheck run &`` in a script) with SIGINT ignored, so that Ctrl-C
    ends only the foreground job. Here ``kill -INT``, and a CI service that cancels a job that way, end such a job with
    its reports; as a consequence Ctrl-C in the script's terminal ends it too. Start it with ``setsid`` to avoid that.
    SIGHUP is not changed, so ``nohup`` works.

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


class Overdue(KeyboardInterrupt):
    """What a command waits for has not come in its time."""


@contextmanager
def ends_after(seconds: float | None) -> Iterator[Callable[[float], None]]:
    """Raises ``Overdue`` within the block after this time, and again later if cleaning up takes long as well. Yields a
    function that sets another time, in seconds from its call.

    Outside of the main thread, or with None, this does nothing.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield lambda seconds: None
        return
    before, hook = signal.signal(signal.SIGALRM, _overdue), sys.unraisablehook

    def swallowed(about: "sys.UnraisableHookArgs") -> None:
        if isinstance(about.exc_value, Overdue):
            _arm(SWALLOWED_S)
        else:
            hook(about)

    sys.unraisablehook = swallowed
    _arm(seconds)
    try:
        yield _arm
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def _arm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, max(seconds, SWALLOWED_S), AGAIN_S)


def _overdue(number: int, frame: FrameType | None) -> None:
    handler = _handler()
    if handler is not None and handler.finishing:
        return
    if handler is not None and handler.deferring:
        handler.came = True
        return
    raise Overdue


def finish() -> None:
    """From now on no signal interrupts the command, which only writes its results. Without ``handled``: does
    nothing.
    """
    if (handler := _handler()) is not None:
        handler.finishing = True


@contextmanager
def deferred() -> Iterator[None]:
    """A signal within the block interrupts at its end: for files that belong together."""
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
