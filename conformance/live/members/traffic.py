"""Reads the JoinGroup, SyncGroup and LeaveGroup exchanges of members that pass a proxy, each with its time.

The time is that at which the proxy read it: of a request after its member sent it, of an answer before its member can
read it. It is CLOCK_MONOTONIC's, in nanoseconds, which all processes of a machine have in common.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.recording import contents
from kipcheck.conformance.live.recording.received import Received, form
from kipcheck.conformance.live.watch.watcher import Asked, Connection, Watcher
from kipcheck.conformance.wire.embedded import read_assignment, read_subscription
from kipcheck.conformance.wire.framing import decode_request, decode_response

READ: Final = frozenset({"JoinGroup", "LeaveGroup", "SyncGroup"})
subscribed = lru_cache(maxsize=4096)(read_subscription)
assigned = lru_cache(maxsize=4096)(read_assignment)


@final
@dataclass(frozen=True, slots=True)
class Sent:
    """A request of a member."""

    at_ns: int
    client_id: str
    group: str
    request: contents.Sent


@final
@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request."""

    at_ns: int
    sent: Sent
    reply: contents.Reply


class GroupTraffic(Watcher):
    """Passes requests of groups and their answers to ``take``. ``start_s``: the time from which the proxy counts."""

    def __init__(self, take: Callable[[Sent | Answered], None]) -> None:
        super().__init__(APACHE, lambda text: None)
        self.start_s = 0.0
        self._take = take

    def is_read(self, key: int, version: int) -> bool:
        return self._api(key) in READ and super().is_read(key, version)

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
            self._take(self._sent(request, found.sent))
        return found

    def answer(self, connection: Connection, at_s: float, asked: Asked, payload: bytes | None) -> None:
        request = asked.received
        if request is not None and payload is not None:
            edition = form(APACHE, request.response)
            body = decode_response(payload, edition, request.response, request.version, lenient=True).body
            sent = self._sent(request, asked.sent)
            self._take(Answered(self._ns(at_s), sent, self._contents.reply(request, body)))

    def closed(self, connection: Connection, at_s: float, why: str = "") -> None:
        connection.waiting.clear()

    def _sent(self, request: Received, sent: contents.Sent) -> Sent:
        return Sent(self._ns(request.at_s), request.client_id or "", request.group, sent)

    def _ns(self, at_s: float) -> int:
        return round((self.start_s + at_s) * 1e9)
