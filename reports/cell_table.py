"""What scripts played of the table of cells from which they were chosen: one line for each target, and the table."""

from kipcheck.conformance.core.ledger import PlayedCells
from kipcheck.reports.phrases import some


def line(found: PlayedCells) -> str:
    """``client:x: 500 of 640 pairs of request, event and group were played; not played: 90: the reason``"""
    *first, last = found.dimensions
    text = f"{found.target}: {found.played} of {some(found.pairs, 'pair')} of {', '.join(first)} and {last} were played"
    most_first = sorted(found.missing.items(), key=lambda each: -each[1])
    missing = ", ".join(f"{number} ({why})" for why, number in most_first)
    return f"{text}; not played: {missing}" if missing else text


def table(found: PlayedCells) -> list[tuple[str, ...]]:
    """The head and the rows: how many different events each request met in a phase, of how many, by kind of group."""
    groups = [*dict.fromkeys(group for row in found.rows.values() for group in row)]
    rows = [(name, *(_of(row[group]) if group in row else "" for group in groups)) for name, row in found.rows.items()]
    return [("request, phase", *groups), *rows]


def _of(counted: tuple[int, int]) -> str:
    played, every = counted
    return f"{played} of {every}"
