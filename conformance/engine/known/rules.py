"""Known deviations: failures that are expected, each with its reason. ``known_files`` reads the files that list them.

The same failure is: the same target, invariant and shape, in a place (subject and version) that the entry names,
whatever check shows it. The shape is what is wrong in words that do not depend on the message; ``why`` may narrow it
further. So a failure that spreads to another message, or comes to fail in another way, is not the one that is expected.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Literal, TypeAlias

Place: TypeAlias = tuple[str, int | None]
"""A subject, and its version where it is a message."""
Span: TypeAlias = tuple[int, int | None]
"""Both ends included; no upper end: from there on."""
Kind: TypeAlias = Literal["deviation", "flaky"]


@dataclass(frozen=True, slots=True)
class Draw:
    """With which cases the entries of a file were found: with the same ones they are held to the letter."""

    edition: str = "apache"
    seed: int = 0
    cases: int | None = None
    """None: the own number of each check."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What a run tells of a distinct failure, as far as entries are compared with it."""

    id: str
    target: str
    version: str
    checks: tuple[str, ...]
    invariant: str
    shape: tuple[str, ...]
    why: str
    places: frozenset[Place]
    whole: bool = True
    """Has a shrinker looked at it? If not, its shape may be the beginning of what it would be."""

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> "Failure":
        """From a line of the ledger."""
        places = {
            (subject, version)
            for subject, versions in line["where"].items()
            for version in numbers(places_in(versions))
        }
        shape = tuple(map(str, line["shape"]))
        about = line["id"], line["target"], line["version"], tuple(line["checks"]), line["invariant"]
        return cls(*about, shape, line["why"], frozenset(places), line["shrunk"])


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One of a file; no other one is equal to it."""

    kind: Kind
    file: str
    line: int
    target: str
    versions: str
    """Of the target."""
    checks: tuple[str, ...]
    """Those that show it: where one of them was not held, that it does not show says nothing."""
    invariant: str
    shape: tuple[str, ...] | None
    """Each word may hold ``*``. None, for flaky ones only: any."""
    why: str
    """A regular expression that has to be found in the failure's ``why``."""
    where: Mapping[str, tuple[Span, ...]]
    """Subject, which may hold ``*`` -> its versions; none where subjects have no versions."""
    reason: str
    link: str
    expires: date | None
    seldom: bool
    """Needs luck to be seen: that it does not show with another seed says nothing."""

    @property
    def at(self) -> str:
        return f"{self.file}:{self.line}"

    def about(self, target: str, version: str) -> bool:
        """``target`` may name a release as well: ``kafka-python@2.3.0``, ``java:kafka-clients:3.9.2``."""
        return self.target in (target, base(target, version)) and among(version, self.versions)

    def same(self, failure: Failure) -> bool:
        """Is it the same failure, wherever it shows?"""
        return self.akin(failure) and self.alike(failure.shape, failure.why, failure.whole)

    def akin(self, failure: Failure) -> bool:
        """The same target and invariant, broken in whatever way."""
        return self.about(failure.target, failure.version) and self.invariant == failure.invariant

    def alike(self, shape: Sequence[str], why: str, whole: bool = True) -> bool:
        if self.why and not re.search(self.why, why):
            return False
        if self.shape is None:
            return True
        wanted = self.shape if whole else self.shape[: len(shape)]
        return len(wanted) == len(shape) and all(map(fits, wanted, shape))

    def names(self, place: Place) -> bool:
        """Does ``where`` hold it?"""
        return self.part(place) is not None

    def part(self, place: Place) -> str | None:
        """The key of ``where`` under which the place falls."""
        return next((pattern for pattern in self.where if self.under(pattern, place)), None)

    def under(self, pattern: str, place: Place) -> bool:
        """Does the place fall under this key of ``where``?"""
        subject, version = place
        spans = self.where[pattern]
        if not fits(pattern, subject):
            return False
        if version is None:
            return not spans
        return any(low <= version and (high is None or version <= high) for low, high in spans)

    @property
    def exact(self) -> frozenset[Place]:
        """The places that it names one by one: each of them has to show."""
        return frozenset(
            (subject, version)
            for subject, spans in self.where.items()
            if subject not in self.open
            for version in numbers(spans)
        )

    @property
    def open(self) -> tuple[str, ...]:
        """The keys of ``where`` that name places by a wildcard or without an upper end: one of each has to show."""
        return tuple(
            subject for subject, spans in self.where.items()
            if "*" in subject or any(high is None for _, high in spans)
        )  # fmt: skip

    def expired(self, today: date) -> bool:
        return self.expires is not None and self.expires < today


@dataclass(frozen=True, slots=True)
class Known:
    """One file."""

    path: str
    draw: Draw
    entries: tuple[Entry, ...]


# ---- matching


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, glob.split("*"))), re.DOTALL)


def fits(glob: str, text: str) -> bool:
    """``*`` stands for any text; nothing else is special."""
    return _pattern(glob).fullmatch(text) is not None


def base(target: str, version: str) -> str:
    """The name without the release that it may end in."""
    for end in (f"@{version}", f":{version}"):
        if version and target.endswith(end):
            return target.removesuffix(end)
    return target.partition("@")[0]


_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)([.-]?(?:a|b|c|rc|alpha|beta|dev|pre|SNAPSHOT)[\w.-]*)?(?:\+\S*)?")
_Key: TypeAlias = tuple[tuple[int, ...], bool]


def _key(version: str) -> _Key | None:
    """A word after the numbers makes a release an early one, as in 4.0.0rc1."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return None
    parts = tuple(map(int, found[1].split(".")))
    return parts + (0,) * (4 - len(parts)), not found[2]


def among(version: str, versions: str) -> bool:
    """``versions``: A, A-B (both included), A+, with commas between them, or ``all``."""
    if versions == "all" or version in (each.strip() for each in versions.split(",")):
        return True
    key = _key(version)
    return key is not None and any(low <= key and (high is None or key <= high) for low, high in releases_in(versions))


@cache
def releases_in(versions: str) -> tuple[tuple[_Key, _Key | None], ...]:
    """Errors: ValueError that says what would do."""
    if versions == "all":
        return ((((0,) * 4, False), None),)
    spans = []
    for each in versions.split(","):
        text = each.strip()
        low, dash, high = (text.removesuffix("+"), "", "") if text.endswith("+") else text.partition("-")
        ends = _key(low), _key(high if dash else low)
        if ends[0] is None or ends[1] is None:
            raise ValueError(f"{text!r} is no version: 3.0.12, 3.0.0-3.0.12, 3.1.0+ or all is wanted")
        if ends[1] < ends[0]:
            raise ValueError(f"{text!r} ends before it begins")
        spans.append((ends[0], None if text.endswith("+") else ends[1]))
    return tuple(spans)


def overlap(one: Entry, other: Entry) -> bool:
    """May one failure in one place be meant by both?"""
    if (one.target, one.invariant) != (other.target, other.invariant):
        return False
    return (
        _meet(releases_in(one.versions), releases_in(other.versions))
        and _shapes_meet(one.shape, other.shape)
        and any(
            globs_meet(a, b) and (_meet(spans, others) if spans and others else spans == others)
            for a, spans in one.where.items()
            for b, others in other.where.items()
        )
    )


def _meet(spans: Iterable[tuple[Any, Any]], others: Sequence[tuple[Any, Any]]) -> bool:
    return any(
        (high is None or low2 <= high) and (high2 is None or low <= high2)
        for low, high in spans
        for low2, high2 in others
    )


def _shapes_meet(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> bool:
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(map(globs_meet, one, other))


def globs_meet(one: str, other: str) -> bool:
    """Is there a text that both fit?"""
    if "*" not in one or "*" not in other:
        return fits(one, other) or fits(other, one)
    if one[0] != "*" and other[0] != "*":
        return one[0] == other[0] and globs_meet(one[1:], other[1:])
    if one[-1] != "*" and other[-1] != "*":
        return one[-1] == other[-1] and globs_meet(one[:-1], other[:-1])
    return True  # one is open at each end, so the other's ends fit into it and its own middle into the other's


# ---- places


def places_in(text: str) -> tuple[Span, ...]:
    """Versions of a message: ``0-4, 6``, ``6+``, ``*`` for all; empty for what has no versions. Errors: ValueError."""
    if not text:
        return ()
    if text == "*":
        return ((0, None),)
    spans: list[Span] = []
    for each in text.split(","):
        found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5})|(\+))?", each.strip(), re.ASCII)
        if found is None:
            raise ValueError(f"{each.strip()!r} are no versions: 4, 0-4, 6+, or * is wanted, with commas between them")
        low, high = int(found[1]), None if found[3] else int(found[2] or found[1])
        if high is not None and high < low:
            raise ValueError(f"{each.strip()!r} ends before it begins")
        spans.append((low, high))
    return tuple(spans)


def numbers(spans: Sequence[Span]) -> list[int | None]:
    """Each version of spans that have an upper end; None alone for what has no versions."""
    found: list[int | None] = [n for low, high in spans for n in range(low, (low if high is None else high) + 1)]
    return found or [None]


def versions_in(spans: Sequence[Span]) -> str:
    """What ``places_in`` reads as these."""
    ends = [f"{low}+" if high is None else str(low) if high == low else f"{low}-{high}" for low, high in spans]
    return ", ".join(ends)
