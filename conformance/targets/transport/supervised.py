"""Runs an adapter in a forked process, so that its death costs only a fork.

Imports happen once, before the fork. Each result is written when it is ready, so a death belongs to the operation under
way, and the others run in the next process.
"""

import json
import os
import resource
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final, NoReturn

from kipcheck.conformance.targets.error_mapping import place_in_dump
from kipcheck.conformance.targets.transport import process_tree

Answer = Callable[[Mapping[str, Any], float], dict[str, Any]]
"""Runs an operation within a budget of processor time, in seconds, and returns its result."""

EVIDENCE = 8 << 10
"""Bytes that are kept of the end of its output."""
MAX_OUTPUT = 64 << 20
"""Bytes that it may write before writing fails."""
Kind = tuple[tuple[str, Any], ...]
KIND: Final = ("op", "message", "version")
"""The fields of an operation that are its kind: what a library compiles depends on them."""
PREPARED_AFTER: Final = 2
"""Processes that run a kind of operations before it is prepared for later ones: a run often has one or two."""
DUMP: Final = signal.SIGUSR1
"""Makes the process write where it hangs, if it has a handler; without one it ends the process, which is due anyway."""
DUMP_SECONDS: Final = 1.0


class Supervised:
    def __init__(self, answer: Answer, prepare: Callable[[Mapping[str, Any]], None] | None = None) -> None:
        """``prepare``: called with the first operation of each process before it is forked, so that what all processes
        need is made once, and is part of no operation's time; and once with each kind of operations that two processes
        have run and outlived, without their values: a third one finds what depends on the kind alone."""
        self._answer = answer
        self._prepare = prepare
        self._kinds_here: set[Kind] = set()
        """Of the operations that the process has run."""
        self._kinds: dict[Kind, int] = {}
        """Of the operations of earlier processes -> how many processes ran them."""
        self._output = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as this process
        self._process: int | None = None
        self._read = b""

    def results(
        self, operations: Sequence[Mapping[str, Any]], budget: float, seconds: float | None = None
    ) -> list[dict[str, Any]]:
        """The result of each operation, in order; a death is a result too.

        Each operation may take ``budget`` of processor time and ``seconds`` of wall time.
        """
        results: list[dict[str, Any]] = []
        while len(results) < len(operations):
            if self._process is None:
                if self._prepare is not None:
                    self._prepare(operations[len(results)])
                    self._prepare_kinds(self._prepare)
                self._begin()
            hung = self._execute(operations[len(results) :], budget, seconds, results)
            if len(results) < len(operations):
                results.append(self._death(f"no answer within {seconds:g} s" if hung else ""))
        return results

    def dump(self) -> bytes:
        """Where the process hangs, as far as it can report that, after what it wrote before."""
        if self._process is None:
            return b""
        os.kill(self._process, DUMP)
        size, until = -1, time.monotonic() + DUMP_SECONDS
        while size != (size := os.fstat(self._output.fileno()).st_size) and time.monotonic() < until:
            time.sleep(0.1)
        return self._evidence()

    def renew(self) -> None:
        """Ends the process: the next operation runs in a new one, in which nothing was run yet."""
        if self._process is not None:
            os.kill(self._process, signal.SIGKILL)
            self._reap()

    def _prepare_kinds(self, prepare: Callable[[Mapping[str, Any]], None]) -> None:
        for kind in self._kinds_here:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            if self._kinds[kind] == PREPARED_AFTER:
                prepare(dict(kind))
        self._kinds_here.clear()

    def _begin(self) -> None:
        self._output.seek(0)  # the file offset is shared with the previous process
        self._output.truncate(0)
        requests_in, requests_out = os.pipe()
        results_in, results_out = os.pipe()
        here = os.getpid()
        self._process = os.fork()
        if self._process == 0:
            process_tree.die_with_parent(here)  # an operation that sleeps does not notice the end of its input
            os.close(requests_out)
            os.close(results_in)
            self._serve(os.fdopen(requests_in, "rb"), os.fdopen(results_out, "wb"))
        os.close(requests_in)
        os.close(results_out)
        self._requests, self._results_fd, self._read = os.fdopen(requests_out, "wb"), results_in, b""

    def _execute(
        self, operations: Sequence[Mapping[str, Any]], budget: float, seconds: float | None,
        results: list[dict[str, Any]],
    ) -> bool:  # fmt: skip
        """Runs operations until all are done or the process died. Whether it hangs."""
        if self._prepare is not None:
            self._kinds_here.update(map(kind_of, operations))
        try:
            self._requests.write(json.dumps([budget, operations]).encode() + b"\n")
            self._requests.flush()
        except BrokenPipeError:
            return False
        for _ in operations:
            started = time.monotonic()
            while b"\n" not in self._read:
                if not select.select(
                    [self._results_fd], [], [], seconds and max(0, started + seconds - time.monotonic())
                )[0]:
                    return True
                if not (data := os.read(self._results_fd, 1 << 20)):
                    return False
                self._read += data
            line, _, self._read = self._read.partition(b"\n")
            results.append(json.loads(line))
        return False

    def _death(self, hung: str) -> dict[str, Any]:
        assert self._process is not None
        self._kinds_here.clear()  # preparing what kills a process would kill this one
        if hung:
            self.dump()
            os.kill(self._process, signal.SIGKILL)
        status = self._reap()
        cause, why = ("timeout", hung) if hung else death(os.waitstatus_to_exitcode(status))
        evidence = self._evidence().decode("utf-8", "replace")
        at = place_in_dump(evidence)
        return {"status": "died", "cause": cause, "message": why, "evidence": evidence, **at}

    def _reap(self) -> int:
        """The status of the process, which has ended or is about to."""
        assert self._process is not None
        _, status = os.waitpid(self._process, 0)
        self._process = None
        os.close(self._results_fd)
        with suppress(BrokenPipeError):  # unsent data
            self._requests.close()
        return status

    def _evidence(self) -> bytes:
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), EVIDENCE, max(0, size - EVIDENCE))

    def _serve(self, requests_in: IO[bytes], results_out: IO[bytes]) -> NoReturn:
        code = 1
        try:
            os.dup2(self._output.fileno(), 1)
            os.dup2(self._output.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OUTPUT, MAX_OUTPUT))
            for line in requests_in:
                budget, operations = json.loads(line)
                for each in operations:
                    results_out.write(json.dumps(self._answer(each, budget), separators=(",", ":")).encode() + b"\n")
                    results_out.flush()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:  # noqa: BLE001 - panics of native code are not an Exception
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        finally:
            os._exit(code)


def kind_of(operation: Mapping[str, Any]) -> Kind:
    return tuple((name, operation[name]) for name in KIND if name in operation)


def death(code: int) -> tuple[str, str]:
    """Cause and detail of an exit code, or of minus a signal."""
    if code == -signal.SIGPROF:
        return "timeout", "more processor time than a case may take"
    if code < 0:
        return "crashed", f"killed by {signal.Signals(-code).name}"
    return "crashed", f"left with exit code {code}"
