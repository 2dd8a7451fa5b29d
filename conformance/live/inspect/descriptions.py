"""Reads the groups of a running cluster: which there are, and how their coordinators describe them."""

import asyncio
import time
from dataclasses import replace
from typing import Any, Final, TypeVar

from kipcheck.conformance.core.operations.wire_form import Unfit
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.inspect import group as inspect_group
from kipcheck.conformance.live.inspect.cluster import Address, Cluster, Node, Unanswered
from kipcheck.conformance.live.inspect.group_records import Found, newest_record
from kipcheck.conformance.wire.bodies import api_of

RETRIED: Final = frozenset({14, 15, 16})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: the next answer may be another."""
DENIED: Final = 30
WAIT_S: Final = 10.0
"""How long a group that rebalances is asked again."""
AGAIN_S: Final = 0.5
AT_ONCE: Final = 50
"""Brokers that are sent a request side by side: some may be silent."""
G = TypeVar("G", bound=inspect_group.Inspectable)
KINDS: Final[tuple[type[inspect_group.ConsumerGroup | inspect_group.StreamsGroup | inspect_group.ShareGroup], ...]] = (
    inspect_group.ConsumerGroup,
    inspect_group.StreamsGroup,
    inspect_group.ShareGroup,
)
"""The types of groups with a request of their own that describes them. Classic groups have DescribeGroups."""


class NoGroup(Exception):
    """The group does not exist; the text says what there is."""


async def groups(cluster: Cluster) -> tuple[dict[str, str], list[str]]:
    """Group -> its type, of all brokers; and what could not be asked."""
    found: dict[str, str] = {}
    unasked: list[str] = []
    nodes, room = await cluster.nodes(), asyncio.Semaphore(AT_ONCE)

    async def listed(node: Node) -> tuple[Any, ...] | Unanswered:
        asked: dict[str, Any] = {"statesFilter": [], "typesFilter": []}
        rows = "groups[].groupId", "groups[].groupType"
        async with room:
            try:
                return await cluster.values(node.address, "ListGroups", asked, "errorCode", rows)
            except Unanswered as silent:
                return silent

    for node, answer in zip(nodes, await asyncio.gather(*map(listed, nodes)), strict=True):
        if isinstance(answer, Unanswered):
            unasked.append(f"{answer}; its groups are missing here")
            continue
        error, rows = answer
        if error:
            unasked.append(f"broker {node.id} answers ListGroups with error {error}")
        found |= {group: (kind or "").lower() for group, kind in rows}
    return dict(sorted(found.items())), unasked


async def described(cluster: Cluster, group: str) -> inspect_group.Described:
    """The group, when it is stable: while it rebalances it is asked again, up to ``WAIT_S``.

    Errors: ``Unanswered``; ``NoGroup``.
    """
    until = time.monotonic() + WAIT_S
    while True:
        found = await _once(cluster, group)
        settled = isinstance(found, inspect_group.OtherGroup) or (
            found.state == inspect_group.STABLE or found.state in inspect_group.EMPTY_STATES
        )
        if settled or time.monotonic() >= until:
            return await _with_leader(cluster, found) if isinstance(found, inspect_group.Group) else found
        await asyncio.sleep(AGAIN_S)


async def _once(cluster: Cluster, group: str) -> inspect_group.Described:
    coordinator = await cluster.coordinator(group)
    has_consumer_groups = False
    for kind in KINDS:
        # Brokers may know the request and refuse it, as 3.7 to 3.9 refuse ConsumerGroupDescribe unless configured.
        if await cluster.version(coordinator, api_of(kind)) is None:
            continue
        found = await _read(cluster, kind, "groupIds", coordinator, group)
        if found is None or found.error == KafkaError.UNSUPPORTED_VERSION:
            continue
        has_consumer_groups |= kind is inspect_group.ConsumerGroup
        if found.error != KafkaError.GROUP_ID_NOT_FOUND:
            return _refused(group, api_of(kind), found.error) if found.error else found
    classic = await _read(
        cluster, inspect_group.Group, "groups", coordinator, group, has_consumer_groups=has_consumer_groups
    )
    if classic is None:
        raise Unanswered(f"the coordinator of group {group!r} answers DescribeGroups without this group")
    if classic.error == KafkaError.GROUP_ID_NOT_FOUND or (not classic.error and classic.state == "Dead"):
        return inspect_group.OtherGroup(group, await _type_of(cluster, group))
    return _refused(group, "DescribeGroups", classic.error) if classic.error else classic.as_written


async def _read(cluster: Cluster, kind: type[G], field: str, at: Address, group: str, **others: Any) -> G | None:
    """How a coordinator describes the group; None: it describes another one, or several."""
    asked = {field: [group], "includeAuthorizedOperations": False}
    try:
        found = await cluster.read(kind, at, asked, coordinator=at, **others)
    except Unfit:
        return None
    return found if found.error or found.id == group else None


def _refused(group: str, api: str, error: int) -> inspect_group.OtherGroup:
    if error in RETRIED:
        raise Unanswered(f"the coordinator of group {group!r} answers {api} with error {error}: ask again later")
    denied = ": the user may not describe the group" if error == DENIED else ""
    return inspect_group.OtherGroup(group, f"{api} is answered with error {error}{denied}")


async def _type_of(cluster: Cluster, group: str) -> str:
    """Why a group is not described. Errors: ``NoGroup``."""
    found, unasked = await groups(cluster)
    if group in found:
        return f"it is a group of type {found[group] or 'unknown'}, which is not inspected"
    names = ", ".join(found) or "none"
    raise NoGroup("; ".join([f"no group {group!r}; the groups are: {names}", *unasked]))


async def _with_leader(cluster: Cluster, group: inspect_group.Group) -> inspect_group.Group:
    """DescribeGroups names no leader: the record that the coordinator wrote of the group does."""
    if group.state != inspect_group.STABLE:
        return group
    try:
        record = await newest_record(cluster, group.id)
    except Unanswered as silent:
        return _with_record(group, str(silent))
    return _with_record(group, record)


def _with_record(group: inspect_group.Group, record: Found | str) -> inspect_group.Group:
    if isinstance(record, Found) and {*record.subscriptions} != {member.id for member in group.members}:
        record = "the newest record of the group has other members"
    if isinstance(record, str):
        return replace(group, leader_unknown=record)
    members = tuple(_with_subscription(member, record.subscriptions[member.id]) for member in group.members)
    return replace(group, generation=record.generation, leader=record.leader, members=members)


def _with_subscription(member: inspect_group.Member, data: bytes) -> inspect_group.Member:
    """With the subscription in the record, where the coordinator described none."""
    return replace(member, metadata=data) if member.share and not member.metadata else member
