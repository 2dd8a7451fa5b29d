"""The fork server: a process that has imported everything, so that a child for shards is a clean fork of it.

``python -m kipcheck.conformance.campaign.process.fork_server RUN JOURNAL``: orders arrive on standard input, the ends
of shards are reported on standard output. A child runs shards until one of them ends it, or leaves it changed; the next
shard has a new child. The fork server ends at the end of its input, with all its children.
"""

import gc
import os
import pickle
import select
import signal
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Final

from kipcheck.conformance.campaign.corpus.entries import Damaged
from kipcheck.conformance.campaign.process.child import ChildPipes, Run, run_child
from kipcheck.conformance.campaign.process.child_outcome import DAMAGED, OUTPUT_LIMIT, ChildOutcome, ShardOrder, done
from kipcheck.conformance.campaign.process.journal import Journal
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.transport import process_tree

LENGTH: Final = struct.Struct(">Q")
"""The length prefix of each message in both directions."""
READY: Final = "ready"
MOST_BYTES: Final = 512 << 20
"""The most bytes of a child's result."""
LEAVE_S: Final = 5.0
"""The time for an idle child to end its targets and itself."""
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
    import_invariants()
    _freeze()
    server.send(READY)
    server.serve()


def import_invariants() -> None:
    for role in Role:
        all_invariants(role)


def _freeze() -> None:
    """Keeps garbage collection in children from touching the memory pages shared with this process."""
    gc.collect()
    gc.freeze()


class _OrdersEnded(Exception):
    """The process that sends the orders has ended."""


class _ForkServer:
    def __init__(self, run: Run, journal: Journal, orders: int, results: int) -> None:
        self._run, self._journal, self._orders_fd, self._results_fd = run, journal, orders, results
        self._snapshot = b""
        self._child: _Child | None = None
        self._wakes, wakes = os.pipe()
        for fd in (self._wakes, wakes):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wakes)

    def serve(self) -> None:
        with suppress(_OrdersEnded, BrokenPipeError):
            while (order := self._next()) is not None:
                outcome = self._outcome(order)
                is_damaged = outcome.result.startswith(DAMAGED)
                self.send(Damaged(outcome.result[len(DAMAGED) :].decode()) if is_damaged else outcome)
        if self._child is not None:
            self._child.leave()
            self._end_child()

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

    def _outcome(self, order: ShardOrder) -> ChildOutcome:
        """Errors: ``_OrdersEnded``."""
        self._journal.clear()
        if order.snapshot is not None:
            self._snapshot = order.snapshot
        if self._child is not None and self._child.has_ended():
            self._end_child()
        if self._child is None:
            self._child = self._forked()
            order = replace(order, snapshot=self._snapshot)
        started_s, started = time.monotonic(), datetime.now(UTC)
        stays = False
        try:
            self._child.send(order)
            code, stopped, cpu_ms = self._child.to_its_end(
                self._orders_fd, self._wakes, started_s + order.bounds.wall_s
            )
            stays = self._child.stays
            result, output = bytes(self._child.result), self._child.output
        finally:
            if not stays:
                self._end_child()
        wall = time.monotonic() - started_s
        at = started.isoformat(timespec="milliseconds")
        return ChildOutcome(code, stopped, result, output, int(wall * 1000), cpu_ms, at)

    def _forked(self) -> "_Child":
        orders, results, outputs, ends = os.pipe(), os.pipe(), os.pipe(), os.pipe()
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            wakes = signal.set_wakeup_fd(-1)
            ours = self._orders_fd, self._results_fd, self._wakes, wakes, orders[1], results[0], outputs[0], ends[1]
            for fd in ours:
                os.close(fd)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run_child(self._run, self._journal, server, ChildPipes(orders[0], results[1], outputs[1], ends[0]))
        for fd in (orders[0], results[1], outputs[1], ends[0]):
            os.close(fd)
        return _Child(pid, orders[1], results[0], outputs[0], ends[1])

    def _end_child(self) -> None:
        child, self._child = self._child, None
        assert child is not None
        process_tree.end_children()  # its testees too, which have sessions of their own
        child.close()


@dataclass
class _Child:
    """Sends orders to a child, reads its results and its output, and waits for its end."""

    pid: int
    orders_fd: int
    result_fd: int
    output_fd: int
    alive_fd: int
    """It closes with this process."""

    def __post_init__(self) -> None:
        self.result = bytearray()
        self.output = b""
        self.stays = False
        """Whether it waits for another order."""
        for fd in (self.result_fd, self.output_fd):
            os.set_blocking(fd, False)

    def has_ended(self) -> bool:
        """Whether somebody killed it between two orders."""
        return os.waitpid(self.pid, os.WNOHANG)[0] != 0

    def send(self, order: ShardOrder) -> None:
        self.result, self.output, self.stays = bytearray(), b"", False
        with suppress(BrokenPipeError), os.fdopen(self.orders_fd, "wb", closefd=False) as orders:
            pickle.dump(order, orders)

    def leave(self) -> None:
        """Lets it end, and its targets."""
        os.close(self.orders_fd)
        self.orders_fd = -1
        until = time.monotonic() + LEAVE_S
        while not self.has_ended() and time.monotonic() < until:
            time.sleep(0.02)

    def to_its_end(self, orders: int, wakes: int, until: float) -> tuple[int, str, int]:
        """Exit code or minus a signal; why it was stopped; milliseconds of processor time. Errors: ``_OrdersEnded``."""
        stopped = ""
        open_ = {self.result_fd, self.output_fd}
        while True:
            if (found := done(self.result)) is not None:
                self._take(self.output_fd)
                self.result[:], cpu_ms = found
                self.stays = not stopped
                return 0, stopped, cpu_ms
            ended, status, used = os.wait4(self.pid, os.WNOHANG)
            if ended:
                self._take(self.result_fd)
                self._take(self.output_fd)
                return os.waitstatus_to_exitcode(status), stopped, int(1000 * (used.ru_utime + used.ru_stime))
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
        for fd in (self.orders_fd, self.result_fd, self.output_fd, self.alive_fd):
            with suppress(OSError):
                os.close(fd)


if __name__ == "__main__":
    main(sys.argv[1:])
