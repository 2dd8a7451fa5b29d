"""Brokers of kipcheck's own with one planted defect each in how they treat damaged requests, and their player."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Replied
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.live.damage.player import Damage
from kipcheck.conformance.live.damage.requests import key_of
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import Topics

EDITION: Final = "apache@3.9.2"
PATIENCE: Final = 0.1
LEAKED: Final = 5
"""Descriptors that are forgotten with each damaged connection."""
JOIN: Final = key_of("JoinGroup")
HOST: Final = "127.0.0.1"


class OddFront(Front):
    """Knows whether a connection was closed for what it sent."""

    damaged = 0

    def closed(self, connection: Connection, why: str) -> None:
        self.damaged += bool(why)
        super().closed(connection, why)


class Odd(Broker):
    front: OddFront


class Sticks(Odd):
    """Answers no client once a connection was closed for a damaged request."""

    def received(self, request: Received, connection: Connection) -> None:
        if not self.front.damaged:
            super().received(request, connection)


class Confuses(Odd):
    """Reads offsets wrongly once a connection was closed for a damaged request."""

    def received(self, request: Received, connection: Connection) -> None:
        if self.front.damaged and request.api == "OffsetFetch":
            part = {"partitionIndex": 0, "committedOffset": 0, "metadata": "", "errorCode": 0}
            topics = [{"name": each["name"], "partitions": [part]} for each in request.body.get("topics", ())]
            return connection.answer(request, {"topics": topics, "errorCode": 0})
        super().received(request, connection)


class Leaks(Odd):
    """Forgets descriptors with each connection that was closed for a damaged request."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.forgotten: list[int] = []
        self._before = 0

    def closed(self, connection: Connection) -> None:
        super().closed(connection)
        if connection._why:
            self.forgotten += [os.dup(0) for _ in range(LEAKED)]


class KeepsHalves(Odd):
    """Keeps a connection that ends amid a request."""

    def opened(self, connection: Connection) -> None:
        super().opened(connection)
        connection.eof_received = lambda: True  # type: ignore[method-assign]


class RefusesOldJoins(Odd):
    """Closes a connection for JoinGroup 0 or 1."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.versions[JOIN] = range(2, self.versions[JOIN].stop)


ODD: Final[Mapping[str, type[Odd]]] = {
    each.__name__: each for each in (Sticks, Confuses, Leaks, KeepsHalves, RefusesOldJoins)
}


class Played:
    """A case with a broker in this process, step by step."""

    def __init__(self, name: str) -> None:
        self._runner = asyncio.Runner()
        self._broker, self._front, self._damage = self._runner.run(self._start(ODD[name]))

    async def _start(self, made: type[Odd]) -> tuple[Odd, OddFront, Damage]:
        found = edition(EDITION)
        broker = made(found, Topics.of([("t", 1)]))
        front = broker.front = OddFront(broker, found)
        connections = Connections(*await front.listen(HOST, 0))
        versions = await versions_of(connections)
        damage = Damage(connections, versions, "g", "t", lambda: (os.getpid(),), PATIENCE)
        await damage.begin()
        return broker, front, damage

    def step(self, step: Step) -> Mapping[str, Any]:
        found = self._runner.run(self._damage.step(step))
        assert isinstance(found, Replied)
        return dict(found.payload)

    def close(self) -> None:
        self._runner.run(self._end())
        self._runner.close()
        if isinstance(self._broker, Leaks):
            for each in self._broker.forgotten:
                os.close(each)

    async def _end(self) -> None:
        await self._damage.connections.close()
        await self._front.close()
