"""A matrix is told alike in every form, and each cell leads to what happened."""

import json
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from markdown_it import MarkdownIt

from kipcheck.conformance.cli.main import run as main
from kipcheck.conformance.core.files.output_folder import LIST
from kipcheck.conformance.matrix.scenario_names import ABOUT
from kipcheck.conformance.tests.reports.test_page import CONTRAST
from kipcheck.conformance.tests.support.browser import NAMES, Browser, browser, installed
from kipcheck.conformance.tests.support.ledgers import everything, write as write_ledger
from kipcheck.conformance.tests.support.matrices import (
    BLOB,
    CELLS,
    SKIPPED,
    answer,
    cell,
    history,
    matrix,
    seen,
    written,
)
from kipcheck.reports import matrix_history
from kipcheck.reports.matrix import FORMS, Matrix, read, render, rendered, write

SCHEMA: dict[str, Any] = json.loads((files("kipcheck.reports") / "matrix.schema.json").read_text("utf-8"))
HOSTILE = "<script>1</script>\x1b[31m|`@all` https://tracker.example/"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of a matrix with every kind of cell."""
    out = tmp_path_factory.mktemp("matrix")
    hostile = history(case="bounce-2x0-future", reason=HOSTILE, script=HOSTILE, play=HOSTILE, steps=[
        {"step": HOSTILE, "rounds": 1, "seen": [seen("formed", HOSTILE * 9, blobs=[{**BLOB, "rows": [
            {"offset": 0, "hex": "ab" * 900, "field": "f" * 90, "value": HOSTILE * 90, "guilty": True}]}])]},
    ])  # fmt: skip
    broken = cell("2.1", "2.4", "join", "breaks", reason=HOSTILE, requirement=None, play=HOSTILE, differs=True)
    write(written(out, matrix((*CELLS, broken), stale=True), history(), hostile))
    return out


# ---- the data that is rendered is of the shape that there is a text of


@pytest.mark.parametrize("value", [matrix(stale=True), history()], ids=["matrix", "history"])
def test_what_these_tests_render_is_as_the_schema_has_it(value: dict[str, Any]) -> None:
    assert not [*jsonschema.Draft202012Validator(SCHEMA).iter_errors(value)]


# ---- for a terminal


def grid(text: str, scenario: str) -> list[list[str]]:
    """Of a scenario: the rows of its table, by what stands in them."""
    _, _, rest = text.partition(f"\n{scenario}: ")
    lines = rest.partition("\n\n")[0].splitlines()
    return [line.split() for line in lines if re.match(r"  \d+\.[\d.]+ +[\dXR.?!]", line)]


def test_a_terminal_sees_verdict_and_rebalances_of_every_cell() -> None:
    text = rendered(Matrix(matrix()), "text")
    assert grid(text, "join") == [
        ["0.10.0", "X1", "X1", ".", ".", "."],
        ["0.10.2", ".", ".", "?", ".", "."],
        ["2.0", ".", ".", "1", "2", "2"],
    ]
    assert grid(text, "bounce") == [["2.0", "X2!", "2"]]
    assert grid(text, "two-bounce") == [["0.10.0", "1", "1", "R"], ["0.10.2", ".", "1", "."]]


def test_names_of_columns_are_read_downwards() -> None:
    lines = rendered(Matrix(matrix()), "text").partition("\njoin: ")[2].splitlines()[1:]
    levels = [line for line in lines[: next(n for n, line in enumerate(lines) if line.startswith("  0.10.0"))]]
    width = max(map(len, levels))
    columns = ("".join(each).strip() for each in zip(*(line.ljust(width) for line in levels), strict=True))
    assert [each for each in columns if each] == ["0.10.2", "2.0", "2.1", "2.4", "future"]


def test_the_table_of_the_kip_has_each_pair_upgraded_as_the_kip_has_it() -> None:
    of_the_kip = Matrix(matrix()).of_the_kip
    assert {pair: each["scenario"] for pair, each in of_the_kip.items()} == {
        ("0.10.0", "0.10.2"): "two-bounce", ("0.10.0", "2.0"): "two-bounce", ("0.10.2", "2.0"): "two-bounce",
        ("2.0", "future"): "bounce",
    }  # fmt: skip
    head = rendered(Matrix(matrix()), "text").partition("\njoin: ")[0].splitlines()
    head = head[head.index("KIP-268's own table (its 1.2 is 2.0)") :]
    assert [line.split() for line in head if line.startswith(("  0", "  2"))] == [
        ["0.10.0", "1*", "1", "."], ["0.10.2", ".", "1", "."], ["2.0", ".", ".", "2"],
    ]  # fmt: skip


def test_between_releases_of_equal_metadata_the_kip_wants_one_bounce() -> None:
    found = Matrix(matrix())
    found.releases["2.1"] = {**found.releases["2.1"], "latest": 2}
    assert (found.way("0.10.2", "2.1"), found.way("0.10.2", "2.0"), found.way("2.0", "2.4")) == (
        "bounce", "two-bounce", "bounce",
    )  # fmt: skip


def test_what_is_unlike_its_prediction_is_told_with_its_command() -> None:
    text = rendered(Matrix(matrix()), "text")
    block = text.partition("\nUNLIKE ")[2]
    assert block.startswith("2.0 to 2.1, bounce\n")
    assert "predicted ok, by a rule made after it was run" in block
    assert "again     kipcheck replay kipcheck-matrix/histories/bounce-2x0-2x1.json" in block
    assert text.rstrip().splitlines()[-1].endswith("1 cell unlike what was predicted")


@pytest.mark.parametrize(
    ("found", "code", "verdict"),
    [
        (matrix(CELLS[:3], skipped=()), 0, "every cell is as predicted"),
        (matrix(CELLS[:4], skipped=()), 0, "every cell is as predicted, or a known deviation"),
        (matrix(skipped=()), 1, "1 cell unlike what was predicted"),
        (matrix(CELLS[:3], skipped=(), stale=True), 5, "every cell is as predicted"),
        (matrix(CELLS[:3]), 7, "INCOMPLETE: of the cells that were run, every cell is as predicted"),
        (matrix(CELLS[:3], False, skipped=()), 6, "INCOMPLETE: of the cells that were run, every cell is as predicted"),
        (matrix(complete=False), 1, "INCOMPLETE: of the cells that were run, 1 cell unlike what was predicted"),
        (matrix((), complete=False, skipped=()), 6, "no cell was run"),
    ],
    ids=["as predicted", "known", "unlike", "stale", "skipped", "incomplete", "both", "nothing"],
)
def test_how_it_ended_is_told_in_every_form(found: dict[str, Any], code: int, verdict: str) -> None:
    made = Matrix(found)
    assert (made.exit, made.verdict) == (code, verdict)
    assert verdict in rendered(made, "text").rstrip().splitlines()[-1]
    assert verdict in rendered(made, "markdown")
    assert f"{verdict[0].upper()}{verdict[1:]}" in rendered(made, "html")


# ---- answers

WORKS = answer("0.10.0", "0.10.2")
BREAKS = answer("0.10.0", "0.10.2", "breaks", None)
UNKNOWN = answer("0.10.0", "0.10.2", "unknown", None)
CONDITIONAL = answer("0.10.0", "0.10.2", "conditional", "offline")


def alone(given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A run of one pair, with its answer."""
    return matrix(CELLS[:1], skipped=(), answers=(given,), **more)


@pytest.mark.parametrize(
    ("given", "tone", "mark", "code"),
    [(WORKS, "pass", "✅", 0), (CONDITIONAL, "warn", "⚠️", 1), (BREAKS, "fail", "❌", 1), (UNKNOWN, "skip", "❔", 7)],
    ids=lambda value: value["result"] if isinstance(value, dict) else None,
)
def test_each_form_begins_with_the_answer_and_only_what_works_is_green(
    given: dict[str, Any], tone: str, mark: str, code: int
) -> None:
    """The cell is as predicted in each: that is small print, and the exit code unless the answer is required."""
    found = Matrix(alone(given))
    assert found.exit == 0 and Matrix(alone(given, require="works")).exit == code
    text, page, summary = (rendered(found, form) for form in ("text", "html", "markdown"))
    assert text.startswith(given["text"])
    assert summary.startswith(f"## {mark} ") and given["text"].partition(":")[2] in summary.splitlines()[0]
    assert re.findall(r'class="outcome (\w+)"', page) == [tone]
    assert page.index(given["text"]) < page.index("Every cell is as predicted")
    assert re.search(r'<p class="small">[^<]*Every cell is as predicted', page)
    assert ("not that an upgrade works" in text) == (given is not WORKS)
    for line in given["configuration"]:
        assert line in text and line in page and line in summary
    assert ("upgrade.from=" in text) == bool(given["configuration"])


def test_few_pairs_are_one_table_and_have_an_answer_each() -> None:
    given = matrix(
        (CELLS[0], CELLS[2], CELLS[10]), skipped=SKIPPED, answers=(WORKS, answer("2.0", "2.1", "breaks", None))
    )
    page = Reader(rendered(Matrix(given), "html"))
    tables = [table for table in page.tables if table[0][0] == "scenario"]
    assert tables == [
        [
            ["scenario", "0.10.0 to 0.10.2", "0.10.2 to 2.1", "2.0 to 2.1"],
            ["joinOne new member joins.", "breaks 1", "not run", "ok 1"],
            ["bounceOne after the other.", "not run", "not run", "breaks 2≠"],
            ["two-bounceTwice, with upgrade.from.", "not run", "not run", "not run"],
        ]
    ]
    text = rendered(Matrix(given), "text")
    rows = [line.split("  ") for line in text.splitlines() if line.startswith(("  join ", "  bounce "))]
    assert [[each.strip() for each in row if each] for row in rows] == [
        ["join", "breaks 1", "not run", "ok 1"], ["bounce", "not run", "not run", "breaks 2!"],
    ]  # fmt: skip
    assert text.startswith("2 upgrades: 1 work, 1 break\n") and "2.0 to 2.1: it breaks." in text


def test_a_scenario_that_a_pair_does_not_have_is_not_called_not_run() -> None:
    found = Matrix(matrix((cell("2.1", "2.0"), cell("2.0", "2.1", "bounce")), skipped=()))
    assert found.in_words("bounce", "2.1", "2.0") == "-" and found.in_words("join", "2.0", "2.1") == "not run"


def test_many_answers_are_a_table_whose_cells_lead_to_them() -> None:
    text = rendered(Matrix(matrix()), "text")
    assert text.startswith("4 upgrades: 1 work, 1 work under a condition, 1 break, 1 are undecided\n")
    rows = [line.split() for line in text.partition("\n\n")[0].splitlines()]
    assert ["0.10.0", "2", ".", "X"] in rows and ["2.0", ".", "c", "?"] in rows
    page = Reader(rendered(Matrix(matrix()), "html"))
    assert {"#answer-0.10.0-2.4", "#answer-2.0-2.1"} <= {*page.links}
    assert {"answer-0.10.0-2.4", "answer-2.0-2.1"} <= {*page.ids}


def test_a_file_without_answers_works_nowhere() -> None:
    given = alone(WORKS)
    del given["answers"]
    found = Matrix(given)
    assert (found.result, found.exit) == ("unknown", 0)
    assert Matrix(given | {"require": "works"}).exit == 7
    assert 'class="outcome skip"' in rendered(found, "html")


def test_no_form_has_raw_backticks(made: Path) -> None:
    assert "`" not in rendered(Matrix(alone(WORKS)), "text") + rendered(Matrix(matrix()), "text")
    assert "`" not in rendered(Matrix(alone(WORKS)), "html") + rendered(Matrix(matrix()), "html")
    assert not any("`" in about for about in ABOUT.values())


# ---- Markdown


def test_markdown_has_the_table_of_the_kip_and_takes_nothing_from_texts(made: Path) -> None:
    text = (made / "matrix.md").read_text("utf-8")
    shown = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    rows = re.findall(r"<tr>(.*?)</tr>", shown, re.DOTALL)
    cells = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]
    assert cells[0][1:] == ["0.10.2", "1.2", "post-1.2"]
    assert cells[1:3] == [["0.10.0", "✅ ok 1 ★", "✅ ok 1", ""], ["0.10.2", "", "✅ ok 1", ""]]
    assert "<a " not in shown and "<script" not in text and "@" not in text


# ---- the page


class Reader(HTMLParser):
    """Cells of tables, links, ids, and elements that are left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [found["href"] or ""] if tag == "a" else []
        self.ids += [found["id"] or ""] if "id" in found else []
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in ("meta", "link", "br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


def test_every_cell_of_the_page_leads_to_its_history(made: Path) -> None:
    page = Reader((made / "matrix.html").read_text("utf-8"))
    assert not page.open and len({*page.ids}) == len(page.ids)
    assert {f"histories/{each['case']}.html" for each in CELLS} <= {*page.links}
    assert all(link.removeprefix("#") in page.ids for link in page.links if link.startswith("#"))
    assert (made / "histories" / "bounce-2x0-2x1.html").is_file()


def test_the_page_says_in_words_and_signs_what_its_colours_say(made: Path) -> None:
    tables = Reader((made / "matrix.html").read_text("utf-8")).tables
    kip, join, bounce, two = tables[2:6]
    assert kip[1:] == [
        ["0.10.0knows 1", "ok 1★two-bounce", "ok 1two-bounce", ""],
        ["0.10.2knows 2", "", "ok 1☆two-bounce", ""],
        ["1.2 (2.0)knows 3", "", "", "ok 2bounce"],
    ]
    assert join[1:3] == [["0.10.0knows 1", "breaks 1", "breaks 1", "", "", ""],
                         ["0.10.2knows 2", "", "", "skipped", "", ""]]  # fmt: skip
    assert bounce[1] == ["2.0knows 3", "breaks 2≠", "ok 2"]
    assert two[1] == ["0.10.0knows 1", "ok 1★", "ok 1", "refused"]
    assert join[3][4] == "ok 2≈"


def test_what_the_text_of_the_kip_foretells_is_counted_apart() -> None:
    tables = Reader(rendered(Matrix(matrix()), "html")).tables
    foretold = next(table for table in tables if table[0][0] == "the text of the KIP")
    assert foretold[1:] == [
        ["works", "6", "1", "–"], ["breaks", "–", "2", "–"], ["is refused", "–", "–", "1"],
        ["makes no prediction", "1", "–", "–"],
    ]  # fmt: skip


def test_a_history_marks_the_guilty_step_what_shows_it_and_the_bytes() -> None:
    text = matrix_history.html(history(), matrix()["requirements"])
    page = Reader(text)
    assert text.count(" ◀ here") == 3  # in the script, at the step, at what shows it
    assert text.count('<li class="sent guilty">') == 1
    assert [row[0] for table in page.tables for row in table if len(row) == 5] == ["", "▶", ""]
    assert "   4  latestSupportedVersion = 4</pre>" in text  # those of which nothing is said
    assert text.count('<details class="more" open="open">') == 1  # the bytes that are wrong
    assert "kipcheck replay kipcheck-matrix/histories/bounce-2x0-2x1.json" in text
    assert {"../matrix.html", "bounce-2x0-2x1.json", "#step-4"} <= {*page.links}


def test_a_history_tells_where_versions_change_and_leaves_out_steps_in_which_nothing_is_seen() -> None:
    seen_in_order = (
        ("formed", {"a": 3, "b": 4}),
        ("sent", {"b": 3}),
        ("applied", {"b": 3}),
        ("rests", {"a": 3, "b": 3}),
    )
    steps = [{"step": "start a 2.0.1", "rounds": 0, "seen": []},
             {"step": "settle", "rounds": 1, "seen": [seen(what, what, used=used) for what, used in seen_in_order]},
             {"step": "lose b", "rounds": 0, "seen": []}]  # fmt: skip
    text = matrix_history.html(history(steps=steps), {})
    assert re.findall(r"(\w): (\d) → (\d)", text) == [("b", "4", "3")]
    assert re.search(r'<li class="applied"><p>applied <span class="tags">', text)
    first, *_ = re.findall(r"<h3>(.*?)</h3>", text)
    assert first.count('id="step-') == 2
    assert text.count("Nothing.") == 1  # of the last step: there is no later one to stand before


def test_where_nothing_is_marked_in_a_guilty_step_a_death_in_it_is() -> None:
    reported = history()
    for each in reported["steps"][3]["seen"]:
        each.pop("guilty", None)
    assert '<li class="died guilty">' in matrix_history.html(reported, {})


def test_a_history_in_which_all_is_well_or_refused_has_a_page() -> None:
    steps = history()["steps"][:3]
    well = matrix_history.html(history(verdict="ok", broken=[], requirement=None, reason=None, steps=steps), {})
    assert "What is broken" not in well and "◀" not in well and "It works." in well
    refused = history(verdict="refused", broken=[], requirement="268-39", reason="it says so", rounds=0, steps=[])
    text = matrix_history.html(refused, matrix()["requirements"])
    assert "The requirement" in text and "It is a configuration error." in text and "Nothing was run." in text


# ---- the command


def test_report_renders_a_matrix_again_and_ends_as_it_did(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path, matrix(), history())
    assert main(["report", str(tmp_path)]) == 1
    assert capsys.readouterr().out == render(path)
    assert main(["report", str(path), "--form", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == matrix()
    assert main(["report", str(tmp_path), "--form", "all"]) == 1
    assert {*os.listdir(tmp_path)} == {LIST, "matrix.json", "matrix.html", "matrix.md", "histories"}
    assert {*os.listdir(tmp_path / "histories")} == {"bounce-2x0-2x1.json", "bounce-2x0-2x1.html"}
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"predicted; {tmp_path / 'matrix.html'}")


def test_report_takes_what_was_written_last(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path, matrix(CELLS[:3], skipped=()))
    ledger = write_ledger(tmp_path, *everything())
    os.utime(path, (1, 1))
    assert main(["report", str(tmp_path)]) == 1
    assert "kipcheck show 0123456789ab" in capsys.readouterr().out
    os.utime(ledger, (0, 0))
    assert main(["report", str(tmp_path)]) == 0
    assert "every cell is as predicted" in capsys.readouterr().out


def test_what_is_no_matrix_and_a_form_that_it_lacks_are_wrong_usage(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path, matrix())
    assert main(["report", str(tmp_path), "--form", "junit"]) == 2
    assert f"it has {', '.join(FORMS)}" in capsys.readouterr().err
    for text in (
        "{", "[]", '{"cells": 3}', '{"cells": [{}], "releases": [], "skipped": []}',
        '{"cells": [], "releases": [], "skipped": [], "answers": [{"result": "safe"}]}',
    ):  # fmt: skip
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match="is not a result of kipcheck matrix"):
            read(path)
        assert main(["report", str(path)]) == 2
        assert str(path) in capsys.readouterr().err


# ---- as a browser shows it


@pytest.fixture(scope="module")
def shown() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.mark.integration
@pytest.mark.skipif(installed() is None, reason=f"no browser on the path: {', '.join(NAMES)}")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["matrix.html", "histories/bounce-2x0-2x1.html", "histories/bounce-2x0-future.html"])
def test_a_page_is_as_wide_as_a_phone_asks_for_nothing_and_can_be_read(
    shown: Browser, made: Path, name: str, dark: bool
) -> None:
    shown.load(made / name, width=375, height=812, dark=dark)
    assert shown.requests == [(made / name).as_uri()] and shown.complaints == []
    shown.asked("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert shown.asked("document.documentElement.scrollWidth") == 375
    assert shown.asked(CONTRAST) == []
    assert shown.asked("[...document.querySelectorAll('.scroll')].filter(e => e.tabIndex !== 0).length") == 0
    assert shown.asked("document.images.length + document.scripts.length") == 0
