"""How seldom processes that run cases look for garbage."""

import gc
from typing import Final

COLLECTIONS: Final = (20_000, 20, 20)
"""Thresholds of the garbage collector: cases, histories and decoded messages have no cycles, and Python's own
thresholds cost a third of the time of a worker and a tenth of that of a testee."""


def collect_seldom() -> None:
    """For a process that has imported what it needs: that stays, and is not looked at again."""
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
