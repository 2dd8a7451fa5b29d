"""The settings of classic groups that a running broker does not describe, by what it does with a JoinGroup.

A coordinator that is no Apache Kafka may have other bounds of session timeouts, and no delay of the first join phase.
These are settings, so no law is broken by them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator.cleanup import UsedGroup
from kipcheck.conformance.protocols.group.model.answers import SETTINGS, Config
from kipcheck.conformance.protocols.group.ops import Join
from kipcheck.conformance.wire.bodies import key_of

WITHOUT_IDS: Final = 3
"""The newest version of JoinGroup that makes a client without an id a member."""
EARLIER_MAX_MS: Final = 300_000
"""``group.max.session.timeout.ms`` of Kafka before 2.5, and of some brokers that are no Apache Kafka."""
REBALANCE_MS: Final = 10_000
"""No shorter than a usual delay, which it limits."""


async def measured(
    config: Config,
    described: Mapping[str, str],
    versions: dict[int, tuple[int, int]],
    run_id: str,
    coordinator_of: Callable[[str], Awaitable[Connections]],
    used: list[UsedGroup],
) -> Config:
    """``config``, with what the broker does otherwise if it is not ``described``. Joins a group, which it adds to
    ``used``. Errors: ``Closed``, ``Garbled``, ``Unavailable``.
    """
    low, high = versions.get(key_of(Join), (WITHOUT_IDS + 1, 0))
    version = min(high, WITHOUT_IDS)
    if version < low or SETTINGS.keys() & described:
        return config
    group = f"kipcheck-{run_id}-settings"
    connections = await coordinator_of(group)
    for longest_ms in (config.max_session_ms, EARLIER_MAX_MS):
        body = {
            "groupId": group, "sessionTimeoutMs": longest_ms, "rebalanceTimeoutMs": REBALANCE_MS, "memberId": "",
            "protocolType": "consumer", "protocols": [{"name": "range", "metadata": b""}],
        }  # fmt: skip
        began = now()
        try:
            async with asyncio.timeout(2 * REBALANCE_MS / 1000):
                answer = await connections.ask("JoinGroup", version, "kipcheck", body)
        except TimeoutError:
            break
        if answer["errorCode"] == KafkaError.NONE:
            used.append(UsedGroup(group, connections, versions, (answer["memberId"],)))
            is_delayed = (now() - began) * 1000 > config.initial_delay_ms / 2
            delay_ms = config.initial_delay_ms if is_delayed else 0
            return replace(config, max_session_ms=longest_ms, initial_delay_ms=delay_ms)
    return config
