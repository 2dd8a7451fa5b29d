"""Defects of a leader: see ``client.invariants.leading``."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer, Partition
from kipcheck.conformance.live.client.defective.alters import Alters
from kipcheck.conformance.wire.embedded import Subscription


class ForgetsAMember(Consumer):
    def assign(self, sizes: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[Partition]]:
        return super().assign(sizes, {self.member: members[self.member]})


class SortsDownwards(Consumer):
    def assign(self, sizes: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[Partition]]:
        given, ids = super().assign(sizes, members), sorted(members)
        return dict(zip(ids, (given[id] for id in reversed(ids)), strict=True))


class PassesOverNewPartitions(Consumer):
    async def sync(self, joined: Mapping[str, Any]) -> int:
        error = await super().sync(joined)
        self.sizes = dict.fromkeys(self.sizes, 1 << 20)
        return error


class GivesTwice(Consumer):
    def assign(self, sizes: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[Partition]]:
        if self.generation < 2:  # it may not have read its metadata yet
            return super().assign(sizes, members)
        return {id: [(topic, number) for topic in self.topics for number in range(sizes[topic])] for id in members}


class Hoards(Consumer):
    def assign(self, sizes: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[Partition]]:
        if self.generation < 2:
            return super().assign(sizes, members)
        mine = super().assign(sizes, {self.member: members[self.member]})
        return {**{id: [] for id in members}, **mine}


class HandsOverAtOnce(Consumer):
    def assign(self, sizes: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[Partition]]:
        return super().assign(sizes, {id: Subscription(0, each.topics) for id, each in members.items()})


class ReadsItsOwnVersion(Consumer):
    async def sync(self, joined: Mapping[str, Any]) -> int:
        if any(each["metadata"][:2] > bytes(2) for each in joined["members"] if each["memberId"] != self.member):
            return Error.REBALANCE_IN_PROGRESS
        return await super().sync(joined)


class AssignsToAStranger(Consumer):
    def assign(self, sizes: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[Partition]]:
        return {**super().assign(sizes, members), "stranger": []}


class AssignsTwice(Alters):
    api = "SyncGroup"

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"assignments": [*body["assignments"], *body["assignments"][:1]]}


class AssignsAsAFollower(Alters):
    api = "SyncGroup"

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"assignments": [{"memberId": self.member, "assignment": self.assignment(())}]}


class NamesItsFirstAssignor(Consumer):
    async def sync(self, joined: Mapping[str, Any]) -> int:
        return await super().sync({**joined, "protocolName": self.assignors[0]})
