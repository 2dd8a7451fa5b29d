"""Draws which part of a log is compacted before a coordinator reads it."""

from random import Random
from typing import Any


def drawn_compaction(random: Random) -> dict[str, Any]:
    """The fields of an operation: any part, in most cases a beginning; they leave out what is usual."""
    since, upto = sorted((random.randint(0, 100), random.randint(0, 100)))
    kind = random.random()
    if kind < 0.4:
        found: dict[str, Any] = {"compacted": upto, "since": since}
    else:
        found = {"compacted": random.choice((upto, 100)), "tombstones": "gone" if kind < 0.7 else "kept"}
    return {name: value for name, value in found.items() if value not in (0, "kept")}
