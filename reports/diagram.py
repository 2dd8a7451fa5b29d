"""A case as a sequence diagram: a list of messages, which the style draws as arrows between participants.

On a narrow screen and without the style it is the list. Texts wrap and are never cut off.
"""

from collections.abc import Iterator, Sequence

from kipcheck.conformance.core.ledger import SequenceStep
from kipcheck.conformance.core.values.untrusted_text import clean
from kipcheck.reports.markup import Safe, joined, tag
from kipcheck.reports.phrases import numbered

MOST = 8
"""Participants that the style has columns for. More are only listed."""
TIME = "time"
"""A message of this participant is drawn across all columns."""


def sequence(steps: Sequence[SequenceStep]) -> Safe:
    """The numbers are those of the steps of the case: a message that follows from a step has none."""
    actors = list(dict.fromkeys(clean(name) for each in steps for name in (each.sender, each.receiver) if name != TIME))
    is_drawn = len(actors) <= MOST
    heads = (tag("span", name, class_=_columns(2 * n + 1, 2 * n + 3)) for n, name in enumerate(actors))
    rows = tag("ol", (_rows(steps, actors if is_drawn else None)), class_="messages")
    drawing = joined(tag("div", heads, class_="actors", aria_hidden="true") if is_drawn else None, rows)
    kind = f"sequence drawn n{len(actors)}" if is_drawn else "sequence"
    return tag(
        "div",
        tag("div", drawing, class_=kind),
        class_="scroll",
        tabindex=0,
        role="group",
        aria_label="Sequence of messages",
    )


def _rows(steps: Sequence[SequenceStep], actors: list[str] | None) -> Iterator[Safe]:
    for number, step in numbered(steps):
        kinds = ["bad"] if step.guilty else []
        kinds += ["follows"] if step.follows else []
        yield tag("li", _messages(number, step, actors), class_=" ".join(kinds) or None)


def _messages(number: str, step: SequenceStep, actors: list[str] | None) -> Iterator[Safe]:
    mark = tag("span", "▶ ", class_="mark", title="here") if step.guilty and not step.follows else None
    count = tag("b", f"{number} ") if number else None
    yield _message(step.sender, step.receiver, step.says, actors, step.reply is True, joined(mark, count))
    if step.answer:
        yield _message(step.receiver, step.sender, step.answer, actors, True, None)


def _message(
    sender: str, receiver: str, says: str, actors: list[str] | None, is_reply: bool, before: Safe | None
) -> Safe:
    way = sender if sender in (receiver, TIME) else f"{sender} → {receiver}"
    kind = "" if actors is None else _place(clean(sender), clean(receiver), actors)
    reply = " reply" if is_reply else ""
    return tag("p", before, tag("span", f"{way}: ", class_="route"), tag("span", says), class_=f"message{reply}{kind}")


def _place(sender: str, receiver: str, actors: list[str]) -> str:
    """The classes of a message: its direction and columns, of which each participant has two."""
    if TIME in (sender, receiver):
        return f" alone {_columns(1, 2 * len(actors) + 1)}"
    start, end = actors.index(sender), actors.index(receiver)
    if start == end:
        return f" alone {_columns(2 * start + 1, 2 * start + 3)}"
    low, high = sorted((start, end))
    return f" {'right' if start < end else 'left'} {_columns(2 * low + 2, 2 * high + 2)}"


def _columns(first: int, end: int) -> str:
    return f"f{first} t{end}"
