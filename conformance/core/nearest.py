"""Finds the names that resemble a misspelt one."""

from collections.abc import Iterable
from typing import Final

CUTOFF: Final = 0.65
"""The least similarity, from 0 to 1."""


def nearest(name: str, names: Iterable[str], cutoff: float = CUTOFF) -> list[str]:
    """At most three of the names, the most similar first; upper and lower case are the same."""
    from difflib import get_close_matches

    by_name = {each.lower(): each for each in names}
    return [by_name[each] for each in get_close_matches(name.lower(), by_name, n=3, cutoff=cutoff)]


def hint(name: str, names: Iterable[str], cutoff: float = CUTOFF) -> str:
    """``; the nearest: A, B`` for the end of an error message; empty where no name is similar."""
    found = nearest(name, names, cutoff)
    return f"; the nearest: {', '.join(found)}" if found else ""
