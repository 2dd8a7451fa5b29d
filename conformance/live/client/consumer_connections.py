"""The connections of the small consumer: one to the broker that it was given, and one to its coordinator."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.wire.framing import decode_response, encode_request, frame
from kipcheck.conformance.wire.schema import spec

VERSIONS: Final = {
    "ApiVersions": 0, "Metadata": 1, "FindCoordinator": 0, "JoinGroup": 5, "SyncGroup": 5, "Heartbeat": 3,
    "LeaveGroup": 1, "OffsetCommit": 7, "OffsetFetch": 5, "ListOffsets": 1, "Fetch": 4, "ConsumerGroupHeartbeat": 1,
    "StreamsGroupHeartbeat": 0, "ShareGroupHeartbeat": 1, "ShareFetch": 1,
}  # fmt: skip
WITH_IDS: Final = 12
"""Metadata."""
COORDINATED: Final = frozenset({
    "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat",
    "StreamsGroupHeartbeat", "ShareGroupHeartbeat",
})  # fmt: skip
PAUSE_S: Final = 0.06
"""Before a request is repeated."""
TRIES: Final = 60
MOST_LOST: Final = 20
"""Of these those that lost a connection, as for what it sends; the others could not connect."""
LAST_TRIES: Final = 5
"""Of a consumer that closes."""
LONGEST_PAUSE_S: Final = 0.4
"""Between attempts to connect, which grow."""


class Channel:
    """A connection, which is opened again when it is lost."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.sent = 0
        self.writer: asyncio.StreamWriter | None = None
        self.in_turn = asyncio.Lock()

    async def ask(self, message: bytes) -> bytes:
        """The answer to a request, each without its size; requests of several tasks go out one after the other. Errors:
        OSError, EOFError."""
        async with self.in_turn:
            await self.write(message)
            return await self.read()

    async def write(self, message: bytes) -> None:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        self.writer.write(frame(message))

    async def read(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.writer = None


class Connections(ABC):
    """Requests and their answers, over connections that are opened again."""

    client_id = "small"

    def __init__(self, bootstrap: str, session_ms: int, is_modern: bool) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.home = self.coordinator = Channel(host, int(port))
        self.session_ms, self.is_modern = session_ms, is_modern
        self.nodes: list[tuple[str, int]] = []
        """All nodes of the cluster; the first is the one that it asks what others than the coordinator answer."""
        self.offered: dict[int, range] = {}
        """The versions that its broker offers, by API key; empty: it did not ask."""
        self.stopping, self.running = asyncio.Event(), asyncio.Event()
        self.running.set()

    @abstractmethod
    async def find_coordinator(self) -> None:
        """Sets ``coordinator``."""

    def version(self, api: str) -> int:
        return VERSIONS[api] if api != "Metadata" or not self.is_modern else WITH_IDS

    def written(self, api: str, version: int, correlation: int, body: Mapping[str, Any]) -> bytes:
        return encode_request(APACHE, f"{api}Request", version, correlation, self.client_id, body)

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer; over a new connection if the one that there was is lost. Errors: ConnectionError."""
        lost = 0
        for tried in range(TRIES):
            channel = self.coordinator if api in COORDINATED else self.home
            try:
                if channel.writer is None:
                    await self.ask_versions(channel)
                async with asyncio.timeout(self.patience_s(api)):
                    return await self._ask(channel, api, body)
            except TimeoutError:
                channel.close()
            except (OSError, EOFError):
                lost += channel.writer is not None
                channel.close()
                if lost > MOST_LOST or (self.stopping.is_set() and tried >= LAST_TRIES):
                    break
                await asyncio.sleep(min(PAUSE_S * 2**tried, LONGEST_PAUSE_S))
            if channel is not self.home:
                await self.find_coordinator()  # which may be another node by now
            else:
                self.turn_to_the_next_node()
        raise ConnectionError(f"{api} was never answered")

    def turn_to_the_next_node(self) -> None:
        if len(self.nodes) > 1:
            if self.home is not self.coordinator:
                self.home.close()
            self.nodes = [*self.nodes[1:], self.nodes[0]]
            self.home = Channel(*self.nodes[0])

    async def ask_versions(self, channel: Channel) -> None:
        """Of a connection that is new: its broker may be of another release now. Errors: as ``_ask``; RuntimeError."""
        answer = await self._ask(channel, "ApiVersions", {})
        self.offered = {each["apiKey"]: range(each["minVersion"], each["maxVersion"] + 1) for each in answer["apiKeys"]}

    def patience_s(self, api: str) -> float | None:
        """How long the answer to a request is awaited. A coordinator that is silent for a session is taken for dead."""
        return self.session_ms / 1000 if api == "Heartbeat" else None

    async def _ask(self, channel: Channel, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        version = self.version(api)
        if self.offered and VERSIONS[api] not in self.offered.get(spec(APACHE, f"{api}Request").api_key or 0, ()):
            raise RuntimeError(f"the broker does not offer version {VERSIONS[api]} of {api}")
        await self.running.wait()
        channel.sent += 1
        answer = await channel.ask(self.written(api, version, channel.sent, self.known(api, version, body)))
        await self.running.wait()
        return decode_response(answer, APACHE, f"{api}Response", version).body

    def known(self, api: str, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that a version has."""
        fields = {each.name for each in spec(APACHE, f"{api}Request").at(version).slots}
        return {name: value for name, value in body.items() if name in fields}
