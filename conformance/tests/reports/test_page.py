"""The page, as a browser shows it: without a network, at the width of a phone, in the dark, by keyboard."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kipcheck import reports
from kipcheck.conformance.tests.support.browser import NAMES, Browser, browser, installed
from kipcheck.conformance.tests.support.ledgers import FAILURE, SEQUENCE, everything, write

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(installed() is None, reason=f"no browser on the path: {', '.join(NAMES)}"),
]
IDS = ("0123456789ab", "ba9876543210", "111111111111", "222222222222", "333333333333", "444444444444")
WIDE = {"kind": "bytes", "rows": [{"offset": 0, "bytes": "ab" * 3000, "path": "a" * 90, "type": "t" * 40,
                                   "value": "v" * 5000, "guilty": True}]}  # fmt: skip
CONTRAST = """(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const f = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const poor = [];
  for (const e of document.querySelectorAll('body *')) {
    const text = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (e.closest('svg') || !e.checkVisibility() || !text) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 30));
  }
  return poor; })()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    hostile: dict[str, Any] = {
        **FAILURE, "id": "555555555555", "why": "<script>document.title = 'broken'</script>" + "x" * 300,
        "observed": "<img src='https://tracker.example/x.png'>" * 20, "exhibits": [WIDE, SEQUENCE],
        "steps": [{"verb": "decode", "message": "M", "version": 1, "hex": "00" * 2000}],
    }  # fmt: skip
    reports.write(write(folder, *everything(), ("failure", hostile)))
    return folder / "report.html"


@pytest.fixture(scope="module")
def shown() -> Iterator[Browser]:
    with browser() as found:
        yield found


def test_it_asks_for_nothing_but_itself_and_the_console_is_empty(shown: Browser, page: Path) -> None:
    shown.load(page)
    assert shown.requests == [page.as_uri()]
    assert shown.complaints == []
    assert shown.asked("document.title") == "kipcheck: somebody 1.0, another 2.0: exit 1"
    assert shown.asked("document.images.length + document.scripts.length") == 0
    assert shown.asked("getComputedStyle(document.body).fontFamily").startswith("system-ui")  # the style is allowed


def test_what_the_page_may_not_do_is_seen(shown: Browser, page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "report.html"
    text = page.read_text("utf-8").replace(
        "</h1>", "</h1><img src='https://tracker.example/x.png'><script>1</script>", 1
    )
    broken.write_text(text, "utf-8")
    shown.load(broken)
    assert shown.complaints


def test_every_failure_has_an_anchor_that_opens_it(shown: Browser, page: Path) -> None:
    shown.load(page)
    for id in (*IDS, "555555555555"):
        assert shown.asked(f"document.getElementById({id!r}).closest('details') !== null"), id
    assert not shown.asked("document.getElementById('333333333333').closest('details').open")
    shown.asked("location.hash = '333333333333'")
    assert shown.asked("document.getElementById('333333333333').closest('details').open")


def test_every_link_within_the_page_leads_somewhere_and_no_id_is_there_twice(shown: Browser, page: Path) -> None:
    shown.load(page)
    hashes = "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1))"
    assert shown.asked(f"{hashes}.filter(id => !document.getElementById(id))") == []
    ids = "(ids => ids.filter((id, n) => ids.indexOf(id) !== n))([...document.querySelectorAll('[id]')].map(e => e.id))"
    assert shown.asked(ids) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [375, 768, 1440])
def test_it_is_as_wide_as_the_screen_and_can_be_read(shown: Browser, page: Path, width: int, dark: bool) -> None:
    shown.load(page, width=width, height=812, dark=dark)
    shown.asked("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert width - 20 < shown.asked("document.documentElement.scrollWidth") <= width
    assert shown.asked(CONTRAST) == []
    lightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    assert (shown.asked(lightness) < 60) == dark


def test_the_first_screen_says_what_is_wrong_how_bad_and_what_to_do(shown: Browser, page: Path) -> None:
    for width, height in ((1440, 900), (768, 1024), (375, 2 * 812)):
        shown.load(page, width=width, height=height)
        seen = (
            "(e => [...document.querySelectorAll(e)].filter(x => x.getBoundingClientRect().bottom <= innerHeight)"
            ".map(x => x.textContent).join(' '))('.outcome, .cause > summary')"
        )
        text = shown.asked(seen)
        for part in (
            "Exit 1",
            "to do",
            "1 stuck group",
            "An assignment is lost",
            "Read an error code as a signed number.",
        ):
            assert part in text, (width, part)


def test_filters_leave_only_what_is_chosen(shown: Browser, page: Path) -> None:
    shown.load(page)
    left = "[...document.querySelectorAll('.cause')].filter(e => e.checkVisibility()).length"
    every = shown.asked("document.querySelectorAll('.cause').length")
    assert shown.asked(left) == every > 3
    for name in ("result", "effect", "part", "target"):
        choice = f"[...document.querySelectorAll('select')].find(e => e.parentNode.textContent.startsWith('{name}'))"
        options = shown.asked(f"{choice}.options.length")
        counts = [shown.asked(f"({choice}.selectedIndex = {n}, {left})") for n in range(options)]
        assert counts[0] == every and all(0 < each < every for each in counts[1:]), (name, counts)
        shown.asked(f"{choice}.selectedIndex = 0")


def test_arrows_lead_from_the_sender_to_the_receiver(shown: Browser, page: Path) -> None:
    shown.load(page, width=1440)
    shown.asked("document.querySelectorAll('details').forEach(d => d.open = true)")
    middle = "(r => Math.round(r.left + r.width / 2))(e.getBoundingClientRect())"
    heads = f"Object.fromEntries([...q.querySelectorAll('.actors span')].map(e => [e.textContent, {middle}]))"
    ends = "(r => [Math.round(r.left), Math.round(r.right)])(e.getBoundingClientRect())"
    arrows = f"[...q.querySelectorAll('.message:not(.alone)')].map(e => [e.className, {ends}])"
    at, drawn = shown.asked(f"(q => [{heads}, {arrows}])(document.querySelector('.sequence'))")
    places = [at["operator"], at["controller"], at["broker 1"]]
    assert places == sorted(places)
    wanted = [("right", 0, 1), ("left", 0, 1), ("left", 1, 2), ("right", 1, 2)]
    assert [kind.split()[-3] for kind, _ in drawn] == [kind for kind, _, _ in wanted]
    for (_, (left, right)), (_, low, high) in zip(drawn, wanted, strict=True):
        assert abs(left - places[low]) <= 2 and abs(right - places[high]) <= 2


def test_results_read_without_colours(shown: Browser, page: Path) -> None:
    shown.load(page)
    words = set(shown.asked("[...document.querySelectorAll('#checks .word')].map(e => e.textContent)"))
    assert words == {"PASS", "FAIL", "WARN", "KNOWN", "FLAKY", "UNKNOWN", "NOTE", "SKIP"}


def test_what_scrolls_and_what_opens_is_reached_by_keyboard(shown: Browser, page: Path) -> None:
    shown.load(page, width=375, height=812)
    unreached = "[...document.querySelectorAll('.scroll')].filter(e => e.tabIndex !== 0).length"
    assert shown.asked(unreached) == 0
    shown.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
    assert shown.asked("document.activeElement.getAttribute('href')") == "#causes"


def test_on_paper_everything_is_open(shown: Browser, page: Path) -> None:
    shown.load(page)
    shown.call("Emulation.setEmulatedMedia", media="print")
    assert not shown.asked("document.getElementById('333333333333').closest('details').open")
    assert shown.asked("document.getElementById('333333333333').getBoundingClientRect().height") > 100
    assert shown.asked("getComputedStyle(document.querySelector('nav')).display") == "none"
    shown.call("Emulation.setEmulatedMedia", media="")


STRUCTURE = """(() => {
  document.querySelectorAll('details').forEach(each => each.open = true);
  const level = e => Number(e.tagName[1]), wrong = [];
  let before = 0;
  for (const e of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    if (level(e) > before + 1) wrong.push(`heading ${e.textContent} of level ${level(e)} after ${before}`);
    before = level(e); }
  for (const e of document.querySelectorAll('th')) if (!e.textContent.trim()) wrong.push('a header cell without text');
  const names = [...document.querySelectorAll('[role=region]')].map(e => e.getAttribute('aria-label'));
  return [...wrong, ...names.filter((name, at) => names.indexOf(name) !== at)]; })()"""
"""What axe-core complains of as heading-order, empty-table-header and landmark-unique, once all is open."""


def test_a_reader_of_the_screen_finds_headings_and_tables_in_order(shown: Browser, page: Path, tmp_path: Path) -> None:
    shown.load(page)
    assert shown.asked(STRUCTURE) == []
    bad = tmp_path / "bad.html"
    bad.write_text("<h1>A</h1><h3>B</h3><table><tr><th></th></tr></table>" + "<p role=region aria-label=C></p>" * 2)
    shown.load(bad)
    assert len(shown.asked(STRUCTURE)) == 3
