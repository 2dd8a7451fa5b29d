"""The fetch sessions of a broker (KIP-227): which partitions a Fetch is about, and which of them its answer names.

Source: class ``FetchManager``, ``FetchContext`` and ``FetchSession``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.recording.fetch_sessions import (
    FULL,
    IDS_SINCE,
    MOST_SESSIONS,
    SESSIONLESS,
    Key,
    Partitions,
    epoch_of,
    named,
    updated,
)
from kipcheck.conformance.live.recording.received import Received

MOST_PARTITIONS: Final = 100_000
"""Of all sessions. Beyond it the oldest ones are forgotten."""


@dataclass(slots=True, eq=False)
class Session:
    id: int
    node: tuple[str, int]
    """The address at which the broker was reached: each node has its own sessions."""
    by_id: bool
    """Whether its requests name topics by ids."""
    partitions: Partitions
    epoch: int = 1
    """Of its next request."""
    sent: dict[Key, tuple[int, int]] = field(default_factory=dict)
    """End and start of each log that the client knows."""

    def is_news(self, key: Key, part: Mapping[str, Any]) -> bool:
        """Whether the answer to a request that is not full names the partition. One with records is read last from now
        on, so that no other one waits for it."""
        bounds = part["highWatermark"], part["logStartOffset"]
        if part["records"]:
            self.partitions[key] = self.partitions.pop(key, part)
        found = bool(part["errorCode"] or part["records"]) or self.sent.get(key) != bounds
        self.sent[key] = bounds
        return found


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a Fetch is about."""

    partitions: Partitions
    session: Session | None = None
    is_full: bool = True
    """Whether the answer names all partitions."""

    def named(self, parts: Mapping[Key, dict[str, Any]]) -> dict[Key, dict[str, Any]]:
        """The partitions that the answer names."""
        if self.session is None:
            return {**parts}
        is_news = {key: self.session.is_news(key, part) for key, part in parts.items()}
        return {key: part for key, part in parts.items() if self.is_full or is_news[key]}


class FetchSessions:
    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._last = 0

    def begin(self, request: Received) -> Wanted | KafkaError:
        """What a request is about, or the error with which it is answered."""
        epoch, id = epoch_of(request), request.body.get("sessionId", 0)
        by_id = request.version >= IDS_SINCE
        if epoch in (FULL, SESSIONLESS):
            self._sessions.pop(id, None)
            if epoch == SESSIONLESS:
                return Wanted(named(request))
            self._last += 1
            session = Session(self._last, request.reached, by_id, named(request))
            self._sessions[self._last] = session
            self._bound()
            return Wanted({**session.partitions}, session)
        found = self._sessions.get(id)
        if found is None or found.node != request.reached:
            return KafkaError.FETCH_SESSION_ID_NOT_FOUND
        if found.epoch != epoch:
            return KafkaError.INVALID_FETCH_SESSION_EPOCH
        if found.by_id is not by_id:
            return KafkaError.FETCH_SESSION_TOPIC_ID_ERROR
        found.partitions = updated(found.partitions, request)
        if not found.partitions:
            del self._sessions[id]
            return Wanted({})
        found.epoch = 1 if epoch == 2**31 - 1 else epoch + 1
        self._bound()
        return Wanted({**found.partitions}, found, is_full=False)

    def forget(self) -> None:
        """As a broker that needs the room, or starts again."""
        self._sessions.clear()

    def _bound(self) -> None:
        while self._sessions and (
            len(self._sessions) > MOST_SESSIONS
            or sum(len(session.partitions) for session in self._sessions.values()) > MOST_PARTITIONS
        ):
            del self._sessions[next(iter(self._sessions))]
