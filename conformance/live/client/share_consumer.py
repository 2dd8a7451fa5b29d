"""A small share consumer (KIP-932), which keeps every rule. Mutants change one decision each."""

from collections.abc import Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer, Partition

BEGINS, ENDS = 0, -1
"""Epochs of share sessions."""
ACCEPT: Final = 1
OVER: Final = (Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH)
Ranges = list[tuple[int, int]]


class ShareConsumer(Consumer):
    """It accepts with each fetch what it acquired with the one before."""

    epoch = BEGINS
    """Of the next request of its share session."""
    used = 0
    """How many heartbeats it has sent."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.acquired: dict[Partition, Ranges] = {}
        self.session: set[Partition] = set()

    async def beat(self) -> dict[str, Any]:
        self.used += 1
        if self.generation == ENDS:
            await self.share(ENDS)
        return await self.ask(self.heartbeat, {
            "groupId": self.group, "memberId": self.member, "memberEpoch": self.generation, "rackId": None,
            "subscribedTopicNames": self.topics if not self.generation else None,
        })  # fmt: skip

    async def fetch(self) -> None:
        await self.share(self.epoch)

    async def commit(self) -> int:
        return Error.NONE

    def wanted(self) -> set[Partition]:
        """What its session is to have."""
        return {*self.owned}

    async def share(self, epoch: int) -> None:
        """A ShareFetch with the acknowledgements of what it has; without any where it begins a session."""
        if epoch == ENDS and self.epoch == BEGINS:
            return
        given = {} if epoch == BEGINS else self.acquired
        named = self.wanted() - (set() if epoch == BEGINS else self.session) if epoch != ENDS else set[Partition]()
        topics = [
            {"topicId": self.ids[each["topicId"]], "partitions": [
                {"partitionIndex": number, "acknowledgementBatches": [
                    {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": [ACCEPT]}
                    for first, last in given.get((each["topicId"], number), ())
                ]} for number in each["partitions"]
            ]} for each in self.listed(sorted(named | {*given}), "topicId")
        ]  # fmt: skip
        gone = self.listed(sorted(self.session - self.wanted()), "topicId") if epoch > BEGINS else []
        self.session = self.wanted()
        answer = await self.awaited(self.ask("ShareFetch", {
            "groupId": self.group, "memberId": self.member, "shareSessionEpoch": epoch, "maxWaitMs": 1, "minBytes": 0,
            "maxBytes": 10_000, "maxRecords": 10 if epoch != ENDS else 0, "batchSize": 10, "topics": topics,
            "forgottenTopicsData": [{**each, "topicId": self.ids[each["topicId"]]} for each in gone],
        }))  # fmt: skip
        self.read(epoch, answer)

    def read(self, epoch: int, answer: Mapping[str, Any]) -> None:
        self.acquired = {}
        if answer["errorCode"]:
            self.epoch = BEGINS if answer["errorCode"] in OVER else epoch + 1
            return
        self.epoch = BEGINS if epoch == ENDS else epoch + 1
        names = {id: name for name, id in self.ids.items()}
        for each in answer["responses"]:
            for part in each["partitions"]:
                ranges = [(one["firstOffset"], one["lastOffset"]) for one in part["acquiredRecords"]]
                if ranges:
                    self.acquired[names[each["topicId"]], part["partitionIndex"]] = ranges
            if any(part["errorCode"] == Error.NOT_LEADER_OR_FOLLOWER for part in each["partitions"]):
                self.turn_to_the_next_node()
                self.epoch = BEGINS
