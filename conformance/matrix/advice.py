"""How a running Streams group can be upgraded, by the verdicts of the matrix."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.matrix.cells import OK, Cell
from kipcheck.conformance.matrix.known import listed
from kipcheck.conformance.matrix.predictions import committed
from kipcheck.conformance.matrix.release_lines import Version, named
from kipcheck.conformance.matrix.scenario_names import BOUNCE, OFFLINE, TWO_BOUNCE
from kipcheck.conformance.matrix.scenarios import Pair, possible
from kipcheck.conformance.protocols.streams.blobs import latest
from kipcheck.conformance.protocols.streams.model.members import FUTURE

WAYS: Final = (BOUNCE, TWO_BOUNCE, OFFLINE)
"""From the least effort to the most."""


@dataclass(frozen=True, slots=True)
class Route:
    """How to get from one release to another."""

    old: Version
    new: Version
    way: str | None
    """The scenario of least effort that works; None if none does."""
    broken: tuple[str, ...]
    """The scenarios of less effort, which do not work."""


def routes(version: int) -> Iterator[Route]:
    """From each release in the matrix with this latest metadata version to each newer one in it."""
    table = committed().table[BOUNCE]
    for patch, row in table.items():
        if latest(patch) != version:
            continue
        old = named(patch)
        for new in sorted(named(each) for each in row if each != FUTURE):
            if not possible(BOUNCE, Pair(old, new)):
                works = [way for way in WAYS if verdict(Cell(way, Pair(old, new))) == OK]
                way = works[0] if works else None
                yield Route(old, new, way, WAYS[: WAYS.index(way)] if way else WAYS)


def verdict(cell: Cell) -> str | None:
    """The verdict that a run of the matrix expects; None for a cell that it does not have."""
    for each in listed():
        if each.names(cell):
            return each.verdict
    found = committed().of(cell)
    return None if found is None else found.verdict
