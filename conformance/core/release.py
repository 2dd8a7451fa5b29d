"""Exact releases of Apache Kafka, ordered by their numbers."""

from dataclasses import dataclass
from functools import cache

from kipcheck.conformance.core.releases_table import jars, judges, patches


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """``3.9.2``, ``0.10.2.2``: always the exact patch, never a line."""

    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "Release":
        """Errors: ValueError for anything but three or four numbers separated by dots."""
        return _parsed(text)

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))


@cache
def _parsed(text: str) -> Release:
    parts = text.split(".")
    if not 3 <= len(parts) <= 4 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"invalid release {text!r}: use an exact patch, for example 3.9.2 or 0.10.2.2")
    return Release(tuple(map(int, parts)))


NEWEST = patches()[-1]
"""The newest release of kafka-clients that the declarations were compared with."""


@dataclass(frozen=True, slots=True)
class Releases:
    """A set of releases, written ``2.7.0-2.8.2, 3.4.0+``, ``all`` or ``3.9.2``."""

    spans: tuple[tuple[Release, Release | None], ...]

    def __contains__(self, release: Release) -> bool:
        numbers = release.numbers
        return any(low.numbers <= numbers and (high is None or numbers <= high.numbers) for low, high in self.spans)


@cache
def releases(text: str) -> Releases:
    """Parses the grammar of requirements.toml: A, A-B (both included), A+, joined by commas, or ``all``."""
    return Releases(tuple(map(_span, ("0.0.0+" if text == "all" else text).split(","))))


def lines(part: str = "clients") -> tuple[str, ...]:
    """Of each line with a jar of that part its newest patch that has one, oldest first."""
    there, found = releases(jars()[part]), {}
    for patch in patches():
        if Release.parse(patch) in there:
            found[patch.rpartition(".")[0]] = patch
    return tuple(found.values())


def judged_lines(part: str) -> tuple[str, ...]:
    """Of each line its newest patch whose jar of that part judges golden vectors, oldest first."""
    return tuple({each.rpartition(".")[0]: each for each in judges(part)}.values())


def _span(text: str) -> tuple[Release, Release | None]:
    text = text.strip()
    if text.endswith("+"):
        return Release.parse(text[:-1]), None
    low, _, high = text.partition("-")
    return Release.parse(low), Release.parse(high or low)
