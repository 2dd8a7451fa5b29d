"""Small consumers with one defect each, which mutants play (``protocols.client.mutants``).

As a program: ``python -m kipcheck.conformance.live.client.defective_consumers CLASS BOOTSTRAP GROUP TOPIC``.
"""

import asyncio
import signal
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import (
    Consumer,
    Partition,
    main,
)
from kipcheck.conformance.wire.embedded import Subscription

BACK_OFF_S = 5.5
"""Longer than mutants are awaited."""

UNSERVED = bytes.fromhex("000d006300000001000000000000")
"""LeaveGroup in version 99."""

# Connections


class WritesLoosely(Consumer):
    def written(self, api: str, version: int, correlation: int, body: Mapping[str, Any]) -> bytes:
        return super().written(api, version, correlation, body) + (b"\0" if api == "Heartbeat" else b"")


class SubscribesShort(Consumer):
    def metadata(self, assignor: str) -> bytes:
        return b"\0\1" + super().metadata(assignor)[2:]


class CutsUserData(Consumer):
    def assignment(self, partitions: Iterable[Partition]) -> bytes:
        return super().assignment(partitions)[:-4] + b"\0\0\0\4\0"


class AsksTheUnoffered(Consumer):
    async def leave(self) -> None:
        await self.coordinator.write(UNSERVED)
        await self.coordinator.reader.read(1)


class RepeatsIds(Consumer):
    async def rest(self) -> None:
        twice = self.written("Heartbeat", 3, 7000, self.names())
        for _ in range(2):
            await self.coordinator.write(twice)
        for _ in range(2):
            await self.coordinator.read()
        await super().rest()


class Spins(Consumer):
    number = 300

    async def recover(self, error: int) -> None:
        if error == Error.NOT_COORDINATOR:
            for _ in range(self.number):
                await self.ask("FindCoordinator", {"key": self.group})
        await super().recover(error)


class JoinsOn(Consumer):
    number = 1 << 30

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        while (
            api == "JoinGroup"
            and answer["errorCode"] == Error.GROUP_AUTHORIZATION_FAILED
            and not self.stopping.is_set()
        ):
            self.number -= 1
            if self.number < 0:
                await self.stopping.wait()
            answer = await super().ask(api, body)
        return answer


class Hurries(JoinsOn):
    number = 60


class NeverAsksVersions(Consumer):
    """It joins in the version that it was built with."""

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {} if api == "ApiVersions" else await super().ask(api, body)

    async def leave(self) -> None:
        await self.coordinator.write(UNSERVED)
        await self.coordinator.reader.read(1)


# Identity


class NamesAnother(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        wrong = {"generationId": body["generationId"] + 7} if api == "Heartbeat" else {}
        return await super().ask(api, {**body, **wrong})


class DropsItsId(Consumer):
    async def recover(self, error: int) -> None:
        if error == Error.REBALANCE_IN_PROGRESS:
            self.member = ""
        await super().recover(error)


class JoinsAsAStranger(Consumer):
    def forget(self, error: int) -> None:
        super().forget(error)
        self.member = ""


class HidesItsInstance(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        wrong = {"groupInstanceId": None} if api == "Heartbeat" else {}
        return await super().ask(api, {**body, **wrong})


class HidesItsProtocol(Consumer):
    def version(self, api: str) -> int:
        return 5 if api == "SyncGroup" else super().version(api)

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        wrong = {"protocolName": None} if api == "SyncGroup" else {}
        return await super().ask(api, {**body, **wrong})


class ChangesItsTimeout(Consumer):
    async def join(self) -> None:
        await super().join()
        self.session_ms += 1


class DoublesItsTimeout(Consumer):
    async def join(self) -> None:
        self.rebalance_ms = 2 * 6000
        await super().join()


class ForgetsItsTopics(Consumer):
    def metadata(self, assignor: str) -> bytes:
        self.topics = self.topics[:1] if self.generation > 0 else self.topics
        return super().metadata(assignor)


class AddsATopic(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        more = {"subscribedTopicNames": ["t", "u"]} if api == "ConsumerGroupHeartbeat" else {}
        return await super().ask(api, {**body, **more})


class ReversesItsAssignors(Consumer):
    async def join(self) -> None:
        self.assignors = sorted(self.assignors, reverse=True)
        await super().join()


# Membership


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


class Gives(Consumer):
    async def recover(self, error: int) -> None:
        if error == Error.ILLEGAL_GENERATION:
            raise RuntimeError("ILLEGAL_GENERATION")
        await super().recover(error)


# Partitions


class CrashesAtItsEnd(Consumer):
    async def run(self) -> int:
        await super().run()
        return -signal.SIGSEGV


class NeverReads(Consumer):
    """It breaks no law."""

    async def fetch(self) -> None:
        pass


class ReadsOn(Consumer):
    def own(self, partitions: tuple[Partition, ...]) -> None:
        self.owned = tuple(sorted({*self.owned, *partitions}))


class CommitsOn(Consumer):
    ever: Mapping[Partition, int] = {}

    async def commit(self) -> int:
        positions, self.ever = self.positions, {**self.ever, **self.positions}
        self.positions = {**self.ever}
        try:
            return await super().commit()
        finally:
            self.positions = positions


class CommitsAhead(Consumer):
    async def commit(self) -> int:
        positions, self.positions = self.positions, {each: offset + 1 for each, offset in self.positions.items()}
        try:
            return await super().commit()
        finally:
            self.positions = positions


class StartsAnew(Consumer):
    async def look_up_positions(self) -> None:
        new = [each for each in self.owned if each not in self.positions]
        await super().look_up_positions()
        self.positions |= dict.fromkeys(new, 0)


class KeepsPositions(Consumer):
    kept: Mapping[Partition, int] = {}

    def own(self, partitions: tuple[Partition, ...]) -> None:
        self.kept = {**self.kept, **self.positions}
        super().own(partitions)
        self.positions = {each: self.kept[each] for each in partitions if each in self.kept}


class LosesPositions(Consumer):
    has_read = False

    async def look_up_positions(self) -> None:
        if self.has_read:
            self.positions = {**dict.fromkeys(self.owned, 0), **self.positions}
        self.has_read = True
        await super().look_up_positions()


class ClaimsWhenEager(Consumer):
    last: tuple[Partition, ...] = ()

    def own(self, partitions: tuple[Partition, ...]) -> None:
        super().own(partitions)
        self.last = partitions or self.last

    def metadata(self, assignor: str) -> bytes:
        return Subscription(1, tuple(self.topics), self.last).written


class ClaimsNothing(Consumer):
    def metadata(self, assignor: str) -> bytes:
        owned, self.owned = self.owned, ()
        found = super().metadata(assignor)
        self.owned = owned
        return found


# As leader


class ForgetsAMember(Consumer):
    def assign(self, sizes: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[Partition]]:
        return super().assign(sizes, {self.member: members[self.member]})


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


# KIP-848


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


# Other ways in which the same laws are broken


class Alters(Consumer):
    """The second request of a kind has other fields."""

    api = "Heartbeat"
    number = 0

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.number += api == self.api
        return await super().ask(api, {**body, **(self.wrong(body) if api == self.api and self.number == 2 else {})})


class IsNameless(Alters):
    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": "", "generationId": -1}


class HasNoIdAnymore(Alters):
    api = "ConsumerGroupHeartbeat"

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": ""}


class HasAnotherId(Alters):
    api = "ConsumerGroupHeartbeat"

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": f"{body['memberId']}x"}


class KeepsPartitionsWhenFenced(Consumer):
    def join_anew(self) -> None:
        self.generation = 0


class BeatsInAnOldVersion(Consumer):
    async def find_coordinator(self) -> None:
        await super().find_coordinator()
        # As real clients do on each connection: a capture shows what a member was offered there alone.
        await self._ask(self.coordinator, "ApiVersions", {})

    def version(self, api: str) -> int:
        return 2 if api == "Heartbeat" else super().version(api)


class RepeatsItsAssignor(Consumer):
    async def join(self) -> None:
        self.assignors *= 2
        await super().join()


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


class ClaimsAnOldGeneration(Consumer):
    def metadata(self, assignor: str) -> bytes:
        generation, self.generation = self.generation, max(-1, self.generation - 1)
        try:
            return super().metadata(assignor)
        finally:
            self.generation = generation


if __name__ == "__main__":
    sys.exit(asyncio.run(main(globals()[sys.argv[1]], *sys.argv[2:])))
