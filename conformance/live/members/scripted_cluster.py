"""A broker of kipcheck's for the members of groups, which can remove members as the end of their sessions does."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.members.group import SETTINGS, Cluster
from kipcheck.conformance.live.members.traffic import BrokerTraffic
from kipcheck.conformance.live.recording.traffic import Traffic
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.group.model.messages import Leave
from kipcheck.conformance.targets.toolchains.kafka_broker import HOST

LEAVES: Final = 3
"""The version of the LeaveGroup that removes members."""


@asynccontextmanager
async def scripted(edition: Edition, topics: Mapping[str, int]) -> AsyncIterator[Cluster]:
    """A broker of the release of an edition, with these topics. Errors: LookupError where it has no groups."""
    config = [f"{name}={value}" for name, value in SETTINGS.items()]
    with closing(Broker(edition, Topics.of(topics.items()), config)) as broker:
        found = Cluster(0)
        traffic = BrokerTraffic(edition, broker.topics, found.take)
        front = Front(broker, edition, traffic=Traffic((traffic,)))
        traffic.start_s = time.monotonic() - front.now()
        found.port = (await front.listen(HOST, 0))[1]

        def expire(group: str, name: str) -> None:
            classic = broker.groups.classic(group)
            gone = [member.id for member in classic.state.members if member.id.startswith(f"{name}-")]
            for id in gone:
                classic.send(Leave(LEAVES, ((id, None),)))

        found.expire = expire
        try:
            yield found
        finally:
            await front.close()
