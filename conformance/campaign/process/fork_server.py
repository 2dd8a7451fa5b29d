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
from kipcheck.conformance.campaign.process.child import Run, Ties, live
from kipcheck.conformance.campaign.process.child_outcome import EVIDENCE, End, Order
from kipcheck.conformance.campaign.process.journal import Journal
from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.invariants.registry import all_invariants
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.registry import REFERENCE, adapter
from kipcheck.conformance.targets.transport import process_tree

LENGTH: Final = struct.Struct(">Q")
"""The length prefix of each message in both directions."""
READY: Final = "ready"
MOST: Final = 512 << 20
"""The most bytes of a child's result."""
WARM: Final = 200
"""Cases that compile most codecs and strategies, and take no longer than that saves in a few shards."""
LAST_WORDS_S: Final = 1.0
"""The time for a hanging child to write its stack."""


def main(arguments: Sequence[str]) -> None:
    entry, journal = arguments
    module, _, name = entry.partition(":")
    run: Run = getattr(import_module(module), name)
    process_tree.adopt_orphans()
    heard, said = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    zygote = _Zygote(run, Journal(int(journal)), heard, said)
    for role in Role:
        all_invariants(role)  # imports them
    _freeze()
    zygote.tell(READY)
    zygote.serve()


def _freeze() -> None:
    """Keeps garbage collection in children from touching the memory pages shared with this process."""
    gc.collect()
    gc.freeze()


class _Gone(Exception):
    """The process that sends the orders has ended."""


class _Zygote:
    def __init__(self, run: Run, journal: Journal, heard: int, said: int) -> None:
        self._run, self._journal, self._heard, self._said = run, journal, heard, said
        self._snapshot = Snapshot.empty()
        self._asked: Counter[tuple[str, tuple[str, ...], str]] = Counter()
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
                self._warm(order.shard)
                self.tell(self._child(order))
            except Damaged as wrong:
                self.tell(wrong)
            except (_Gone, BrokenPipeError):
                return

    def tell(self, what: object) -> None:
        data = pickle.dumps(what)
        with os.fdopen(self._said, "wb", closefd=False) as said:
            said.write(LENGTH.pack(len(data)) + data)

    def _next(self) -> Order | None:
        with os.fdopen(self._heard, "rb", closefd=False) as heard:
            head = heard.read(LENGTH.size)
            data = heard.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""
        if not data:
            return None
        order = pickle.loads(data)
        assert isinstance(order, Order)
        return order

    def _warm(self, shard: Shard) -> None:
        """Runs a shard with the reference in this process when its edition, checks and engine occur for the second
        time, so that codecs and strategies are compiled here, and not in every child.

        It leaves nothing but caches.
        """
        if shard.stage != "hold":
            return
        about = shard.edition, shard.checks, shard.engine
        self._asked[about] += 1
        if self._asked[about] != 2:
            return
        small = replace(shard, campaign="", round=-1, target=REFERENCE, cases=min(shard.cases, WARM), corpus="")
        try:
            self._run(small, Snapshot.empty(), self._heed, lambda name, limits: InProcess(adapter(REFERENCE)))
        except _Gone:
            raise
        except Exception:  # noqa: BLE001 - a child will raise it too, and report it
            traceback.print_exc()
        _freeze()

    def _heed(self, number: int, cases: Sequence[Case]) -> None:
        """A ``Note``. No order arrives before the last one is answered, so readable input is its end. Errors:
        ``_Gone``.
        """
        if select.select([self._heard], [], [], 0)[0]:
            raise _Gone

    def _child(self, order: Order) -> End:
        """Errors: ``_Gone``."""
        self._journal.clear()
        gives, given = os.pipe()
        speaks, spoken = os.pipe()
        ends, alive = os.pipe()
        begun, started = time.monotonic(), datetime.now(UTC)
        zygote = os.getpid()
        pid = os.fork()
        if pid == 0:
            for fd in (self._heard, self._said, self._wakes, signal.set_wakeup_fd(-1), gives, speaks, alive):
                os.close(fd)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            live(order, self._snapshot, self._run, self._journal, Ties(zygote, ends), given, spoken)
        for fd in (given, spoken, ends):
            os.close(fd)
        watch = _Watch(pid, gives, speaks)
        try:
            code, stopped, cpu = watch.to_its_end(self._heard, self._wakes, begun + order.bounds.wall_s)
        finally:
            process_tree.end_children()  # its testees too, which have sessions of their own
            watch.close()
            os.close(alive)
        wall = time.monotonic() - begun
        return End(
            code, stopped, bytes(watch.given), watch.noise, int(wall * 1000), int(cpu * 1000),
            started.isoformat(timespec="milliseconds"),
        )  # fmt: skip


@dataclass
class _Watch:
    """Reads the result and the output of a child, and waits for its end."""

    pid: int
    gives: int
    speaks: int

    def __post_init__(self) -> None:
        self.given = bytearray()
        self.noise = b""
        for fd in (self.gives, self.speaks):
            os.set_blocking(fd, False)

    def to_its_end(self, heard: int, wakes: int, until: float) -> tuple[int, str, float]:
        """Exit code or minus a signal; why it was stopped; seconds of processor time. Errors: ``_Gone``."""
        stopped = ""
        open_ = {self.gives, self.speaks}
        while True:
            ended, status, used = os.wait4(self.pid, os.WNOHANG)
            if ended:
                self._take(self.gives)
                self._take(self.speaks)
                return os.waitstatus_to_exitcode(status), stopped, used.ru_utime + used.ru_stime
            left = until - time.monotonic()
            if left <= 0:
                if stopped:
                    self.kill()
                    until += 3600  # it is killed
                else:
                    stopped = "it exceeded its time limit"
                    self._ask_where()
                    until = time.monotonic() + LAST_WORDS_S
                continue
            ready = select.select([heard, wakes, *open_], [], [], left)[0]
            if heard in ready:  # no order arrives while a child runs, so this is the end of input
                self.kill()
                raise _Gone
            if wakes in ready:
                os.read(wakes, 4096)
            for fd in open_.intersection(ready):
                if not self._take(fd):
                    open_.discard(fd)
            if len(self.given) > MOST and not stopped:
                stopped = f"its result has more than {MOST >> 20} MiB"
                until = 0.0

    def _take(self, fd: int) -> bool:
        """Reads all that is available. Returns whether more may come."""
        with suppress(BlockingIOError):
            while data := os.read(fd, 1 << 16):
                if fd == self.gives:
                    self.given += data
                else:
                    self.noise = (self.noise + data)[-EVIDENCE:]
            return False
        return True

    def _ask_where(self) -> None:
        """The child's handler for the end of its processor time writes its stack."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGXCPU)

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)  # it may not have its own group yet

    def close(self) -> None:
        os.close(self.gives)
        os.close(self.speaks)


if __name__ == "__main__":
    main(sys.argv[1:])
