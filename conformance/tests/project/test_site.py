"""The site of the pages: a strict build succeeds, fails at a link that leads nowhere, and needs no other host."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.targets.protocol import Unavailable

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


@pytest.mark.integration
def test_the_site_builds_and_has_a_search_and_needs_no_other_host(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    for page in pages:
        addresses = ["".join(each) for each in LOADED.findall(page.read_text("utf-8"))]
        assert [each for each in addresses if re.match(r"(?:https?:)?//", each)] == [], page
    found = json.loads((tmp_path / "search" / "search_index.json").read_text("utf-8"))["docs"]
    assert {each["location"] for each in found} >= {"glossary.html", "project/contributing.html"}
    for old, new in (("errands/five-minutes", "../guides/five-minutes"), ("power", "internals/power")):
        assert f'url={new}.html"' in (tmp_path / f"{old}.html").read_text("utf-8"), "a page that moved is redirected"
    findings = (tmp_path / "findings" / "index.html").read_text("utf-8")
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
