"""The child process of a shard: it sets its limits, runs the shard and returns the row."""

import faulthandler
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, NoReturn, TypeAlias

from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.plan import Bounds
from kipcheck.conformance.campaign.process.child_outcome import MEMORY, RAISED, ShardOrder, packed
from kipcheck.conformance.campaign.process.journal import Entry, Journal
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.targets.fault_injection import SHARD
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Session, Target
from kipcheck.conformance.targets.registry import target as target_of
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.session_wrapper import SessionWrapper
from kipcheck.conformance.targets.transport import process_tree

Run: TypeAlias = Callable[..., Row]
"""A function like ``run_shard``."""


REPORTING_RESERVE: Final = 256 << 20
"""Bytes of memory that a child without memory gets to report that."""


class ParentLink(NamedTuple):
    """How a child notices the end of its fork server."""

    server_pid: int
    end_fd: int
    """A pipe that closes with the fork server."""


def run_child(
    order: ShardOrder, snapshot: Snapshot, run: Run, journal: Journal, ties: ParentLink, result_fd: int, output_fd: int
) -> NoReturn:
    """The main function of the child. ``result_fd``: the pipe for the result. ``output_fd``: the pipe for all
    other output.
    """
    code = 1
    try:
        os.setsid()
        if process_tree.LINUX:
            process_tree.die_with_parent(ties.server_pid)
            os.close(ties.end_fd)
        else:
            process_tree.die_with_pipe(ties.end_fd)
        os.environ[SHARD] = str(order.shard.shard)
        for fd in (1, 2):
            os.dup2(output_fd, fd)
        os.close(output_fd)
        _dump_stack_on(signal.SIGXCPU)
        _confine(order.bounds)
        at = _Position(journal, order.bounds)

        def find(name: str, limits: Limits | None) -> Target:
            found = target_of(name, limits)
            return _WatchedTarget(found, at.case) if isinstance(found, InProcess) else found

        try:
            row = run(order.shard, snapshot, at.cases, find)
            _write_result(result_fd, packed(row))
        except MemoryError:
            _limit(resource.RLIMIT_AS, order.bounds.memory + REPORTING_RESERVE)  # the memory may not be free yet
            traceback.print_exc()
            _write_result(result_fd, MEMORY)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BaseException as raised:  # noqa: BLE001 - panics of native code are not Exceptions
        traceback.print_exc()
        with suppress(Exception):
            _write_result(result_fd, RAISED + f"{type(raised).__name__}: {raised}".encode())
    finally:
        with suppress(Exception):
            sys.stderr.flush()
            sys.stdout.flush()
        os._exit(code)


def _dump_stack_on(number: signal.Signals) -> None:
    """Writes the Python stack when this signal, or one that reports a crash, arrives."""
    faulthandler.enable(file=2, all_threads=True)
    faulthandler.register(number, file=2, all_threads=True, chain=True)


def _confine(bounds: Bounds) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_AS, bounds.memory)
    _limit(resource.RLIMIT_CPU, max(1, int(bounds.cpu_s)))


def _limit(what: int, most: int) -> None:
    """Sets the soft limit only, since testees have limits of their own."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _write_result(fd: int, data: bytes) -> None:
    with os.fdopen(fd, "wb") as result_fd:
        result_fd.write(data)


class _Position:
    """The position in the shard: written to the journal, and used for the limit of processor time."""

    def __init__(self, journal: Journal, bounds: Bounds) -> None:
        self._journal, self._bounds = journal, bounds
        self._first, self._at, self._limit = 0, 0, 0
        self._cases: Sequence[Case] = ()

    def cases(self, first: int, cases: Sequence[Case]) -> None:
        """Notes the cases of a batch before they are run."""
        self._first, self._cases = first, cases
        if cases:
            self._write(0)

    def case(self, case: Case) -> None:
        """Called for one of the noted cases, or for a prefix of it."""
        number = len(self._cases)
        for at in (*range(self._at, number), *range(self._at)):
            if self._cases[at].steps[: len(case.steps)] == case.steps:
                if at != self._at:
                    self._write(at)
                return

    def _write(self, at: int) -> None:
        self._at = at
        most = self._most()
        if most != self._limit:
            self._limit = most
            _limit(resource.RLIMIT_CPU, most)
        text = json.dumps(self._cases[at].plain)
        self._journal.write(Entry(self._first + at, time.monotonic(), most < int(self._bounds.cpu_s), text))

    def _most(self) -> int:
        """Seconds of processor time: the kernel's limit has no fractions."""
        return min(int(self._bounds.cpu_s), int(time.process_time() + self._bounds.case_cpu_s) + 1)


class _WatchedTarget:
    """A target in this process, which any of its cases may crash: each case is noted before it runs."""

    def __init__(self, target: Target, on_case: Callable[[Case], None]) -> None:
        self.name = target.name
        self._target, self._on_case = target, on_case

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        with self._target.open(edition, role) as session:
            yield _OneByOne(session, self._on_case)


class _OneByOne(SessionWrapper):
    def __init__(self, session: Session, on_case: Callable[[Case], None]) -> None:
        super().__init__(session)
        self._on_case = on_case

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        answers: list[tuple[Observation, ...]] = []
        for case in cases:
            self._on_case(case)
            answers += self._session.run([case])
        return answers
