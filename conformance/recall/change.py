"""One small change to one file of a client's source: a random one, or a mistake of ``mistakes.toml``."""

import difflib
import hashlib
import re
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

KINDS: Final = ("branch", "constant", "order", "dropped statement", "swapped error", "dropped reset")
"""Of random changes, in the order in which those of one place stand."""
MISTAKE: Final = "mistake"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a text can be changed."""

    start: int
    """In characters."""
    end: int
    becomes: str
    """What stands between them instead."""
    kind: str
    inside: str
    """The function, as of a change."""
    lines: Collection[int]
    """The lines of the statement: where none of them runs, the change makes no difference."""


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    """In the package or module."""
    line: int
    """The first line that changes, in the original, from 1."""
    kind: str
    """Of ``KINDS``, or ``MISTAKE``."""
    inside: str
    """The function, with its class (``Class.method``, in Go ``type.method``); empty: none."""
    before: str
    """The whole text of the file."""
    start: int
    """Where characters are replaced."""
    end: int
    becomes: str
    """What stands in their place. The whole text is made of it where it is needed: a file has thousands of changes."""

    @property
    def after(self) -> str:
        """The whole text of the file with the change."""
        return self.before[: self.start] + self.becomes + self.before[self.end :]

    @property
    def id(self) -> str:
        """Stable: a digest of path, place, kind, and what is replaced with what."""
        made_of = (self.path, str(self.start), self.kind, self.before[self.start : self.end], self.becomes)
        return hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:12]

    @property
    def place(self) -> tuple[int, int, str]:
        """Where characters are replaced with which, equal for two changes that give the same text: what is only added
        or removed is moved to the left as far as it goes.
        """
        start, end, becomes = self.start, self.end, self.becomes
        moved = self.before[start:end] or becomes
        if start < end and becomes:
            return start, end, becomes
        while start and self.before[start - 1] == moved[-1]:
            start, end, moved = start - 1, end - 1, moved[-1] + moved[:-1]
        return start, end, moved if becomes else ""

    def diff(self) -> str:
        """Unified, with three lines around it."""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True), self.after.splitlines(keepends=True), self.path, self.path
        )
        return "".join(each if each.endswith("\n") else f"{each}\n" for each in lines)


def changed(path: str, kind: str, inside: str, before: str, start: int, end: int, becomes: str) -> Change:
    """The change without the characters that its two ends leave as they are."""
    old = before[start:end]
    left = _common(old, becomes)
    right = _common(old[left:][::-1], becomes[left:][::-1])
    line = bisect_right(_line_starts(before), start + left)
    return Change(path, line, kind, inside, before, start + left, end - right, becomes[left : len(becomes) - right])


@lru_cache(4)
def _line_starts(text: str) -> list[int]:
    return [0, *(each.end() for each in re.finditer("\n", text))]


def _common(one: str, other: str) -> int:
    """The number of characters with which both begin."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def sample(changes: Collection[Change], n: int, seed: int) -> list[Change]:
    """``n`` of them, or all: spread over functions, then kinds, then files. Of the same seed, a smaller sample is the
    beginning of a larger one, and a change that is added elsewhere moves no other to another rank.
    """

    def rank(change: Change) -> bytes:
        return hashlib.sha256(f"{seed} {change.id}".encode()).digest()

    left = sorted(changes, key=rank)
    taken: list[Change] = []
    counts: dict[tuple[str, ...], int] = {}

    def uses(change: Change) -> tuple[tuple[str, ...], ...]:
        return (change.path, change.inside), (change.kind,), (change.path, "", "")

    while left and len(taken) < n:
        at = min(range(len(left)), key=lambda each: [counts.get(use, 0) for use in uses(left[each])])
        taken.append(left.pop(at))
        for use in uses(taken[-1]):
            counts[use] = counts.get(use, 0) + 1
    return taken
