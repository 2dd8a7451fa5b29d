"""The fork server: a process that has imported everything, so that the child of a shard is a clean fork of it.

``python -m kipcheck.conformance.campaign.process.fork_server RUN JOURNAL``: orders arrive on standard input, the ends
of
children are reported on standard output. It ends at the end of its input, and kills all its children.
"""

import gc
import os
import pickle
import select
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Final

from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.process.child import ParentLink, Run, run_child
from kipcheck.conformance.campaign.process.child_outcome import OUTPUT_LIMIT, ChildOutcome, ShardOrder
from kipcheck.conformance.campaign.process.journal import Journal
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.registry import REFERENCE, adapter
from kipcheck.conformance.targets.transport import process_tree

LENGTH: Final = struct.Struct(">Q")
"""The length prefix of each message in both directions."""
READY: Final = "ready"
MOST_BYTES: Final = 512 << 20
"""The most bytes of a child's result."""
WARM_UP_CASES: Final = 200
"""Cases that compile most codecs and strategies, and take no longer than that saves in a few shards."""
STACK_DUMP_S: Final = 1.0
"""The time for a hanging child to write its stack."""


def main(arguments: Sequence[str]) -> None:
    entry, journal = arguments
    module, _, name = entry.partition(":")
    run: Run = getattr(import_module(module), name)
    process_tree.adopt_orphans()
    orders, results = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    server = _ForkServer(run, Journal(int(journal)), orders, results)
    for role in Role:
        all_invariants(role)  # imports them
    _freeze()
    server.send(READY)
    server.serve()


def _freeze() -> None:
    """Keeps garbage collection in children from touching the memory pages shared with this process."""
    gc.collect()
    gc.freeze()


class _OrdersEnded(Exception):
    """The process that sends the orders has ended."""


class _ForkServer:
    def __init__(self, run: Run, journal: Journal, orders: int, results: int) -> None:
        self._run, self._journal, self._orders_fd, self._results_fd = run, journal, orders, results
        self._snapshot = Snapshot.empty()
        self._shard_counts: Counter[tuple[str, tuple[str, ...], str]] = Counter()
        """Edition, checks and engine -> number of shards with them."""
        self._wakes, wakes = os.pipe()
        for fd in (self._wakes, wakes):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wakes)

    def serve(self) -> None:
        while (order := self._next()) is not None:
            try:
                if order.snapshot is not None:
                    self._snapshot = Snapshot.load(order.snapshot) if order.snapshot else Snapshot.empty()
                self._warm_up(order.shard)
                self.send(self._child(order))
            except Damaged as wrong:
                self.send(wrong)
            except (_OrdersEnded, BrokenPipeError):
                return

    def send(self, what: object) -> None:
        data = pickle.dumps(what)
        with os.fdopen(self._results_fd, "wb", closefd=False) as results:
            results.write(LENGTH.pack(len(data)) + data)

    def _next(self) -> ShardOrder | None:
        with os.fdopen(self._orders_fd, "rb", closefd=False) as orders:
            head = orders.read(LENGTH.size)
            data = orders.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""
        if not data:
            return None
        order = pickle.loads(data)
        assert isinstance(order, ShardOrder)
        return order

    def _warm_up(self, shard: Shard) -> None:
        """Runs a shard with the reference in this process when its edition, checks and engine occur for the second
        time, so that codecs and strategies are compiled here, and not in every child.

        It leaves nothing but caches.
        """
        if shard.stage != "hold":
            return
        about = shard.edition, shard.checks, shard.engine
        self._shard_counts[about] += 1
        if self._shard_counts[about] != 2:
            return
        small = replace(
            shard, campaign="", round=-1, target=REFERENCE, cases=min(shard.cases, WARM_UP_CASES), corpus=""
        )
        try:
            self._run(
                small, Snapshot.empty(), self._stop_if_orders_end, lambda name, limits: InProcess(adapter(REFERENCE))
            )
        except _OrdersEnded:
            raise
        except Exception:  # noqa: BLE001 - a child will raise it too, and report it
            traceback.print_exc()
        _freeze()

    def _stop_if_orders_end(self, number: int, cases: Sequence[Case]) -> None:
        """No order arrives before the last one is answered, so readable input is its end. Errors: ``_OrdersEnded``."""
        if select.select([self._orders_fd], [], [], 0)[0]:
            raise _OrdersEnded

    def _child(self, order: ShardOrder) -> ChildOutcome:
        """Errors: ``_OrdersEnded``."""
        self._journal.clear()
        result_read_fd, result_write_fd = os.pipe()
        output_read_fd, output_write_fd = os.pipe()
        ends, alive = os.pipe()
        started_s, started = time.monotonic(), datetime.now(UTC)
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            for fd in (
                self._orders_fd,
                self._results_fd,
                self._wakes,
                signal.set_wakeup_fd(-1),
                result_read_fd,
                output_read_fd,
                alive,
            ):
                os.close(fd)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run_child(
                order,
                self._snapshot,
                self._run,
                self._journal,
                ParentLink(server, ends),
                result_write_fd,
                output_write_fd,
            )
        for fd in (result_write_fd, output_write_fd, ends):
            os.close(fd)
        watch = _ChildWatch(pid, result_read_fd, output_read_fd)
        try:
            code, stopped, cpu = watch.to_its_end(self._orders_fd, self._wakes, started_s + order.bounds.wall_s)
        finally:
            process_tree.end_children()  # its testees too, which have sessions of their own
            watch.close()
            os.close(alive)
        wall = time.monotonic() - started_s
        return ChildOutcome(
            code, stopped, bytes(watch.result), watch.output, int(wall * 1000), int(cpu * 1000),
            started.isoformat(timespec="milliseconds"),
        )  # fmt: skip


@dataclass
class _ChildWatch:
    """Reads the result and the output of a child, and waits for its end."""

    pid: int
    result_fd: int
    output_fd: int

    def __post_init__(self) -> None:
        self.result = bytearray()
        self.output = b""
        for fd in (self.result_fd, self.output_fd):
            os.set_blocking(fd, False)

    def to_its_end(self, orders: int, wakes: int, until: float) -> tuple[int, str, float]:
        """Exit code or minus a signal; why it was stopped; seconds of processor time. Errors: ``_OrdersEnded``."""
        stopped = ""
        open_ = {self.result_fd, self.output_fd}
        while True:
            ended, status, used = os.wait4(self.pid, os.WNOHANG)
            if ended:
                self._take(self.result_fd)
                self._take(self.output_fd)
                return os.waitstatus_to_exitcode(status), stopped, used.ru_utime + used.ru_stime
            remaining = until - time.monotonic()
            if remaining <= 0:
                if stopped:
                    self.kill()
                    until += 3600  # it is killed
                else:
                    stopped = "it exceeded its time limit"
                    self._request_stack()
                    until = time.monotonic() + STACK_DUMP_S
                continue
            ready = select.select([orders, wakes, *open_], [], [], remaining)[0]
            if orders in ready:  # no order arrives while a child runs, so this is the end of input
                self.kill()
                raise _OrdersEnded
            if wakes in ready:
                os.read(wakes, 4096)
            for fd in open_.intersection(ready):
                if not self._take(fd):
                    open_.discard(fd)
            if len(self.result) > MOST_BYTES and not stopped:
                stopped = f"its result has more than {MOST_BYTES >> 20} MiB"
                until = 0.0

    def _take(self, fd: int) -> bool:
        """Reads all that is available. Returns whether more may come."""
        with suppress(BlockingIOError):
            while data := os.read(fd, 1 << 16):
                if fd == self.result_fd:
                    self.result += data
                else:
                    self.output = (self.output + data)[-OUTPUT_LIMIT:]
            return False
        return True

    def _request_stack(self) -> None:
        """The child's handler for the end of its processor time writes its stack."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGXCPU)

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)  # it may not have its own group yet

    def close(self) -> None:
        os.close(self.result_fd)
        os.close(self.output_fd)


if __name__ == "__main__":
    main(sys.argv[1:])
