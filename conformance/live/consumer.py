"""A small consumer over one socket, which keeps every rule. Mutants change one decision each.

As a program: ``python -m kipcheck.conformance.live.consumer BOOTSTRAP GROUP TOPIC``.
"""

import asyncio
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from kipcheck.conformance.core.edition import APACHE
from kipcheck.conformance.wire.framing import decode_response, encode_request, frame
from kipcheck.conformance.wire.schema import spec

VERSIONS: Final = {
    "ApiVersions": 0, "Metadata": 1, "FindCoordinator": 0, "JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3,
    "LeaveGroup": 1, "OffsetCommit": 5, "Fetch": 4,
}  # fmt: skip
NONE, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE, MEMBER_ID_REQUIRED = 0, 25, 22, 27, 79
RETRIED: Final = frozenset({14, 15, 16, REBALANCE, ILLEGAL_GENERATION})
PAUSE_S: Final = 0.02
HEARTBEAT_S: Final = 0.1
TRIES: Final = 5


class Consumer:
    """Runs until it is stopped."""

    def __init__(self, bootstrap: str, group: str, topic: str, session_ms: int) -> None:
        self.host, _, port = bootstrap.rpartition(":")
        self.port = int(port)
        self.group, self.topic, self.session_ms = group, topic, session_ms
        self.member, self.generation = "", -1
        self.owned: tuple[int, ...] = ()
        self.stopping = asyncio.Event()
        self.sent = 0

    async def run(self) -> int:
        """Its exit code."""
        await self.connect()
        try:
            await self.ask("ApiVersions", {})
            await self.ask("Metadata", {"topics": [{"name": self.topic}]})
            await self.ask("FindCoordinator", {"key": self.group})
            await self.join()
            while not self.stopping.is_set():
                await self.round()
            await self.leave()
        finally:
            self.writer.close()
        return 0

    async def round(self) -> None:
        """A heartbeat, a fetch, a commit, and what follows from their answers."""
        error = (await self.ask("Heartbeat", self.names()))["errorCode"]
        if error == NONE and self.owned:
            await self.fetch()
            error = await self.commit()
        if error != NONE:
            return await self.recover(error)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), HEARTBEAT_S)

    async def recover(self, error: int) -> None:
        if error == UNKNOWN_MEMBER_ID:
            self.member, self.generation = "", -1
        if error in (15, 16):
            await self.ask("FindCoordinator", {"key": self.group})
            return
        await asyncio.sleep(PAUSE_S)
        if error != 14:
            await self.join()

    async def join(self) -> None:
        """Joins until it has an assignment."""
        while not self.stopping.is_set():
            metadata = spec(APACHE, "ConsumerProtocolSubscription").at(0).encode({"topics": [self.topic]})
            answer = await self.ask("JoinGroup", {
                "groupId": self.group, "sessionTimeoutMs": self.session_ms, "rebalanceTimeoutMs": 5000,
                "memberId": self.member, "protocolType": "consumer",
                "protocols": [{"name": "range", "metadata": metadata}],
            })  # fmt: skip
            error = answer["errorCode"]
            if error == NONE:
                self.member, self.generation = answer["memberId"], answer["generationId"]
                error = await self.sync(answer)
                if error == NONE:
                    return
            elif error == MEMBER_ID_REQUIRED:
                self.member = answer["memberId"]
                continue
            if error == UNKNOWN_MEMBER_ID:
                self.member = ""
            elif error not in RETRIED:
                raise RuntimeError(f"error {error}")
            await asyncio.sleep(PAUSE_S)

    async def sync(self, joined: Mapping[str, Any]) -> int:
        assignments = []
        if joined["leader"] == self.member:
            members = [each["memberId"] for each in joined["members"]]
            for place, each in enumerate(members):
                mine = list(range(place, 4, len(members)))
                assignments.append({"memberId": each, "assignment": self.assignment(mine)})
        answer = await self.ask("SyncGroup", {**self.names(), "assignments": assignments})
        if answer["errorCode"] == NONE:
            found = spec(APACHE, "ConsumerProtocolAssignment").at(0).decode(answer["assignment"])
            self.own(tuple(part for each in found["assignedPartitions"] for part in each["partitions"]))
        error: int = answer["errorCode"]
        return error

    def own(self, partitions: tuple[int, ...]) -> None:
        self.owned = partitions

    def assignment(self, partitions: list[int]) -> bytes:
        topics = [{"topic": self.topic, "partitions": partitions}] if partitions else []
        return spec(APACHE, "ConsumerProtocolAssignment").at(0).encode({"assignedPartitions": topics, "userData": None})

    async def fetch(self) -> None:
        parts = [{"partition": each, "fetchOffset": 0, "partitionMaxBytes": 1000} for each in self.owned]
        await self.ask("Fetch", {
            "replicaId": -1, "maxWaitMs": 1, "minBytes": 0, "maxBytes": 10_000,
            "topics": [{"topic": self.topic, "partitions": parts}],
        })  # fmt: skip

    async def commit(self) -> int:
        parts = [{"partitionIndex": each, "committedOffset": 1, "committedMetadata": ""} for each in self.owned]
        names = {**self.names()}
        answer = await self.ask("OffsetCommit", {
            "groupId": names["groupId"], "memberId": names["memberId"],
            "generationIdOrMemberEpoch": names["generationId"],
            "topics": [{"name": self.topic, "partitions": parts}],
        })  # fmt: skip
        error: int = answer["topics"][0]["partitions"][0]["errorCode"]
        return error

    async def leave(self) -> None:
        if self.member:
            await self.ask("LeaveGroup", {"groupId": self.group, "memberId": self.member})

    def names(self) -> dict[str, Any]:
        return {"groupId": self.group, "memberId": self.member, "generationId": self.generation}

    # Connection

    def version(self, api: str) -> int:
        return VERSIONS[api]

    def written(self, api: str, version: int, body: Mapping[str, Any]) -> bytes:
        return encode_request(APACHE, f"{api}Request", version, self.sent, "small", body)

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer; over a new connection if the one that there was is lost. Errors: OSError, EOFError."""
        for _ in range(TRIES):
            try:
                return await self._ask(api, body)
            except (OSError, EOFError):
                self.writer.close()
                await asyncio.sleep(PAUSE_S)
                await self.connect()
        raise ConnectionError(f"{api} was never answered")

    async def _ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        version = self.version(api)
        self.sent += 1
        self.writer.write(frame(self.written(api, version, body)))
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return decode_response(await self.reader.readexactly(size), APACHE, f"{api}Response", version).body


async def main(made: type[Consumer], bootstrap: str, group: str, topic: str) -> int:
    """Runs a consumer until SIGTERM."""
    consumer = made(bootstrap, group, topic, 3000)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, consumer.stopping.set)
    return await consumer.run()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Consumer, *sys.argv[1:])))
