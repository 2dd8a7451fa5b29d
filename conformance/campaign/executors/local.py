"""Executors on this machine: shards run one after the other, or in one child process for each worker."""

import select
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.process.child_outcome import RETRY_FACTOR, BoundsOf, is_doubtful, usual
from kipcheck.conformance.campaign.process.shard_pool import ShardRunner
from kipcheck.conformance.campaign.report.row_files import Part
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.campaign.summary import RoundSummary

TICK_S: Final = 0.5
"""The most seconds between two ticks."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Numbers of shards."""

    done: int
    running: int
    total: int


Tick: TypeAlias = Callable[[Progress], None]


class Executor(Protocol):
    """Runs shards. The row of a shard does not depend on the executor."""

    @property
    def name(self) -> str: ...
    @property
    def slots(self) -> int:
        """The number of shards that run at the same time."""
        ...

    def run(self, shards: Sequence[Shard], snapshot: bytes, tick: Tick) -> Generator[Row, None, None]:
        """The row of each shard, in any order. Closing the iterator stops running shards. Errors:
        ``CannotRunShards``.
        """
        ...

    def fold(self, campaign: str, round_: int, parts: Sequence[Part]) -> Iterator[RoundSummary | Part]:
        """Summaries of the rows of a round in files of its ledger, and the files that the driver has to read itself."""
        ...


@contextmanager
def inline(bounds: BoundsOf = usual) -> Iterator[Executor]:
    with _local("inline", 1, bounds) as executor:
        yield executor


@contextmanager
def pool(workers: int, bounds: BoundsOf = usual) -> Iterator[Executor]:
    with _local("pool", workers, bounds) as executor:
        yield executor


@contextmanager
def _local(name: str, workers: int, bounds: BoundsOf) -> Iterator["_Local"]:
    with ExitStack() as stack:
        yield _Local(name, [stack.enter_context(ShardRunner(bounds=bounds)) for _ in range(workers)])


class _Local:
    """Has no threads or processes of its own: it waits for all its children at once."""

    def __init__(self, name: str, runners: Sequence[ShardRunner]) -> None:
        self.name = name
        self.slots = len(runners)
        self._runners = runners

    def run(self, shards: Sequence[Shard], snapshot: bytes, tick: Tick) -> Generator[Row, None, None]:
        waiting, done, doubtful = deque(shards), 0, list[Shard]()

        def report_progress() -> None:
            tick(Progress(done, sum(each.busy for each in self._runners), len(shards)))

        try:
            self._begin(waiting, snapshot)
            while any(each.busy for each in self._runners):
                report_progress()
                ended = self._ended()
                self._begin(waiting, snapshot)  # before yielding rows, since the caller may take a while
                doubtful += [shard for shard, row in ended if is_doubtful(row)]
                for _, row in ended:
                    if not is_doubtful(row):
                        done += 1
                        yield row
            for shard in doubtful:  # now alone, so that no other shard slows it down
                self._runners[0].begin(shard, snapshot, RETRY_FACTOR, attempt=1)
                while self._runners[0].busy:
                    report_progress()
                    for _, row in self._ended():
                        done += 1
                        yield row
            report_progress()
        finally:
            for each in self._runners:
                if each.busy:
                    each.stop()

    def fold(self, campaign: str, round_: int, parts: Sequence[Part]) -> Iterator[RoundSummary | Part]:
        yield from parts

    def _begin(self, waiting: deque[Shard], snapshot: bytes) -> None:
        for each in self._runners:
            if waiting and not each.busy:
                each.begin(waiting.popleft(), snapshot)

    def _ended(self) -> list[tuple[Shard, Row]]:
        """The shards that have ended; waits for a while at most."""
        busy = [each for each in self._runners if each.busy]
        until = min([time.monotonic() + TICK_S, *(each.until for each in busy)])
        ready = select.select(busy, [], [], max(0.0, until - time.monotonic()))[0]
        ended = []
        for each in busy:
            if each in ready or time.monotonic() >= each.until:
                shard, row = each.shard, each.advance()
                if row is not None:
                    ended.append((shard, row))
        return ended
