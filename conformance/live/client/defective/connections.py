"""Defects of bytes, versions and requests on a connection: see ``client.invariants.connections``."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer, Partition
from kipcheck.conformance.live.client.consumer_connections import Channel

UNSERVED: Final = bytes.fromhex("000d006300000001000000000000")
"""LeaveGroup in version 99."""


class WritesLoosely(Consumer):
    def written(self, api: str, version: int, correlation: int, body: Mapping[str, Any]) -> bytes:
        return super().written(api, version, correlation, body) + (b"\0" if api == "Heartbeat" else b"")


class SubscribesShort(Consumer):
    def metadata(self, assignor: str) -> bytes:
        return b"\0\1" + super().metadata(assignor)[2:]


class CutsUserData(Consumer):
    def assignment(self, partitions: Iterable[Partition]) -> bytes:
        return super().assignment(partitions)[:-4] + b"\0\0\0\4\0"


class AsksTheUnoffered(Consumer):
    async def leave(self) -> None:
        await self.coordinator.write(UNSERVED)
        await self.coordinator.reader.read(1)


class RepeatsIds(Consumer):
    async def rest(self) -> None:
        twice = self.written("Heartbeat", 3, 7000, self.names())
        for _ in range(2):
            await self.coordinator.write(twice)
        for _ in range(2):
            await self.coordinator.read()
        await super().rest()


class Spins(Consumer):
    number = 300

    async def recover(self, error: int) -> None:
        if error == Error.NOT_COORDINATOR:
            for _ in range(self.number):
                await self.ask("FindCoordinator", {"key": self.group})
        await super().recover(error)


class JoinsOn(Consumer):
    number = 1 << 30

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        while (
            api == "JoinGroup"
            and answer["errorCode"] == Error.GROUP_AUTHORIZATION_FAILED
            and not self.stopping.is_set()
        ):
            self.number -= 1
            if self.number < 0:
                await self.stopping.wait()
            answer = await super().ask(api, body)
        return answer


class Hurries(JoinsOn):
    number = 60


class NeverAsksVersions(Consumer):
    """It joins in the version that it was built with."""

    async def ask_versions(self, channel: Channel) -> None:
        pass

    async def leave(self) -> None:
        await self.coordinator.write(UNSERVED)
        await self.coordinator.reader.read(1)


class KeepsItsVersions(Consumer):
    """It asks for versions once, as if its brokers were never of another release."""

    async def ask_versions(self, channel: Channel) -> None:
        if not self.offered:
            await super().ask_versions(channel)

    def version(self, api: str) -> int:
        return 13 if api == "Metadata" else super().version(api)
