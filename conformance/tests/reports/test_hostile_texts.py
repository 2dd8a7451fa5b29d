"""Whatever a target says of itself, in names, errors and bytes, stays text in every form of a report."""

import json
import re
import tempfile
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import example, given, settings, strategies as st
from markdown_it import MarkdownIt

from kipcheck import reports
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.untrusted_text import UNSEEN, clean
from kipcheck.conformance.tests.support.ledgers import FOOTER, HEADER, TARGETS, everything, write
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.reports.markup import escaped, link, tag

TRICKS = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "]]>",
    "--><!--",
    "</style>",
    "&lt;&#0;&bogus;",
    "\x00\x1b[31mred\x1b[0m\x07\x08",
    "\ud800 alone \udfff",
    "\u202egnp.exe",
    "\ufffe\uffff",
    "\U0010ffff",
    "a\r\nb\u2028c",
    "`` ` ```",
    "| a | b |\n|---|---|",
    "[x](javascript:alert(1))",
    "![x](https://tracker.example/x.png)",
    "@everyone",
    "https://evil.example/ www.evil.example",
    "</details></summary>",
    "# head\n\n- item\n\n```text\nfence",
    "\\\\|\\`",
    "'\"",
    "::error file=x::y",
    "{{constructor}}",
    "%s %n {0}",
    "\n::stop-commands::x\n##[error]y",
    "",
)
"""What breaks out of something somewhere."""
hostile = st.one_of(
    st.sampled_from(TRICKS),
    st.text(st.characters(), max_size=12),
    st.lists(st.sampled_from(TRICKS), min_size=2, max_size=3).map("".join),
)
KEPT = {"type", "kind", "grade", "result", "id", "file", "severity", "failures", "least"}
"""What is ours, whatever a target says. ``check`` and ``invariant`` are too, or a profile's."""
KEPT_VALUES = re.compile(
    r"PASS|FAIL|WARN|NOTE|SKIP|UNKNOWN|MUST|SHOULD|INFO|[\d, -]*|wire/.*|assignment/.*|one-owner|kipcheck replay.*"
)


def spoiled(value: Any, word: str, key: str = "") -> Any:
    """The same with ``word`` put after every text that could be a target's."""
    if isinstance(value, dict):
        names = word if key in ("where", "cells") else ""
        return {name + names: spoiled(each, word, name) for name, each in value.items()}
    if isinstance(value, list):
        return [spoiled(each, word, key) for each in value]
    if isinstance(value, str) and key not in KEPT and not KEPT_VALUES.fullmatch(value):
        return value + word
    return value


def reported(word: str, folder: str) -> Path:
    """A ledger in which every text of targets ends in the word."""
    lines = [(kind, spoiled(line, word)) for kind, line in everything()]
    decodes = HEADER["invariants"]["wire/decodes"]
    besides = {name + word: each for name, each in decodes["besides"].items()}
    invariants = {**HEADER["invariants"], "wire/decodes": {**decodes, "besides": besides}}
    return write(Path(folder), *lines, footer=spoiled(FOOTER, word), header={**HEADER, "invariants": invariants})


@cache
def rendered(word: str, form: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        text = reports.render(reported(word, folder), form)
    text.encode()  # no half of a surrogate pair is left
    return text


def ours(test: Callable[..., None]) -> Any:
    """With some of each kind, and whatever else there is."""
    for word in TRICKS:
        test = example(word=word)(test)
    return given(word=hostile)(settings(max_examples=8, deadline=None)(test))


# ---- HTML


class Shape(HTMLParser):
    """The elements of a page in order, with the names of their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[object] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.elements.append("comment")


def without_wrapping(elements: list[object]) -> list[object]:
    """A diagram has as many lines as its texts are long, and a name goes on where a word in it ends."""
    return [each for each in elements if (each[0] if isinstance(each, tuple) else each) not in ("text", "wbr")]


@ours
@pytest.mark.integration
def test_a_page_has_the_same_elements_whatever_a_target_says(word: str) -> None:
    page = rendered(word, "html")
    assert without_wrapping(Shape(page).elements) == without_wrapping(Shape(rendered("x", "html")).elements)
    assert not UNSEEN.search(page)
    assert clean(word).strip() in "".join(Shape(page).text)


def test_a_page_that_did_not_escape_would_be_seen() -> None:
    page = rendered("x", "html")
    assert Shape(page.replace("errorCode is read", "errorCode <b>is read</b>")).elements != Shape(page).elements


def test_only_what_leads_to_a_page_is_a_link() -> None:
    assert link("https://a.example/?x=1&y=\"'", "a") == '<a href="https://a.example/?x=1&amp;y=&quot;&#39;">a</a>'
    for address in ("javascript:alert(1)", "data:text/html,x", "//a.example", "nobody knows"):
        assert link(address, "<a>") == "&lt;a&gt;"


def test_text_is_escaped_once_and_elements_are_not() -> None:
    assert (
        tag("p", "a & b", tag("br"), ["<", None], class_="x", hidden=True)
        == '<p class="x" hidden="hidden">a &amp; b<br>&lt;</p>'
    )
    assert escaped("\x1b\ud800\u202e\U0001fffe") == "\\x1b\\ud800\\u202e\\U0001fffe"


# ---- XML


@ours
def test_junit_stays_what_importers_take(word: str) -> None:
    found = ElementTree.fromstring(rendered(word, "junit"))
    plain = ElementTree.fromstring(rendered("x", "junit"))
    assert [each.tag for each in found.iter()] == [each.tag for each in plain.iter()]
    assert clean(word).strip() in "".join(found.itertext())


def test_junit_of_hostile_names_keeps_its_schema(tmp_path: Path) -> None:
    checker = xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")
    text = rendered("".join(TRICKS) + " \n\t ", "junit")
    assert [f"{error.path}: {error.reason}" for error in checker.iter_errors(ElementTree.fromstring(text))] == []


# ---- JSON, SARIF


@ours
def test_json_gives_every_text_back(word: str) -> None:
    found = json.loads(rendered(word, "json"))
    shown = re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", word)
    assert f"t-1 has two owners{shown}" in {each["why"] for each in found["failures"]}
    assert found["targets"][0]["target"] == f"somebody{shown}"


@ours
def test_sarif_holds_no_more_and_no_less(word: str) -> None:
    found, plain = json.loads(rendered(word, "sarif")), json.loads(rendered("x", "sarif"))
    assert _shape(found) == _shape(plain)
    assert clean(word) in found["runs"][0]["results"][0]["message"]["text"]
    for each in found["runs"][0]["results"]:
        assert re.fullmatch(
            r"failures/[0-9a-f]{12}\.json|ledger\.jsonl",
            each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        )


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in value.items()}
    return [_shape(each) for each in value] if isinstance(value, list) else type(value)


# ---- Markdown


def tokens(text: str) -> list[str]:
    """What a reader of Markdown makes of it, block by block; code is one whatever stands in it."""
    found = []
    for each in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        found.append(each.type)
        found += [f"  {child.type}" for child in each.children or () if child.type not in ("text", "text_special")]
        if each.type == "html_block":
            found += re.findall("<[^>]*>", each.content)
    return found


@ours
def test_a_summary_has_the_same_parts_whatever_a_target_says(word: str) -> None:
    assert tokens(rendered(word, "markdown")) == tokens(rendered("x", "markdown"))


# ---- text, and the ledger itself


@ours
def test_no_text_steers_the_terminal_or_the_job(word: str) -> None:
    text = rendered(word, "text")
    assert not UNSEEN.search(text)
    assert not any(line.lstrip().startswith("::") or "##[" in line for line in text.splitlines())  # commands to a CI


@ours
def test_the_ledger_gives_back_what_was_written(word: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = reported(word, folder)
        path.read_bytes().decode()
        found = read(path)
    assert found.targets[0].target == TARGETS[0]["target"] + word
    assert found.failures[0].why == "t-1 has two owners" + word


@pytest.mark.parametrize("form", some_by_default(reports.FORMS, 3))
def test_a_whole_stream_of_garbage_is_rendered(form: str) -> None:
    assert rendered("".join(map(chr, range(0x250))) * 3, form)
