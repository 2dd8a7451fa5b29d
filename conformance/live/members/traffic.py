"""Reads the JoinGroup, SyncGroup and LeaveGroup exchanges of members, each with its time: those that pass a proxy, or
that reach a broker of kipcheck's.

The time is that at which kipcheck read it: of a request after its member sent it, of an answer before its member can
read it. It is CLOCK_MONOTONIC's, in nanoseconds, which all processes of a machine have in common.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

from kipcheck.conformance.core.values.edition import APACHE, Edition
from kipcheck.conformance.live.recording import contents
from kipcheck.conformance.live.recording.received import Received, form
from kipcheck.conformance.live.recording.traffic import Observer
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.live.watch.watcher import Asked, Connection, Watcher
from kipcheck.conformance.wire.embedded import read_assignment, read_subscription
from kipcheck.conformance.wire.framing import decode_request, decode_response

STREAMS_HEARTBEAT: Final = "StreamsGroupHeartbeat"
READ: Final = frozenset({"JoinGroup", "LeaveGroup", "SyncGroup", STREAMS_HEARTBEAT})
subscribed = lru_cache(maxsize=4096)(read_subscription)
assigned = lru_cache(maxsize=4096)(read_assignment)


@final
@dataclass(frozen=True, slots=True)
class StreamsBeat:
    """A heartbeat of a member of a streams group."""

    epoch: int


@final
@dataclass(frozen=True, slots=True)
class StreamsBeaten:
    """The answer to it. ``active``: the partitions of its active tasks; None: unchanged."""

    epoch: int
    error: int
    active: frozenset[int] | None = None


@final
@dataclass(frozen=True, slots=True)
class Sent:
    """A request of a member."""

    at_ns: int
    client_id: str
    group: str
    request: contents.Sent | StreamsBeat


@final
@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request."""

    at_ns: int
    sent: Sent
    reply: contents.Reply | StreamsBeaten


class GroupTraffic(Watcher):
    """Passes requests of groups and their answers to ``take``. ``start_s``: the time from which the proxy counts."""

    reads = READ

    def __init__(self, take: Callable[[Sent | Answered], None]) -> None:
        super().__init__(APACHE, lambda text: None)
        self.start_s = 0.0
        self._take = take

    def asked(self, connection: Connection, at_s: float, payload: bytes, whole: bool = True) -> Asked:
        key, version = (int.from_bytes(payload[at : at + 2], "big", signed=True) for at in (0, 2))
        correlation = int.from_bytes(payload[4:8], "big", signed=True)
        found = Asked(key, version, correlation)
        connection.waiting.append(found)
        if whole and self.is_read(key, version):
            read = decode_request(payload, APACHE, lenient=True)
            request = found.received = Received(
                read.message, version, correlation, read.client_id, read.body, connection.number, connection.host, at_s
            )
            found.sent = self._contents.sent(request)
            self._take(_sent(self.start_s, request, found.sent))
        return found

    def answer(self, connection: Connection, at_s: float, asked: Asked, payload: bytes | None) -> None:
        request = asked.received
        if request is not None and payload is not None:
            edition = form(APACHE, request.response)
            body = decode_response(payload, edition, request.response, request.version, lenient=True).body
            sent = _sent(self.start_s, request, asked.sent)
            self._take(Answered(ns_of(self.start_s + at_s), sent, _reply(self._contents, request, body)))

    def closed(self, connection: Connection, at_s: float, why: str = "") -> None:
        connection.waiting.clear()


class BrokerTraffic(Observer):
    """The same of what reaches a broker of kipcheck's. ``start_s``: the time from which its front counts."""

    def __init__(self, edition: Edition, topics: Topics, take: Callable[[Sent | Answered], None]) -> None:
        self.start_s = 0.0
        self._contents = contents.Contents(edition, topics)
        self._take = take

    def received(self, request: Received) -> None:
        if request.api in READ:
            self._take(self._sent(request))

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None:
        if request.api in READ:
            reply = _reply(self._contents, request, body)
            self._take(Answered(ns_of(self.start_s + at_s), self._sent(request), reply))

    def _sent(self, request: Received) -> Sent:
        return _sent(self.start_s, request, self._contents.sent(request))


def _sent(start_s: float, request: Received, sent: contents.Sent) -> Sent:
    is_beat = request.api == STREAMS_HEARTBEAT
    read = StreamsBeat(request.body["memberEpoch"]) if is_beat else sent
    return Sent(ns_of(start_s + request.at_s), request.client_id or "", request.group, read)


def _reply(read: contents.Contents, request: Received, body: Mapping[str, Any]) -> contents.Reply | StreamsBeaten:
    if request.api != STREAMS_HEARTBEAT:
        return read.reply(request, body)
    tasks = body["activeTasks"]
    active = None if tasks is None else frozenset(number for each in tasks for number in each["partitions"])
    return StreamsBeaten(body["memberEpoch"], body["errorCode"], active)


def ns_of(at_s: float) -> int:
    return round(at_s * 1e9)
