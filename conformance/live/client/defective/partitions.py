"""Defects of what a consumer reads, commits and claims: see ``client.invariants.partitions``."""

import asyncio
from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.live.client.consumer import Consumer, Partition
from kipcheck.conformance.protocols.assignment.ops import user_data
from kipcheck.conformance.wire.embedded import Subscription


class NeverReads(Consumer):
    """It breaks no law."""

    async def fetch(self) -> None:
        pass


class ReadsOn(Consumer):
    def own(self, partitions: tuple[Partition, ...]) -> None:
        self.owned = tuple(sorted({*self.owned, *partitions}))


async def fetch_one(consumer: Consumer, number: int) -> None:
    """Fetches a partition from its beginning, and drops the records."""
    partitions = [{"partition": number, "fetchOffset": 0, "partitionMaxBytes": 1000}]
    topics = [{"topic": "t", "partitions": partitions}]
    await consumer.ask("Fetch", {"replicaId": -1, "maxWaitMs": 1, "minBytes": 0, "maxBytes": 1000, "topics": topics})


class ReadsWhileItJoins(Consumer):
    async def sync(self, joined: Mapping[str, Any]) -> int:
        if joined["generationId"] > 1:
            await asyncio.sleep(0.15)
            await fetch_one(self, 0)
        return await super().sync(joined)


class ReadsTheFirstTopic(Consumer):
    def own(self, partitions: tuple[Partition, ...]) -> None:
        super().own(partitions if self.is_modern else tuple(each for each in partitions if each[0] == self.topics[0]))


class AsksOnce(Consumer):
    """It sends one OffsetFetch for each partition that it is assigned, whatever the answer is."""

    asked: frozenset[Partition] = frozenset()

    def own(self, partitions: tuple[Partition, ...]) -> None:
        super().own(partitions)
        self.asked = frozenset()

    async def look_up_positions(self) -> None:
        owned, self.owned = self.owned, tuple(each for each in self.owned if each not in self.asked)
        self.asked = frozenset(owned)
        try:
            await super().look_up_positions()
        finally:
            self.owned = owned


class CommitsOn(Consumer):
    ever: Mapping[Partition, int] = {}

    async def commit(self) -> int:
        positions, self.ever = self.positions, {**self.ever, **self.positions}
        self.positions = {**self.ever}
        try:
            return await super().commit()
        finally:
            self.positions = positions


class ClaimsWhenEager(Consumer):
    last: tuple[Partition, ...] = ()

    def own(self, partitions: tuple[Partition, ...]) -> None:
        super().own(partitions)
        self.last = partitions or self.last

    def metadata(self, assignor: str) -> bytes:
        return Subscription(1, tuple(self.topics), self.last).written


class ForgetsWhatItHad(Consumer):
    def metadata(self, assignor: str) -> bytes:
        self.had = b""
        return super().metadata(assignor)


class HadItInNoGeneration(Consumer):
    async def sync(self, joined: Mapping[str, Any]) -> int:
        error = await super().sync(joined)
        self.had = user_data(self.owned, -1)
        return error


class ClaimsNothing(Consumer):
    def metadata(self, assignor: str) -> bytes:
        owned, self.owned = self.owned, ()
        found = super().metadata(assignor)
        self.owned = owned
        return found


class ClaimsAnOldGeneration(Consumer):
    def metadata(self, assignor: str) -> bytes:
        generation, self.generation = self.generation, max(-1, self.generation - 1)
        try:
            return super().metadata(assignor)
        finally:
            self.generation = generation


class StaysWithWhatIsLeft(Consumer):
    async def sync(self, joined: Mapping[str, Any]) -> int:
        error = await super().sync(joined)
        self.has_lost = False
        return error
