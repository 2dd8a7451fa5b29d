"""The result of an exploration, for a terminal and as a page."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kipcheck.conformance.core.ledger import Json, SequenceStep
from kipcheck.conformance.core.values.untrusted_text import harmless
from kipcheck.reports.diagram import sequence
from kipcheck.reports.markup import Safe, tag
from kipcheck.reports.page import page

WIDTH = 110


def text(about: str, found: Mapping[str, Any], requirements: Sequence[Json], again: str) -> str:
    """``found``: the JSON of ``kipcheck explore``. ``again``: the command that plays the counter-example."""
    lines = [about, f"  {counted(found)}"]
    counter = found["counter_example"]
    if counter is None:
        lines.append("  no law is broken" + ("" if found["complete"] else " in the part that was explored"))
        return harmless("\n".join(lines)) + "\n"
    lines += ["", f"BROKEN {counter['invariant']}"]
    lines += _wrapped("what", counter["why"])
    for each in requirements:
        lines += _wrapped(each["id"], f"{each['clause']}: {each['text']}")
    lines += ["", *(f"  {line}" for line in counter["diagram"].splitlines()), ""]
    lines += [f"  {'again':<9} {again}"]
    return harmless("\n".join(lines)) + "\n"


def counted(found: Mapping[str, Any]) -> str:
    state = "complete" if found["complete"] else "INCOMPLETE" if found["counter_example"] is None else "stopped there"
    return (
        f"{found['states']:,} states, {found['transitions']:,} transitions, depth {found['depth']}; {state} "
        f"({found['states_per_s']:,} states/s)"
    )


def _wrapped(label: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - 12, break_on_hyphens=False) or [""]
    return [f"  {label:<9} {lines[0]}", *(f"  {'':<9} {line}" for line in lines[1:])]


def html(
    about: str, found: Mapping[str, Any], sentence: str, requirements: Sequence[Json], steps: Sequence[Json], again: str
) -> str:
    """The page of a counter-example. ``steps``: its diagram, in rows."""
    counter = found["counter_example"]
    return page(
        f"kipcheck explore: {counter['invariant']}",
        tag(
            "header",
            tag("h1", tag("b", "kipcheck explore "), about),
            tag("div", tag("p", counter["why"], class_="say"), tag("p", counted(found), class_="plain"),
                class_="outcome fail"),
        ),
        tag("main", tag("section", _sections(counter, sentence, requirements, steps, again))),
    )  # fmt: skip


def _sections(
    counter: Json, sentence: str, requirements: Sequence[Json], steps: Sequence[Json], again: str
) -> Iterator[Safe]:
    yield tag("h2", "What is broken")
    yield tag("p", sentence, class_="rule")
    clauses = (tag("li", tag("b", each["id"]), f" {each['clause']}: {each['text']}") for each in requirements)
    yield tag("ul", clauses, class_="clauses")
    yield tag("h2", "The shortest counter-example")
    yield sequence([SequenceStep.of(each) for each in steps])
    yield tag("h2", "To reproduce it")
    yield tag("pre", tag("code", again), class_="command")
