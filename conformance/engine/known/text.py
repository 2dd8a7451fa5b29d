"""Changes the text of a list entry by entry: comments, order and quotes of everything else stay as they are.

tomlkit moves entries where those of both kinds alternate, loses track of dotted keys once one is removed, and writes
new keys behind comments at the end: so it gets one entry, without the lines behind it, and one change at a time.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import tomlkit

from kipcheck.conformance.engine.known.files import headings
from kipcheck.conformance.engine.known.rules import Entry


def without_entry(text: str, entry: Entry) -> str:
    """Without the entry and the comments directly above it."""
    begin, end = _blocks(text)[entry.line]
    lines = text.splitlines(keepends=True)
    del lines[begin - 1 : end]
    return "".join(lines)


def with_places(text: str, entry: Entry, changed: Mapping[str, str | None]) -> str:
    """``changed``: subject -> its versions; None: without the subject."""
    return _edited(text, entry, lambda block: _with_places(block, entry, changed))


def with_value(text: str, entry: Entry, key: str, value: Any) -> str:
    """With another value of a key; None: without the key."""
    return _edited(text, entry, lambda block: _with_value(block, entry, key, value))


def with_top(text: str, key: str, value: str) -> str:
    """With another value of a key at the top of the file."""
    blocks = _blocks(text)
    lines = text.splitlines(keepends=True)
    size = min((begin for begin, _ in blocks.values()), default=len(lines) + 1) - 1
    head = "".join(lines[:size])
    document = tomlkit.parse(head)
    if key in document:
        document[key] = value
        head = tomlkit.dumps(document)
    else:
        last = max((n for n, line in enumerate(lines[:size], 1) if re.match(r"\w+\s*=", line)), default=0)
        head = "".join((*lines[:last], tomlkit.dumps({key: value}), *lines[last:size]))
    return head + "".join(lines[size:])


def appended(text: str, entry: Mapping[str, Any], where: Mapping[str, str], comments: tuple[str, ...] = ()) -> str:
    """With a further [[deviation]] at the end, below these comments."""
    above = "".join(f"# {' '.join(line.split())}\n" for line in comments)
    rows = f"{above}[[deviation]]\n{tomlkit.dumps(entry)}[deviation.where]\n{tomlkit.dumps(where)}"
    return text.rstrip("\n") + "\n\n" * bool(text.strip()) + rows


# ---- one entry


def _edited(text: str, entry: Entry, change: Callable[[str], str]) -> str:
    begin, end = _blocks(text)[entry.line]
    lines = text.splitlines(keepends=True)
    while end > begin and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1  # what stands behind the entry
    lines[begin - 1 : end] = [change("".join(lines[begin - 1 : end]))]
    return "".join(lines)


def _with_places(block: str, entry: Entry, changed: Mapping[str, str | None]) -> str:
    for subject, versions in changed.items():
        document = tomlkit.parse(block)
        where: Any = document[entry.kind][0]["where"]
        if versions is None:
            del where[subject]
        else:
            where[subject] = versions
        block = tomlkit.dumps(document)
    return block


def _with_value(block: str, entry: Entry, key: str, value: Any) -> str:
    document = tomlkit.parse(block)
    table: Any = document[entry.kind][0]
    if value is None:
        table.pop(key, None)
    elif key in table or (put := _put(block, entry, key, value)) is None:
        table[key] = value
    else:
        return put
    return tomlkit.dumps(document)


def _put(block: str, entry: Entry, key: str, value: Any) -> str | None:
    """With a new line before that of the reason; None if there is no such line."""
    found = re.search(r"^[ \t]*reason[ \t]*=", block, re.MULTILINE)
    if found is None:
        return None
    made = block[: found.start()] + tomlkit.dumps({key: value}) + block[found.start() :]
    try:
        before, after = (tomllib.loads(each)[entry.kind][0] for each in (block, made))
    except tomllib.TOMLDecodeError:
        return None
    return made if after == {**before, key: value} else None


def _blocks(text: str) -> dict[int, tuple[int, int]]:
    """The line of an entry's heading -> its first and last line, with the comments directly above it."""
    lines = text.splitlines()
    starts = [number for _, number in headings(text)]
    begins = {start: _above(lines, start) for start in starts}
    found = {}
    for start, following in zip(starts, [*starts[1:], 0], strict=True):
        end = begins[following] - 1 if following else len(lines)
        found[start] = (begins[start], end)
    return found


def _above(lines: list[str], start: int) -> int:
    while start > 1 and lines[start - 2].lstrip().startswith("#"):
        start -= 1
    return start
