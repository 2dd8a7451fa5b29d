"""Defects of what a consumer reads, commits and claims: see ``client.invariants.partitions``."""

from collections.abc import Mapping

from kipcheck.conformance.live.client.consumer import Consumer, Partition
from kipcheck.conformance.wire.embedded import Subscription


class NeverReads(Consumer):
    """It breaks no law."""

    async def fetch(self) -> None:
        pass


class ReadsOn(Consumer):
    def own(self, partitions: tuple[Partition, ...]) -> None:
        self.owned = tuple(sorted({*self.owned, *partitions}))


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
