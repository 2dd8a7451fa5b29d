"""Lists the small changes that a person could make to a file of a client's source, and applies those of a mistake."""

import ast
import re
from collections.abc import Iterator, Sequence

from kipcheck.conformance.recall import go_changes, python_changes
from kipcheck.conformance.recall.bugs import InvalidEntry
from kipcheck.conformance.recall.change import MISTAKE, Change, changed, sample
from kipcheck.conformance.recall.mistakes import Edit

__all__ = ["Change", "changes_in", "of_mistake", "sample"]


def changes_in(path: str, text: str, lines: frozenset[int] | None) -> Sequence[Change]:
    """All random changes to a file in Python or Go, in the order of their places; no two give the same text. Those of
    Python compile. ``lines``: only those of statements that have one of these lines.

    Errors: SyntaxError; ``Unavailable`` for a file in Go, without Go.
    """
    found: list[Change] = []
    places: set[tuple[int, int, str]] = set()
    sites = go_changes.sites if path.endswith(".go") else python_changes.sites
    for site in sites(text):
        if lines is not None and lines.isdisjoint(site.lines):
            continue
        change = changed(path, site.kind, site.inside, text, site.start, site.end, site.becomes)
        if (change.start < change.end or change.becomes) and change.place not in places:
            places.add(change.place)
            found.append(change)
    return found


def of_mistake(edit: Edit, text: str) -> Change:
    """Errors: ``InvalidEntry`` where the line is not found once, or the text is no longer Python."""
    about = f"{edit.client} {edit.release}, {edit.file}"
    if edit.inside:
        spans = list(_functions(edit, text))
        if not spans:
            raise InvalidEntry(f"{about}: there is no function {edit.inside}")
    else:
        spans = [(0, len(text))]
    where = edit.inside or "the file"
    found = [(start, at) for start, end in spans for at in _occurrences(text, edit.line, start, end)]
    if len(found) != 1:
        raise InvalidEntry(f"{about}: {edit.line!r} occurs {len(found)} times in {where}, not once")
    ((_, at),) = found
    if edit.line == edit.becomes:
        raise InvalidEntry(f"{about}: {edit.line!r} becomes itself")
    change = changed(edit.file, MISTAKE, edit.inside, text, at, at + len(edit.line), edit.becomes)
    if edit.file.endswith(".py"):
        try:
            compile(change.after, edit.file, "exec", dont_inherit=True)
        except SyntaxError as wrong:
            raise InvalidEntry(f"{about}: with {edit.becomes!r} line {wrong.lineno} does not compile") from None
    return change


def _occurrences(text: str, part: str, start: int, end: int) -> Iterator[int]:
    while (at := text.find(part, start, end)) >= 0:
        yield at
        start = at + 1


def _functions(edit: Edit, text: str) -> Iterator[tuple[int, int]]:
    """Where the functions of this name are."""
    if edit.file.endswith(".go"):
        receiver, _, name = edit.inside.rpartition(".")
        before = rf"\(\s*(?:\w+\s+)?\*?{re.escape(receiver)}(?:\[[^]]*\])?\s*\)\s*" if receiver else ""
        declared = re.compile(rf"^func {before}{re.escape(name)}[(\[](?:[^\n]*}}$|.*?^}})", re.MULTILINE | re.DOTALL)
        yield from (each.span() for each in declared.finditer(text))
        return
    source = python_changes.Source(text)
    for name, node in python_changes.functions(ast.parse(text)):
        if name == edit.inside:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield source.starts[first - 1], source.end(node)
