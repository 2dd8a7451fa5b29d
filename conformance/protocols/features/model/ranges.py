"""Ranges of levels by feature: what a broker supports, and what is finalized."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias


class Range(NamedTuple):
    low: int
    high: int

    def holds(self, level: int) -> bool:
        return self.low <= level <= self.high

    def covers(self, other: "Range") -> bool:
        return self.low <= other.low and other.high <= self.high

    def __str__(self) -> str:
        return f"{self.low} to {self.high}"


Ranges: TypeAlias = tuple[tuple[str, Range], ...]
"""By name of the feature, sorted by it."""


def ranges(found: Mapping[str, tuple[int, int]]) -> Ranges:
    return tuple(sorted((name, Range(*span)) for name, span in found.items()))


def highest_minimum(name: str, supported: Iterable[Mapping[str, Range]]) -> int:
    """The highest supported minimum of a feature among brokers; 1 where none knows it."""
    return max((each[name].low for each in supported if name in each), default=1)


def common(supported: Iterable[Ranges]) -> Ranges:
    """The levels that all of these brokers support, of each feature with such levels; empty without a broker."""
    found = [dict(each) for each in supported]
    names = set.intersection(*(set(each) for each in found)) if found else set()
    spans = {
        name: Range(max(each[name].low for each in found), min(each[name].high for each in found)) for name in names
    }
    return ranges({name: span for name, span in spans.items() if span.low <= span.high})


def unsupported(finalized: Ranges, supported: Ranges, whole: bool = False) -> Iterator[str]:
    """The finalized features that a broker does not know, or whose maximum level it does not support.

    ``whole``: it must support the minimum level, too.
    """
    there = dict(supported)
    for name, span in finalized:
        own = there.get(name)
        if own is None or not (own.covers(span) if whole else own.holds(span.high)):
            yield name
