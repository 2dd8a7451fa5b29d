"""KIP-384's configuration rules as a table: names, defaults, and what is refused.

The draft names no format and no release but 2.1.0. Read as: 2.1 brings the setting and changes nothing on disk
(384-20), and 2.2 has a new format of everything that is persisted, with a compatible and an incompatible change of
each store. The names are those of ApiVersion in 2.2.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Final, Literal, TypeAlias

from kipcheck.conformance.wire.stored_records import version_counts

Binary: TypeAlias = Literal["2.0", "2.1", "2.2"]
"""The line of a broker's release."""
NO_LINE: Final = "2.3"
"""The line after that of the newest binary."""
STEPS: Final = dict(takewhile(lambda each: each[0] != NO_LINE, version_counts().items()))
"""Line -> the number of its versions, up to that of the newest binary; 0: the line alone is a name."""
LINES: Final = (*STEPS,)
BRINGS_SETTING: Final = LINES.index("2.1")
NEW_FORMAT: Final = LINES.index("2.2")


def edge_names() -> tuple[str, ...]:
    """Of each line its name, its last version and the one after it, which is none; and a line that no binary knows."""
    steps = ((line, step) for line, count in STEPS.items() for step in (count - 1, count) if step >= 0)
    return (*LINES, *(f"{line}-IV{step}" for line, step in steps), NO_LINE, f"{NO_LINE}-IV0")


Rank: TypeAlias = tuple[int, int]
"""The line's place in ``LINES``, and the step in it."""


def newest(binary: Binary) -> Rank:
    """What a setting without a value stands for."""
    return LINES.index(binary), max(STEPS[binary] - 1, 0)


@lru_cache(1024)
def rank(text: str, binary: Binary) -> Rank | None:
    """The version that a name means to a binary; None for one that it does not know.

    ``2.1``, ``2.1.0``, ``2.1-IV0``, ``0.10.2``: a line is its last version, further numbers are ignored.
    """
    line, dash, step = text.partition("-IV")
    if not dash:
        parts = line.split(".")
        line = ".".join(parts[: 3 if line.startswith("0.") else 2])
    if line not in STEPS or LINES.index(line) > LINES.index(binary):
        return None
    if not dash:
        return LINES.index(line), max(STEPS[line] - 1, 0)
    known = step.isascii() and step.isdigit() and str(int(step)) == step and int(step) < STEPS[line]
    return (LINES.index(line), int(step)) if known else None


def name(of: Rank) -> str:
    line = LINES[of[0]]
    return f"{line}-IV{of[1]}" if STEPS[line] else line


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a broker, with defaults resolved."""

    binary: Binary
    inter_broker: Rank
    persistent: Rank | None
    """None: the binary does not know the setting, and ignores it."""
    format: Rank

    @property
    def reads_new_format(self) -> bool:
        return LINES.index(self.binary) >= NEW_FORMAT


def knows_setting(binary: Binary) -> bool:
    return LINES.index(binary) >= BRINGS_SETTING


@lru_cache(1024)
def resolved(binary: Binary, inter_broker: str | None, persistent: str | None, format: str | None) -> Settings | None:
    """Names to versions, and defaults: the message format's is the binary's newest, and the setting follows it.

    None for a name that the binary does not know. The bound of the message format is ``admits``.
    """
    usual = newest(binary)
    between = usual if inter_broker is None else rank(inter_broker, binary)
    messages = usual if format is None else rank(format, binary)
    if between is None or messages is None:
        return None
    if not knows_setting(binary):
        return Settings(binary, between, None, messages)
    stored = messages if persistent is None else rank(persistent, binary)
    return None if stored is None else Settings(binary, between, stored, messages)


def admits(settings: Settings, format: Rank) -> bool:
    """Whether the broker allows a message format, its own or a topic's."""
    if format[0] > LINES.index(settings.binary):
        return False
    return settings.persistent is None or format <= settings.persistent
