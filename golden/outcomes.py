"""What releases do with some bytes: by release in memory, and grouped by outcome in files."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.release import Release

ACCEPTED: Final = "accepted"
"""The bytes have a value, and it is written back as the same bytes."""
REWRITTEN: Final = "rewritten"
"""The bytes have a value that is written back as other bytes: those after the word, else the undamaged ones."""
UNWRITABLE: Final = "unwritable"
"""The bytes have a value; the class is that of the exception when it is written back."""
FUTURE: Final = "future"
"""Of a version newer than the release it reads the two version numbers, and skips the rest."""
REJECTED: Final = "rejected"
EXHAUSTS: Final = "exhausts memory"
"""An OutOfMemoryError with a heap of 512 MB."""
INTERNAL: Final = "internal"
"""Any other Error, which ends more than decoding."""

UNTESTED: Final = "unasked"
"""In files: the release was tested with other vectors of the version, but not with this one."""

ALL: Final = "all"
REST: Final = "rest"


def takes(outcome: str) -> bool:
    """Whether the release decodes a value from the bytes."""
    return outcome.split()[0] in (ACCEPTED, REWRITTEN, UNWRITABLE, FUTURE)


def grouped(outcomes: Mapping[str, str], asked: Iterable[str]) -> dict[str, str]:
    """Outcome -> releases: ``all`` that were tested, ``rest`` for the most frequent outcome, or their names."""
    by: dict[str, list[str]] = {}
    for release in sorted(asked, key=Release.parse):
        by.setdefault(outcomes.get(release, UNTESTED), []).append(release)
    if not by:
        return {}
    most = max(by, key=lambda each: len(by[each]))
    if len(by) == 1:
        return {most: ALL}
    return {**{each: " ".join(those) for each, those in by.items() if each != most}, most: REST}


def by_release(by_outcome: Mapping[str, Any], asked: Iterable[str]) -> dict[str, str]:
    """The reverse of ``grouped``. Errors: ValueError for releases that were not tested, or lack an outcome."""
    out: dict[str, str] = {}
    wanted = list(asked)
    for outcome, those in by_outcome.items():
        named = [each for each in wanted if each not in out] if those in (ALL, REST) else those.split()
        out |= dict.fromkeys(named, outcome)
    if set(out) != set(wanted):
        raise ValueError(f"outcomes of {sorted(out)}, but {sorted(wanted)} were tested")
    return {release: out[release] for release in wanted if out[release] != UNTESTED}
