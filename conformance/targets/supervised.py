"""An adapter at work in a process forked from this one, so that its death costs a fork and nothing else.

What has to be imported is imported once, before. Each result is told as soon as it is there, so a death belongs to the
operation that was under way, and the others are held with the next process.
"""

import json
import os
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NoReturn

Answer = Callable[[Mapping[str, Any], float], dict[str, Any]]
"""An operation and its budget of processor time, in seconds, to its result."""

EVIDENCE = 8 << 10
"""What is kept of the end of what it wrote, in bytes."""
NOISE = 64 << 20
"""What it may write before writing fails."""


class Supervised:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._noise = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as this process
        self._process: int | None = None

    def results(self, operations: Sequence[Mapping[str, Any]], budget: float) -> list[dict[str, Any]]:
        """One for each, in their order; a death is a result too."""
        results: list[dict[str, Any]] = []
        while len(results) < len(operations):
            if self._process is None:
                self._begin()
            self._hold(operations[len(results) :], budget, results)
            if len(results) < len(operations):
                results.append(self._death())
        return results

    def _begin(self) -> None:
        self._noise.seek(0)  # the place where it writes is shared with the process that was
        self._noise.truncate(0)
        asked, ask = os.pipe()
        tell, told = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(ask)
            os.close(tell)
            self._serve(os.fdopen(asked, "rb"), os.fdopen(told, "wb"))
        os.close(asked)
        os.close(told)
        self._ask, self._told = os.fdopen(ask, "wb"), os.fdopen(tell, "rb")

    def _hold(self, operations: Sequence[Mapping[str, Any]], budget: float, results: list[dict[str, Any]]) -> None:
        """As far as it comes."""
        try:
            self._ask.write(json.dumps([budget, operations]).encode() + b"\n")
            self._ask.flush()
        except BrokenPipeError:
            return
        for _ in operations:
            line = self._told.readline()
            if not line.endswith(b"\n"):
                return
            results.append(json.loads(line))

    def _death(self) -> dict[str, Any]:
        assert self._process is not None
        _, status = os.waitpid(self._process, 0)
        self._process = None
        self._told.close()
        with suppress(BrokenPipeError):  # what was not sent
            self._ask.close()
        code = os.waitstatus_to_exitcode(status)
        size = self._noise.seek(0, os.SEEK_END)
        self._noise.seek(max(0, size - EVIDENCE))
        cause, why = death(code)
        evidence = self._noise.read().decode("utf-8", "replace")
        return {"status": "died", "cause": cause, "message": why, "evidence": evidence}

    def _serve(self, asked: IO[bytes], told: IO[bytes]) -> NoReturn:
        code = 1
        try:
            os.dup2(self._noise.fileno(), 1)
            os.dup2(self._noise.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (NOISE, NOISE))
            for line in asked:
                budget, operations = json.loads(line)
                for each in operations:
                    told.write(json.dumps(self._answer(each, budget), separators=(",", ":")).encode() + b"\n")
                    told.flush()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:  # noqa: BLE001 - panics of native code are no Exception
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        finally:
            os._exit(code)


def death(code: int) -> tuple[str, str]:
    """Cause and detail, of an exit code or a negative signal."""
    if code == -signal.SIGPROF:
        return "timeout", "more processor time than a case may take"
    if code < 0:
        return "crashed", f"killed by {signal.Signals(-code).name}"
    return "crashed", f"left with exit code {code}"
