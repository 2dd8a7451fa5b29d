"""Defects of LeaveGroup: see ``client.invariants.leaving``."""

import asyncio

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer


class BeatsOnceItLeft(Consumer):
    async def leave(self) -> None:
        await super().leave()
        await asyncio.sleep(0.2)
        await self.ask("Heartbeat", self.names())


class LeavesToJoin(Consumer):
    async def recover(self, error: int) -> None:
        if error == Error.REBALANCE_IN_PROGRESS:
            await self.leave()
            self.member = ""
        await super().recover(error)


class LeavesSoon(Consumer):
    rounds = 0

    async def round(self) -> None:
        self.rounds += 1
        if self.rounds > 2:
            await self.leave()
            await self.stopping.wait()
        await super().round()

    async def leave(self) -> None:
        if self.member:
            await super().leave()
        self.member = ""
