"""Defects of where a consumer reads, and how far it commits: see ``client.invariants.positions``."""

import asyncio
from collections.abc import Mapping

from kipcheck.conformance.live.client.consumer import Consumer, Partition
from kipcheck.conformance.live.client.defective.partitions import fetch_one


class CommitsAhead(Consumer):
    async def commit(self) -> int:
        positions, self.positions = self.positions, {each: offset + 1 for each, offset in self.positions.items()}
        try:
            return await super().commit()
        finally:
            self.positions = positions


class StartsAnew(Consumer):
    async def look_up_positions(self) -> None:
        new = [each for each in self.owned if each not in self.positions]
        await super().look_up_positions()
        self.positions |= dict.fromkeys(new, 0)


class KeepsPositions(Consumer):
    kept: Mapping[Partition, int] = {}

    def own(self, partitions: tuple[Partition, ...]) -> None:
        self.kept = {**self.kept, **self.positions}
        super().own(partitions)
        self.positions = {each: self.kept[each] for each in partitions if each in self.kept}


class LosesPositions(Consumer):
    has_read = False

    async def look_up_positions(self) -> None:
        if self.has_read:
            self.positions = {**dict.fromkeys(self.owned, 0), **self.positions}
        self.has_read = True
        await super().look_up_positions()


class TakesRefusalsForNone(Consumer):
    async def look_up_positions(self) -> None:
        await super().look_up_positions()
        self.positions = {**dict.fromkeys(self.owned, 0), **self.positions}


class AsksAndReads(Consumer):
    async def look_up_positions(self) -> None:
        asking = asyncio.ensure_future(super().look_up_positions())
        await asyncio.wait([asking], timeout=0.15)
        if not asking.done():
            await fetch_one(self, 1)
        await asking


class BeginsAtTheBeginning(Consumer):
    async def first_offset(self, at: Partition) -> int:
        return 0 * await super().first_offset(at)


class TakesZeroForNone(Consumer):
    async def look_up_positions(self) -> None:
        new = {each for each in self.owned if each not in self.positions}
        await super().look_up_positions()
        for each in new:
            self.positions[each] = self.positions.get(each) or await self.first_offset(each)


class SkipsARecord(Consumer):
    async def fetch(self) -> None:
        before = {**self.positions}
        await super().fetch()
        moved = {each for each, offset in self.positions.items() if offset > before.get(each, offset)}
        self.positions |= {each: self.positions[each] + 1 for each in moved}
