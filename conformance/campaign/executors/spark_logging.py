"""What is begun in the surroundings that it needs, with what it writes kept from the terminal, and what is wrong told.

The line of a stack trace that says it is found.
"""

import logging
import os
import re
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

MOST: Final = 300
"""Characters of a line that is told."""
LAST: Final = 64 << 10
"""Bytes of the end of what they wrote that are looked at."""
LOUD: Final = ("py4j", "pyspark", "grpc", "SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers that speak where nobody listens, of errors that are raised as well."""


class Hush:
    """A file without a name in the place of standard output and error."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as what writes to it

    @contextmanager
    def over_start(self) -> Iterator[None]:
        """What is started meanwhile writes to the file as long as it lives; this process only meanwhile."""
        sys.stdout.flush()
        sys.stderr.flush()
        kept = [(fd, os.dup(fd)) for fd in (1, 2)]
        try:
            for fd, _ in kept:
                os.dup2(self._file.fileno(), fd)
            yield
        finally:
            for fd, copy in kept:
                os.dup2(copy, fd)
                os.close(copy)

    @property
    def said(self) -> str:
        """The end of it."""
        size = os.fstat(self._file.fileno()).st_size
        return os.pread(self._file.fileno(), LAST, max(0, size - LAST)).decode("utf-8", "replace")

    def close(self) -> None:
        self._file.close()


@contextmanager
def silenced() -> Iterator[None]:
    """Loggers and warnings of libraries."""
    levels = [(logging.getLogger(name), logging.getLogger(name).level) for name in LOUD]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger, _ in levels:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for logger, level in levels:
                logger.setLevel(level)


def one_line(text: str) -> str:
    """What is to blame, of a stack trace: its last cause, else its first line."""
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    named = re.findall(r"^(?:[\w.]*(?:Error|Exception)): .+$", text, re.MULTILINE)
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    found: str = (causes or named or lines or ["nothing was said of it"])[-1 if causes or named else 0]
    found = " ".join(found.split())
    return found if len(found) <= MOST else f"{found[:MOST]}..."


def reason(why: Exception, where: str, said: str = "") -> str:
    """In one line."""
    text = str(why)
    if found := re.search(r"different version:? (\S+) than that in driver:? (\d+\.\d+)", text):
        return (
            f"Python {found[2]} here, and {found[1]} on the workers of {where}: have the same there, and name it in "
            f"PYSPARK_PYTHON"
        )
    if found := re.search(r"No module named '?(kipcheck\b[\w.]*'?)", text):
        return (
            f"the Python of the workers of {where} has no kipcheck, or another ({found[0]}): install the same one "
            f"there, or name a Python that has it in PYSPARK_PYTHON"
        )
    return f"Spark at {where} is of no use: {one_line(chr(10).join([text, said]))}"


# ---- what is begun meanwhile


@contextmanager
def surroundings(environment: Mapping[str, str | None]) -> Iterator[None]:
    """Variables of the environment of what is begun meanwhile; None: without it."""
    before = {name: os.environ.get(name) for name in environment}
    _set(environment)
    try:
        yield
    finally:
        _set(before)


def _set(environment: Mapping[str, str | None]) -> None:
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """The handler of Ctrl-C stays ours: that of PySpark asks a Java that may not answer."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)
