"""The releases of Kafka Streams in the matrix: all lines, and one release of each behaviour class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from kipcheck.conformance.core.files.releases_table import named as named_release, table
from kipcheck.conformance.core.values.release import Release, judged_lines as newest_patches
from kipcheck.conformance.protocols.streams.model.members import FUTURE

NEWEST: Final = newest_patches("streams")
"""The newest patch of each line of ``kafka-streams`` on Maven Central, oldest line first. (It has no 4.4, and no
patch of 4.2 after 4.2.1, unlike ``kafka-clients``.)"""

BEHAVIOURS: Final[Mapping[str, str]] = table()["streams-classes"]
"""One patch of each behaviour class, and how it differs from those before it."""


@final
@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A release in a cell."""

    rank: tuple[int, ...]
    """The numbers of the patch; for the future above all others."""
    name: str
    """The name that the user gave: a line, an exact patch, or ``future``."""
    patch: str
    """The exact patch; ``FUTURE`` for the simulated next version."""

    @property
    def line(self) -> str:
        """The value of ``upgrade.from`` for it. Errors: ValueError for the future."""
        if self.patch == FUTURE:
            raise ValueError("upgrade.from has no value for the future version")
        return line_of(self.patch)

    @property
    def kind(self) -> str | None:
        """Its behaviour class, if it represents one."""
        return BEHAVIOURS.get(self.patch)


def line_of(patch: str) -> str:
    """``0.10.2`` of 0.10.2.2, ``3.9`` of 3.9.2."""
    return patch.rpartition(".")[0]


def named(text: str, known: Sequence[str] = NEWEST) -> Version:
    """Parses ``3.9``, ``3.9.2`` or ``future``. ``known``: the newest patch of each line. Errors: LookupError with the
    valid names."""
    if text == FUTURE:
        return Version((1 << 31,), FUTURE, FUTURE)
    patch = {line_of(each): each for each in known}.get(text, text)
    try:
        release = Release.parse(patch)
    except ValueError:
        release = None
    newest = next((Release.parse(each) for each in known if line_of(each) == line_of(patch)), None)
    if release is None or newest is None or release > newest:
        lines = ", ".join(map(line_of, known))
        raise LookupError(
            f"unknown release of Kafka Streams {text!r}: use a line ({lines}), an exact patch up to its newest, or "
            f"{FUTURE}"
        )
    return Version(release.numbers, text, patch)


def lines() -> tuple[Version, ...]:
    """All lines, each as its newest patch."""
    return tuple(named(line_of(each)) for each in NEWEST)


def behaviours() -> tuple[Version, ...]:
    """One release of each class, named by its line if it is the newest patch of that line."""
    return tuple(named(line_of(each) if each in NEWEST else each) for each in BEHAVIOURS)


THE_FUTURE: Final = named(FUTURE)
TABLE: Final = tuple(map(line_of, NEWEST[: NEWEST.index(named_release("first-with-probing")) + 1]))
"""The lines in the KIP's table (268-25); its 1.2 was released as 2.0, and ``future`` is its last column."""


def in_table(old: Version, new: Version) -> bool:
    """Whether the KIP's table has a cell for it."""
    if old.patch == FUTURE or old.line not in TABLE:
        return False
    return new.patch == FUTURE or (old < new and new.line in TABLE)


def has_star(old: Version, new: Version) -> bool:
    """Whether its cell has a star there: all cells that end before 1.2."""
    return in_table(old, new) and new.patch != FUTURE and new.line != TABLE[-1]


def needs_fix(old: Version, new: Version) -> bool:
    """Whether its star refers to the back-ported fix: where metadata changes, in the row of 0.10.0 (268-53)."""
    return has_star(old, new) and old.line == TABLE[0]
