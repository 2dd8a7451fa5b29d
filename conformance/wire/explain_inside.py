"""Opens fields of bytes that contain a message of their own: subscriptions and assignments, and the user data in them.

The bytes alone do not name what they contain. The names beside them do: the protocol type ``consumer``, and the name of
the assignor. Without a name, bytes are opened only if exactly one record fits and ends with them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.core.values.edition import APACHE, edition
from kipcheck.conformance.wire.embedded import ASSIGNMENT, CONSUMER, OF_STREAMS, STREAM, SUBSCRIPTION
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.explain import Explained, Row, as_data, explain, text
from kipcheck.conformance.wire.schema import Layout, MessageSpec, spec

INSIDE: Final[Mapping[tuple[str, str], str]] = {
    ("JoinGroupRequest", "protocols[].metadata"): SUBSCRIPTION,
    ("JoinGroupResponse", "members[].metadata"): SUBSCRIPTION,
    ("DescribeGroupsResponse", "groups[].members[].memberMetadata"): SUBSCRIPTION,
    ("GroupMetadataValue", "members[].subscription"): SUBSCRIPTION,
    ("SyncGroupRequest", "assignments[].assignment"): ASSIGNMENT,
    ("SyncGroupResponse", "assignment"): ASSIGNMENT,
    ("DescribeGroupsResponse", "groups[].members[].memberAssignment"): ASSIGNMENT,
    ("GroupMetadataValue", "members[].assignment"): ASSIGNMENT,
}
"""Message and path of a field -> the record in it, in a group of consumers."""
USER_DATA: Final[Mapping[str, Mapping[str, str]]] = {
    SUBSCRIPTION: {
        STREAM: OF_STREAMS[SUBSCRIPTION],
        "sticky": "StickyAssignorUserData",
        "cooperative-sticky": "CooperativeStickyAssignorUserData",
    },
    ASSIGNMENT: {STREAM: OF_STREAMS[ASSIGNMENT]},
}
"""Record -> the records in its user data, by assignor."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A record inside a field."""

    path: str
    """Of the field, from the outermost message: ``protocols[0].metadata.userData``."""
    offset: int
    """Of its first byte in all bytes."""
    explained: Explained
    """Of its bytes; offsets count from its own first byte."""

    @property
    def moved(self) -> Explained:
        """Its bytes, with offsets that count from the first of all bytes."""
        found = self.explained
        rows = tuple(row._replace(offset=row.offset + self.offset) for row in found.rows)
        damage = None if found.damage is None else found.damage.moved(self.offset)
        return Explained(found.layout, bytes(self.offset) + found.data, rows, damage)

    def text(self) -> str:
        """A heading and a table; offsets count from the first of all bytes."""
        layout = self.explained.layout
        return f"{self.path}: {layout.message} v{layout.version}\n{text(self.moved)}"

    def as_data(self) -> dict[str, Any]:
        return {"path": self.path, "offset": self.offset, **as_data(self.explained)}


def explain_record(record: str, data: bytes) -> Explained:
    """A record that ``wire.embedded`` found, by its own version; a later version by the newest one, which it begins
    like."""
    declared = spec(APACHE, record)
    low, high = declared.versions.low, declared.versions.high
    assert high is not None
    version = int.from_bytes(data[: 4 if record in OF_STREAMS.values() else 2], "big", signed=True)
    return explain(declared.at(min(max(version, low), high)), data, lenient=version > high)


def damaged(record: str, data: bytes, refused: Refused, path: str, offset: int) -> Inside:
    """A record that ``wire.embedded`` refuses, up to the damage. ``offset``: of its first byte in all bytes."""
    found = explain_record(record, data)
    return Inside(path, offset, Explained(found.layout, data, found.rows, refused))


def insides(explained: Explained) -> Iterator[Inside]:
    """All records inside, outer ones before those in them."""
    yield from _within(explained, "", 0, "")


def _within(explained: Explained, above: str, base: int, assignor: str) -> Iterator[Inside]:
    message = explained.layout.message
    texts = {row.path: row.value for row in explained.rows if isinstance(row.value, str)}
    for row in explained.rows:
        if not row.read or not isinstance(row.value, bytes) or not row.value:
            continue
        found = None
        name = assignor
        if message in USER_DATA and row.path == "userData":
            found = _user_data(explained.layout.edition, message, assignor, row.value)
        elif record := INSIDE.get((message, re.sub(r"\[\d+\]", "[]", row.path))):
            name = _assignor(row, texts)
            found = _record(explained.layout.edition, record, _protocol_type(row, texts), row.value)
        if found is not None:
            inner = Inside(f"{above}{row.path}", base + row.offset + row.lead, found)
            yield inner
            yield from _within(found, f"{inner.path}.", inner.offset, name)


def _protocol_type(row: Row, texts: Mapping[str, str]) -> str:
    """Of the message, or of the group in it; empty where there is none."""
    group = row.path.partition(".")[0]
    return texts.get(f"{group}.protocolType") or texts.get("protocolType") or ""


def _assignor(row: Row, texts: Mapping[str, str]) -> str:
    """Named beside the bytes, or the one that the group chose; empty where there is none."""
    beside, group = row.path.rpartition(".")[0], row.path.partition(".")[0]
    places = (f"{beside}.name", "protocolName", f"{group}.protocolData", "protocol")
    return next((texts[each] for each in places if texts.get(each)), "")


def _record(named: str, record: str, protocol_type: str, data: bytes) -> Explained | None:
    if protocol_type not in ("", CONSUMER):
        return None
    layout = _led(named, record, data)
    found = None if layout is None else explain(layout, data)
    return found if found and (found.damage is None or protocol_type == CONSUMER) else None


def _user_data(named: str, record: str, assignor: str, data: bytes) -> Explained | None:
    records = USER_DATA[record]
    if assignor:
        own = records.get(assignor)
        candidates = [] if own is None else [*_candidates(named, own, data)]
        return next((each for each in candidates if each.damage is None), candidates[0] if candidates else None)
    fits = [each for own in records.values() for each in _candidates(named, own, data) if each.damage is None]
    return fits[0] if len(fits) == 1 else None


def _candidates(named: str, record: str, data: bytes) -> Iterator[Explained]:
    """At the version in front of the bytes; at each, the newest first, of a record without one."""
    if (declared := _declared(named, record)) is None:
        return
    layouts = [*declared]
    if layouts[0].prefix is not None:
        led = _led(named, record, data)
        layouts = [] if led is None else [led]
    for layout in reversed(layouts):
        yield explain(layout, data)


def _led(named: str, record: str, data: bytes) -> Layout | None:
    """The layout of the version in front; None for a version that the edition lacks."""
    declared = _declared(named, record)
    prefix = None if declared is None else next(iter(declared)).prefix
    if declared is None or prefix is None:
        return None
    size = {"int16": 2, "int32": 4}[prefix.type]
    try:
        return declared.at(int.from_bytes(data[:size], "big", signed=True)) if len(data) >= size else None
    except LookupError:
        return None


def led(named: str, record: str, data: bytes) -> Explained | None:
    """The bytes as a record at the version in front of them; None for a version that the edition lacks."""
    layout = _led(named, record, data)
    return None if layout is None else explain(layout, data)


def _declared(named: str, record: str) -> MessageSpec | None:
    try:
        return spec(edition(named), record)
    except LookupError:
        return None
