"""A sequence diagram for a terminal: a vertical line for each actor, an arrow for each message."""

import textwrap
from collections.abc import Iterator, Sequence

from kipcheck.conformance.core.ledger import Json
from kipcheck.conformance.core.values.untrusted_text import clean

NARROWEST, WIDEST = 16, 40
"""Letters from one actor's line to the next."""
ASIDE = 24
"""Letters to the right of the last line, for messages of its actor to itself."""


def ladder(steps: Sequence[Json], width: int = 110) -> str:
    """As wide as ``width`` if that leaves room between the actors; else a list with the same content."""
    actors = list(dict.fromkeys(clean(str(name)) for each in steps for name in (each["from"], each["to"])))
    if not actors:
        return ""
    apart = min(WIDEST, max((width - ASIDE) // len(actors), 0))
    if apart < NARROWEST:
        return "\n".join(_listed(steps, width))
    first = min(apart, max(len(actors[0]), 8)) // 2
    columns = {name: first + apart * index for index, name in enumerate(actors)}
    drawing = _Drawing(list(columns.values()), columns[actors[-1]] + ASIDE)
    drawing.heads(actors, apart)
    number = 0
    for step in steps:
        number += step.get("first", True)
        drawing.step(step, number, columns[clean(str(step["from"]))], columns[clean(str(step["to"]))])
    return "\n".join(line.rstrip() for line in drawing.lines)


class _Drawing:
    def __init__(self, columns: list[int], width: int) -> None:
        self.lines: list[str] = []
        self._columns = columns
        self._width = width

    def heads(self, actors: Sequence[str], apart: int) -> None:
        row = [" "] * self._width
        for name, column in zip(actors, self._columns, strict=True):
            shown = name if len(name) < apart - 1 else f"{name[: apart - 3]}…"
            start = max(0, column - len(shown) // 2)
            row[start : start + len(shown)] = shown
        self.lines.append("".join(row))

    def step(self, step: Json, number: int, start: int, end: int) -> None:
        mark = "▶ " if step["guilty"] else ""
        numbered = f"{number}. " if step.get("first", True) else ""
        self._say(f"{mark}{numbered}{step['says']}", start, end)
        self._arrow(start, end, "─")
        if step.get("answer"):
            self._say(str(step["answer"]), end, start)
            self._arrow(end, start, "╌")

    def _say(self, text: str, start: int, end: int) -> None:
        """Between the two lines; to the right of the line where both are the same."""
        left, right = sorted((start, end))
        at_once = left == right
        room = (self._width - left - 3) if at_once else right - left - 3
        indent = f"{left + 2}"
        lines = textwrap.wrap(clean(text), max(room, NARROWEST - 3), break_long_words=True)
        for index, line in enumerate(lines or [""]):
            row = self._lifelines()
            if at_once and not index:
                row[left] = "●"
            place = int(indent)
            row[place : place + len(line)] = line
            if at_once:
                row[place + len(line) : place + len(line) + 1] = " "
            self.lines.append("".join(row))

    def _arrow(self, start: int, end: int, stroke: str) -> None:
        if start == end:
            return
        row = self._lifelines()
        left, right = sorted((start, end))
        row[left + 1 : right] = stroke * (right - left - 1)
        row[start] = "├" if start < end else "┤"
        row[end + (-1 if start < end else 1)] = ">" if start < end else "<"
        self.lines.append("".join(row))

    def _lifelines(self) -> list[str]:
        row = [" "] * self._width
        for column in self._columns:
            row[column] = "│"
        return row


def _listed(steps: Sequence[Json], width: int) -> Iterator[str]:
    number = 0
    for step in steps:
        first = step.get("first", True)
        number += first
        mark = "▶" if step["guilty"] else " "
        answer = f", answered: {step['answer']}" if step.get("answer") else ""
        to = "" if step["from"] == step["to"] else f" to {step['to']}"
        numbered = f"{number}." if first else " " * len(f"{number}.")
        text = clean(f"{mark} {numbered} {step['from']}{to}: {step['says']}{answer}")
        yield from textwrap.wrap(text, max(width, 30), subsequent_indent="     ", drop_whitespace=True)
