"""A consumer whose second request of a kind has other fields."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.live.client.consumer import Consumer


class Alters(Consumer):
    """The second request of a kind has other fields."""

    api = "Heartbeat"
    number = 0

    def wrong(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.number += api == self.api
        return await super().ask(api, {**body, **(self.wrong(body) if api == self.api and self.number == 2 else {})})
