"""Checks of live clients: scripts of a broker and of the other members of a group."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.client import invariants
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_GROUPS
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.playable import finished, unplayable
from kipcheck.conformance.protocols.client.strategies import SCRIPTS, script
from kipcheck.conformance.protocols.client.wording import exchanges, exhibits
from kipcheck.conformance.protocols.declare.check import Check, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, machine_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of

FIRST: Final = (
    "others 2 lead; pass 200; rebalance",
    "others 2 follow; assign 0,1,2; pass 1200; assign 3; rebalance; pass 1200",
    "answer Heartbeat UNKNOWN_MEMBER_ID; pass 1200",
    "answer Heartbeat ILLEGAL_GENERATION; pass 1200",
    "answer Heartbeat NOT_COORDINATOR; pass 200; rebalance",
    "answer SyncGroup REBALANCE_IN_PROGRESS; answer JoinGroup UNKNOWN_MEMBER_ID",
    "late SyncGroup 1500; pieces JoinGroup; pass 200",
    "reset Heartbeat; reset JoinGroup; reset SyncGroup; pass 200",
    "answer JoinGroup COORDINATOR_LOAD_IN_PROGRESS; answer OffsetCommit UNKNOWN_MEMBER_ID; pass 1200",
    "move; answer FindCoordinator COORDINATOR_NOT_AVAILABLE; silent Heartbeat 400; together Heartbeat",
    "member reads t,u owns 0,1 of 1 v3; rebalance; tags JoinGroup; reset SyncGroup amid",
    "assignors cooperative-sticky; pass 200; others 1 lead; rebalance; rebalance",
    "static; pass 1400; rebalance; restart; rebalance",
    "static; fence; pass 1200",
    "protocol consumer; assign 0,1; rebalance; answer ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH; pass 1200",
    "answer SyncGroup COORDINATOR_NOT_AVAILABLE; pass 1500",
    "others 1 follow; reset SyncGroup; pass 200; rebalance",
    "answer JoinGroup UNKNOWN_MEMBER_ID; pass 200; rebalance",
    "assignors range,roundrobin; pass 200; rebalance",
    "pass 500; answer OffsetCommit NOT_COORDINATOR; pass 3500",
    "others 1 follow; pass 500; assign 1,2; rebalance; pass 500; assign 0,3; rebalance; pass 1500",
    "refuse JoinGroup GROUP_AUTHORIZATION_FAILED",
    "refuse SyncGroup GROUP_AUTHORIZATION_FAILED",
    "refuse Heartbeat GROUP_AUTHORIZATION_FAILED",
    "pass 500; answer OffsetCommit REBALANCE_IN_PROGRESS; late OffsetFetch 400; pass 1200",
    "topics 2; pass 200; rebalance; answer Heartbeat ILLEGAL_GENERATION; pass 200",
    "move; pass 1400; silent Heartbeat 4500",
    "protocol consumer; pass 200; reset ConsumerGroupHeartbeat; assign 1,2; rebalance; pass 600",
    "protocol consumer; refuse ConsumerGroupHeartbeat GROUP_AUTHORIZATION_FAILED",
    "protocol consumer; pattern; pass 1400",
    "protocol consumer; max-poll 3000; pause 6000; pass 7500",
    "assignors range,roundrobin; member takes roundrobin; rebalance",
    "refuse JoinGroup INCONSISTENT_GROUP_PROTOCOL",
    "begin latest; pass 500; rebalance; pass 500",
    "begin latest; committed 0; others 1 follow; assign 0,1; pass 500; assign 1,2; rebalance; pass 500",
    "commit seldom; others 1 follow; assign 0,1; pass 1500; assign 1,2; rebalance; pass 1500; restart; pass 1500",
)
"""The scripts that come before those that are drawn."""


def editions(name: str) -> Iterable[str]:
    """Live clients are tested against brokers of Apache Kafka."""
    return (name,) if edition(name).name.startswith("apache") else ()


def first_values(*scripts: str) -> tuple[Callable[[Subject], Value], ...]:
    def value(text: str) -> Callable[[Subject], Value]:
        steps = OPERATIONS.parse_shorthand(f"{text}; stop")
        return lambda subject: [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps]

    return tuple(map(value, scripts))


CLIENT: Final[Family[Subject]] = replace(
    machine_family(OPERATIONS.role, OPERATIONS.machine, editions, lambda edition: SCRIPTS, exhibits),
    steps_are_apart=False,
    finished=finished,
    unplayable=unplayable,
    exchanges=exchanges,
)

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        SURVIVES_GROUPS,
        "a program that consumes keeps the rules of its group through rebalances and errors",
        CLIENT,
        script,
        values=40,
        invariants=invariants_of(SURVIVES_GROUPS, invariants),
        first=first_values(*FIRST),
    ),
)
