"""Judges the records that members write into requests, and that coordinators pass on in answers, wherever they pass.

A damaged record becomes an event, which ``client/embeds-strictly`` reads. It has the field, its bytes, their place, and
the releases of Kafka's own clients that fail at them, as the readers of each release decide.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, TypeAlias

from kipcheck.conformance.core.files.releases_table import jars, judges, patches
from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.live.recording.contents import DescribedGroup, DescribedGroups, Reply, Sent, as_bytes, ms_of
from kipcheck.conformance.live.recording.received import Received, form
from kipcheck.conformance.protocols.client.events import RecordDamaged
from kipcheck.conformance.protocols.group.model.messages import Join, Joined, Sync, Synced
from kipcheck.conformance.protocols.streams.blobs import read_assignment, read_subscription
from kipcheck.conformance.protocols.streams.model.members import Fatal
from kipcheck.conformance.wire.embedded import (
    ASSIGNMENT,
    CONSUMER,
    OF_STREAMS,
    SUBSCRIPTION,
    Damage,
    Place,
    damage,
    unread,
)
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import spec

MOST_GROUPS: Final = 5000
MOST_BYTES: Final = 16 << 10
"""Of a record that is kept in an event, to be explained. A longer one is named without its bytes."""
Embedding: TypeAlias = Join | Sync | Joined | Synced | DescribedGroups
"""Messages with such records."""
Passed: TypeAlias = tuple[int, int, str, int]
"""Milliseconds, connection, message and version."""


def places(passed: Embedding, protocol_type: str, assignor: str) -> Iterator[Place]:
    """The records in a request or answer of a group of consumers; none of a group of another or an unknown type.

    ``protocol_type`` and ``assignor``: those of the group, where the message does not name them. Of an answer, fields
    without bytes are left out: a coordinator writes them where no member wrote any.
    """
    if isinstance(passed, DescribedGroups):
        for number, group in enumerate(passed.groups):
            if group.protocol_type == CONSUMER:
                yield from _described(group, f"groups[{number}].members")
    elif (passed.protocol_type or protocol_type) == CONSUMER:
        match passed:
            case Join(protocols=rows):
                for number, (name, data) in enumerate(rows):
                    yield Place(f"protocols[{number}].metadata", SUBSCRIPTION, as_bytes(data), name)
            case Joined(members=members, protocol=name):
                for number, (id, _, data) in enumerate(members):
                    yield Place(f"members[{number}].metadata", SUBSCRIPTION, as_bytes(data), name or assignor, id)
            case Sync(assignments=given, protocol=name):
                for number, (id, data) in enumerate(given):
                    yield Place(f"assignments[{number}].assignment", ASSIGNMENT, as_bytes(data), name or assignor, id)
            case Synced(assignment=data, protocol=name) if data:
                yield Place("assignment", ASSIGNMENT, as_bytes(data), name or assignor)


def _described(group: DescribedGroup, path: str) -> Iterator[Place]:
    for number, (id, metadata, share) in enumerate(group.members):
        # Brokers of 2.3 describe the assignment in place of the subscription (KAFKA-9150).
        if metadata and metadata != share:
            at = f"{path}[{number}].memberMetadata"
            yield Place(at, SUBSCRIPTION, metadata, group.protocol, id, group.id)
        if share:
            yield Place(f"{path}[{number}].memberAssignment", ASSIGNMENT, share, group.protocol, id, group.id)


@dataclass(slots=True)
class EmbeddedBytes:
    """Reads requests and answers of many connections. It knows of each member's group what only its JoinGroup named."""

    edition: Edition
    note: Callable[[str], None] = lambda text: None
    """Gets a sentence for what is not judged."""
    _groups: OrderedDict[tuple[int, str], tuple[str, str]] = field(default_factory=OrderedDict)
    """Connection and group -> protocol type and assignor, as far as they are known."""

    def asked(self, request: Received, sent: Sent, payload: bytes) -> list[RecordDamaged]:
        """``sent``: what was read of the request; ``payload``: its header and body."""
        if not isinstance(sent, Join | Sync):
            return []
        key = request.connection, request.group
        if isinstance(sent, Join):
            self._groups.pop(key, None)
            self._groups[key] = sent.protocol_type, ""
            if len(self._groups) > MOST_GROUPS:
                self._groups.popitem(last=False)
        return self._judged(request.at_s, request, request.message, sent, payload, *self._known(request, sent))

    def answered(self, at_s: float, request: Received, sent: Sent, reply: Reply, payload: bytes) -> list[RecordDamaged]:
        """``payload``: header and body."""
        known = "", ""
        if isinstance(reply, Joined | Synced) and not reply.error:
            self.named(request, reply)
            known = self._known(request, sent)
        elif not isinstance(reply, DescribedGroups):
            return []
        return self._judged(at_s, request, request.response, reply, payload, *known)

    def named(self, request: Received, reply: Reply) -> None:
        """Takes from an answer to JoinGroup which assignor the group has."""
        key = request.connection, request.group
        if isinstance(reply, Joined) and key in self._groups and not reply.error:
            self._groups[key] = self._groups[key][0], reply.protocol or ""

    def _known(self, request: Received, sent: Sent) -> tuple[str, str]:
        kind, assignor = self._groups.get((request.connection, request.group), ("", ""))
        if isinstance(sent, Sync):
            return sent.protocol_type or kind, sent.protocol or assignor
        return sent.protocol_type or kind if isinstance(sent, Join) else kind, assignor

    def _judged(
        self, at_s: float, request: Received, message: str, passed: Embedding,
        payload: bytes, protocol_type: str, assignor: str,
    ) -> list[RecordDamaged]:  # fmt: skip
        found, version = [], request.version
        for place in places(passed, protocol_type, assignor):
            wrong = damage(place, self.edition)
            if wrong is not None:
                start = self._start(message, version, wrong, payload)
                found.append(event_of(wrong, (ms_of(at_s), request.connection, message, version), start))
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
    return [release for release in patches() if Release.parse(release) in there and Release.parse(release) <= newest]


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
