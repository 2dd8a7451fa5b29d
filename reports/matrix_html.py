"""The HTML page of a matrix: KIP-268's table, a table of all pairs for each scenario, failures, and predictions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from kipcheck.conformance.core.ledger import Json
from kipcheck.reports import matrix
from kipcheck.reports.markup import Child, Safe, joined, link, tag
from kipcheck.reports.page import page
from kipcheck.reports.phrases import some

TONES: Final = {"ok": "pass", "breaks": "fail", "refused": "warn", "skipped": "skip"}
ANSWERED: Final = {matrix.WORKS: "pass", matrix.CONDITIONAL: "warn", matrix.BROKEN: "fail", matrix.UNKNOWN: "skip"}
FIX, STAR, UNLIKE, KNOWN = "★", "☆", "≠", "≈"
"""Signs in a cell: needs the back-ported fix; starred in the KIP without need; unlike its prediction; known to be."""
FIX_MEANS: Final = "needs the back-ported fix of KAFKA-6054 in the release that it goes to, which 0.10.1 never got"
Content: TypeAlias = Callable[[str, str], Safe]
"""The cell of a row and a column."""
ALONE: Final = {"ok": "works", "breaks": "breaks", "refused": "is refused", None: "makes no prediction"}


def html(found: matrix.Matrix) -> str:
    sections = list(_sections(found))
    return page(
        f"kipcheck matrix: {found.verdict}",
        tag("a", "To the tables", class_="jump", href="#tables"),
        tag("header", _header(found)),
        tag("main", _nav(sections), (tag("section", part, id=id) for id, _, part in sections)),
        tag("footer", tag("p", "Made by kipcheck ", found.found["kipcheck"], ". The histories are in ",
                          tag("code", f"{matrix.HISTORIES}/"), " beside this page.")),
    )  # fmt: skip


def _nav(sections: Sequence[tuple[str, str, Safe]]) -> Safe:
    items = (tag("li", tag("a", name, href=f"#{id}")) for id, name, _ in sections)
    return tag("nav", tag("ul", items), aria_label="Parts of this page")


def _header(found: matrix.Matrix) -> Iterator[Safe]:
    """The answers come first; whether they were predicted is in small print."""
    yield tag("h1", tag("b", "kipcheck matrix "), "upgrades of Kafka Streams, run with its released jars")
    if found.is_small and found.answers:
        yield from map(_answer, found.answers)
    else:
        yield tag("div", tag("p", found.head, class_="say"), class_=f"outcome {ANSWERED[found.result]}")
    yield tag("p", matrix.NOT_COVERED, class_="hint")
    predicted = f"{_sentence(found.verdict)}. {found.counted}. {_sentence(found.predicted)}. {matrix.EXIT_MEANS}"
    yield tag("p", predicted, class_="small")
    if (seconds := found.found.get("seconds")) is not None:
        cached = found.found["counts"]["cached"]
        kept = f", {some(cached, 'cell')} from an earlier run" if cached else ""
        yield tag("p", f"Took {seconds:,.0f} s{kept}.", class_="small")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _answer(answer: Json) -> Safe:
    more = (
        tag(
            "li",
            tag("span", matrix.IN_WORDS[each["result"]], class_=f"word {ANSWERED[each['result']]}"),
            " ",
            each["text"],
        )
        for each in answer["more"]
    )
    lines = answer["configuration"]
    return tag(
        "div",
        tag("p", answer["text"], class_="say", id=_place(answer)),
        tag("pre", tag("code", "\n".join(lines)), class_="command") if lines else None,
        tag("ul", more, class_="answers") if answer["more"] else None,
        class_=f"outcome {ANSWERED[answer['result']]}",
    )


def _place(answer: Json) -> str:
    return f"answer-{answer['from']}-{answer['to']}"


def _sections(found: matrix.Matrix) -> Iterator[tuple[str, str, Safe]]:
    """Id, name and what is shown."""
    if found.differing:
        yield "unlike", "Unlike predictions", _listed("Unlike what was predicted", found.differing)
    if found.found["stale"]:
        yield "stale", "Stale", _stale(found)
    if found.is_small:
        yield "tables", "Scenarios", joined(tag("h2", "Scenarios"), _small_table(found), _legend())
    else:
        if found.answers:
            yield "answers", "Answers", joined(tag("h2", "Which upgrades work"), *_answers(found))
        if found.of_the_kip:
            yield "kip", "KIP-268's table", _kip(found)
        tables = (_table(found, each) for each in found.tables)
        yield "tables", "Tables", joined(tag("h2", "All pairs"), _legend(), tables)
    if found.broken:
        yield "broken", "What breaks", _broken(found)
    yield "predictions", "Predictions", _predictions(found)
    if found.known:
        yield "known", "Known deviations", _listed("Known deviations", found.known)


# ---- tables


def _answers(found: matrix.Matrix) -> Iterator[Safe]:
    """A table of all pairs, then the answers in words, by the release before the upgrade."""
    by_pair = {(each["from"], each["to"]): each for each in found.answers}
    rows, columns = found.sides_of(by_pair)

    def content(old: str, new: str) -> Safe:
        answer = by_pair.get((old, new))
        if answer is None:
            return tag("td")
        way = tag("span", answer["way"], class_="way") if answer["way"] else None
        inner = tag("a", answer["result"], way, href=f"#{_place(answer)}", title=answer["text"])
        return tag("td", inner, class_=ANSWERED[answer["result"]])

    hint = (
        "The way of least effort: one rolling bounce, two with upgrade.from, or offline. Works: also if a member fails "
        "meanwhile. Conditional: the answer below names the condition."
    )
    yield tag("p", hint, class_="hint")
    yield _grid(found, rows, columns, content, "Which upgrades work: from, to")
    for old in rows:
        answers = [each for each in found.answers if each["from"] == old]
        inner = tag("div", map(_answer, answers), class_="inside")
        yield tag("details", tag("summary", f"From {old}: {some(len(answers), 'answer')}"), inner)


def _small_table(found: matrix.Matrix) -> Safe:
    """One table for few pairs: a row for each scenario, a column for each pair."""

    def content(scenario: str, pair: tuple[str, str]) -> Safe:
        cell = found.cell(scenario, *pair)
        if cell is not None:
            return tag("td", _cell(cell), class_=TONES[cell["verdict"]])
        return tag("td", found.in_words(scenario, *pair), class_="skip", title=found.skipped(scenario, *pair))

    tops = (tag("th", f"{old} to {new}", scope="col") for old, new in found.pairs)
    body = (
        tag("tr", tag("th", each["name"], tag("p", f"{_sentence(each['about'])}.", class_="small"), scope="row"),
            (content(each["name"], pair) for pair in found.pairs))
        for each in found.found["scenarios"]
    )  # fmt: skip
    head = tag("thead", tag("tr", tag("th", "scenario", scope="col"), tops))
    inner = tag("table", head, tag("tbody", body), class_="matrix pairs")
    return tag("div", inner, class_="scroll fit", tabindex=0, role="region", aria_label="Scenarios of each pair")


def _legend() -> Safe:
    """The legend. Every sign has a word: colour alone has no meaning."""
    words = (
        ("ok 2", "pass", "works; the group was at rest after two rebalances at most"),
        ("breaks", "fail", "a requirement is violated, or a member dies"),
        ("refused", "warn", "a configuration error, before anything runs"),
        ("skipped", "skip", "was not run; its jars are not available"),
    )
    signs = (
        (FIX, FIX_MEANS),
        (STAR, "has a star in the KIP's table; its metadata do not change, and it needs no fix (268-53)"),
        (UNLIKE, "unlike its prediction"),
        (KNOWN, "unlike its prediction, as a known deviation"),
    )
    rows = [(tag("dt", tag("span", word, class_=f"word {tone}")), tag("dd", what)) for word, tone, what in words]
    rows += [(tag("dt", tag("b", sign)), tag("dd", what)) for sign, what in signs]
    hint = "FROM is the release before the upgrade, TO the one after it. A cell links to its worst history."
    return joined(tag("p", hint, class_="hint"), tag("dl", rows, class_="versus signs"))


def _kip(found: matrix.Matrix) -> Safe:
    cells = found.of_the_kip
    rows, columns = found.sides_of(cells)

    def content(old: str, new: str) -> Safe:
        cell = cells.get((old, new))
        if cell is None:
            return tag("td")
        return tag("td", _cell(cell, way=cell["scenario"]), class_=TONES[cell["verdict"]])

    hint = (
        "The cells of the KIP's test matrix, by the names that it has for releases: its 1.2 was released as 2.0, and "
        "post-1.2 is a member with one metadata version more, which is simulated. Each is upgraded in the way that the "
        f"KIP has for it, two bounces with upgrade.from or one. {FIX} {FIX_MEANS}."
    )
    return joined(
        tag("h2", "KIP-268's own table"),
        tag("p", hint, class_="hint"),
        _grid(found, rows, columns, content, "KIP-268's own table", matrix.DRAFT),
    )


def _table(found: matrix.Matrix, table: matrix.Table) -> Safe:
    def content(old: str, new: str) -> Safe:
        cell = found.cell(table.scenario, old, new)
        if cell is not None:
            return tag("td", _cell(cell), class_=TONES[cell["verdict"]])
        why = found.skipped(table.scenario, old, new)
        return tag("td") if why is None else tag("td", "skipped", class_="skip", title=why)

    grid = _grid(found, table.rows, table.columns, content, f"{table.scenario}: from, to")
    counted = _counted(found, table.scenario)
    return joined(
        tag("h3", table.scenario, tag("span", f" {counted}", class_="small"), id=f"table-{table.scenario}"),
        tag("p", f"{_sentence(table.about).rstrip('.')}.", class_="hint"),
        grid,
    )


def _counted(found: matrix.Matrix, scenario: str) -> str:
    verdicts = [each["verdict"] for each in found.cells if each["scenario"] == scenario]
    words = {"ok": "ok", "breaks": "break", "refused": "refused"}
    counts = (f"{verdicts.count(each)} {word}" for each, word in words.items() if each in verdicts)
    return ", ".join(counts) or "nothing was run"


def _grid(
    found: matrix.Matrix,
    rows: Sequence[str],
    columns: Sequence[str],
    content: Content,
    label: str,
    called: Mapping[str, str] = MappingProxyType({}),
) -> Safe:
    """``called``: other names of releases."""

    def head(name: str) -> Child:
        about = found.releases[name]
        meta = f"knows {about['latest']}" if about.get("latest") else None
        shown = f"{called[name]} ({name})" if name in called else name
        return (shown, tag("p", meta, class_="small") if meta else None)

    def title(name: str) -> str | None:
        patch, kind = found.releases[name]["patch"], found.releases[name].get("kind")
        parts = [patch if patch != name else None, kind]
        return ": ".join(filter(None, parts)) or None

    tops = (tag("th", head(each), scope="col", title=title(each)) for each in columns)
    body = (
        tag("tr", tag("th", head(old), scope="row", title=title(old)), (content(old, new) for new in columns))
        for old in rows
    )
    corner = tag("th", "from ↓ to →", scope="col")
    inner = tag("table", tag("thead", tag("tr", corner, tops)), tag("tbody", body), class_="grid matrix")
    return tag("div", inner, class_="scroll fit", tabindex=0, role="region", aria_label=label)


def _cell(cell: Json, way: str | None = None) -> Safe:
    rounds = (" ", tag("b", str(cell["rounds"]))) if cell["rounds"] else None
    sign = FIX if cell["needs_fix"] else STAR if cell["starred"] else None
    unlike = UNLIKE if cell["differs"] else KNOWN if cell["known"] else None
    title = [
        f"{cell['from']} to {cell['to']}, {cell['scenario']}: {cell['verdict']}",
        f"{cell['requirement']}: {cell['reason']}" if cell["reason"] and cell["requirement"] else cell["reason"],
        f"predicted: {cell['predicted']}" if cell["differs"] or cell["known"] else None,
    ]
    marks = (tag("span", each, class_="sign") for each in (sign, unlike) if each)
    parts = (cell["verdict"], rounds, marks)
    under = tag("span", way, class_="way") if way else None
    return tag("a", parts, under, href=_history(cell), title="; ".join(filter(None, title)))


def _word(verdict: str) -> Safe:
    return tag("span", verdict, class_=f"word {TONES[verdict]}")


def _history(cell: Json) -> str:
    return f"{matrix.HISTORIES}/{cell['case']}.html"


# ---- in words


def _broken(found: matrix.Matrix) -> Safe:
    return joined(
        tag("h2", "Broken requirements"),
        tag("p", "Each requirement with the cells that break it, one of them in detail.", class_="hint"),
        (_by_requirement(found, id, cells) for id, cells in found.broken.items()),
    )


def _by_requirement(found: matrix.Matrix, id: str, cells: Sequence[Json]) -> Safe:
    about = found.found["requirements"].get(id, {})
    verdicts = sorted({each["verdict"] for each in cells})
    title = (
        map(_word, verdicts),
        tag("span", id or "no requirement is named", class_="why"),
        tag("span", f"{some(len(cells), 'cell')} · {about.get('clause', '')}", class_="who"),
    )
    inner = tag("div", _of_requirement(about, cells), class_="inside", id=f"requirement-{id or 'none'}")
    return tag("details", tag("summary", tag("span", title, class_="title")), inner)


def _of_requirement(about: Json, cells: Sequence[Json]) -> Iterator[Child]:
    if about:
        yield tag("p", about["text"], class_="rule")
    first = cells[0]
    yield tag("h4", f"For example {first['from']} to {first['to']}, {first['scenario']}")
    yield tag("p", first["reason"] or "")
    yield tag("pre", tag("code", first["play"]), class_="command")
    by_row: dict[tuple[str, str], list[Json]] = {}
    for each in cells:
        by_row.setdefault((each["scenario"], each["from"]), []).append(each)
    yield tag("h4", "All cells")
    listed = (
        tag("li", f"{scenario}, {old} to ",
            ((", " if number else "", tag("a", each["to"], href=_history(each))) for number, each in enumerate(row)))
        for (scenario, old), row in by_row.items()
    )  # fmt: skip
    yield tag("ul", listed, class_="list")


def _listed(title: str, cells: Sequence[Json]) -> Safe:
    head = tag("tr", (tag("th", each, scope="col") for each in ("cell", "found", "predicted", "observed")))
    return joined(
        tag("h2", f"{title} ({len(cells)})"),
        tag(
            "div",
            tag("table", tag("thead", head), tag("tbody", map(_row, cells))),
            class_="scroll", tabindex=0, role="region", aria_label=title,
        ),
    )  # fmt: skip


def _row(cell: Json) -> Safe:
    name = tag("a", f"{cell['from']} to {cell['to']}, {cell['scenario']}", href=_history(cell))
    known = cell["known"]
    why = (tag("p", known["reason"], " ", link(known["link"], known["link"])),) if known else ()
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", _word(cell["verdict"]), " ", tag("span", cell["requirement"] or "", class_="id")),
        tag("td", cell["predicted"] or "nothing", tag("p", f"by {matrix.BY[cell['rule']]}", class_="small")),
        tag("td", cell["reason"] or "no failure", why),
    )


def _stale(found: matrix.Matrix) -> Safe:
    rows = (
        tag("li", tag("b", f"{each['from']} to {each['to']}, {each['scenario']}"), f": {each['why']}")
        for each in found.found["stale"]
    )
    return joined(tag("h2", "Known deviations that no longer occur"), tag("ul", rows, class_="list"))


def _predictions(found: matrix.Matrix) -> Safe:
    alone = found.text_alone
    predicted = [each for each in ALONE if any(pair[0] == each for pair in alone)]
    verdicts = ("ok", "breaks", "refused")
    head = tag("tr", (tag("th", each, scope="col") for each in ("the text of the KIP", *verdicts)))

    def row(source: str | None) -> Safe:
        numbers = (tag("td", f"{alone.get((source, each), 0) or '–'}", class_="num") for each in verdicts)
        return tag("tr", tag("th", ALONE[source], scope="row"), numbers)

    counts = found.found["counts"]
    text = (
        f"The verdict of a cell is predicted before it is run. {counts['foreseen']} of {len(found.cells)} cells are "
        f"predicted by the text of KIP-268 alone; {counts['fitted']} by facts about releases that were known "
        f"beforehand; {counts['observed']} by rules that were made after the cell had been run, which predict only "
        f"that it does not change."
    )
    return joined(
        tag("h2", "Predictions"),
        tag("p", text),
        tag("p", "The predictions of the text of the KIP alone, and the results:", class_="hint"),
        tag("div", tag("table", tag("thead", head), tag("tbody", map(row, predicted))), class_="scroll", tabindex=0,
            role="region", aria_label="Predictions of the text of the KIP, and results"),
    )  # fmt: skip
