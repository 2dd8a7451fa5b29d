"""Finds the names that resemble a misspelt one."""

from collections.abc import Iterable
from typing import Final

CUTOFF: Final = 0.65
"""The least similarity, from 0 to 1."""
MOST: Final = 3
"""The most names that are suggested."""


def nearest(name: str, names: Iterable[str], cutoff: float = CUTOFF, most: int = MOST) -> list[str]:
    """The names that resemble it, the most similar first, equally similar ones in their order.

    Upper and lower case, hyphens and underscores are the same.
    """
    from difflib import SequenceMatcher

    matcher = SequenceMatcher()
    matcher.set_seq2(_bare(name))  # the ratio depends on the order of the two; difflib keeps data about the second
    found: list[tuple[float, str]] = []
    for each in names:
        matcher.set_seq1(_bare(each))
        if matcher.real_quick_ratio() >= cutoff and matcher.quick_ratio() >= cutoff and matcher.ratio() >= cutoff:
            found.append((matcher.ratio(), each))
    return [each for _, each in sorted(found, key=lambda scored: -scored[0])[:most]]


def hint(name: str, names: Iterable[str], cutoff: float = CUTOFF) -> str:
    """``; the nearest: A, B`` for the end of an error message; empty where no name is similar."""
    found = nearest(name, names, cutoff)
    return f"; the nearest: {', '.join(found)}" if found else ""


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
