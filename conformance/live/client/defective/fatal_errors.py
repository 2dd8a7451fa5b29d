"""Defects at errors that no client recovers from: see ``client.invariants.fatal_errors``."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.protocols.client.terms import FATAL


class BeatsOnWhenRefused(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        if api == self.heartbeat and answer["errorCode"] in FATAL:
            answer["errorCode"] = Error.COORDINATOR_LOAD_IN_PROGRESS
        return answer


class JoinsInSilence(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        if api == "JoinGroup" and answer["errorCode"] in FATAL:
            answer["errorCode"] = Error.COORDINATOR_LOAD_IN_PROGRESS
        return answer
