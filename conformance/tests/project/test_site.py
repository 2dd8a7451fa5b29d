"""The site of the pages: a strict build succeeds, fails at a link that leads nowhere, needs no other host, and works in
a browser.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.tests.support.browser import NAMES, Browser, browser, installed

ROOT: Final = Path(__file__).resolve().parents[3]
DOCS: Final = ROOT / "conformance" / "docs"
PROJECT: Final = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
LOADED: Final = re.compile(
    r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link[^>]* rel="(?:stylesheet|icon|preconnect)"[^>]*href="([^"]+)"'
)
LINK: Final = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")


def test_every_link_to_a_file_leads_to_one() -> None:
    pages = [*DOCS.rglob("*.md"), *(ROOT / name for name in PROJECT)]
    links = [(page, link) for page in pages for link in LINK.findall(page.read_text("utf-8"))]
    assert len(links) > 200
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    if find_spec("mkdocs") is None:
        raise Unavailable("mkdocs is not installed (the extra docs)")
    config = root / "conformance" / "docs" / "site" / "mkdocs.yml"
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", site],
        capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site that was built strictly."""
    place = tmp_path_factory.mktemp("site")
    done = build(ROOT, place)
    assert done.returncode == 0, done.stderr
    return place


@pytest.mark.integration
def test_the_site_builds_and_has_a_search_and_needs_no_other_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    for page in pages:
        addresses = ["".join(each) for each in LOADED.findall(page.read_text("utf-8"))]
        assert [each for each in addresses if re.match(r"(?:https?:)?//", each)] == [], page
        assert "<th></th>" not in page.read_text("utf-8"), f"{page} has a head cell without a name"
    found = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    assert {each["location"] for each in found} >= {"glossary.html", "project/contributing.html"}
    for old, new in (("errands/five-minutes", "../guides/five-minutes"), ("power", "internals/power")):
        assert f'url={new}.html"' in (site / f"{old}.html").read_text("utf-8"), "a page that moved is redirected"
    findings = (site / "findings" / "index.html").read_text("utf-8")
    for client in ("kafka-python", "aiokafka", "franz-go", "platformatic-kafka"):
        assert re.search(rf">\s*{client}\s*<", findings), f"the navigation has no findings of {client}"


@pytest.mark.integration
def test_a_link_or_an_anchor_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    shutil.copytree(DOCS, root / "conformance" / "docs")
    for name in PROJECT:
        shutil.copy(ROOT / name, root)
    (root / "reports").symlink_to(ROOT / "reports")
    for each in (ROOT / "conformance").iterdir():
        if each.name != "docs":
            (root / "conformance" / each.name).symlink_to(each)
    broken = ("no-page.md", "index.md#no-anchor", "../../README.md#no-heading", "../core/no-file.json")
    with (root / "conformance" / "docs" / "layouts.md").open("a", encoding="utf-8") as page:
        page.write("\n".join(["", *(f"[link]({link})" for link in broken), ""]))
    with (root / "CONTRIBUTING.md").open("a", encoding="utf-8") as page:
        page.write("\n[link](conformance/docs/no-such-page.md)\n")
    done = build(root, tmp_path / "site")
    assert done.returncode == 1
    for text in ("no-page.md", "#no-anchor", "#no-heading", "no-file.json", "no-such-page.md"):
        assert text in done.stderr, done.stderr
    assert done.stderr.count("WARNING") == len(broken) + 1


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of these files on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def awaits(page: Browser, expression: str) -> bool:
    """Whether the expression becomes true within some seconds."""
    end = time.monotonic() + 20
    while not (found := page.asked(expression)) and time.monotonic() < end:
        time.sleep(0.1)
    return bool(found)


SEARCH: Final = """
(() => {
    const field = document.querySelector("input.md-search__input");
    document.querySelector("#__search").checked = true;
    field.focus();
    field.value = "placeholder";
    field.dispatchEvent(new Event("input", {bubbles: true}));
    field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
    return document.querySelectorAll(".md-search-result__link").length > 0;
})()
"""


@pytest.mark.integration
@pytest.mark.skipif(installed() is None, reason=f"no browser on the path: {', '.join(NAMES)}")
def test_pages_fit_a_desktop_and_a_phone_and_can_be_searched(site: Path) -> None:
    shown = "index", "guides/five-minutes", "targets", "coordinators", "findings/index", "project/changelog"
    with served(site) as address, browser() as page:
        for width in (1400, 400):
            for name in shown:
                page.load(f"{address}/{name}.html", width)
                assert page.asked("document.documentElement.scrollWidth <= window.innerWidth"), (name, width)
                assert page.asked("document.querySelector('h1').innerText").strip(), name
                assert [each for each in page.requests if not each.startswith((address, "data:"))] == []
                assert page.complaints == [], name
                assert page.asked("document.querySelector('.md-search').ariaLabel") == "Search", name
        page.load(f"{address}/errands/five-minutes.html")
        assert awaits(page, "location.pathname == '/guides/five-minutes.html'"), "a page that moved is redirected"
        page.load(f"{address}/index.html", 1400)
        assert awaits(page, SEARCH), "the search finds a word"
