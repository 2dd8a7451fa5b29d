"""What processes use, by Linux's /proc."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Resources:
    """Of several processes together; 0 where it is not known."""

    descriptors: int = 0
    threads: int = 0
    memory_mib: int = 0
    processor_ms: int = 0

    def since(self, before: "Resources") -> "Resources":
        """What is used more."""
        return Resources(*(max(0, getattr(self, each) - getattr(before, each)) for each in self.__slots__))

    def least(self, other: "Resources") -> "Resources":
        """The smaller of each."""
        return Resources(*(min(getattr(self, each), getattr(other, each)) for each in self.__slots__))


def used(pids: Iterable[int]) -> Resources:
    """Nothing for processes that are gone, and on systems without /proc."""
    found = Resources()
    for pid in pids:
        place = Path(f"/proc/{pid}")
        try:
            descriptors = len(os.listdir(place / "fd"))
            stat = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found = Resources(
            found.descriptors + descriptors,
            found.threads + int(stat[17]),
            found.memory_mib + int(stat[21]) * os.sysconf("SC_PAGE_SIZE") // (1 << 20),
            found.processor_ms + (int(stat[11]) + int(stat[12])) * 1000 // TICKS,
        )
    return found
