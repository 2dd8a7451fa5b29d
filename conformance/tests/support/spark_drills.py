"""What the workers of a Spark do in tests, besides what they do in a campaign: it is imported there."""

import os
import pickle
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.campaign.executors import spark_worker
from kipcheck.conformance.campaign.plan import Bounds, Shard
from kipcheck.conformance.targets.transport import process_tree


@dataclass(frozen=True, slots=True)
class Brief:
    """Bounds under which a shard that hangs is soon found out."""

    wall_s: float
    case_cpu_s: float = 1.0

    def __call__(self, shard: Shard) -> Bounds:
        return replace(shard.bounds, wall_s=self.wall_s, case_cpu_s=self.case_cpu_s)


PIDS: Final[Mapping[str, Callable[[], int]]] = {
    "worker": os.getpid,
    "executor": lambda: process_tree.parent_of(os.getppid()),  # the parent is the daemon that forks workers
}


@dataclass(frozen=True, slots=True)
class Kill:
    """What a shard takes down before it is held."""

    shard: int
    what: str
    once: Path | None = None
    """The file that says that it did; None: it does each time."""

    def __call__(self) -> None:
        if self.once is not None:
            try:
                self.once.touch(exist_ok=False)
            except FileExistsError:
                return
        os.kill(PIDS[self.what](), signal.SIGKILL)
        signal.pause()


@dataclass(frozen=True, slots=True)
class Answer:
    """``spark_worker.answer``, but some shards take down what runs them."""

    bounds: Brief
    kills: tuple[Kill, ...] = ()
    slow: int | None = None
    """The first attempt of that shard comes to nothing for a long time."""

    def __call__(self, sent: Mapping[str, Any], packed: bytes, attempt: int) -> tuple[str, str]:
        if packed and attempt < spark_worker.MOST_ATTEMPTS:
            number = pickle.loads(packed).shard
            for kill in self.kills:
                if kill.shard == number:
                    kill()
            if number == self.slow and attempt == 0:
                time.sleep(600)
        return spark_worker.answer(sent, packed, attempt, self.bounds)
