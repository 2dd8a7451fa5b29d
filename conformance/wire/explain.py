"""Explains every byte: offset, field path, type, value, meaning. Damaged bytes are explained up to the damage."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kipcheck.conformance.wire.byte_map import ByteMap, Role, Span
from kipcheck.conformance.wire.constructs import trace
from kipcheck.conformance.wire.describe import VERSION, meaning_of, name_of
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.jsontext import path_of
from kipcheck.conformance.wire.schema import Layout
from kipcheck.conformance.wire.znodes import ZNode

WIDEST: Final = {"bytes": 35, "path": 48, "type": 30, "value": 40}
"""The widest columns of the text, in characters; longer cells are cut, in the text only."""


class Row(NamedTuple):
    """Some of the bytes, and their interpretation."""

    offset: int
    size: int
    lead: int
    """How many of them are the length in front."""
    path: str
    """Empty for bytes of the message itself."""
    type: str
    value: Any
    meaning: str
    read: bool = True
    """False for bytes after the damage."""


@dataclass(frozen=True, slots=True)
class Explained:
    """Every byte of ``data`` belongs to exactly one of ``rows``, which are in order."""

    layout: Layout
    data: bytes
    rows: tuple[Row, ...]
    damage: Refused | None


def explain(layout: Layout, data: bytes, lenient: bool = False) -> Explained:
    """One row per field, with its length if it has one; counts, presence bytes and tag sections have their own rows."""
    found = layout.trace(data, lenient) if isinstance(layout, ZNode) else trace(layout, data, lenient)
    rows, damage = [*_rows(found)], found.damage
    done = found.spans[-1].end if found.spans else 0
    if done < len(data):
        why = damage.why if damage else "bytes after the end of the message"
        rows.append(Row(done, len(data) - done, 0, damage.path if damage else "", "not read", None, why, False))
    return Explained(layout, data, tuple(rows), damage)


def _rows(found: ByteMap) -> Iterator[Row]:
    lead = 0
    for span in found.spans:
        leads = span.role in (Role.LENGTH, Role.SYNTAX)
        lead += span.size if leads else 0
        if leads and (span.role is Role.SYNTAX or span.value is not None):
            continue
        offset, size = (span.offset, lead) if leads else (span.offset - lead, lead + span.size)
        if size:
            meaning = _meaning(span, found.layout.edition)
            yield Row(offset, size, lead, path_of(span.path), _type(span), span.value, meaning)
        lead = 0


_TYPES: Final = {
    Role.TAG: "uvarint tag", Role.TAG_SIZE: "uvarint size", Role.TAG_COUNT: "uvarint tag count",
    "tag": "bytes of an unknown tag", "rest": "bytes to the end",
}  # fmt: skip


def _type(span: Span) -> str:
    """The type as laid out: ``compact nullable string``."""
    kind = _TYPES.get(span.role) or _TYPES.get(span.form)
    if kind or span.slot is None:
        return kind or span.form
    if span.role is Role.PRESENCE:
        return f"{span.form} presence"
    if span.role not in (Role.LENGTH, Role.COUNT, Role.TEXT, Role.BYTES):
        return span.form
    kind = "array count" if span.role is Role.COUNT else span.slot.type
    return " ".join(word for word in ("compact" * span.slot.compact, "nullable" * span.slot.nullable, kind) if word)


def _meaning(span: Span, edition: str) -> str:
    match span.role:
        case Role.VERSION:
            return VERSION
        case Role.TAG_COUNT:
            return "tagged fields that follow"
        case Role.TAG:
            return f"tag of {span.slot.name}" if span.slot else "a tag that this version does not know"
        case Role.TAG_SIZE:
            return "size of the tagged field in bytes"
    if span.slot is None:
        return "kept unchanged" if span.form == "tag" else ""
    counts = span.role in (Role.COUNT, Role.PRESENCE)
    name = "" if counts else name_of(span.owner, span.slot.name, span.value, edition)
    return ": ".join(filter(None, (name, meaning_of(span.owner, span.slot))))


def as_json(explained: Explained) -> str:
    """One JSON object, in which nothing is cut."""
    return json.dumps(as_data(explained))


def as_data(explained: Explained) -> dict[str, Any]:
    """All rows as plain data; bytes are hex, uuids text."""
    damage = explained.damage
    return {
        "edition": explained.layout.edition,
        "message": explained.layout.message,
        "version": explained.layout.version,
        "rows": [
            {
                "offset": row.offset,
                "size": row.size,
                "lead": row.lead,
                "bytes": explained.data[row.offset : row.offset + row.size].hex(),
                "path": row.path,
                "type": row.type,
                "value": _plain(row.value),
                "meaning": row.meaning,
                "read": row.read,
            }
            for row in explained.rows
        ],
        "damage": damage
        and {"class": damage.kind, "message": str(damage), "path": damage.path, "offset": damage.offset},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, uuid.UUID) else value


def text(explained: Explained) -> str:
    """A table with one line per row, under a header; then the damage, if any, on its own line."""
    return "\n".join([*_table(explained, list(explained.rows)), *_damage(explained)])


def _damage(explained: Explained) -> list[str]:
    return [] if explained.damage is None else [f"damage: {explained.damage}"]


def _table(explained: Explained, rows: list[Row]) -> list[str]:
    cells = [("offset", "bytes", "path", "type", "value", "meaning"), *(_cells(explained.data, row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join([line[0].rjust(widths[0]), *(c.ljust(w) for c, w in zip(line[1:], widths[1:], strict=True))]).rstrip()
        for line in cells
    ]


def _cells(data: bytes, row: Row) -> tuple[str, ...]:
    most = WIDEST["bytes"] // 2 - 2
    shown = data[row.offset : row.offset + min(row.size, most)]
    lead, rest = shown[: row.lead].hex(), shown[row.lead :].hex()
    more = f"..{row.size - most} more" if row.size > most else ""
    return (
        str(row.offset),
        " ".join(filter(None, (lead, rest + more))),
        _cut(row.path or ".", WIDEST["path"]),
        _cut(row.type, WIDEST["type"]),
        _shown(row) if row.read else "",
        row.meaning,
    )


def _shown(row: Row) -> str:
    value = row.value
    if isinstance(value, bytes):
        most = WIDEST["value"] // 2 - 8
        return (
            "(empty)"
            if not value
            else value.hex()
            if len(value) <= most
            else f"{value[:most].hex()}.. ({len(value)} bytes)"
        )
    if isinstance(value, str):
        quoted, suffix = _quoted(value[: WIDEST["value"]]), f'.." ({len(value)} characters)'
        return quoted if len(quoted) <= WIDEST["value"] else quoted[: WIDEST["value"] - len(suffix)] + suffix
    return _quoted(_plain(value)) if not isinstance(value, uuid.UUID) else str(value)


def _quoted(value: Any) -> str:
    """As JSON, with control characters escaped."""
    plain = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in plain)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 2]}.."
