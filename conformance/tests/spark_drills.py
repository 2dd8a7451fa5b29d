"""What the workers of a Spark do in tests, besides what they do in a campaign: it is imported there."""

import os
import pickle
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.campaign import afar
from conformance.campaign.plan import Bounds, Shard
from conformance.targets import kin


@dataclass(frozen=True, slots=True)
class Brief:
    """Bounds under which a shard that hangs is soon found out."""

    wall_s: float
    case_cpu_s: float = 1.0

    def __call__(self, shard: Shard) -> Bounds:
        return replace(shard.bounds, wall_s=self.wall_s, case_cpu_s=self.case_cpu_s)


@dataclass(frozen=True, slots=True)
class Answer:
    """``afar.answer``, but some shards take down the executor that runs them: the process above the daemon."""

    bounds: Brief
    kills_executor: tuple[tuple[int, Path | None], ...] = ()
    """Number of the shard, and the file that says that it did; None: it does each time."""

    def __call__(self, sent: Mapping[str, Any], packed: bytes, attempt: int) -> tuple[str, str]:
        if packed and attempt < afar.GIVES_UP:
            number = pickle.loads(packed).shard
            for guilty, once in self.kills_executor:
                if guilty == number and (once is None or _first(once)):
                    os.kill(kin.parent_of(os.getppid()), signal.SIGKILL)
                    signal.pause()
        return afar.answer(sent, packed, attempt, self.bounds)


def _first(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
