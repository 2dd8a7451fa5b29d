"""Defects of members of KIP-848's groups: see ``client.invariants.consumer_groups``."""

from collections.abc import Iterable, Mapping
from typing import Any

from kipcheck.conformance.live.client.consumer import Consumer, Partition
from kipcheck.conformance.live.client.defective.alters import Alters


class NamesAnotherEpoch(Consumer):
    misses = 1

    async def beat(self) -> dict[str, Any]:
        epoch = self.generation
        if epoch > 1 and self.misses:
            self.misses, self.generation = 0, epoch + 7
        try:
            return await super().beat()
        finally:
            self.generation = epoch


class KeepsItsEpoch(Consumer):
    tries = 0

    def join_anew(self) -> None:
        self.tries += 1
        if self.tries > 1:
            super().join_anew()


class SilentOnceAssigned(Consumer):
    beats = 0

    async def beat(self) -> dict[str, Any]:
        self.beats += 1
        if self.beats > 3 and self.generation > 0:
            await self.stopping.wait()
        return await super().beat()


class OwnsMore(Consumer):
    beats = 0

    async def beat(self) -> dict[str, Any]:
        self.beats += 1
        return await super().beat()

    def listed(self, partitions: Iterable[Partition], name: str) -> list[dict[str, Any]]:
        more = [("t", 99)] if name == "topicId" and self.beats == 7 else []
        return super().listed([*partitions, *more], name)


class HasNoIdAnymore(Alters):
    api = "ConsumerGroupHeartbeat"

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": ""}


class HasAnotherId(Alters):
    api = "ConsumerGroupHeartbeat"

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": f"{body['memberId']}x"}


class KeepsPartitionsWhenFenced(Consumer):
    def join_anew(self) -> None:
        self.generation = 0
