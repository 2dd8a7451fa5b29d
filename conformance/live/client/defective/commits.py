"""Defects of what a consumer commits, and when: see ``client.invariants.commits``."""

from collections.abc import Collection
from typing import Any

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer, Partition


class CommitsOtherOffsets(Consumer):
    """It commits what ``wrong`` makes of its positions."""

    number = 0

    def wrong(self) -> dict[Partition, int]:
        raise NotImplementedError

    async def commit(self) -> int:
        self.number += 1
        positions, self.positions = self.positions, self.wrong()
        try:
            return await super().commit()
        finally:
            self.positions = positions


class CommitsBack(CommitsOtherOffsets):
    def wrong(self) -> dict[Partition, int]:
        return {each: offset - 3 * (self.number == 4) for each, offset in self.positions.items()}


class CommitsALogicalOffset(CommitsOtherOffsets):
    def wrong(self) -> dict[Partition, int]:
        return dict.fromkeys(self.positions, -2)


class CommitsTheLastRead(CommitsOtherOffsets):
    def wrong(self) -> dict[Partition, int]:
        return {each: max(0, offset - 1) for each, offset in self.positions.items()}


class CommitsUnread(CommitsOtherOffsets):
    """It commits 0 where it has no position yet."""

    async def fetch(self) -> None:
        if self.number > 2:
            await super().fetch()

    def wrong(self) -> dict[Partition, int]:
        return {**dict.fromkeys(self.owned, 0), **self.positions}


class CommitsForNoTime(Consumer):
    def version(self, api: str) -> int:
        return 2 if api == "OffsetCommit" else super().version(api)

    async def ask(self, api: str, body: Any) -> dict[str, Any]:
        return await super().ask(api, {**body, "retentionTimeMs": 0} if api == "OffsetCommit" else body)


class CommitsNameless(Consumer):
    async def ask(self, api: str, body: Any) -> dict[str, Any]:
        wrong = {"memberId": "", "generationIdOrMemberEpoch": -1} if api == "OffsetCommit" else {}
        return await super().ask(api, {**body, **wrong})

    async def commit(self) -> int:
        await super().commit()
        return Error.NONE


class LeavesWithoutACommit(Consumer):
    number = 0

    async def commit(self) -> int:
        self.number += 1
        return await super().commit() if self.number < 4 else Error.NONE


class CallsNoCallback(Consumer):
    """The callback in which its program commits is never called."""

    async def give_up(self, lost: Collection[Partition]) -> None:
        pass
