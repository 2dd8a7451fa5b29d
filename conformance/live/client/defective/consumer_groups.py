"""Defects of members of KIP-848's groups: see ``client.invariants.consumer_groups``."""

from collections.abc import Iterable, Mapping
from typing import Any

from kipcheck.conformance.live.client.consumer import Consumer, Partition
from kipcheck.conformance.live.client.consumer_connections import Channel
from kipcheck.conformance.live.client.defective.alters import Alters
from kipcheck.conformance.protocols.client.terms import HEARTBEAT


class NamesAnotherEpoch(Consumer):
    misses = 1

    async def beat(self) -> dict[str, Any]:
        epoch = self.generation
        if epoch > 1 and self.misses:
            self.misses, self.generation = 0, epoch + 7
        try:
            return await super().beat()
        finally:
            self.generation = epoch


class KeepsItsEpoch(Consumer):
    tries = 0

    def join_anew(self) -> None:
        self.tries += 1
        if self.tries > 1:
            super().join_anew()


class SilentOnceAssigned(Consumer):
    beats = 0

    async def beat(self) -> dict[str, Any]:
        self.beats += 1
        if self.beats > 3 and self.generation > 0:
            await self.stopping.wait()
        return await super().beat()


class OwnsMore(Consumer):
    beats = 0

    async def beat(self) -> dict[str, Any]:
        self.beats += 1
        return await super().beat()

    def listed(self, partitions: Iterable[Partition], name: str) -> list[dict[str, Any]]:
        more = [("t", 99)] if name == "topicId" and self.beats == 7 else []
        return super().listed([*partitions, *more], name)


class HasNoIdAnymore(Alters):
    api = HEARTBEAT

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": ""}


class HasAnotherId(Alters):
    api = HEARTBEAT

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": f"{body['memberId']}x"}


class KeepsPartitionsWhenFenced(Consumer):
    def join_anew(self) -> None:
        self.generation = 0


class JoinsInShort(Consumer):
    joins = 0

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if api == self.heartbeat and body["memberEpoch"] == 0:
            self.joins += 1
            body = {**body, **({"rebalanceTimeoutMs": -1} if self.joins > 1 else {})}
        return await super().ask(api, body)


class JoinsWithPartitions(Consumer):
    def listed(self, partitions: Iterable[Partition], name: str) -> list[dict[str, Any]]:
        more = [("t", 0)] if name == "topicId" and not self.generation else []
        return super().listed([*partitions, *more], name)


class RepeatsInShort(Consumer):
    async def _ask(self, channel: Channel, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if api == self.heartbeat and body["memberEpoch"] > 0:
            body = {**body, "rebalanceTimeoutMs": -1, "subscribedTopicNames": None, "topicPartitions": None}
        return await super()._ask(channel, api, body)


class BeatsAfterItLeft(Alters):
    """The second heartbeat says that it leaves, as of a member that does not poll, and the third goes on."""

    api = HEARTBEAT

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        if api == self.api and answer["memberEpoch"] < 0:
            answer["memberEpoch"] = body["memberEpoch"]
        return answer

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberEpoch": -1}


class AcknowledgesAtOnce(Consumer):
    """What it lost stays in its positions, which it fetches and commits."""

    def own(self, partitions: tuple[Partition, ...]) -> None:
        self.owned = partitions


class OwnsWhatItGaveUp(Consumer):
    beats_since = 0

    def own(self, partitions: tuple[Partition, ...]) -> None:
        if ("t", 0) in self.owned and ("t", 0) not in partitions:
            self.beats_since = 1
        super().own(partitions)

    async def beat(self) -> dict[str, Any]:
        self.beats_since += bool(self.beats_since)
        return await super().beat()

    def listed(self, partitions: Iterable[Partition], name: str) -> list[dict[str, Any]]:
        more = [("t", 0)] if name == "topicId" and self.beats_since == 4 else []
        return super().listed([*partitions, *more], name)


class CommitsWithItsOldEpoch(Consumer):
    first = 0

    async def commit(self) -> int:
        epoch = self.generation
        self.generation = self.first = self.first or epoch
        try:
            return await super().commit()
        finally:
            self.generation = epoch


class StaysWithoutPolls(Consumer):
    is_overdue = False


class OmitsATopicOfItsPattern(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        wrong = {"subscribedTopicRegex": "t"} if api == HEARTBEAT else {}
        return await super().ask(api, {**body, **wrong})
