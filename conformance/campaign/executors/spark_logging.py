"""Starts Spark with its output redirected to a file, and extracts the line of a stack trace that names the error."""

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

MOST_CHARACTERS: Final = 300
"""The most characters of an error line."""
MOST_BYTES: Final = 64 << 10
"""Bytes at the end of the output that are searched."""
NOISY_LOGGERS: Final = ("py4j", "pyspark", "grpc", "SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers that repeat errors which are raised as well."""


class OutputCapture:
    """An unnamed file that replaces standard output and error."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as what writes to it

    @contextmanager
    def while_starting(self) -> Iterator[None]:
        """Redirects the output of processes started within, as long as they live, and of this process within the
        block.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        copies = [(fd, os.dup(fd)) for fd in (1, 2)]
        try:
            for fd, _ in copies:
                os.dup2(self._file.fileno(), fd)
            yield
        finally:
            for fd, copy in copies:
                os.dup2(copy, fd)
                os.close(copy)

    @property
    def output(self) -> str:
        """The end of the output."""
        size = os.fstat(self._file.fileno()).st_size
        return os.pread(self._file.fileno(), MOST_BYTES, max(0, size - MOST_BYTES)).decode("utf-8", "replace")

    def close(self) -> None:
        self._file.close()


@contextmanager
def quiet_loggers() -> Iterator[None]:
    """Silences loggers and warnings of libraries."""
    levels = [(logging.getLogger(name), logging.getLogger(name).level) for name in NOISY_LOGGERS]
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
    """The line of a stack trace that names the error: its last cause, otherwise its first line."""
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    named = re.findall(r"^(?:[\w.]*(?:Error|Exception)): .+$", text, re.MULTILINE)
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    found: str = (causes or named or lines or ["there is no message"])[-1 if causes or named else 0]
    found = " ".join(found.split())
    return found if len(found) <= MOST_CHARACTERS else f"{found[:MOST_CHARACTERS]}..."


def reason(why: Exception, where: str, output: str = "") -> str:
    """The error in one line for the user."""
    text = str(why)
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    # Before Spark compares versions, the daemon of the workers may fail to import what another Python lacks.
    if found := (
        re.search(r"different version:? (\S+) than that in driver", text)
        or re.search(rf"Error from python worker:[\s\S]*?/lib/python(?!{re.escape(here)}/)(\d+\.\d+)/", text)
    ):
        return (
            f"Python is {here} here, but {found[1]} on the workers of {where}: install {here} there, and set "
            f"PYSPARK_PYTHON to it"
        )
    if found := re.search(r"No module named '?(kipcheck\b[\w.]*'?)", text):
        return (
            f"the Python of the workers of {where} has no kipcheck, or another one ({found[0]}): install the same "
            f"version there, or set PYSPARK_PYTHON to a Python that has it"
        )
    return f"Spark at {where} failed: {one_line(chr(10).join([text, output]))}"


# ---- environment of started processes


@contextmanager
def environment_set(environment: Mapping[str, str | None]) -> Iterator[None]:
    """Sets environment variables within the block; None: removes the variable."""
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
def keep_sigint_handler() -> Iterator[None]:
    """Restores kipcheck's handler of Ctrl-C: PySpark's handler calls a JVM that may not answer."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)
