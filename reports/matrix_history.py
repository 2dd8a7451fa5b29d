"""The HTML page of the history of a cell: the operator's steps, rebalance by rebalance, with the violations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kipcheck.conformance.core.ledger import Json
from kipcheck.reports.markup import Child, Safe, tag
from kipcheck.reports.page import page
from kipcheck.reports.phrases import some

TONES: Final = {"ok": "pass", "breaks": "fail", "refused": "warn"}
SAYS: Final = {"ok": "It works", "breaks": "It breaks", "refused": "It is refused before anything runs"}
HERE: Final = " ◀ here"
REBALANCE: Final = "formed"
"""The end of a join phase: what follows belongs to that rebalance."""
GRAVE: Final = frozenset({"died", "refused", "restless"})
"""Events that are always failures."""
MOST: Final = 240
"""The most characters of a field that are shown."""


def html(history: Json, requirements: Mapping[str, Json]) -> str:
    """``history``: as ``matrix.schema.json`` has it. ``requirements``: those of the matrix that it belongs to."""
    name = f"{history['from']} to {history['to']}, {history['scenario']}"
    return page(
        f"kipcheck matrix: {name}: {history['verdict']}",
        tag("a", "To the events", class_="jump", href="#happened"),
        tag("header", _header(history, name)),
        tag("main", _sections(history, requirements)),
        tag("footer", tag("p", tag("a", "To the matrix", href="../matrix.html"), ". The same as data: ",
                          tag("a", f"{history['case']}.json", href=f"{history['case']}.json"), ".")),
    )  # fmt: skip


def _header(history: Json, name: str) -> Iterator[Safe]:
    verdict = history["verdict"]
    yield tag("h1", tag("b", "kipcheck matrix "), name)
    rounds = f"{some(history['rounds'], 'rebalance')} at most until the group was at rest"
    yield tag(
        "div",
        tag("p", f"{SAYS[verdict]}{': ' if history['reason'] else '.'}{history['reason'] or ''}", class_="say"),
        tag("p", rounds if history["rounds"] else "Nothing was run.", class_="plain"),
        class_=f"outcome {TONES[verdict]}",
    )
    facts: list[tuple[str, Child]] = [("played by", history["target"]), ("edition", history["edition"])]
    facts += [(f"member {each['name']}", _runs(each)) for each in history["members"]]
    facts.append(("case", tag("code", history["case"])))
    yield tag("dl", (tag("div", tag("dt", key), tag("dd", value)) for key, value in facts), class_="facts")


def _runs(member: Json) -> str:
    runs = ", then ".join(member["releases"])
    return f"{runs}; a thread of {member['instance']}" if member["instance"] else runs


def _sections(history: Json, requirements: Mapping[str, Json]) -> Iterator[Child]:
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
    yield tag("section", tag("h2", "Steps of the operator"), tag("ol", steps, class_="steps"), id="script")
    yield tag("section", tag("h2", "Events"), _happened(history["steps"], guilty), id="happened")
    again = tag("pre", tag("code", history["play"]), class_="command")
    yield tag("section", tag("h2", "To reproduce it"), again, id="again")


def _guilty(history: Json) -> set[int]:
    """Steps, counted from 0: the last of those that the first violation names, and those in which it shows."""
    named = {max(each["steps"]) for each in history["broken"][:1] if each["steps"]}
    shown = {number for number, step in enumerate(history["steps"]) if any(map(_is_guilty, step["seen"]))}
    return named | shown if history["verdict"] != "ok" else set()


def _is_guilty(seen: Json) -> bool:
    return bool(seen.get("guilty"))


def _word_of(history: Json) -> str:
    return "The requirement" if history["verdict"] == "refused" else "What is broken"


def _parts(history: Json) -> Iterator[tuple[str, str]]:
    if history["broken"] or history["requirement"]:
        yield "broken", _word_of(history)
    yield "script", "Script"
    yield "happened", "Events"
    yield "again", "To reproduce it"


def _broken(history: Json, requirements: Mapping[str, Json]) -> Iterator[Child]:
    first, *others = history["broken"]
    yield _violation(first, requirements)
    if others:
        yield tag("details", tag("summary", f"{some(len(others), 'thing')} more"),
                  tag("div", (_violation(each, requirements) for each in others), class_="inside"))  # fmt: skip


def _violation(violation: Json, requirements: Mapping[str, Json]) -> Child:
    steps = ", ".join(str(number + 1) for number in violation["steps"])
    where = f", in step {steps}" if steps else ""
    return (
        tag("p", tag("b", violation["why"])),
        tag("p", tag("code", violation["invariant"]), f" ({violation['grade']}){where}", class_="hint"),
        tag("ul", (_clause(each, requirements) for each in violation["requirements"]), class_="clauses"),
    )


def _clause(id: str, requirements: Mapping[str, Json]) -> Safe:
    about = requirements.get(id)
    if about is None:
        return tag("li", tag("b", id))
    return tag("li", tag("b", id), f" {about['clause']} ({about['grade']})", tag("p", about["text"], class_="rule"))


def _link(number: int, step: Json) -> Safe:
    return tag("a", tag("code", step["step"]), href=f"#step-{number + 1}")


def _rounds(step: Json) -> Child:
    return tag("span", f" {some(step['rounds'], 'rebalance')}", class_="small") if step["rounds"] else None


def _mark(guilty: bool) -> Child:
    return tag("span", HERE, class_="mark") if guilty else None


def _happened(steps: Sequence[Json], guilty: set[int]) -> Iterator[Child]:
    """Steps without events are listed before the next step with events."""
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


def _step(step: Json, guilty: bool, used: dict[str, int]) -> Safe:
    if not step["seen"]:
        return tag("p", "Nothing.", class_="hint")
    # If no event of a guilty step is marked, its grave events are.
    marked = any(map(_is_guilty, step["seen"]))
    rows = [_seen(each, guilty and (each["what"] in GRAVE if not marked else _is_guilty(each)), used)
            for each in step["seen"]]  # fmt: skip
    return tag("ol", rows, class_="seen guilty-step" if guilty else "seen")


def _seen(seen: Json, guilty: bool, used: dict[str, int]) -> Safe:
    """``used``: the last metadata version of each member."""
    # An assignment that was sent does not show yet the version that its receiver will use.
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


def _blob(blob: Json) -> Safe:
    name = f"{blob['kind']} of {blob['member']}"
    size = len(blob["hex"]) // 2
    guilty = any(each.get("guilty") for each in blob["rows"])
    summary = tag("summary", f"{name}: {some(size, 'byte')}", class_="small")
    inner = _rows(blob["rows"]) if guilty else tag("pre", _listed(blob["rows"]) or blob["hex"] or "(no bytes)")
    return tag("details", summary, inner, class_="more", open=guilty)


def _listed(rows: Sequence[Json]) -> str:
    """Rows without marks, in fewer bytes than a table: a page has many of them."""
    return "\n".join(f"{row['offset']:>4}  {row['field']} = {_brief(row['value'])}" for row in rows)


def _rows(rows: Sequence[Json]) -> Safe:
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
