"""Known deviations of the matrix: cells with an expected verdict that is not the predicted one. TOML::

    [[deviation]]
    scenario = "bounce"
    from = "2.0.0-2.0.1"
    to = "2.1.0+"
    verdict = "breaks"
    reason = "Why this is expected, in a sentence."
    link = "conformance/docs/findings/..."

``from`` and ``to`` are releases as requirements name them, or ``future``. Reason and link are mandatory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, final

from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.engine.known.files import InvalidKnownFile, loaded, no_link, no_reason
from kipcheck.conformance.matrix.cells import SEVERITY, Cell
from kipcheck.conformance.matrix.release_lines import Version
from kipcheck.conformance.matrix.scenario_names import SCENARIOS
from kipcheck.conformance.protocols.streams.model.members import FUTURE

NAME: Final = "known.toml"
KEYS: Final = ("scenario", "from", "to", "verdict", "reason", "link")


@final
@dataclass(frozen=True, slots=True)
class Deviation:
    scenario: str
    old: str
    new: str
    verdict: str
    reason: str
    link: str

    def names(self, cell: Cell) -> bool:
        """Whether the entry names the cell, whatever its verdict."""
        return cell.scenario == self.scenario and _among(cell.pair.old, self.old) and _among(cell.pair.new, self.new)

    def expects(self, cell: Cell, verdict: str) -> bool:
        return self.verdict == verdict and self.names(cell)


def _among(version: Version, span: str) -> bool:
    if FUTURE in (version.patch, span):
        return version.patch == span
    return Release.parse(version.patch) in releases(span)


@cache
def listed() -> tuple[Deviation, ...]:
    """The deviations that come with kipcheck."""
    return parse((files("kipcheck.conformance.matrix") / NAME).read_text("utf-8"), NAME)


def parse(text: str, path: str) -> tuple[Deviation, ...]:
    """Errors: ``InvalidKnownFile`` with all errors of the file."""
    found = loaded(text, path)
    tables = found.get("deviation", [])
    troubles = [f"{path}:1: unknown key {key!r}: expected [[deviation]]" for key in found if key != "deviation"]
    for number, table in enumerate(tables, 1):
        troubles += [f"{path}: deviation {number}: {each}" for each in _troubles(table)]
    if troubles:
        raise InvalidKnownFile(troubles)
    return tuple(Deviation(*(table[key] for key in KEYS)) for table in tables)


def _troubles(table: Mapping[str, Any]) -> Iterator[str]:
    odd = [key for key in (*KEYS, *table) if not isinstance(table.get(key), str) or key not in KEYS]
    if odd:
        yield f"{', '.join(dict.fromkeys(odd))}: each of the keys {', '.join(KEYS)} must be there, with a text"
        return
    for key, there in (("scenario", SCENARIOS), ("verdict", tuple(SEVERITY))):
        if table[key] not in there:
            yield f"invalid {key} {table[key]!r}: use one of {', '.join(there)}"
    for key in ("from", "to"):
        try:
            if table[key] != FUTURE:
                releases(table[key])
        except ValueError as error:
            yield f"{key}: {error}"
    yield from filter(None, (no_reason(table["reason"]), no_link(table["link"])))
