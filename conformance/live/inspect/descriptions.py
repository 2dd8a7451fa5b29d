"""Reads the groups of a running cluster: which there are, and how their coordinators describe them."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.live.inspect.cluster import Address, Cluster, Node, Unanswered
from kipcheck.conformance.live.inspect.group import (
    EMPTY_STATES,
    STABLE,
    Described,
    Group,
    Inspectable,
    Member,
    OtherGroup,
    read_consumer_group,
    read_member,
    read_share_group,
)
from kipcheck.conformance.live.inspect.group_records import Found, newest_record
from kipcheck.conformance.live.inspect.streams_group import read_streams_group

UNSUPPORTED_VERSION, GROUP_ID_NOT_FOUND = 35, 69
RETRIED: Final = frozenset({14, 15, 16})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: the next answer may be another."""
DENIED: Final = 30
WAIT_S: Final = 10.0
"""How long a group that rebalances is asked again."""
AGAIN_S: Final = 0.5
AT_ONCE: Final = 50
"""Brokers that are sent a request side by side: some may be silent."""
CONSUMER_GROUP_DESCRIBE: Final = "ConsumerGroupDescribe"
READERS: Final[Mapping[str, Callable[[str, Address, Mapping[str, Any]], Inspectable]]] = {
    CONSUMER_GROUP_DESCRIBE: read_consumer_group,
    "StreamsGroupDescribe": read_streams_group,
    "ShareGroupDescribe": read_share_group,
}
"""The request that describes groups of a type -> reads its answer. Classic groups are described by DescribeGroups."""


class NoGroup(Exception):
    """The group does not exist; the text says what there is."""


async def groups(cluster: Cluster) -> tuple[dict[str, str], list[str]]:
    """Group -> its type, of all brokers; and what could not be asked."""
    found: dict[str, str] = {}
    unasked: list[str] = []
    nodes, room = await cluster.nodes(), asyncio.Semaphore(AT_ONCE)

    async def listed(node: Node) -> Mapping[str, Any] | Unanswered:
        async with room:
            try:
                return await cluster.ask(node.address, "ListGroups", {"statesFilter": [], "typesFilter": []})
            except Unanswered as silent:
                return silent

    for node, body in zip(nodes, await asyncio.gather(*map(listed, nodes)), strict=True):
        if isinstance(body, Unanswered):
            unasked.append(f"{body}; its groups are missing here")
            continue
        if body["errorCode"]:
            unasked.append(f"broker {node.id} answers ListGroups with error {body['errorCode']}")
        found |= {each["groupId"]: each.get("groupType", "").lower() for each in body["groups"]}
    return dict(sorted(found.items())), unasked


async def described(cluster: Cluster, group: str) -> Described:
    """The group, when it is stable: while it rebalances it is asked again, up to ``WAIT_S``.

    Errors: ``Unanswered``; ``NoGroup``.
    """
    until = time.monotonic() + WAIT_S
    while True:
        found = await _once(cluster, group)
        settled = isinstance(found, OtherGroup) or (found.state == STABLE or found.state in EMPTY_STATES)
        if settled or time.monotonic() >= until:
            return await _with_leader(cluster, found) if isinstance(found, Group) else found
        await asyncio.sleep(AGAIN_S)


async def _once(cluster: Cluster, group: str) -> Described:
    coordinator = await cluster.coordinator(group)
    has_consumer_groups = False
    for api, read in READERS.items():
        row = await _row(cluster, coordinator, api, group)
        if row is None or row["errorCode"] == UNSUPPORTED_VERSION:
            continue
        has_consumer_groups |= api == CONSUMER_GROUP_DESCRIBE
        if row["errorCode"] == GROUP_ID_NOT_FOUND:
            continue
        return _refused(group, api, row["errorCode"]) if row["errorCode"] else read(group, coordinator, row)
    body = await cluster.ask(coordinator, "DescribeGroups", {"groups": [group], "includeAuthorizedOperations": False})
    for each in body["groups"]:
        if each["groupId"] != group:
            continue
        error = each["errorCode"]
        if error == GROUP_ID_NOT_FOUND or (not error and each["groupState"] == "Dead"):
            return OtherGroup(group, await _type_of(cluster, group))
        if error:
            return _refused(group, "DescribeGroups", error)
        members = tuple(read_member(one, each["protocolType"]) for one in each["members"])
        return Group(
            group, coordinator, each["groupState"], each["protocolType"], each["protocolData"], members,
            has_consumer_groups=has_consumer_groups,
        )  # fmt: skip
    raise Unanswered(f"the coordinator of group {group!r} answers DescribeGroups without this group")


async def _row(cluster: Cluster, at: Address, api: str, group: str) -> Mapping[str, Any] | None:
    """How a coordinator describes the group; None: it does not know the request. Brokers may know it and refuse it, as
    3.7 to 3.9 refuse ConsumerGroupDescribe, unless configured otherwise."""
    if await cluster.version(at, api) is None:
        return None
    body = await cluster.ask(at, api, {"groupIds": [group], "includeAuthorizedOperations": False})
    return next((each for each in body["groups"] if each["groupId"] == group or each["errorCode"]), None)


def _refused(group: str, api: str, error: int) -> OtherGroup:
    if error in RETRIED:
        raise Unanswered(f"the coordinator of group {group!r} answers {api} with error {error}: ask again later")
    denied = ": the user may not describe the group" if error == DENIED else ""
    return OtherGroup(group, f"{api} is answered with error {error}{denied}")


async def _type_of(cluster: Cluster, group: str) -> str:
    """Why a group is not described. Errors: ``NoGroup``."""
    found, unasked = await groups(cluster)
    if group in found:
        return f"it is a group of type {found[group] or 'unknown'}, which is not inspected"
    names = ", ".join(found) or "none"
    raise NoGroup("; ".join([f"no group {group!r}; the groups are: {names}", *unasked]))


async def _with_leader(cluster: Cluster, group: Group) -> Group:
    """DescribeGroups names no leader: the record that the coordinator wrote of the group does."""
    if group.state != STABLE:
        return group
    try:
        record = await newest_record(cluster, group.id)
    except Unanswered as silent:
        return _with_record(group, str(silent))
    return _with_record(group, record)


def _with_record(group: Group, record: Found | str) -> Group:
    if isinstance(record, Found) and {*record.subscriptions} != {each.id for each in group.members}:
        record = "the newest record of the group has other members"
    if isinstance(record, str):
        return replace(group, leader_unknown=record)
    members = tuple(_with_subscription(each, record.subscriptions[each.id]) for each in group.members)
    return replace(group, generation=record.generation, leader=record.leader, members=members)


def _with_subscription(member: Member, data: bytes) -> Member:
    """With the subscription in the record, where the coordinator described none."""
    return replace(member, metadata=data) if member.share and not member.metadata else member
