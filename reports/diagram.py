"""A case as a sequence diagram in SVG: the participants, their messages in order, and the answers."""

import textwrap
from collections.abc import Iterator, Sequence

from kipcheck.conformance.core.foreign import clean
from kipcheck.conformance.core.ledger import SequenceStep
from kipcheck.reports.markup import Safe, joined, tag

APART = 210
"""Pixels from one actor's line to the next."""
MARGIN = 105
LINE = 16
GLYPH = 7.3
"""Pixels: what a line of text, and a letter of a font of one width, takes at most."""
MOST_LINES = 6


def sequence(steps: Sequence[SequenceStep]) -> Safe:
    """A drawing that scrolls sideways on a narrow page, and the same as a list."""
    actors = list(dict.fromkeys(clean(name) for each in steps for name in (each.sender, each.receiver)))
    drawn: list[Safe] = []
    y = 58
    for number, step in enumerate(steps):
        parts, below = _step(number, step, actors, y)
        drawn.append(tag("g", parts, class_="bad" if step.guilty else None))
        y = below
    width = 2 * MARGIN + APART * max(1, len(actors) - 1)
    heads = [_actor(name, MARGIN + APART * index, y) for index, name in enumerate(actors)]
    picture = tag(
        "svg",
        tag("title", "Sequence diagram; the list below has the same content"),
        heads,
        drawn,
        width=width,
        height=y + 8,
        viewBox=f"0 0 {width} {y + 8}",
        role="img",
    )
    listed = (
        tag(
            "li",
            f"{step.sender} to {step.receiver}: {step.says}",
            f", answered: {step.answer}" if step.answer else None,
            tag("span", " ◀ here", class_="mark") if step.guilty else None,
        )
        for step in steps
    )
    return joined(
        tag("div", picture, class_="scroll", tabindex=0, role="region", aria_label="Sequence diagram"),
        tag("details", tag("summary", "as a list"), tag("ol", listed, class_="steps"), class_="more"),
    )


def _actor(name: str, x: int, height: int) -> Safe:
    shown = name if len(name) <= 24 else f"{name[:23]}…"
    half = max(40, int(len(shown) * GLYPH / 2) + 10)
    return joined(
        tag("line", x1=x, y1=36, x2=x, y2=height, class_="life"),
        tag("rect", x=x - half, y=8, width=2 * half, height=28, rx=5, class_="box"),
        tag("text", shown, x=x, y=27, text_anchor="middle", class_="actor"),
    )


def _step(number: int, step: SequenceStep, actors: list[str], y: int) -> tuple[list[Safe], int]:
    """What is drawn from ``y`` on, and where the next step begins."""
    start, end = (MARGIN + APART * actors.index(clean(name)) for name in (step.sender, step.receiver))
    mark = "▶ " if step.guilty else ""
    label = _lines(f"{mark}{number + 1}. {step.says}", abs(end - start))
    answer = _lines(step.answer, abs(end - start)) if step.answer else []
    top = y
    parts = list(_label(label, start, end, y))
    y += LINE * (len(label) - 1) + 9
    parts.extend(_arrow(start, end, y))
    y += 22 if start == end else 10
    if answer:
        y += 12
        parts.extend(_label(answer, end, start, y))
        y += LINE * (len(answer) - 1) + 9
        parts.extend(_arrow(end, start, y, "arrow back"))
        y += 22 if start == end else 10
    if step.guilty:
        left, right = min(start, end) - MARGIN + 6, max(start, end) + MARGIN - 6
        parts.insert(0, tag("rect", x=left, y=top - 14, width=right - left, height=y - top + 12, rx=6, class_="band"))
    return parts, y + 14


def _lines(text: str, room: int) -> list[str]:
    letters = int(max(room, APART) / GLYPH) - 2
    wrapped = textwrap.wrap(clean(text), letters, max_lines=MOST_LINES, placeholder=" …") or [""]
    return wrapped


def _label(lines: list[str], start: int, end: int, y: int) -> Iterator[Safe]:
    middle = (start + end) // 2
    for number, line in enumerate(lines):
        yield tag("text", line, x=middle, y=y + LINE * number, text_anchor="middle")


def _arrow(start: int, end: int, y: int, kind: str = "arrow") -> Iterator[Safe]:
    if start == end:
        yield tag("path", d=f"M{start} {y}h34v14h-28", class_=kind)
        yield tag("path", d=f"M{start} {y + 14}l9 -4v8z", class_="head")
        return
    back = -9 if end > start else 9
    yield tag("line", x1=start, y1=y, x2=end + back, y2=y, class_=kind)
    yield tag("path", d=f"M{end} {y}l{back} -4v8z", class_="head")
