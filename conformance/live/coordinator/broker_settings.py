"""The rules of coordinators by edition, and the settings of brokers that kipcheck starts: those of the models, in a
time that passes faster."""

from typing import Final

from kipcheck.conformance.core.values.edition import edition as edition_of
from kipcheck.conformance.live.coordinator.restarts import COMPACTED
from kipcheck.conformance.protocols.consumer_group.ops import INTERVAL_MS, SESSION_MS
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT as DEFAULT_CONSUMER
from kipcheck.conformance.protocols.group.model.answers import DEFAULT
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.share_group import ops as share_group
from kipcheck.conformance.protocols.share_partition.rules import DEFAULT as DEFAULT_SHARE
from kipcheck.conformance.protocols.streams_group import model as streams_model, ops as streams_group
from kipcheck.conformance.targets.protocol import Unavailable

HEARTBEAT_MS: Final = 5_000
"""``group.consumer.heartbeat.interval.ms``"""

LONGEST_SHARE_SESSION_MS: Final = 60_000
"""In real time: the member that keeps a share group sends no further heartbeats. Conversations about share groups set
that of their groups."""
SHARE_MAX_SIZE: Final = 200
"""``group.share.max.size``, which has a lower bound in the preview of 3.9."""


def of_started(times: int) -> dict[str, str]:
    """By name. ``times``: the time of the broker passes so much faster than stated."""
    settings: dict[str, object] = {
        "group.min.session.timeout.ms": DEFAULT.min_session_ms // times,
        "group.max.session.timeout.ms": DEFAULT.max_session_ms // times,
        "group.initial.rebalance.delay.ms": DEFAULT.initial_delay_ms // times,
        "group.max.size": DEFAULT.max_size,
        "group.coordinator.append.linger.ms": 0,
        "group.consumer.max.size": DEFAULT_CONSUMER.max_size,
        "group.consumer.session.timeout.ms": SESSION_MS // times,
        "group.consumer.min.session.timeout.ms": SESSION_MS // times,
        "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS // times,
        "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS // times,
        "group.consumer.assignment.interval.ms": INTERVAL_MS // times,
        "group.consumer.min.assignment.interval.ms": INTERVAL_MS // times,
        # Assignments that a heartbeat requires are computed before its response.
        "group.consumer.assignor.offload.enable": False,
        "group.streams.session.timeout.ms": streams_group.SESSION_MS // times,
        "group.streams.min.session.timeout.ms": streams_group.SESSION_MS // times,
        "group.streams.heartbeat.interval.ms": HEARTBEAT_MS // times,
        "group.streams.min.heartbeat.interval.ms": HEARTBEAT_MS // times,
        "group.streams.initial.rebalance.delay.ms": 0,
        "group.streams.assignment.interval.ms": 0,
        "group.streams.assignor.offload.enable": False,
        "group.streams.num.standby.replicas": streams_model.DEFAULT.standbys,
        "group.share.session.timeout.ms": LONGEST_SHARE_SESSION_MS,
        "group.share.min.session.timeout.ms": share_group.SESSION_MS // times,
        "group.share.assignment.interval.ms": share_group.INTERVAL_MS // times,
        "group.share.assignor.offload.enable": False,
        "group.share.record.lock.duration.ms": DEFAULT_SHARE.lock_ms // times,
        "group.share.min.record.lock.duration.ms": DEFAULT_SHARE.lock_ms // times,
        "group.share.delivery.count.limit": DEFAULT_SHARE.limit,
        "group.share.min.delivery.count.limit": DEFAULT_SHARE.limit,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.streams.max.size": streams_model.DEFAULT.max_size,
        **COMPACTED,
    }
    return {key: str(value).lower() for key, value in settings.items()}


def rules_of(name: str) -> Rules:
    """Errors: ``Unavailable`` for an edition without released coordinators."""
    found = coordinator(edition_of(name)) if name.startswith("apache") else None
    if found is None:
        raise Unavailable(f"edition {name}: brokers are tested in editions of Apache Kafka")
    return found.rules
