"""Selects few entries that show all coverage keys: a greedy set cover."""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kipcheck.conformance.campaign.rows import Kept

MOST_ENTRIES: Final = 8_192
"""A snapshot is sent to every executor, and a round starts by replaying a part of it."""
MOST_TEXT: Final = 32 << 20
"""Characters of all values."""


def cover(entries: Sequence[Kept], most: int = MOST_ENTRIES, most_text: int = MOST_TEXT) -> list[int]:
    """Indices in ascending order: entries with the most new keys per step, until all keys are covered or a limit is
    reached.

    Of two equal entries the shorter text is taken, then the earlier one.
    """
    return sorted(_needed(entries, list(_greedy(entries, most, most_text))))


def _greedy(entries: Sequence[Kept], most: int, room: int) -> Iterator[int]:
    missing = {key for each in entries for key in each.keys}
    heap = [(-len(each.keys) / max(each.steps, 1), len(each.value), index) for index, each in enumerate(entries)]
    heapq.heapify(heap)
    while heap and missing and most:
        # The gain of an entry only ever shrinks, so an entry whose gain is unchanged is the best one.
        worth, size, index = heapq.heappop(heap)
        adds = missing.intersection(entries[index].keys)
        now = -len(adds) / max(entries[index].steps, 1)
        if not adds or size > room:
            continue
        if now != worth:
            heapq.heappush(heap, (now, size, index))
            continue
        yield index
        missing -= adds
        most -= 1
        room -= size


def _needed(entries: Sequence[Kept], chosen: Sequence[int]) -> Iterator[int]:
    """Without entries whose keys are all covered by others as well, about one in eight. The longest are removed
    first.
    """
    shown = Counter(key for index in chosen for key in entries[index].keys)
    for index in sorted(chosen, key=lambda index: (-entries[index].steps, -index)):
        if all(shown[key] > 1 for key in entries[index].keys):
            shown.subtract(entries[index].keys)
        else:
            yield index
