"""Defects of heartbeats, look-ups and retries in time: see ``client.invariants.pace``."""

from kipcheck.conformance.live.client.consumer import Consumer


class Dawdles(Consumer):
    async def rest(self) -> None:
        for _ in range(4):
            await super().rest()


class LooksUpEachTime(Consumer):
    async def round(self) -> None:
        await self.ask("FindCoordinator", {"key": self.group})
        await super().round()


class WaitsForEver(Consumer):
    def patience_s(self, api: str) -> float | None:
        return None
