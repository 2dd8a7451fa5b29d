"""Defects of heartbeats, look-ups and retries in time: see ``client.invariants.pace``."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer


class Dawdles(Consumer):
    async def rest(self) -> None:
        for _ in range(4):
            await super().rest()


class LooksUpEachTime(Consumer):
    async def round(self) -> None:
        await self.ask("FindCoordinator", {"key": self.group})
        await super().round()


class LooksUpToJoin(Consumer):
    async def recover(self, error: int) -> None:
        if error == Error.REBALANCE_IN_PROGRESS:
            await self.find_coordinator()
        await super().recover(error)


class WaitsForEver(Consumer):
    def patience_s(self, api: str) -> float | None:
        return None


class JoinsAtOnce(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        while api == "JoinGroup" and answer["errorCode"] == Error.COORDINATOR_LOAD_IN_PROGRESS:
            answer = await super().ask(api, body)
        return answer


class JoinsTwice(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        return await super().ask(api, body) if api == "JoinGroup" and not answer["errorCode"] else answer


class CommitsOnly(Consumer):
    async def round(self) -> None:
        await self.commit()
        await self.rest()


class GivesUpItsJoin(Consumer):
    def patience_s(self, api: str) -> float | None:
        return 0.3 if api == "JoinGroup" else super().patience_s(api)


class JoinsForItsOffsets(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        if api == "OffsetFetch" and answer.get("errorCode") == Error.COORDINATOR_LOAD_IN_PROGRESS:
            await self.join()
        return answer
