"""Which entries are enough to show everything that all of them show: a greedy set cover."""

import heapq
from collections.abc import Sequence
from typing import Final

from conformance.campaign.rows import Kept

MOST_ENTRIES: Final = 8_192
"""A snapshot travels to every executor, and a round begins with a replay of it."""
MOST_TEXT: Final = 32 << 20
"""Characters of all values together."""


def cover(entries: Sequence[Kept], most: int = MOST_ENTRIES, most_text: int = MOST_TEXT) -> list[int]:
    """Indices, ascending: first those that show most for their steps, until nothing is missing or there are enough.

    Of two that are worth the same, the shorter text is taken, and then the one that came first.
    """
    missing = set().union(*(each.keys for each in entries))
    heap = [(-len(each.keys) / max(each.steps, 1), len(each.value), index) for index, each in enumerate(entries)]
    heapq.heapify(heap)
    chosen: list[int] = []
    text = 0
    while heap and missing and len(chosen) < most:
        # What an entry still adds only ever shrinks, so one whose worth has not changed since is the best there is.
        worth, size, index = heapq.heappop(heap)
        entry = entries[index]
        adds = missing.intersection(entry.keys)
        now = -len(adds) / max(entry.steps, 1)
        if not adds or text + size > most_text:
            continue
        if now != worth:
            heapq.heappush(heap, (now, size, index))
            continue
        chosen.append(index)
        text += size
        missing -= adds
    return sorted(chosen)
