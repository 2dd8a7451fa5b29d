"""Defects of what a request says of its sender: see ``client.invariants.identity``."""

import uuid
from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.live.client.defective.alters import Alters


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


class RenamesItsInstance(Consumer):
    async def join(self) -> None:
        self.instance = self.instance and str(uuid.uuid4())
        await super().join()


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


class IsNameless(Alters):
    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"memberId": "", "generationId": -1}


class BeatsInAnOldVersion(Consumer):
    def version(self, api: str) -> int:
        return 2 if api == "Heartbeat" else super().version(api)


class RepeatsItsAssignor(Consumer):
    async def join(self) -> None:
        self.assignors *= 2
        await super().join()
