"""Exact releases of Apache Kafka, ordered by their numbers."""

import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import cache

from kipcheck.conformance.core.files.releases_table import jars, judges, newest_patch, patches, table


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


def version_numbers(text: str) -> tuple[int, ...]:
    """The first three numbers in a version of any software, which order versions; empty: it has none."""
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


NEWEST = patches()[-1]
"""The newest release of kafka-clients that the declarations were compared with."""


def known_release(text: str) -> Release:
    """Errors: LookupError for anything but an exact release of Kafka, with the newest patch where a line is named."""
    if (newest := newest_patch(text)) != text:
        raise LookupError(f"{text} is a line of releases: name one of its patches; the newest is {newest}")
    try:
        found = Release.parse(text)
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None
    if str(found) not in patches():
        raise LookupError(f"unknown release {text}; the newest one known is {NEWEST}")
    return found


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


def behaviours(rules: type, release: Release, section: str) -> dict[str, bool]:
    """By field of a class of rules: whether a release has the behaviour of that name in a section of the table.

    A field ``delays_targets`` is the row ``delays-targets``; fields without a row are left out.
    """
    rows = table()[section]
    names = {field.name: field.name.replace("_", "-") for field in fields(rules)}
    return {field: release in releases(rows[name]) for field, name in names.items() if name in rows}


def text_of(some: Collection[str]) -> str:
    """Some known releases as ``releases`` reads them; without an end where they last to the newest."""
    order, spans = patches(), list[list[str]]()
    for before, each in zip(("", *order), order, strict=False):
        if each in some:
            if before in some:
                spans[-1][1] = each
            else:
                spans.append([each, each])
    return ", ".join(f"{low}+" if high == order[-1] else low if low == high else f"{low}-{high}" for low, high in spans)


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
