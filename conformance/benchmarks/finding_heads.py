"""Derives what the head of a finding and the index of findings say of its invariants.

The strongest grade of the invariants in the row ``found by`` is that of the page; the index has a row for each page.
``python -m kipcheck.conformance.benchmarks.pages`` writes both.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.protocols.invariants import all_invariants

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "findings"
INDEX: Final = "index.md"
BEGIN, END = "<!-- findings -->\n", "<!-- end of findings -->\n"
HEAD: Final = "| finding | release | grade | requirement | status |\n|---|---|---|---|---|"
ID: Final = re.compile(r"\b(?:grp|\d{3,4})-\d{2,3}\b")
STRONGEST: Final = (Grade.MUST, Grade.SHOULD, Grade.INFO)


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    for path in sorted(FOLDER.glob("*.md")):
        if path.name != INDEX:
            yield path.name, path.read_text("utf-8")


def row(page: str, name: str) -> str:
    """Errors: ValueError for a page without this row in its head."""
    found = re.search(rf"^\| {name} \| (.*) \|$", page, re.MULTILINE)
    if found is None:
        raise ValueError(f"the head of {page.splitlines()[0]!r} lacks the row {name}")
    return found[1]


def grade(page: str) -> str:
    """The strongest grade of the invariants that the page names."""
    named = {*re.findall(r"`([\w/-]+)`", row(page, "found by"))}
    grades = {each.grade for role in Role for each in all_invariants(role) if each.id in named}
    return next(str(each.value) for each in STRONGEST if each in grades)


def derived(page: str) -> str:
    """The text of a page with its grade."""
    return re.sub(r"^\| grade \| .* \|$", f"| grade | {grade(page)} |", page, count=1, flags=re.MULTILINE)


def index() -> Iterator[str]:
    """The table of all pages, by client."""
    yield from HEAD.splitlines()
    found = []
    for name, page in pages():
        target = row(page, "target").removeprefix("client:")
        requirements = " and ".join(dict.fromkeys(ID.findall(row(page, "requirement"))))
        title = page.splitlines()[0].removeprefix("# ")
        cells = f"[{title}]({name})", target, grade(page), requirements, row(page, "status")
        found.append((target.partition(" ")[0], name, f"| {' | '.join(cells)} |"))
    yield from (line for _, _, line in sorted(found))
