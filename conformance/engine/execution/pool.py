"""A pool of forked worker processes for one function; they end when their parent ends.

The pool has no thread, so workers are forked from the thread that uses it, and an interrupt leaves no process behind.
"""

import multiprocessing
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Final, Generic, TypeVar

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.targets.transport.garbage import collect_seldom

ITEMS_AHEAD: Final = 4
"""Items queued beyond one for each worker, so that no worker waits while results are processed."""
QUEUED_BYTES: Final = 32 * 1024
"""The most bytes of items that are queued beyond one for each worker: less than any pipe holds. If the pipe were full,
this process would wait for workers, and they for it to take their results."""
BACKLOG: Final = 12
"""Results for each worker that may wait for earlier ones."""
EXIT_S: Final = 20.0
"""The time for a worker to exit after its work: it may have to end a JVM."""
INTERRUPT_S: Final = 3.0
"""The same after an interrupt."""

A = TypeVar("A")
B = TypeVar("B")


class WorkerLost(RuntimeError):
    """A worker process ended during its work."""


@dataclass(frozen=True, slots=True)
class Result(Generic[B]):
    """The result of one item."""

    value: B | None = None
    raised: Exception | None = None

    def get(self) -> B:
        """Errors: the exception that the function raised."""
        if self.raised is not None:
            raise self.raised
        return self.value  # type: ignore[return-value]


@dataclass(slots=True)
class Pool(Generic[A, B]):
    """Created by ``pool``."""

    workers: dict[Connection, ForkProcess]
    """By the connection on which their results arrive."""
    tasks: Any
    """A ``SimpleQueue`` of numbered items, pickled, for all workers."""
    outstanding: int = 0
    """Items whose results have not been taken yet."""
    sent: dict[int, int] = field(default_factory=dict)
    """The sizes of those of them that are in the queue or with a worker."""
    unsent: deque[tuple[int, bytes]] = field(default_factory=deque)
    """The others, which are too large to be sent yet."""
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1 << 62)))

    @property
    def takes_more(self) -> bool:
        """Whether another item may be given."""
        return self.outstanding < len(self.workers) + ITEMS_AHEAD

    def give(self, item: A) -> int:
        """Returns the number of the item's result."""
        number = next(self.numbers)
        self.unsent.append((number, pickle.dumps((number, item))))
        self.outstanding += 1
        self._send()
        return number

    def _send(self) -> None:
        """Sends what a worker is free for, or the queue has room for."""
        while self.unsent:
            number, data = self.unsent[0]
            has_room = sum(self.sent.values()) + len(data) <= QUEUED_BYTES
            if len(self.sent) >= len(self.workers) and not has_room:
                return
            self.unsent.popleft()
            self.sent[number] = len(data)
            self.tasks.put(data)

    def take(self, seconds: float | None = None) -> dict[int, Result[B]]:
        """Finished results by number; waits up to ``seconds`` for one, or without limit if None.

        Errors: ``WorkerLost``; the exception that a worker raised before its first item.
        """
        found: dict[int, Result[B]] = {}
        for each in wait([*self.workers], seconds) if self.outstanding else ():
            assert isinstance(each, Connection)
            try:
                number, result = pickle.loads(each.recv_bytes())
            except (EOFError, OSError):
                raise self._worker_lost(self.workers[each]) from None
            if number is None:
                result.get()
            found[number] = result
            self.outstanding -= 1
            del self.sent[number]
        self._send()
        return found

    def map(self, items: Iterable[A], still_wanted: Callable[[], bool] = lambda: True) -> Iterator[tuple[A, B | None]]:
        """Each item with its result, in order. None for items at whose turn ``wanted`` returned False."""
        source, waiting, found = iter(items), deque[tuple[A, int | None]](), dict[int, Result[B]]()
        more = True
        while more or waiting:
            ready = bool(waiting) and (waiting[0][1] is None or waiting[0][1] in found)
            full = not self.takes_more or len(waiting) > BACKLOG * len(self.workers)
            found |= self.take(None if not ready and (full or not more) else 0)
            while more and self.takes_more and len(waiting) <= BACKLOG * len(self.workers):
                for item in source:
                    waiting.append((item, self.give(item) if still_wanted() else None))
                    break
                else:
                    more = False
            if waiting and waiting[0][1] is None:
                yield waiting.popleft()[0], None
            elif waiting and waiting[0][1] in found:
                item, number = waiting.popleft()
                assert number is not None
                yield item, found.pop(number).get()

    def _worker_lost(self, worker: ForkProcess) -> WorkerLost:
        worker.join(INTERRUPT_S)
        code = worker.exitcode
        how = f"exit code {code}" if code is None or code >= 0 else f"signal {-code}"
        return WorkerLost(f"a worker process ended during its work ({how})")

    def end(self) -> None:
        """Lets idle workers exit; terminates them if results are outstanding."""
        if self.outstanding:
            for worker in self.workers.values():
                worker.terminate()
        else:
            for _ in self.workers:
                self.tasks.put(None)
        until = time.monotonic() + (INTERRUPT_S if self.outstanding else EXIT_S)
        for worker in self.workers.values():
            worker.join(max(0.0, until - time.monotonic()))

    def kill(self) -> None:
        for results, worker in self.workers.items():
            worker.kill()
            worker.join()
            results.close()
        self.tasks.close()


@contextmanager
def pool(
    workers: int,
    function: Callable[[A], B],
    context_factory: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[Pool[A, B]]:
    """So many processes that call ``does`` with each item, within one context for each process.

    They are forked, so a script that calls kipcheck needs no guard around its main module.
    Errors: ``Unavailable`` where no semaphore can be had, as in some containers.
    """
    context = multiprocessing.get_context("fork")
    try:
        made: Pool[A, B] = Pool({}, context.SimpleQueue())
    except OSError as denied:
        why = f"several processes need semaphores, which this machine refuses ({denied.strerror})"
        raise Unavailable(f"{why}: make /dev/shm writable, or give --workers 1") from None
    try:
        for _ in range(workers):
            results, sender = context.Pipe(duplex=False)
            worker = context.Process(
                target=_work, args=(os.getpid(), made.tasks, sender, function, context_factory), daemon=True
            )
            worker.start()
            made.workers[results] = worker
            sender.close()  # so that its results end with the worker
        yield made
    finally:
        try:
            made.end()
        finally:
            made.kill()


def _work(
    parent: int, tasks: Any, sender: Connection, function: Callable[[A], B],
    context_factory: Callable[[], AbstractContextManager[object]],
) -> None:  # fmt: skip
    """The main function of a worker."""
    collect_seldom()
    os.setsid()  # Ctrl-C in the terminal interrupts the parent only
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # unwinds, so that files are complete
    if process_tree.LINUX:
        process_tree.die_with_parent(parent)
    elif (process := multiprocessing.parent_process()) is not None:
        process_tree.die_with_pipe(process.sentinel)
    try:
        with context_factory():
            while (task := tasks.get()) is not None:
                number, item = pickle.loads(task)
                sender.send_bytes(_packed(number, _done(function, item)))
    except KeyboardInterrupt:
        os._exit(1)
    except Exception as why:  # noqa: BLE001 - raised where its results are waited for
        sender.send_bytes(_packed(None, Result(raised=why)))


def _done(function: Callable[[A], B], item: A) -> Result[B]:
    try:
        return Result(function(item))
    except Exception as why:  # noqa: BLE001 - raised where its result is looked at
        return Result(raised=why)


def _packed(number: int | None, result: Result[Any]) -> bytes:
    """Exceptions that cannot be pickled are replaced by their text."""
    try:
        data = pickle.dumps((number, result))
        if result.raised is not None:
            pickle.loads(data)
        return data
    except Exception as why:  # noqa: BLE001 - of whatever was to be packed
        error = result.raised or why
        return pickle.dumps((number, Result(raised=RuntimeError(f"{type(error).__name__}: {error}"))))
