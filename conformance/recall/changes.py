"""Lists the small changes that a person could make to a file of a client's source, and applies those of a mistake."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from kipcheck.conformance.recall import go_changes, python_changes
from kipcheck.conformance.recall.bugs import InvalidEntry
from kipcheck.conformance.recall.change import MISTAKE, Change, changed, sample
from kipcheck.conformance.recall.mistakes import Edit

GO_BODY: Final = re.compile(r"\{[ \t]*(?://[^\n]*)?\n(?:\s*//[^\n]*\n)*\s*(?=[^\s}])|\{ (?=[^\s}])")
"""What is before the first statement of a function, as gofmt writes it."""

__all__ = ["Change", "changes_in", "entered", "functions", "of_mistake", "sample"]


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
        spans = list(functions(edit.file, edit.inside, text))
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


def functions(path: str, named: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the functions of this name, with its class or type, are in a file."""
    if path.endswith(".go"):
        receiver, _, name = named.rpartition(".")
        before = rf"\(\s*(?:\w+\s+)?\*?{re.escape(receiver)}(?:\[[^]]*\])?\s*\)\s*" if receiver else ""
        declared = re.compile(rf"^func {before}{re.escape(name)}[(\[](?:[^\n]*}}$|.*?^}})", re.MULTILINE | re.DOTALL)
        yield from (each.span() for each in declared.finditer(text))
        return
    source = python_changes.Source(text)
    for name, node in python_changes.functions(ast.parse(text)):
        if name == named:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield source.starts[first - 1], source.end(node)


def entered(path: str, named: str, text: str) -> Change | None:
    """A change of nothing where the function of this name begins, which counts its calls as it is instrumented. None:
    the file has no such function, or it is empty. Errors: SyntaxError."""
    start = next(_begins(path, named, text), None)
    return (
        None if start is None else Change(path, text.count("\n", 0, start) + 1, MISTAKE, named, text, start, start, "")
    )


def _begins(path: str, named: str, text: str) -> Iterator[int]:
    """Where the first statements of these functions are."""
    if path.endswith(".go"):
        for start, end in functions(path, named, text):
            if body := GO_BODY.search(text, start, end):
                yield body.end()
        return
    source = python_changes.Source(text)
    for name, node in python_changes.functions(ast.parse(text)):
        if name == named:
            first, *rest = node.body
            yield source.start(rest[0] if ast.get_docstring(node) is not None and rest else first)
