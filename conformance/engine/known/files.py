"""The grammar of a file of known deviations, in TOML. Errors name path and line."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations
from typing import Any

from kipcheck.conformance.engine.known.rules import Draw, Entry, Kind, KnownFile, Span, overlap, places_in, releases_in


class InvalidKnownFile(ValueError):
    """An invalid file of known deviations. ``troubles`` are lines that begin with path and line number."""

    def __init__(self, troubles: Sequence[str]) -> None:
        super().__init__("; ".join(troubles))
        self.troubles = tuple(troubles)


class UnreadableKnownFile(InvalidKnownFile):
    """The file cannot be read at all; the text names the place."""


WORDS: Mapping[str, type] = {
    "target": str, "versions": str, "checks": list, "invariant": str, "shape": list, "why": str, "where": dict,
    "reason": str, "link": str, "expires": date, "seldom": bool,
    "cases": int,
}  # fmt: skip
TOP: Mapping[str, type] = {
    "target": str, "edition": str, "seed": int, "cases": int, "made_by": str, "deviation": list, "flaky": list,
}  # fmt: skip
NEEDED = ("target", "versions", "checks", "invariant", "where", "reason", "link")
NAMES: Mapping[type, str] = {
    str: "a string", list: "a list of strings", dict: "a table", date: "a date (2027-01-01)", int: "an integer",
    bool: "true or false",
}  # fmt: skip
REASON = 20
"""The least number of characters in a reason: a shorter one does not explain a deviation."""


def parse(text: str, path: str, draft: bool = False) -> KnownFile:
    """A draft may contain reasons and links that are still TODO. Errors: ``InvalidKnownFile`` with all errors."""
    listed = loaded(text, path)
    reader = _Reader(path, text, draft)
    entries = tuple(reader.entries(listed))
    reader.troubles += overlaps(entries)
    if reader.troubles:
        raise InvalidKnownFile(reader.troubles)
    draw = Draw(**{key: listed[key] for key in ("edition", "seed", "cases") if key in listed})
    return KnownFile(path, draw, entries, listed.get("made_by", ""))


def loaded(text: str, path: str) -> dict[str, Any]:
    """Errors: ``InvalidKnownFile`` with path and line where the text is not valid TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise InvalidKnownFile([f"{path}:{line[1] if line else 1}: not valid TOML: {error}"]) from None


def overlaps(entries: Sequence[Entry]) -> list[str]:
    """Pairs of entries, of one file or of several, that may match the same failure."""
    return [
        f"{two.at}: it may match the same failure as {one.at}: give each entry places of its own, or merge them"
        for one, two in combinations(entries, 2)
        if overlap(one, two)
    ]


def headings(text: str) -> list[tuple[Kind, int]]:
    """The kind of each entry and the number of its first line, counted from 1."""
    found: list[tuple[Kind, int]] = []
    quoted = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[\s*(deviation|flaky)\s*\]\]", line)
        if header and not quoted:
            found.append(("flaky" if header[1] == "flaky" else "deviation", number))
        for quotes in re.findall(r'"""|\'\'\'', line):
            quoted = "" if quoted == quotes else quoted or quotes
    return found


class _Reader:
    """Turns tables into entries, and collects the errors in them."""

    def __init__(self, path: str, text: str, draft: bool) -> None:
        self.path = path
        self.draft = draft
        self.lines = text.splitlines()
        self.headings = headings(text)
        self.troubles: list[str] = []

    def entries(self, listed: dict[str, Any]) -> Iterator[Entry]:
        self._words(listed, TOP, 1, "at the top of the file")
        if isinstance(cases := listed.get("cases"), int) and cases < 1:
            self._error(self._line_of("cases", 1), "cases must be a positive integer")
        kinds: tuple[Kind, ...] = ("deviation", "flaky")
        for kind in kinds:
            starts = [line for which, line in self.headings if which == kind]
            tables = listed.get(kind, [])
            for number, table in enumerate(tables if isinstance(tables, list) else ()):
                line = starts[number] if number < len(starts) else 1
                entry = self._entry(kind, line, table, listed.get("target")) if isinstance(table, dict) else None
                if entry is not None:
                    yield entry

    def _error(self, line: int, why: str) -> None:
        self.troubles.append(f"{self.path}:{line}: {why}")

    def _line_of(self, key: str, start: int) -> int:
        """The line of a key of the entry that begins at ``start``; ``start`` if the key has no line of its own."""
        end = next((line for _, line in self.headings if line > start), len(self.lines) + 1)
        pattern = re.compile(rf"\s*(\[\s*\w+\s*\.\s*)?[\"']?{re.escape(key)}[\"']?\s*[\]=]")
        return next((n for n in range(start, end) if pattern.match(self.lines[n - 1])), start)

    def _words(self, table: Mapping[str, Any], words: Mapping[str, type], line: int, where: str) -> bool:
        """Whether all keys are known and their values have the right type."""
        before = len(self.troubles)
        for key, value in table.items():
            if key not in words:
                self._error(self._line_of(key, line), f"unknown key {key!r} {where}: use {', '.join(words)}")
                continue
            expected = words[key]
            right = type(value) is expected  # bool is a subclass of int, and datetime of date
            if expected is list and key in ("shape", "checks"):
                right = right and all(isinstance(each, str) for each in value)
            if not right:
                self._error(self._line_of(key, line), f"{key} must be {NAMES[expected]}, got {value!r}")
        return len(self.troubles) == before

    def _entry(self, kind: Kind, line: int, table: dict[str, Any], target: Any) -> Entry | None:
        before = len(self.troubles)
        if isinstance(target, str):
            table = {"target": target, **table}
        needed = (*NEEDED, "shape") if kind == "deviation" else (*NEEDED, "expires")
        for key in needed:
            if key not in table:
                self._error(line, f"an entry of [[{kind}]] needs {key!r}")
        if not self._words(table, WORDS, line, "of an entry") or len(self.troubles) > before:
            return None
        where = {str(key): self._places(str(key), value, line) for key, value in table["where"].items()}
        if not where:
            self._error(self._line_of("where", line), "where must name a subject")
        self._texts(table, line)
        if "cases" in table:
            self._counted(kind, table, line)
        if len(self.troubles) > before:
            return None
        shape = tuple(table["shape"]) if "shape" in table else None
        return Entry(
            kind, self.path, line, table["target"], table["versions"], tuple(table["checks"]),
            table["invariant"], shape,
            table.get("why", ""), where, table["reason"], table["link"], table.get("expires"),
            table.get("seldom", False), table.get("cases"),
        )  # fmt: skip

    def _texts(self, table: Mapping[str, Any], line: int) -> None:
        for key in ("target", "invariant"):
            if not table[key] or "*" in table[key]:
                self._error(self._line_of(key, line), f"{key} must name exactly one, without *: got {table[key]!r}")
        for key in ("shape", "checks"):
            if table.get(key) == []:
                self._error(self._line_of(key, line), f"{key} must not be empty")
        try:
            releases_in(table["versions"])
        except ValueError as error:
            self._error(self._line_of("versions", line), f"versions (of the target): {error}")
        try:
            re.compile(table.get("why", ""))
        except re.error as error:
            self._error(self._line_of("why", line), f"why is not a regular expression: {error}")
        for key, wrong in (("reason", no_reason), ("link", no_link)):
            if not self.draft and (trouble := wrong(table[key])):
                self._error(self._line_of(key, line), trouble)

    def _counted(self, kind: Kind, table: Mapping[str, Any], line: int) -> None:
        if table["cases"] < 1:
            self._error(self._line_of("cases", line), "cases must be a positive integer")
        if table.get("seldom") or kind == "flaky":
            self._error(self._line_of("cases", line), "cases are counted for a [[deviation]] without seldom = true")

    def _places(self, subject: str, value: Any, line: int) -> tuple[Span, ...]:
        try:
            return places_in(value if isinstance(value, str) else repr(value))
        except ValueError as error:
            self._error(self._line_of(subject, line), f"where.{subject}: {error}")
            return ()


def no_reason(text: str) -> str:
    """The error in a reason; empty if it is valid."""
    if re.search(r"\b(TODO|FIXME|XXX|TBD)\b", text, re.IGNORECASE):
        return f"reason must be written: {text!r} is a placeholder"
    if len(text.strip()) < REASON or len(text.split()) < 4:
        return f"reason must explain in a sentence why this is expected: got {text!r}"
    return ""


def no_link(text: str) -> str:
    """The error in a link; empty if it is valid. ``known_lists`` checks that the page exists."""
    if re.search(r"\b(TODO|FIXME|XXX|TBD)\b|example\.(com|org|net)", text, re.IGNORECASE):
        return f"link must be written: {text!r} is a placeholder; name an issue or a page"
    if re.fullmatch(r"https?://[\w.-]+\.\w+(:\d+)?/\S+", text) or re.fullmatch(r"(?!/)[\w./-]+\.(md|html|txt)", text):
        return ""
    return f"link must be the https:// URL of an issue or the path of a page: got {text!r}"
