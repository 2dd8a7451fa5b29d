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
