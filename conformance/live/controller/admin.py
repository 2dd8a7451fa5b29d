"""An admin client for feature versions: reads them from a running cluster, and asks for updates in one request."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kipcheck.conformance.live.connections.connections import ANSWERED_S, Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.connections.security import OPEN, Security
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.coordinator.admin import METADATA, versions_of
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.model.kraft import NONE
from kipcheck.conformance.protocols.features.ops.kraft import TypedUpdate

T = TypeVar("T")
NOT_CONTROLLER: Final = "NOT_CONTROLLER"
LARGEST_METADATA: Final = 5


class Unanswered(Exception):
    """The cluster does not answer, or not what is asked for."""


@dataclass(slots=True)
class FeatureAdmin:
    runner: asyncio.Runner
    broker: Connections
    allows: Callable[[str], bool]
    """Whether a host may be connected to."""
    versions: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def picture(self) -> Picture:
        """What the broker supports, and what is finalized. Errors: ``Unanswered``."""
        return self.asked(self._picture)

    def update(self, updates: Sequence[TypedUpdate], validate_only: bool) -> dict[str, str]:
        """By feature: the error and the controller's reason; empty if it was applied. Errors: ``Unanswered``."""

        async def ask() -> requests.Updated:
            version = self.versions[requests.UPDATE_FEATURES][1]
            found = await requests.update(self.broker, version, updates, validate_only)
            if found.error != NOT_CONTROLLER:
                return found
            controller = await self._controller()
            try:
                return await requests.update(controller, version, updates, validate_only)
            finally:
                await controller.close()

        found = self.asked(ask)
        if found.error != NONE:
            return dict.fromkeys((each.feature for each in updates), _text(found.error, found.why))
        refused = {each.feature: _text(each.error, each.why) for each in found.results if each.error != NONE}
        return {each.feature: refused.get(each.feature, "") for each in updates}

    async def _picture(self) -> Picture:
        return await requests.picture_of(self.broker, self.versions)

    async def _controller(self) -> Connections:
        """With ZooKeeper, only the controller updates features."""
        version = min(self.versions[METADATA][1], LARGEST_METADATA)
        found = await self.broker.ask("Metadata", version, "kipcheck", {"topics": [], "allowAutoTopicCreation": False})
        for each in found["brokers"]:
            if each["nodeId"] == found["controllerId"]:
                if not self.allows(each["host"]):
                    raise Garbled(f"the controller is {each['host']}, not this machine: add --allow-remote")
                return Connections(each["host"], each["port"], self.broker.security, self.broker.answered_s)
        raise Garbled("the cluster has no controller at the moment")

    def asked(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result. Errors: ``Unanswered``."""
        try:
            return self.runner.run(ask())
        except (Closed, Garbled) as why:
            raise Unanswered(f"the cluster does not answer: {why}") from None


def _text(error: str, why: str) -> str:
    """On one line."""
    return " ".join(f"{error}: {why}".split()).removesuffix(":")


@contextmanager
def feature_admin(
    host: str, port: int, allows: Callable[[str], bool], security: Security = OPEN, answered_s: float = ANSWERED_S
) -> Iterator[FeatureAdmin]:
    """Errors: ``Unanswered`` if nothing answers there, or what answers has no feature versions."""
    with asyncio.Runner() as runner:
        found = FeatureAdmin(runner, Connections(host, port, security, answered_s), allows)
        try:
            found.versions = found.asked(lambda: versions_of(found.broker))
            if requests.UPDATE_FEATURES not in found.versions:
                raise Unanswered(f"{host}:{port} has no feature versions: Kafka has them from 2.7.0 on")
            yield found
        finally:
            runner.run(found.broker.close())
