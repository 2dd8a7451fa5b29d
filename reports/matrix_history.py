"""The page of the history behind a cell: what the operator did, rebalance by rebalance, with what is broken in it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kipcheck.conformance.core.ledger import Line
from kipcheck.reports.markup import Child, Safe, tag
from kipcheck.reports.page import page
from kipcheck.reports.phrases import some

TONES: Final = {"ok": "pass", "breaks": "fail", "refused": "warn"}
SAYS: Final = {"ok": "It works", "breaks": "It breaks", "refused": "It is refused before anything runs"}
HERE: Final = " ◀ here"
REBALANCE: Final = "formed"
"""A join phase is over: what follows belongs to that rebalance."""
GRAVE: Final = frozenset({"died", "refused", "restless"})
"""What is never good news."""
MOST: Final = 240
"""Characters of bytes in one field that are shown."""


def html(history: Line, requirements: Mapping[str, Line]) -> str:
    """``history``: as ``matrix.schema.json`` has it. ``requirements``: those of the matrix that it belongs to."""
    name = f"{history['from']} to {history['to']}, {history['scenario']}"
    return page(
        f"kipcheck matrix: {name}: {history['verdict']}",
        tag("a", "To what happened", class_="jump", href="#happened"),
        tag("header", _header(history, name)),
        tag("main", _told(history, requirements)),
        tag("footer", tag("p", tag("a", "To the matrix", href="../matrix.html"), ". The same as data: ",
                          tag("a", f"{history['case']}.json", href=f"{history['case']}.json"), ".")),
    )  # fmt: skip


def _header(history: Line, name: str) -> Iterator[Safe]:
    verdict = history["verdict"]
    yield tag("h1", tag("b", "kipcheck matrix "), name)
    rounds = f"{some(history['rounds'], 'rebalance')} at most until the group was at rest"
    yield tag(
        "div",
        tag("p", f"{SAYS[verdict]}{': ' if history['reason'] else '.'}{history['reason'] or ''}", class_="say"),
        tag("p", rounds if history["rounds"] else "Nothing ran.", class_="plain"),
        class_=f"outcome {TONES[verdict]}",
    )
    facts: list[tuple[str, Child]] = [("played by", history["target"]), ("edition", history["edition"])]
    facts += [(f"member {each['name']}", _runs(each)) for each in history["members"]]
    facts.append(("case", tag("code", history["case"])))
    yield tag("dl", (tag("div", tag("dt", key), tag("dd", value)) for key, value in facts), class_="facts")


def _runs(member: Line) -> str:
    runs = ", then ".join(member["releases"])
    return f"{runs}; a thread of {member['instance']}" if member["instance"] else runs


def _told(history: Line, requirements: Mapping[str, Line]) -> Iterator[Child]:
    guilty = _guilty(history)
    yield tag("nav", tag("ul", (tag("li", tag("a", name, href=f"#{id}")) for id, name in _parts(history))),
              aria_label="Parts of this page")  # fmt: skip
    if history["broken"]:
        yield tag("section", tag("h2", "What is broken"), _broken(history, requirements), id="broken")
    elif history["requirement"] is not None:
        clause = tag("ul", _clause(history["requirement"], requirements), class_="clauses")
        yield tag("section", tag("h2", _word_of(history)), clause, id="broken")
    steps = (
        tag("li", _link(number, step), _rounds(step), _mark(number in guilty))
        for number, step in enumerate(history["steps"])
    )
    yield tag("section", tag("h2", "What the operator did"), tag("ol", steps, class_="steps"), id="script")
    yield tag("section", tag("h2", "What happened"), _happened(history["steps"], guilty), id="happened")
    again = tag("pre", tag("code", history["play"]), class_="command")
    yield tag("section", tag("h2", "The same again"), again, id="again")


def _guilty(history: Line) -> set[int]:
    """Steps, counted from 0: the last of those that the first violation names, and those in which it shows."""
    named = {max(each["steps"]) for each in history["broken"][:1] if each["steps"]}
    shown = {number for number, step in enumerate(history["steps"]) if any(map(_is_guilty, step["seen"]))}
    return named | shown if history["verdict"] != "ok" else set()


def _is_guilty(seen: Line) -> bool:
    return bool(seen.get("guilty"))


def _word_of(history: Line) -> str:
    return "On whose word" if history["verdict"] == "refused" else "What is broken"


def _parts(history: Line) -> Iterator[tuple[str, str]]:
    if history["broken"] or history["requirement"]:
        yield "broken", _word_of(history)
    yield "script", "Script"
    yield "happened", "What happened"
    yield "again", "The same again"


def _broken(history: Line, requirements: Mapping[str, Line]) -> Iterator[Child]:
    first, *others = history["broken"]
    yield _violation(first, requirements)
    if others:
        yield tag("details", tag("summary", f"{some(len(others), 'thing')} more, in its wake or beside it"),
                  tag("div", (_violation(each, requirements) for each in others), class_="inside"))  # fmt: skip


def _violation(violation: Line, requirements: Mapping[str, Line]) -> Child:
    steps = ", ".join(str(number + 1) for number in violation["steps"])
    where = f", in step {steps}" if steps else ""
    return (
        tag("p", tag("b", violation["why"])),
        tag("p", tag("code", violation["invariant"]), f" ({violation['grade']}){where}", class_="hint"),
        tag("ul", (_clause(each, requirements) for each in violation["requirements"]), class_="clauses"),
    )


def _clause(id: str, requirements: Mapping[str, Line]) -> Safe:
    about = requirements.get(id)
    if about is None:
        return tag("li", tag("b", id))
    return tag("li", tag("b", id), f" {about['clause']} ({about['grade']})", tag("p", about["text"], class_="rule"))


def _link(number: int, step: Line) -> Safe:
    return tag("a", tag("code", step["step"]), href=f"#step-{number + 1}")


def _rounds(step: Line) -> Child:
    return tag("span", f" {some(step['rounds'], 'rebalance')}", class_="small") if step["rounds"] else None


def _mark(guilty: bool) -> Child:
    return tag("span", HERE, class_="mark") if guilty else None


def _happened(steps: Sequence[Line], guilty: set[int]) -> Iterator[Child]:
    """Steps in which nothing was seen stand before the next one in which something was."""
    before: list[Safe] = []
    used: dict[str, int] = {}
    for number, step in enumerate(steps):
        name = tag("span", f"{number + 1}. ", tag("code", step["step"]), id=f"step-{number + 1}")
        if step["seen"] or number == len(steps) - 1:
            others = ((each, "; ") for each in before)
            yield tag("h3", others, name, _rounds(step), _mark(number in guilty))
            yield _step(step, number in guilty, used)
            before = []
        else:
            before.append(name)


def _step(step: Line, guilty: bool, used: dict[str, int]) -> Safe:
    if not step["seen"]:
        return tag("p", "Nothing.", class_="hint")
    # Where nothing in a guilty step is marked, what is never good news in it is.
    marked = any(map(_is_guilty, step["seen"]))
    rows = [_seen(each, guilty and (each["what"] in GRAVE if not marked else _is_guilty(each)), used)
            for each in step["seen"]]  # fmt: skip
    return tag("ol", rows, class_="seen guilty-step" if guilty else "seen")


def _seen(seen: Line, guilty: bool, used: dict[str, int]) -> Safe:
    """``used``: the metadata version that each member was last seen with."""
    # What somebody is sent does not say yet what it makes of it.
    found = {} if seen["what"] == "sent" else seen["used"]
    chips = [
        tag("span", f"{member}: {used[member]} → {version}")
        for member, version in sorted(found.items())
        if used.get(member, version) != version
    ]
    used.update(found)
    kinds = {seen["what"]: True, "rebalance": seen["what"] == REBALANCE, "guilty": guilty}
    return tag(
        "li",
        tag("p", seen["text"], _mark(guilty), (" ", tag("span", chips, class_="tags")) if chips else None),
        (_blob(each) for each in seen["blobs"]),
        class_=" ".join(name for name, holds in kinds.items() if holds),
    )


def _blob(blob: Line) -> Safe:
    says = {"subscription": f"what {blob['member']} says", "assignment": f"what {blob['member']} is sent"}[blob["kind"]]
    size = len(blob["hex"]) // 2
    guilty = any(each.get("guilty") for each in blob["rows"])
    summary = tag("summary", f"{says}: {some(size, 'byte')}", class_="small")
    inner = _rows(blob["rows"]) if guilty else tag("pre", _listed(blob["rows"]) or blob["hex"] or "(no bytes)")
    return tag("details", summary, inner, class_="more", open=guilty)


def _listed(rows: Sequence[Line]) -> str:
    """The same without marks, in fewer bytes: a page has many of them."""
    return "\n".join(f"{row['offset']:>4}  {row['field']} = {_brief(row['value'])}" for row in rows)


def _rows(rows: Sequence[Line]) -> Safe:
    head = tag("tr", (tag("th", name, scope="col") for name in ("", "offset", "bytes", "field", "value")))
    body = (
        tag(
            "tr",
            tag("td", "▶" if row.get("guilty") else None, class_="mark"),
            tag("td", str(row["offset"]), class_="num"),
            tag("td", _brief(row["hex"]), class_="mono"),
            tag("td", row["field"]),
            tag("td", _brief(row["value"])),
            class_="guilty" if row.get("guilty") else None,
        )
        for row in rows
    )
    inner = tag("table", tag("thead", head), tag("tbody", body), class_="exhibit")
    return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label="Bytes, a row for each field")


def _brief(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}… ({len(text):,} characters)"
