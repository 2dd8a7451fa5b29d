"""Judges the records that members write into requests, and that coordinators pass on in answers, wherever they pass.

A damaged record becomes an event, which ``client/embeds-strictly`` reads. It has the field, its bytes, their place, and
the releases of Kafka's own clients that fail at them, as the readers of each release decide.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.files.releases_table import jars, judges, patches
from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.live.recording.received import form
from kipcheck.conformance.protocols.client.events import RecordDamaged
from kipcheck.conformance.protocols.streams.blobs import read_assignment, read_subscription
from kipcheck.conformance.protocols.streams.model.members import Fatal
from kipcheck.conformance.wire.embedded import CONSUMER, OF_STREAMS, SUBSCRIPTION, Damage, damage, places, unread
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import spec

MOST_GROUPS: Final = 5000
MOST_BYTES: Final = 16 << 10
"""Of a record that is kept in an event, to be explained. A longer one is named without its bytes."""
JOIN, SYNC, DESCRIBE = "JoinGroup", "SyncGroup", "DescribeGroups"
EMBEDDING: Final = frozenset({JOIN, SYNC, DESCRIBE})
"""The requests with such records, in themselves or in their answers."""
Passed: TypeAlias = tuple[int, int, str, int]
"""Milliseconds, connection, message and version."""


@dataclass(slots=True)
class EmbeddedBytes:
    """Reads requests and answers of many connections. It knows of each member's group what only its JoinGroup named."""

    edition: Edition
    note: Callable[[str], None] = lambda text: None
    """Gets a sentence for what is not judged."""
    _groups: OrderedDict[tuple[int, str], tuple[str, str]] = field(default_factory=OrderedDict)
    """Connection and group -> protocol type and assignor, as far as they are known."""

    def asked(
        self, ms: int, connection: int, api: str, version: int, body: Mapping[str, Any], payload: bytes
    ) -> list[RecordDamaged]:
        """``payload``: header and body."""
        if api not in (JOIN, SYNC):
            return []
        group = body["groupId"]
        if api == JOIN:
            self._groups.pop((connection, group), None)
            self._groups[connection, group] = body["protocolType"], ""
            if len(self._groups) > MOST_GROUPS:
                self._groups.popitem(last=False)
        passed = ms, connection, f"{api}Request", version
        return self._judged(passed, body, payload, *self._known(connection, body))

    def answered(
        self, ms: int, connection: int, api: str, version: int, asked: Mapping[str, Any], body: Mapping[str, Any],
        payload: bytes,
    ) -> list[RecordDamaged]:  # fmt: skip
        """``payload``: header and body."""
        if api not in EMBEDDING:
            return []
        passed = ms, connection, f"{api}Response", version
        if api == DESCRIBE:
            return self._judged(passed, body, payload, "", "")
        if body["errorCode"]:
            return []
        self.named(connection, api, asked, body)
        return self._judged(passed, body, payload, *self._known(connection, asked))

    def named(self, connection: int, api: str, asked: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Takes from an answer to JoinGroup which assignor the group has."""
        key = connection, asked.get("groupId", "")
        if api == JOIN and key in self._groups and not body["errorCode"]:
            self._groups[key] = self._groups[key][0], body["protocolName"] or ""

    def _known(self, connection: int, request: Mapping[str, Any]) -> tuple[str, str]:
        kind, assignor = self._groups.get((connection, request["groupId"]), ("", ""))
        return request.get("protocolType") or kind, request.get("protocolName") or assignor

    def _judged(
        self, passed: Passed, body: Mapping[str, Any], payload: bytes, protocol_type: str, assignor: str
    ) -> list[RecordDamaged]:
        found = []
        _, _, message, version = passed
        for place in places(message, body, protocol_type, assignor):
            wrong = damage(place, self.edition)
            if wrong is not None:
                found.append(event_of(wrong, passed, self._start(message, version, wrong, payload)))
            elif unknown := unread(place, self.edition):
                self.note(unknown)
        if not found and protocol_type not in ("", CONSUMER):
            self.note(f"metadata and assignments of protocol type {protocol_type} are not judged")
        return found

    def _start(self, message: str, version: int, wrong: Damage, payload: bytes) -> int | None:
        """The offset of the damaged record in the payload; None: it is not found."""
        # Brings construct, and explains the whole message: only damage needs it.
        from kipcheck.conformance.wire.explain_frame import find
        from kipcheck.conformance.wire.explain_inside import explain_record

        sent = find(payload, str(form(self.edition, message)), message, version)
        rows = [*sent.explained.rows] if sent.whole else []
        start = next((row.offset + row.lead for row in rows if row.path == wrong.place.path), None)
        if start is None or wrong.record == wrong.place.record:
            return start
        rows = [*explain_record(wrong.place.record, wrong.place.data).rows]
        return start + next(row.offset + row.lead for row in rows if row.path == "userData")


def event_of(wrong: Damage, passed: Passed | None = None, start: int | None = None) -> RecordDamaged:
    """``passed``: the message with the record, if there is one. ``start``: of the damaged record, in header and body;
    None: not known."""
    ms, connection, message, version = passed or (0, -1, "", None)
    refused, size = wrong.refused, len(wrong.data)
    return RecordDamaged(
        ms, connection, message, version, wrong.place.group, wrong.place.member, wrong.path, wrong.record, refused.kind,
        refused.path, refused.offset or 0, start, refused.version, refused.why,
        wrong.data.hex() if size <= MOST_BYTES else "", size, readers(wrong),
    )  # fmt: skip


# Readers


def readers(wrong: Damage) -> str:
    """Which releases of Kafka's own clients fail at a record, as a clause of a sentence."""
    library, reads = reader(wrong)
    who = "leaders" if wrong.place.record == SUBSCRIPTION else "members"
    spans: dict[bool, list[str]] = {True: [], False: []}
    for is_read, found in groupby(_released(library), reads):
        first, *later = found
        spans[is_read].append(f"{first} to {later[-1]}" if later else first)
    named = f"kafka-{library}"
    if not spans[False]:
        return f"no release of {named} fails at it; other clients were not tried"
    rest = f", {', '.join(spans[True])} accept it" if spans[True] else ""
    return f"{who} with {named} {', '.join(spans[False])} fail at it{rest}; other clients were not tried"


def _released(library: str) -> Iterable[str]:
    """Up to the newest release whose jar was compared with these readers."""
    there, newest = releases(jars()[library]), Release.parse(judges(library)[-1])
    return [each for each in patches() if Release.parse(each) in there and Release.parse(each) <= newest]


def reader(wrong: Damage) -> tuple[str, Callable[[str], bool]]:
    """The library whose releases read the record, and whether a release does."""

    def by_schema(release: str) -> bool:
        declared = spec(edition(f"apache@{release}"), wrong.record)
        assert declared.versions.high is not None
        version = int.from_bytes(wrong.data[:2], "big", signed=True)
        try:
            declared.at(max(0, min(version, declared.versions.high))).decode(wrong.data, lenient=True)
        except Refused:
            return False
        return True

    def by_hand(release: str) -> bool:
        try:
            (read_subscription if wrong.record == OF_STREAMS[SUBSCRIPTION] else read_assignment)(wrong.data, release)
        except Fatal:
            return False
        return True

    return ("streams", by_hand) if wrong.record in OF_STREAMS.values() else ("clients", by_schema)
