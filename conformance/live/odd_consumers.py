"""Small consumers with one defect each, which mutants play (``protocols.client.mutants``).

As a program: ``python -m kipcheck.conformance.live.odd_consumers CLASS BOOTSTRAP GROUP TOPIC``.
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.live.consumer import REBALANCE, Consumer, main


class WritesLoosely(Consumer):
    def written(self, api: str, version: int, body: Mapping[str, Any]) -> bytes:
        return super().written(api, version, body) + (b"\0" if api == "Heartbeat" else b"")


class AsksTheUnoffered(Consumer):
    async def leave(self) -> None:
        self.sent += 1
        self.writer.write(bytes.fromhex("0000000e000d006300000001000000000000"))
        await self.reader.read(1)


class NamesAnother(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        wrong = {"generationId": body["generationId"] + 7} if api == "Heartbeat" else {}
        return await super().ask(api, {**body, **wrong})


class BeatsOn(Consumer):
    async def recover(self, error: int) -> None:
        if error == 25:
            member, generation = self.member, self.generation
            for _ in range(15):
                names = {"groupId": self.group, "memberId": member, "generationId": generation}
                await self.ask("Heartbeat", names)
                await asyncio.sleep(0.1)
        await super().recover(error)


class Silent(Consumer):
    async def round(self) -> None:
        await self.stopping.wait()


class Stays(Consumer):
    async def recover(self, error: int) -> None:
        if error != REBALANCE:
            await super().recover(error)
        await asyncio.sleep(0.1)


class ReadsOn(Consumer):
    def own(self, partitions: tuple[int, ...]) -> None:
        self.owned = tuple(sorted({*self.owned, *partitions}))


class Vanishes(Consumer):
    async def leave(self) -> None:
        pass


class Spins(Consumer):
    async def recover(self, error: int) -> None:
        if error == 16:
            for _ in range(300):
                await self.ask("FindCoordinator", {"key": self.group})
        await super().recover(error)


class Gives(Consumer):
    async def recover(self, error: int) -> None:
        if error == 22:
            raise RuntimeError("ILLEGAL_GENERATION")
        await super().recover(error)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(globals()[sys.argv[1]], *sys.argv[2:])))
