"""Defects of share consumers: see ``client.invariants.share_groups``."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.live.client.consumer import Partition
from kipcheck.conformance.live.client.share_consumer import ENDS, ShareConsumer


class AcknowledgesAhead(ShareConsumer):
    async def share(self, epoch: int) -> None:
        self.acquired = {at: [(first, last + 5) for first, last in ranges] for at, ranges in self.acquired.items()}
        await super().share(epoch)


class AcknowledgesTwice(ShareConsumer):
    async def share(self, epoch: int) -> None:
        before = self.acquired
        await super().share(epoch)
        self.acquired = self.acquired or before


class SkipsAnEpoch(ShareConsumer):
    async def share(self, epoch: int) -> None:
        await super().share(epoch + 1 if epoch == 3 else epoch)


class GoesOnWithALostSession(ShareConsumer):
    def read(self, epoch: int, answer: Mapping[str, Any]) -> None:
        super().read(epoch, answer)
        if answer["errorCode"]:
            self.epoch = epoch + 1


class KeepsItsShareSession(ShareConsumer):
    async def share(self, epoch: int) -> None:
        if epoch != ENDS:
            await super().share(epoch)


class SharesOnePartition(ShareConsumer):
    def wanted(self) -> set[Partition]:
        return {*sorted(self.owned)[:1]}
