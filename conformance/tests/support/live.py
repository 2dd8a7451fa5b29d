"""A front in this process, and a client of it with kipcheck's own codec."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kipcheck.conformance.core.files.broker_settings import settings
from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.recording.received import form
from kipcheck.conformance.live.recording.traffic import Finding, Observer, Traffic
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.connection import Limits, Script
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.wire.framing import decode_response, encode_request, frame

QUICK = ("group.min.session.timeout.ms=50", "group.consumer.session.timeout.ms=700")
"""Settings with which members may be late after a fraction of a second."""
WAIT_S = 5.0
"""The longest time that a test waits for an answer."""


def known(config: Iterable[str], release: str) -> tuple[str, ...]:
    """The settings that the release has."""
    return tuple(each for each in config if each.partition("=")[0] in settings(release))


class Client:
    """One connection. Requests have the correlation ids 1, 2, ..."""

    def __init__(self, named: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.edition = named
        self.reader = reader
        self.writer = writer
        self.sent = 0

    async def ask(self, api: str, version: int, body: Mapping[str, Any], client_id: str = "me") -> dict[str, Any]:
        """The body of the response. Errors: ``asyncio.IncompleteReadError`` if the connection is closed."""
        self.send(api, version, body, client_id)
        return await self.receive(api, version)

    def send(self, api: str, version: int, body: Mapping[str, Any], client_id: str = "me") -> None:
        self.sent += 1
        made = encode_request(self._form(f"{api}Request"), f"{api}Request", version, self.sent, client_id, body)
        self.writer.write(frame(made))

    async def receive(self, api: str, version: int, correlation_id: int | None = None) -> dict[str, Any]:
        """``correlation_id``: default: that of the last request."""
        found = decode_response(await self.payload(), self._form(f"{api}Response"), f"{api}Response", version)
        assert found.correlation_id == (self.sent if correlation_id is None else correlation_id)
        return found.body

    def _form(self, message: str) -> Edition:
        return form(edition(self.edition), message)

    async def payload(self) -> bytes:
        async with asyncio.timeout(WAIT_S):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)

    async def is_closed(self, seconds: float = WAIT_S) -> bool:
        """Whether the other side closes the connection within this time; what it sends before is dropped."""
        try:
            async with asyncio.timeout(seconds):
                while await self.reader.read(65536):
                    pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True


class Findings(Observer):
    """An observer that keeps findings only."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def found(self, finding: Finding) -> None:
        self.findings.append(finding)


class World:
    """A front and what it serves."""

    def __init__(self, front: Front, script: Script, port: int, findings: list[Finding]) -> None:
        self.front = front
        self.script = script
        self.port = port
        self.findings = findings
        """The requests that strict decoding refused."""
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        return Client(str(self.front.edition), reader, writer)

    @property
    def counts(self) -> Mapping[str, int]:
        return self.front.traffic.counts

    def close(self) -> None:
        for each in self._writers:
            each.close()


@asynccontextmanager
async def serving(
    named: str = f"apache@{NEWEST}",
    *,
    limits: Limits | None = None,
    config: Iterable[str] | None = None,
    topics: Mapping[str, int] | None = None,
    script: Script | None = None,
    observers: tuple[Observer, ...] = (),
) -> AsyncIterator[World]:
    """``script``: default: a broker with topics t (3 partitions) and u (2). ``config``: its settings; default: those
    with quick sessions."""
    found = edition(named)
    given = known(QUICK, found.release) if config is None else config
    broker = Broker(found, Topics.of((topics or {"t": 3, "u": 2}).items()), given)
    front = Front(script or broker, found, limits, Traffic((*observers, found_in := Findings())))
    _, port = await front.listen("127.0.0.1", 0)
    world = World(front, script or broker, port, found_in.findings)
    try:
        yield world
    finally:
        world.close()
        await front.close()
        broker.close()


def run(test: Callable[[World], Awaitable[None]], **options: Any) -> None:
    """Runs a test with a world of its own."""

    async def main() -> None:
        async with serving(**options) as world:
            await test(world)

    asyncio.run(main())


JOIN = {
    "groupId": "g",
    "sessionTimeoutMs": 10_000,
    "rebalanceTimeoutMs": 10_000,
    "memberId": "",
    "protocolType": "consumer",
    "protocols": [{"name": "range", "metadata": b"\0\1"}],
}


async def joined(client: Client, version: int = 9, **changes: Any) -> dict[str, Any]:
    """The successful answer to a JoinGroup, after the one that gives the member id."""
    body = {**JOIN, **changes}
    found = await client.ask("JoinGroup", version, body)
    if found["errorCode"] == 79:
        found = await client.ask("JoinGroup", version, {**body, "memberId": found["memberId"]})
    assert found["errorCode"] == 0, found
    return found
