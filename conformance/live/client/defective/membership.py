"""Defects of heartbeats, recovery and the end: see ``client.invariants.membership``."""

import asyncio
import signal
from collections.abc import Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.live.client.defective.alters import Alters

BACK_OFF_S: Final = 5.5
"""Longer than mutants are awaited."""


class BeatsOn(Consumer):
    async def recover(self, error: int) -> None:
        if error == Error.UNKNOWN_MEMBER_ID:
            names = self.names()
            for _ in range(15):
                await self.ask("Heartbeat", names)
                await asyncio.sleep(0.1)
        await super().recover(error)


class Silent(Consumer):
    async def round(self) -> None:
        await self.stopping.wait()


class Hastens(Consumer):
    async def rest(self) -> None:
        await asyncio.sleep(0.02)


class HastensInKip848(Consumer):
    async def rest(self) -> None:
        await (asyncio.sleep(0.02) if self.is_modern else super().rest())


class Stays(Consumer):
    async def recover(self, error: int) -> None:
        if error != Error.REBALANCE_IN_PROGRESS:
            await super().recover(error)
        await asyncio.sleep(0.1)


class TakesItsTime(Consumer):
    async def recover(self, error: int) -> None:
        if error == Error.REBALANCE_IN_PROGRESS:
            await asyncio.sleep(BACK_OFF_S)
        await super().recover(error)


class GivesUpSync(Consumer):
    async def sync(self, joined: Mapping[str, Any]) -> int:
        error = await super().sync(joined)
        return 0 if error == Error.COORDINATOR_NOT_AVAILABLE else error


class KeepsItsCoordinator(Consumer):
    async def find_coordinator(self) -> None:
        if self.coordinator is self.home:
            await super().find_coordinator()
        await asyncio.sleep(0.2)


class BeatsOnWhenFenced(Consumer):
    async def recover(self, error: int) -> None:
        for _ in range(15 if error == Error.FENCED_INSTANCE_ID else 0):
            await self.ask("Heartbeat", self.names())
            await asyncio.sleep(0.1)
        await super().recover(error)


class Vanishes(Consumer):
    async def leave(self) -> None:
        pass


class LeavesForGood(Consumer):
    async def leave(self) -> None:
        self.instance = None
        await super().leave()


class LeavesAStranger(Alters):
    api = "LeaveGroup"
    altered = 1

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": "stranger"}


class Gives(Consumer):
    async def recover(self, error: int) -> None:
        if error == Error.ILLEGAL_GENERATION:
            raise RuntimeError("ILLEGAL_GENERATION")
        await super().recover(error)


class CrashesAtItsEnd(Consumer):
    async def run(self) -> int:
        await super().run()
        return -signal.SIGSEGV


class GivesUpItsHeartbeats(Consumer):
    """Its heartbeats end for good after the fourth one in a row that fails."""

    failed = 0

    async def recover(self, error: int) -> None:
        self.failed += 1
        if self.failed == 4:
            await self.stopping.wait()
        await super().recover(error)

    async def rest(self) -> None:
        self.failed = 0
        await super().rest()


class GivesUpItsFirstJoin(Consumer):
    """It repeats the look-up of its coordinator once."""

    failed = 0

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        self.failed += api == "FindCoordinator" and answer["errorCode"] != Error.NONE
        if self.failed == 2:
            raise RuntimeError("no coordinator")
        return answer
