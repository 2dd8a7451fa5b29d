"""Checks what a user gives to a public strategy, when it is called: else a draw fails, far from the mistake.

The errors name the argument, what it has to be, and what it is.
"""

from collections.abc import Iterable, Sequence
from typing import Any


def number_of(name: str, given: Any, least: int = 0) -> tuple[int, int]:
    """The least and the most number. Errors: TypeError for anything else; ValueError where they are out of order."""
    wanted = f"{name} must be the least and the most number of {name}, such as (2, 4)"
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or [*map(type, given)] != [int, int]:
        example = f": use {name}=({given}, {given})" if type(given) is int and given >= max(least, 1) else ""
        raise TypeError(f"{wanted}, got {given!r}{example}")
    low, high = given
    if not least <= low <= high:
        raise ValueError(f"{wanted}, with {least} <= least <= most, got {tuple(given)}")
    return low, high


def names(argument: str, given: Any, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Each name once. Errors: TypeError for a text in place of a list; ValueError for a taken name."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        example = f": use {argument}=[{given!r}]" if isinstance(given, str) else ""
        raise TypeError(f"{argument} must be several names, got {given!r}{example}")
    found = tuple(given)
    for each in found:
        if not isinstance(each, str):
            raise TypeError(f"{argument} must be names, got {each!r}")
        if each in taken:
            raise ValueError(f"{argument} must not contain {each!r}, which is drawn as an unknown name: omit it")
    return tuple(dict.fromkeys(found))


def check_levels(lowest: Any, highest: Any) -> None:
    """Errors: TypeError for a level that is no integer; ValueError where none is between them."""
    for name, each in (("lowest", lowest), ("highest", highest)):
        if type(each) is not int:
            raise TypeError(f"{name} must be an integer, got {each!r}")
    if lowest > highest:
        raise ValueError(f"lowest must be at most highest, got lowest={lowest} and highest={highest}")
