"""How a running Streams group can be upgraded, by the verdicts of the matrix."""

from collections.abc import Iterator
from dataclasses import dataclass

from kipcheck.conformance.matrix.answers import FAILURES, WAYS, ways
from kipcheck.conformance.matrix.cells import OK, Cell
from kipcheck.conformance.matrix.known import listed
from kipcheck.conformance.matrix.predictions import committed
from kipcheck.conformance.matrix.release_lines import Version, behaviours, named
from kipcheck.conformance.matrix.scenario_names import BOUNCE
from kipcheck.conformance.matrix.scenarios import Pair, possible
from kipcheck.conformance.protocols.streams.blobs import latest
from kipcheck.conformance.protocols.streams.model.members import FUTURE


@dataclass(frozen=True, slots=True)
class Route:
    """How to get from one release to another, as predicted."""

    old: Version
    new: Version
    way: str | None
    """The scenario of choice that works, also if a member fails meanwhile; None if none does."""
    broken: tuple[str, ...]
    """The scenarios of less effort that do not work."""
    fragile: tuple[str, ...]
    """Those of less effort that work only if no member fails meanwhile."""


def routes(version: int) -> Iterator[Route]:
    """From each release in the matrix with this latest metadata version to each newer one in it."""
    table = committed().table[BOUNCE]
    for patch, row in table.items():
        if latest(patch) != version:
            continue
        old = named(patch)
        for new in sorted(named(each) for each in row if each != FUTURE):
            if not possible(BOUNCE, Pair(old, new)):
                yield _route(Pair(old, new))


def _route(pair: Pair) -> Route:
    works = [way for way in ways(pair) if verdict(Cell(way, pair)) == OK]
    # Where the matrix has no cell with a failure, the cell without one decides.
    fragile = [way for way in works if way in FAILURES and verdict(Cell(FAILURES[way], pair)) not in (OK, None)]
    way = next((each for each in works if each not in fragile), None)
    before = WAYS[: WAYS.index(way)] if way else WAYS
    return Route(
        *pair,
        way,
        tuple(each for each in before if each not in works),
        tuple(each for each in before if each in fragile),
    )


def verdict(cell: Cell) -> str | None:
    """The verdict that a run of the matrix expects; None for a cell that it does not have."""
    for each in listed():
        if each.names(cell):
            return each.verdict
    found = committed().of(cell)
    return None if found is None else found.verdict


def detour(pair: Pair) -> Version | None:
    """The newest release between the two by way of which rolling upgrades are predicted to work, failures included."""

    def works(part: Pair) -> bool:
        return any(verdict(Cell(way, part)) == verdict(Cell(failure, part)) == OK for way, failure in FAILURES.items())

    between = [each for each in behaviours() if pair.old < each < pair.new]
    return next(
        (each for each in reversed(between) if works(Pair(pair.old, each)) and works(Pair(each, pair.new))), None
    )
