"""Known deviations: expected failures, each with its reason. ``files`` reads the files that list them.

An entry matches a failure with the same target, invariant and shape, in a place (subject and version) that the entry
names, whatever check shows it. The shape says what is wrong in words that do not depend on the message; ``why`` may
restrict it further. So a failure that spreads to another message, or changes, is not the expected one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Literal, TypeAlias

from kipcheck.conformance.core.ledger import Failure as Line

SubjectVersion: TypeAlias = tuple[str, int | None]
"""A subject and, for a message, its version."""
Span: TypeAlias = tuple[int, int | None]
"""Both ends included; None: without upper end."""
Kind: TypeAlias = Literal["deviation", "flaky"]


@dataclass(frozen=True, slots=True)
class Draw:
    """The cases with which the entries of a file were found: with the same cases every entry must match exactly."""

    edition: str = "apache"
    seed: int = 0
    cases: int | None = None
    """None: each check's own number."""
    scripts: tuple[str, ...] = ()
    """Those of a run that draws nothing. No list has them, so that no entry has to match exactly in such a run."""


def maker(version: str) -> str:
    """``made_by`` of a list that this version of kipcheck wrote: another one may draw other cases."""
    return f"kipcheck {version}"


@dataclass(frozen=True, slots=True)
class ObservedFailure:
    """A distinct failure of a run, reduced to what entries are compared with."""

    id: str
    target: str
    version: str
    checks: tuple[str, ...]
    invariant: str
    shape: tuple[str, ...]
    why: str
    places: frozenset[SubjectVersion]
    whole: bool = True
    """Whether the failure was shrunk. If not, its shape may be a prefix of the shrunk failure's shape."""
    cases: int = 0
    """The number of cases that show it."""
    command: str | None = None
    """The target as it was given, if it is a command."""

    @classmethod
    def of(cls, line: Line, whole: bool = True) -> "ObservedFailure":
        """From a line of the ledger. Not ``whole``: whatever the line says, it was not shrunk."""
        places = {
            (subject, version) for subject, versions in line.where.items() for version in numbers(places_in(versions))
        }
        about = line.id, line.target, line.version, line.checks, line.invariant
        shape, whole = tuple(map(str, line.shape)), whole and line.shrunk
        return cls(*about, shape, line.why, frozenset(places), whole, line.cases, line.command)

    @property
    def timed_out(self) -> bool:
        """Whether the target died because its time was over: how often depends on the speed of the machine."""
        return self.shape[:1] == ("died",) and "timeout" in self.shape


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An entry of a file, equal to itself only."""

    kind: Kind
    file: str
    line: int
    target: str
    versions: str
    """Versions of the target."""
    checks: tuple[str, ...]
    """The checks that show the failure: if one of them was not run, an absent failure proves nothing."""
    invariant: str
    shape: tuple[str, ...] | None
    """Each word may contain ``*``. None, for flaky entries only: any shape."""
    why: str
    """A regular expression that must match within the failure's ``why``."""
    where: Mapping[str, tuple[Span, ...]]
    """Subject, which may contain ``*`` -> its versions; empty for subjects without versions."""
    reason: str
    link: str
    expires: date | None
    seldom: bool
    """The failure occurs with other seeds than the list's own: its absence never proves anything."""
    cases: int | None = None
    """The number of cases that show it with the list's own draw. None: it is not compared."""

    @property
    def at(self) -> str:
        return f"{self.file}:{self.line}"

    def applies_to(self, target: str, version: str, command: str | None = None) -> bool:
        """``target`` may include a release: ``kafka-python@2.3.0``, ``java:kafka-clients:3.9.2``. ``command``: the
        ``cmd:`` that has this name, which lists named before testees had names.
        """
        return self.target in (target, base(target, version), command) and is_release_in(version, self.versions)

    def matches(self, failure: ObservedFailure) -> bool:
        """Whether it is the same failure, in any place."""
        return self.same_invariant(failure) and self.matches_shape(failure.shape, failure.why, failure.whole)

    def same_invariant(self, failure: ObservedFailure) -> bool:
        """Whether target and invariant are the same, with any shape."""
        return self.applies_to(failure.target, failure.version, failure.command) and self.invariant == failure.invariant

    def matches_shape(self, shape: Sequence[str], why: str, whole: bool = True) -> bool:
        if self.why and not re.search(self.why, why):
            return False
        if self.shape is None:
            return True
        expected = self.shape if whole else self.shape[: len(shape)]
        return len(expected) == len(shape) and all(map(fits, expected, shape))

    def covers(self, place: SubjectVersion) -> bool:
        """Whether ``where`` contains the place."""
        return self.where_key(place) is not None

    def where_key(self, place: SubjectVersion) -> str | None:
        """The key of ``where`` that contains the place."""
        return next((pattern for pattern in self.where if self.covers_under(pattern, place)), None)

    def covers_under(self, pattern: str, place: SubjectVersion) -> bool:
        """Whether this key of ``where`` contains the place."""
        subject, version = place
        spans = self.where[pattern]
        if not fits(pattern, subject):
            return False
        if version is None:
            return not spans
        return any(low <= version and (high is None or version <= high) for low, high in spans)

    @property
    def exact_places(self) -> frozenset[SubjectVersion]:
        """The places named one by one: the failure must show in each of them."""
        return frozenset(
            (subject, version)
            for subject, spans in self.where.items()
            if subject not in self.open_keys
            for version in numbers(spans)
        )

    @property
    def open_keys(self) -> tuple[str, ...]:
        """The keys of ``where`` with a wildcard or without an upper end: the failure must show in one place of each."""
        return tuple(
            subject for subject, spans in self.where.items()
            if "*" in subject or any(high is None for _, high in spans)
        )  # fmt: skip

    def expired(self, today: date) -> bool:
        return self.expires is not None and self.expires < today


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of known deviations."""

    path: str
    draw: Draw
    entries: tuple[Entry, ...]
    made_by: str = ""
    """The kipcheck that counted the cases of the entries, as ``maker`` has it."""


# ---- matching


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, glob.split("*"))), re.DOTALL)


def fits(glob: str, text: str) -> bool:
    """``*`` matches any text; every other character matches itself."""
    return _pattern(glob).fullmatch(text) is not None


def base(target: str, version: str) -> str:
    """The target name without a release at its end, and without options behind that."""
    if version and f":{version}?" in target:
        return target.partition(f":{version}?")[0]
    for end in (f"@{version}", f":{version}"):
        if version and target.endswith(end):
            return target.removesuffix(end)
    return target.partition("@")[0]


_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)([.-]?(?:a|b|c|rc|alpha|beta|dev|pre|SNAPSHOT)[\w.-]*)?(?:\+\S*)?")
_Key: TypeAlias = tuple[tuple[int, ...], bool]


def _key(version: str) -> _Key | None:
    """A suffix after the numbers marks a pre-release, as in 4.0.0rc1."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return None
    parts = tuple(map(int, found[1].split(".")))
    return parts + (0,) * (4 - len(parts)), not found[2]


def is_release_in(version: str, versions: str) -> bool:
    """``versions``: A, A-B (both included), A+, separated by commas, or ``all``; 0 of a target that stated none."""
    if versions in ("all", "0") or version in (each.strip() for each in versions.split(",")):
        return True
    key = _key(version)
    return key is not None and any(low <= key and (high is None or key <= high) for low, high in releases_in(versions))


@cache
def releases_in(versions: str) -> tuple[tuple[_Key, _Key | None], ...]:
    """Errors: ValueError with the valid forms."""
    if versions == "all":
        return ((((0,) * 4, False), None),)
    spans = []
    for each in versions.split(","):
        text = each.strip()
        low, dash, high = (text.removesuffix("+"), "", "") if text.endswith("+") else text.partition("-")
        ends = _key(low), _key(high if dash else low)
        if ends[0] is None or ends[1] is None:
            raise ValueError(f"invalid version {text!r}: use 3.0.12, 3.0.0-3.0.12, 3.1.0+ or all")
        if ends[1] < ends[0]:
            raise ValueError(f"{text!r} ends before it begins")
        spans.append((ends[0], None if text.endswith("+") else ends[1]))
    return tuple(spans)


def overlap(one: Entry, other: Entry) -> bool:
    """Whether both entries may match one failure in one place."""
    if (one.target, one.invariant) != (other.target, other.invariant):
        return False
    return (
        _spans_overlap(releases_in(one.versions), releases_in(other.versions))
        and _shapes_overlap(one.shape, other.shape)
        and any(
            globs_overlap(a, b) and (_spans_overlap(spans, others) if spans and others else spans == others)
            for a, spans in one.where.items()
            for b, others in other.where.items()
        )
    )


def _spans_overlap(spans: Iterable[tuple[Any, Any]], others: Sequence[tuple[Any, Any]]) -> bool:
    return any(
        (high is None or low2 <= high) and (high2 is None or low <= high2)
        for low, high in spans
        for low2, high2 in others
    )


def _shapes_overlap(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> bool:
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(map(globs_overlap, one, other))


def globs_overlap(one: str, other: str) -> bool:
    """Whether a text exists that both match."""
    if "*" not in one or "*" not in other:
        return fits(one, other) or fits(other, one)
    if one[0] != "*" and other[0] != "*":
        return one[0] == other[0] and globs_overlap(one[1:], other[1:])
    if one[-1] != "*" and other[-1] != "*":
        return one[-1] == other[-1] and globs_overlap(one[:-1], other[:-1])
    return True  # both have * at opposite ends, or one has it at both: such patterns always share a text


# ---- places


def places_in(text: str) -> tuple[Span, ...]:
    """Versions of a message: ``0-4, 6``, ``6+``, ``*`` for all; empty for subjects without versions. Errors:
    ValueError.
    """
    if not text:
        return ()
    if text == "*":
        return ((0, None),)
    spans: list[Span] = []
    for each in text.split(","):
        found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5})|(\+))?", each.strip(), re.ASCII)
        if found is None:
            raise ValueError(f"invalid versions {each.strip()!r}: use 4, 0-4, 6+ or *, separated by commas")
        low, high = int(found[1]), None if found[3] else int(found[2] or found[1])
        if high is not None and high < low:
            raise ValueError(f"{each.strip()!r} ends before it begins")
        spans.append((low, high))
    return tuple(spans)


def numbers(spans: Sequence[Span]) -> list[int | None]:
    """Every version in the spans that have an upper end; ``[None]`` for subjects without versions."""
    found: list[int | None] = [n for low, high in spans for n in range(low, (low if high is None else high) + 1)]
    return found or [None]


def versions_in(spans: Sequence[Span]) -> str:
    """The text that ``places_in`` reads as these spans."""
    ends = [f"{low}+" if high is None else str(low) if high == low else f"{low}-{high}" for low, high in spans]
    return ", ".join(ends)
