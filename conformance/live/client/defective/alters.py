"""A consumer one of whose requests of a kind has other fields."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.live.client.consumer import Consumer


class Alters(Consumer):
    """One request of a kind has other fields."""

    api = "Heartbeat"
    altered = 2
    """Which one."""
    number = 0

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.number += api == self.api
        is_altered = api == self.api and self.number == self.altered
        return await super().ask(api, {**body, **(self.wrong(body) if is_altered else {})})
