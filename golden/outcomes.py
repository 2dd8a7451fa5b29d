"""What releases do with some bytes, by release here and by outcome in files, where most releases do the same."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.release import Release

ACCEPTED: Final = "accepted"
"""A value comes out, and written again it gives the same bytes."""
REWRITTEN: Final = "rewritten"
"""A value comes out, and written again it gives others: those after the word, or else those before the damage."""
UNWRITABLE: Final = "unwritable"
"""A value comes out, and the class thrown when it is written again."""
FUTURE: Final = "future"
"""Of a version that the release does not know yet it reads the two version numbers, and passes over the rest."""
REJECTED: Final = "rejected"
EXHAUSTS: Final = "exhausts memory"
"""An OutOfMemoryError with a heap of 512 MB."""
INTERNAL: Final = "internal"
"""Any other Error, which ends more than this reading."""

UNASKED: Final = "unasked"
"""In files: others of its version were asked of that release, and it was not."""

ALL: Final = "all"
REST: Final = "rest"


def takes(outcome: str) -> bool:
    """Does the release make a value of the bytes?"""
    return outcome.split()[0] in (ACCEPTED, REWRITTEN, UNWRITABLE, FUTURE)


def grouped(outcomes: Mapping[str, str], asked: Iterable[str]) -> dict[str, str]:
    """Outcome to releases: ``all`` that were asked, ``rest`` for the most of them, or their names."""
    by: dict[str, list[str]] = {}
    for release in sorted(asked, key=Release.parse):
        by.setdefault(outcomes.get(release, UNASKED), []).append(release)
    if not by:
        return {}
    most = max(by, key=lambda each: len(by[each]))
    if len(by) == 1:
        return {most: ALL}
    return {**{each: " ".join(those) for each, those in by.items() if each != most}, most: REST}


def by_release(held: Mapping[str, Any], asked: Iterable[str]) -> dict[str, str]:
    """The way back. Errors: ValueError for releases that were not asked, or asked and not told of."""
    out: dict[str, str] = {}
    wanted = list(asked)
    for outcome, those in held.items():
        named = [each for each in wanted if each not in out] if those in (ALL, REST) else those.split()
        out |= dict.fromkeys(named, outcome)
    if set(out) != set(wanted):
        raise ValueError(f"outcomes of {sorted(out)}, and {sorted(wanted)} were asked")
    return {release: out[release] for release in wanted if out[release] != UNASKED}
