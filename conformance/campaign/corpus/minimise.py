"""Which entries are enough to show everything that all of them show: a greedy set cover."""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kipcheck.conformance.campaign.rows import Kept

MOST_ENTRIES: Final = 8_192
"""A snapshot travels to every executor, and a round begins with a replay of it."""
MOST_TEXT: Final = 32 << 20
"""Characters of all values together."""


def cover(entries: Sequence[Kept], most: int = MOST_ENTRIES, most_text: int = MOST_TEXT) -> list[int]:
    """Indices, ascending: those that show most for their steps, until nothing is missing or there is no more room.

    Of two that are worth the same, the shorter text is taken, and then the one that came first.
    """
    return sorted(_needed(entries, list(_greedy(entries, most, most_text))))


def _greedy(entries: Sequence[Kept], most: int, room: int) -> Iterator[int]:
    missing = {key for each in entries for key in each.keys}
    heap = [(-len(each.keys) / max(each.steps, 1), len(each.value), index) for index, each in enumerate(entries)]
    heapq.heapify(heap)
    while heap and missing and most:
        # What an entry would add only ever shrinks: one whose worth has not changed since is the best there is.
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
    """Without those all of whose keys later ones happened to show as well: about one in eight. The longest go first."""
    shown = Counter(key for index in chosen for key in entries[index].keys)
    for index in sorted(chosen, key=lambda index: (-entries[index].steps, -index)):
        if all(shown[key] > 1 for key in entries[index].keys):
            shown.subtract(entries[index].keys)
        else:
            yield index
