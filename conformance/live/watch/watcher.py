"""Reads the requests and answers of clients that pass by, keeps a history of each member, and reports broken laws.

It knows no sockets: a proxy or a capture says what passed, and when. Its state is bounded, whatever passes.
"""

import re
import sys
import traceback
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.recording.contents import Contents, Reply, Sent, ms_of
from kipcheck.conformance.live.recording.embedded import EmbeddedBytes
from kipcheck.conformance.live.recording.observed import refused_event
from kipcheck.conformance.live.recording.received import MOST_ENTRIES, Content, Received, Unserved, form, read
from kipcheck.conformance.live.watch import exchanges
from kipcheck.conformance.live.watch.coordinator import Coordinators
from kipcheck.conformance.live.watch.exchanges import Exchanges, Pending
from kipcheck.conformance.live.watch.topic_metadata import Facts
from kipcheck.conformance.live.watch.track import Member, Track
from kipcheck.conformance.live.watch.verdicts import COORDINATOR, Judging, Reported
from kipcheck.conformance.protocols.client.answer_ops import SHARES
from kipcheck.conformance.protocols.client.events import AnswerSeen, Closed, ListedMember, RecordDamaged, RequestSeen
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_STREAMS
from kipcheck.conformance.protocols.client.terms import HEARTBEAT, HEARTBEATS, SHARE_HEARTBEAT
from kipcheck.conformance.wire.errors import Refused, TooManyEntries
from kipcheck.conformance.wire.framing import decode_response, requests

OF_A_GROUP: Final = frozenset({
    "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", *HEARTBEATS, *SHARES,
})  # fmt: skip
DESCRIBE: Final = "DescribeGroups"
READ: Final = (*OF_A_GROUP, "ApiVersions", "Metadata", DESCRIBE)
"""The requests that are decoded; all others pass without a look."""
NAMELESS: Final = frozenset({"LeaveGroup", "OffsetCommit", *SHARES} - {SHARE_HEARTBEAT})
"""Requests that a tool may send for a group without being a member, and those of share sessions: they begin no
history."""
MOST_TRACKS: Final = 2000
MOST_GROUPS: Final = 20
"""Of one connection."""
MOST_SIZE: Final = 64 << 20
"""Bytes of the requests and answers of all histories; beyond it the oldest are forgotten."""
MOST_WAITING: Final = 1000
"""Requests of a connection without an answer. A producer may want none."""
MOST_NOTES: Final = 200
IDS_SINCE: Final = 10
"""OffsetCommit: topics have ids in place of names."""
UNSEEN: Final = "a member that did not pass"
"""The name of what wrote a record that is only in answers."""
SOFTWARE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@dataclass(slots=True)
class Asked:
    """A request without an answer yet."""

    key: int
    version: int
    correlation: int
    received: Received | None = None
    """None: it is not read."""
    sent: Sent = None
    """What was read of it, for laws; None: nothing."""
    event: RequestSeen | None = None
    track: Track | None = None
    reported: int | None = None
    """The place of what is reported of its encoding."""
    is_counted: bool = False
    """Whether it is among the exchanges that were judged, or left."""
    is_plain: bool = False
    """Whether it changed nothing, so that no law has more to say of it."""
    is_unread: bool = False
    """Whether even a lenient reader refuses it: ``received`` has no body."""


@dataclass(slots=True)
class Connection:
    number: int
    host: str
    race_ms: int
    """So long after an answer a request may have been written before the client had read it."""
    broker: str = ""
    """The address of the broker, as it is shown."""
    client_id: str = ""
    software: str = ""
    waiting: deque[Asked] = field(default_factory=lambda: deque(maxlen=MOST_WAITING))
    tracks: dict[str, Track] = field(default_factory=dict)
    """By group."""
    offered: AnswerSeen | None = None
    answered_ms: int = -(1 << 40)


class Watcher:
    reads: Collection[str] = READ
    """The requests that it reads, with their answers."""

    def __init__(self, edition: Edition, say: Callable[[str], None]) -> None:
        """``say`` gets lines for people: broken laws, and what is not watched."""
        self.edition = edition
        self.say = say
        self.counts: Counter[str] = Counter()
        self.facts = Facts()
        self.coordinators = Coordinators()
        self.judging = Judging(edition, say)
        self.exchanges = Exchanges()
        self.unread = ""
        """Why the rest of a capture was not read; empty: all of it was."""
        self._contents = Contents(edition, self.facts.topics, by_task=True)
        self._embedded = EmbeddedBytes(edition, self.note)
        self._keys = {key: message.name.removesuffix("Request") for key, message in requests(edition).items()}
        self._versions = self._readable()
        self._tracks: dict[tuple[str, str], Track] = {}
        """By group and member id, the ones that were used last at the end."""
        self._dirty: dict[int, Track] = {}
        self._opened = 0
        self._notes: set[str] = set()

    @property
    def reported(self) -> list[Reported]:
        return self.judging.reported

    def _readable(self) -> dict[int, range]:
        versions = {}
        for key, message in requests(self.edition).items():
            if self._keys[key] in self.reads and message.versions.high is not None:
                newest = requests(form(self.edition, message.name))[key].versions.high or message.versions.high
                versions[key] = range(newest + 1)
        return versions

    def is_read(self, key: int, version: int) -> bool:
        """Whether a request and its answer are decoded, and so have to be whole."""
        if key in self._versions and version not in self._versions[key]:
            self.note(f"{self._keys[key]} v{version} is newer than this kipcheck: it passes, and is not judged")
        return version in self._versions.get(key, ())

    def note(self, text: str) -> None:
        """Says something once."""
        if text not in self._notes and len(self._notes) < MOST_NOTES:
            self._notes.add(text)
            self.say(text)

    # What passes

    def opened(self, at_s: float, host: str, race_ms: int, broker: str = "") -> Connection:
        self._opened += 1
        self.counts["connections"] += 1
        return Connection(self._opened, host, race_ms, broker)

    def closed(self, connection: Connection, at_s: float, why: str = "") -> None:
        event = Closed(ms_of(at_s), connection.number, why)
        for track in connection.tracks.values():
            track.happened(event)
            track.connections.discard(connection.number)
        connection.tracks.clear()
        connection.waiting.clear()

    def missed(self, connection: Connection) -> None:
        """Something passed on a connection that was not seen whole."""
        self.counts["gaps"] += 1
        self.coordinators.missed()
        connection.waiting.clear()
        for track in connection.tracks.values():
            track.reset()

    def asked(self, connection: Connection, at_s: float, payload: bytes, whole: bool = True) -> Asked:
        """A request passed. ``payload``: header and body; only the begin of the header unless it is ``whole``."""
        key, version = _int16(payload, 0), _int16(payload, 2)
        asked = Asked(key, version, int.from_bytes(payload[4:8], "big", signed=True))
        waits = bool(connection.waiting)
        connection.waiting.append(asked)
        self.counts["requests"] += 1
        self.exchanges.requests[self._api(key)] += 1
        if not self.is_read(key, version):
            self._leave(asked, exchanges.NEWER if key in self._versions else exchanges.UNREAD)
            return asked
        if not whole:
            self.missed(connection)
            connection.waiting.append(asked)
            return asked
        try:
            content = read(payload, self.edition, self._versions)
        except Refused as refused:
            asked.is_unread = True
            content = Content(f"{self._keys[key]}Request", version, asked.correlation, None, {}, refused=refused)
        except Unserved:
            return asked
        except TooManyEntries:
            return self._crowded(connection, asked)
        if not asked.is_unread:
            connection.client_id = content.client_id or ""
        recent = ms_of(at_s) <= connection.answered_ms + connection.race_ms
        asked.received = Received(
            content.message, version, asked.correlation, content.client_id, content.body, connection.number,
            connection.host, at_s, pipelined=waits or recent,
        )  # fmt: skip
        try:
            if not asked.is_unread:
                with self._ours(connection):
                    self._read(connection, asked, payload, waits)
                    for wrong in self._embedded.asked(asked.received, asked.sent, payload):
                        self._damaged(connection, asked, wrong)
        except TooManyEntries:
            return self._crowded(connection, asked)
        if content.refused is not None:
            self._refused(connection, at_s, payload, content.refused, asked)
        return asked

    def _api(self, key: int) -> str:
        return self._keys.get(key, "an unknown API")

    def _leave(self, asked: Asked, reason: str) -> None:
        """Counts an exchange that is not judged, unless it is counted already."""
        if not asked.is_counted:
            asked.is_counted = True
            self.exchanges.leave(reason, self._api(asked.key))

    def _judged(self, asked: Asked) -> None:
        if not asked.is_counted:
            asked.is_counted = True
            self.exchanges.judged[self._api(asked.key)] += 1

    def answered(self, connection: Connection, correlation: int) -> Asked | None:
        """The request of an answer that begins to pass; requests before it have none. None: it was not seen."""
        for number, asked in enumerate(connection.waiting):
            if asked.correlation == correlation:
                for _ in range(number + 1):
                    connection.waiting.popleft()
                return asked
        return None

    def answer(self, connection: Connection, at_s: float, asked: Asked, payload: bytes | None) -> None:
        """An answer passed. ``payload``: header and body; None if it is too large to be read."""
        connection.answered_ms = ms_of(at_s)
        if asked.received is None:
            return
        request = asked.received
        if payload is None:
            if request.api == DESCRIBE:
                return self.note("an answer to DescribeGroups is too large: what members wrote in it is not judged")
            return self.missed(connection)
        if request.api == "ApiVersions" and _int16(payload, 4) == KafkaError.UNSUPPORTED_VERSION:
            unserved = AnswerSeen(
                ms_of(at_s), connection.number, request.api, request.version, error=KafkaError.UNSUPPORTED_VERSION
            )
            self._answers_reported(asked, unserved)
            return self._leave(asked, exchanges.CONTEXT)  # in version 0; the client asks again
        edition = form(self.edition, request.response)
        try:
            body = decode_response(payload, edition, request.response, request.version, lenient=True).body
        except (Refused, LookupError) as why:
            self.counts["answers that cannot be read"] += 1
            self._leave(asked, exchanges.DAMAGED_ANSWER)
            if request.api in OF_A_GROUP:
                self.note(f"an answer to {request.api} v{request.version} cannot be read, and is not judged: {why}")
                self.missed(connection)
            return
        with self._ours(connection):
            reply = self._contents.reply(request, body)
            answer = self._contents.answered(at_s, request, body, asked.sent, reply)
            self._answers_reported(asked, answer)
            if asked.is_unread:
                return
            event = self._answered(connection, asked, request, answer, reply, len(payload))
            for wrong in self._embedded.answered(at_s, request, asked.sent, reply, payload):
                if not self.coordinators.is_sent(request.group, asked.sent, reply):
                    self._damaged(connection, asked, wrong)
            if request.api not in OF_A_GROUP:
                return self._leave(asked, exchanges.DESCRIBED if request.api == DESCRIBE else exchanges.CONTEXT)
            if event is not None and self._judge_coordinator(connection, asked, event, reply, payload):
                self._judged(asked)
            self._count(asked)

    def _answers_reported(self, asked: Asked, answer: AnswerSeen) -> None:
        """The answer to a request whose encoding is reported."""
        if asked.reported is not None:
            self.judging.answered(asked.reported, answer)

    def _count(self, asked: Asked) -> None:
        """Counts an exchange of a group that no coordinator's law has read: that of a member when it is judged."""
        track = asked.track
        if asked.is_counted:
            return
        if track is None or track.unjudged:
            return self._leave(asked, exchanges.NO_MEMBER if track is None else track.unjudged)
        if asked.is_plain:
            return self._judged(asked)
        asked.is_counted = True
        track.pending.by_api[self._api(asked.key)] += 1

    def tick(self, now_s: float, late_ms: int = 0) -> None:
        """Judges what came since; call it about once a second. ``late_ms``: how late this machine was."""
        for key, track in [*self._dirty.items()]:
            if self.judging.is_due(track, ms_of(now_s)):
                self._judge(track, late_ms)
                del self._dirty[key]

    def end(self, now_s: float, late_ms: int = 0) -> None:
        for track in self._dirty.values():
            self._judge(track, late_ms)
        self._dirty.clear()

    def _judge(self, track: Track, late_ms: int) -> None:
        try:
            self.judging.judge(track, late_ms)
        except Exception:  # noqa: BLE001 - the others are judged on
            traceback.print_exc(file=sys.stderr)
            self.counts["our bugs"] += 1
            track.reset(exchanges.DEFECT)

    def _crowded(self, connection: Connection, asked: Asked) -> Asked:
        """A request has so many entries that decoding it would hold up others: it passes without a look."""
        self.note(f"requests with more than {MOST_ENTRIES} entries pass, and are not judged")
        self._leave(asked, exchanges.CROWDED)
        asked.received = None
        self.missed(connection)
        connection.waiting.append(asked)
        return asked

    @contextmanager
    def _ours(self, connection: Connection) -> Iterator[None]:
        """A defect of kipcheck's is shown on stderr, and what passes passes on."""
        try:
            yield
        except TooManyEntries:
            raise
        except Exception:  # noqa: BLE001 - clients do not suffer from it
            traceback.print_exc(file=sys.stderr)
            self.counts["our bugs"] += 1
            self.missed(connection)

    # Requests

    def _read(self, connection: Connection, asked: Asked, payload: bytes, waits: bool) -> None:
        request = asked.received
        assert request is not None
        body = request.body
        if request.api == "ApiVersions":
            named = body.get("clientSoftwareName", ""), body.get("clientSoftwareVersion", "")
            if all(map(SOFTWARE.fullmatch, named)):
                connection.software = f"{named[0]} {named[1]}"
        if request.api not in OF_A_GROUP:
            return
        asked.sent = self._contents.sent(request)
        self.coordinators.asked(request.group, asked.sent)
        event = self._contents.asked(request, asked.sent)
        if request.pipelined and not waits:
            # It only may have been written early: client/correlates is about requests that certainly were.
            event = replace(event, correlation=f"{asked.correlation} after an answer")
        track = self._track(connection, asked, request, event)
        if track is None:
            return
        of_its_own = event.partitions if request.api in SHARES else event.owned if request.api == HEARTBEAT else None
        if not self._is_known(of_its_own or ()):
            track.reset(exchanges.UNNAMED)
        is_of_tasks = track.check == SURVIVES_STREAMS
        if request.api == "OffsetCommit" and (is_of_tasks or not self._is_known(event.partitions or ())):
            event = replace(event, partitions=())
        asked.event, asked.track = event, track
        track.asked(event, payload)
        self._touch(track)

    def _is_known(self, partitions: tuple[str, ...]) -> bool:
        """Whether all topics have names here: some requests name them by ids."""
        names = self.facts.topics.by_name
        return all(partition.rpartition("-")[0] in names for partition in partitions)

    def _track(self, connection: Connection, asked: Asked, request: Received, event: RequestSeen) -> Track | None:
        """The history that a request belongs to; None if its sender need not be a member."""
        group, id = request.group, event.member or ""
        track, owner = connection.tracks.get(group), self._tracks.get((group, id)) if id else None
        if track is not None:
            if owner is not None and owner is not track:
                track.shared = owner.shared = True
            return track
        if request.api in NAMELESS and owner is None:
            return None
        if owner is not None and (owner.about.client_id, owner.about.host) != (connection.client_id, connection.host):
            if request.api in NAMELESS:
                return None
            owner.shared = True
        if len(connection.tracks) >= MOST_GROUPS:
            self.note(f"a connection has requests of more than {MOST_GROUPS} groups: further ones are not judged")
            self._leave(asked, exchanges.TOO_MANY)
            return None
        track = owner
        if track is None:
            track = Track(self._member(connection, group), Pending(self.exchanges))
            self.counts["members"] += 1
        connection.tracks[group] = track
        track.connections.add(connection.number)
        if connection.offered is not None:
            track.events.append(connection.offered)
        if id:
            self._name(track, group, id)
        return track

    def _member(self, connection: Connection, group: str) -> Member:
        """Who sends over a connection. What the client calls itself is its name in files, if that is plain."""
        id = connection.client_id
        software = connection.software or (id if SOFTWARE.fullmatch(id) else "a client")
        return Member(group, id, connection.host, software)

    def _name(self, track: Track, group: str, id: str) -> None:
        self._tracks.pop((group, id), None)
        self._tracks[group, id] = track
        while len(self._tracks) > MOST_TRACKS:
            self._forget()
        if len(self._tracks) > 1 and sum(track.size for track in self._tracks.values()) > MOST_SIZE:
            self._forget()

    def _forget(self) -> None:
        """Forgets the member that joined longest ago."""
        self._tracks.pop(next(iter(self._tracks))).reset(exchanges.TOO_MANY)
        self.counts["forgotten members"] += 1

    def _touch(self, track: Track) -> None:
        if track.is_judged and track.dirty_ms is not None:
            self._dirty[id(track)] = track

    def _refused(self, connection: Connection, at_s: float, payload: bytes, why: Refused, asked: Asked) -> None:
        """A request that strict decoding refuses. It needs no history to be judged."""
        self.counts["requests that strict decoding refuses"] += 1
        only = next(iter(connection.tracks.values())) if len(connection.tracks) == 1 else None
        about = only.about if only is not None else self._member(connection, "")
        event = refused_event(ms_of(at_s), connection.number, why, payload)
        asked.reported = self.judging.judge_bytes(about, only.member if only is not None else "", event, payload)
        self._judged(asked)

    def _damaged(self, connection: Connection, asked: Asked, event: RecordDamaged) -> None:
        """A record inside a request or an answer is damaged. Of an answer its sender is not the writer."""
        assert asked.received is not None
        self._judged(asked)
        group, id = event.group or asked.received.group, event.member
        if event.api.endswith("Request"):
            track, about = asked.track, self._member(connection, group)
            id = track.member if track is not None else ""
        else:
            is_subscription = "etadata" in event.path
            track, about = self._tracks.get((group, id)) if is_subscription else None, Member(group, "", "-", UNSEEN)
        self.judging.judge_bytes(about if track is None else track.about, id, event)

    # Answers

    def _answered(
        self, connection: Connection, asked: Asked, request: Received, event: AnswerSeen, reply: Reply, size: int
    ) -> AnswerSeen | None:
        """The event of the answer; None for Metadata."""
        if request.api == "Metadata":
            assert isinstance(reply, tuple)
            self.facts.described((connection.host, connection.client_id), reply[0], event.ms)
            return None
        if request.api == "ApiVersions":
            connection.offered = event
            return event
        track = asked.track
        if track is None:
            return event
        if request.api in (HEARTBEAT, SHARE_HEARTBEAT) and not self._is_known(event.partitions or ()):
            track.reset(exchanges.UNNAMED)
            return event
        if event.members is not None:
            event = self._with_sizes(track, event, event.members)
        if request.api in ("JoinGroup", *HEARTBEATS) and event.member:
            self._name(track, track.about.group, event.member)
        asked.is_plain = track.answered(event, asked.event, size)
        self._touch(track)
        return event

    def _judge_coordinator(
        self, connection: Connection, asked: Asked, event: AnswerSeen, reply: Reply, payload: bytes
    ) -> bool:
        """Whether a law of coordinators read the answer."""
        request = asked.received
        assert request is not None
        is_read, breaches = self.coordinators.answered(connection.number, request.group, asked.sent, reply)
        for law, violation in breaches:
            member = event.member or (event.to or ("",))[0]
            about = Member(request.group, connection.client_id, connection.broker, COORDINATOR)
            events = [known for known in (asked.event, event) if known is not None]
            self.judging.answer_breaks(about, member, law, violation, events, payload)
        return is_read

    def _with_sizes(self, track: Track, event: AnswerSeen, members: tuple[ListedMember, ...]) -> AnswerSeen:
        """An answer to a leader, with the partitions of the subscribed topics, and what the leader was sent of them
        before it. Without its members, if they are not certain."""
        wanted = {topic for member in members if member.subscription for topic in member.subscription.topics}
        known = self.facts.sizes(wanted, event.ms)
        told = self.facts.told.get((track.about.host, track.about.client_id), {})
        if known is None or not track.about.client_id or not track.begun:
            return replace(event, members=None, sizes=None)
        read = {name: told[name] for name in wanted if name in told}
        if read:
            last = max(at for _, at in read.values())
            sizes = {name: size for name, (size, _) in read.items()}
            at = next((at for at, earlier in enumerate(track.events) if earlier.ms > last), len(track.events))
            track.events.insert(at, AnswerSeen(last, -1, "Metadata", 0, sizes=sizes))
        return replace(event, sizes=known)


def _int16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big", signed=True)
