"""The child process of shards: for each of its orders it sets its limits, runs the shard and returns the row.

Processes of targets that can forget stay open for its next shard, and so does what it has compiled. A shard is a
function of its order, so they save time and change no row.
"""

import faulthandler
import json
import os
import pickle
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Final, NamedTuple, NoReturn, TypeAlias

from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot
from kipcheck.conformance.campaign.plan import Bounds
from kipcheck.conformance.campaign.process.child_outcome import DAMAGED, DONE, MEMORY, RAISED, ShardOrder, packed
from kipcheck.conformance.campaign.process.journal import Entry, Journal
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.targets.fault_injection import SHARD
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.kept_open import KeptOpen
from kipcheck.conformance.targets.protocol import Session, Target
from kipcheck.conformance.targets.registry import target as target_of
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.session_wrapper import SessionWrapper
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.targets.transport.garbage import collect_seldom

Run: TypeAlias = Callable[..., Row]
"""A function like ``run_shard``."""


REPORTING_RESERVE: Final = 256 << 20
"""Bytes of memory that a child without memory gets to report that."""


LARGEST_KEPT: Final = 1 << 30
"""Bytes of memory: a child that had more ends after its shard, so that no shard lacks what earlier ones took."""


class ChildPipes(NamedTuple):
    """The descriptors of a child."""

    orders: int
    result: int
    output: int
    """For everything that is written to the standard streams."""
    end: int
    """It closes with the fork server."""


def run_child(run: Run, journal: Journal, server_pid: int, pipes: ChildPipes) -> NoReturn:
    """The main function of the child."""
    code = 1
    try:
        os.setsid()
        if process_tree.LINUX:
            process_tree.die_with_parent(server_pid)
            os.close(pipes.end)
        else:
            process_tree.die_with_pipe(pipes.end)
        for fd in (1, 2):
            os.dup2(pipes.output, fd)
        os.close(pipes.output)
        collect_seldom()
        _dump_stack_on(signal.SIGXCPU)
        with os.fdopen(pipes.orders, "rb") as orders:
            _Child(run, journal, pipes.result).serve(orders)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BaseException as raised:  # noqa: BLE001 - panics of native code are not Exceptions
        traceback.print_exc()
        with suppress(Exception):
            _write_result(pipes.result, RAISED + f"{type(raised).__name__}: {raised}".encode())
    finally:
        with suppress(Exception):
            sys.stderr.flush()
            sys.stdout.flush()
        os._exit(code)


class _Child:
    def __init__(self, run: Run, journal: Journal, result_fd: int) -> None:
        self._run, self._journal, self._result_fd = run, journal, result_fd
        self._snapshot = Snapshot.empty()
        self._kept: dict[tuple[str, Limits | None], KeptOpen] = {}
        """The targets of the latest shards, by name and limits."""
        self._stays = True

    def serve(self, orders: IO[bytes]) -> None:
        """Runs shards until there is no further order, or this process is no longer like a new one."""
        while self._stays:
            try:
                order = pickle.load(orders)
            except EOFError:
                break
            self._serve(order)
        self._close()

    def _serve(self, order: ShardOrder) -> None:
        began = process_tree.processor_time()
        os.environ[SHARD] = str(order.shard.shard)
        _confine(order.bounds)
        at = _Position(self._journal, order.bounds)
        try:
            if order.snapshot is not None:
                self._snapshot = Snapshot.load(order.snapshot) if order.snapshot else Snapshot.empty()
            row = self._run(order.shard, self._snapshot, at.cases, lambda *named: self._find(at, *named))
            self._stays = self._stays and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 < LARGEST_KEPT
            took = int(1000 * (process_tree.processor_time() - began))
            _write_result(self._result_fd, packed(row) + (DONE % took if self._stays else b""))
        except MemoryError:
            self._stays = False
            _limit(resource.RLIMIT_AS, order.bounds.memory + REPORTING_RESERVE)  # the memory may not be free yet
            traceback.print_exc()
            _write_result(self._result_fd, MEMORY)
        except Damaged as wrong:
            self._stays = False
            _write_result(self._result_fd, DAMAGED + str(wrong).encode())

    def _find(self, at: "_Position", name: str, limits: Limits | None) -> Target:
        if (kept := self._kept.get((name, limits))) is not None:
            return kept
        found = target_of(name, limits)
        if isinstance(found, InProcess):
            self._stays = False  # it may change anything in this process
            return _WatchedTarget(found, at.case)
        if any(other != name for other, _ in self._kept):
            self._close()
        return self._kept.setdefault((name, limits), KeptOpen(found))

    def _close(self) -> None:
        for each in self._kept.values():
            each.close()
        self._kept.clear()


def _dump_stack_on(number: signal.Signals) -> None:
    """Writes the Python stack when this signal, or one that reports a crash, arrives."""
    faulthandler.enable(file=2, all_threads=True)
    faulthandler.register(number, file=2, all_threads=True, chain=True)


def _confine(bounds: Bounds) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_AS, bounds.memory)
    _limit(resource.RLIMIT_CPU, max(1, int(time.process_time() + bounds.cpu_s)))


def _limit(what: int, most: int) -> None:
    """Sets the soft limit only, since testees have limits of their own."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _write_result(fd: int, data: bytes) -> None:
    with os.fdopen(fd, "wb", closefd=False) as result:
        result.write(data)


class _Position:
    """The position in the shard: written to the journal, and used for the limit of processor time."""

    def __init__(self, journal: Journal, bounds: Bounds) -> None:
        self._journal, self._bounds = journal, bounds
        self._whole = int(time.process_time() + bounds.cpu_s)
        self._first, self._at, self._limit = 0, 0, 0
        self._cases: Sequence[Case] = ()

    def cases(self, first: int, cases: Sequence[Case]) -> None:
        """Notes cases before they are run, or judged."""
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
        self._journal.write(Entry(self._first + at, time.monotonic(), most < self._whole, text))

    def _most(self) -> int:
        """Seconds of processor time: the kernel's limit has no fractions."""
        return min(self._whole, int(time.process_time() + self._bounds.case_cpu_s) + 1)


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
