"""Describes the groups of a log directory, as text and as JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.inspect.group import read_record
from kipcheck.conformance.log_directory.group_state import EPOCH, GROUP, MEMBER, OFFSET, Group, GroupState, Newest
from kipcheck.conformance.wire.embedded import Subscription, read_subscription
from kipcheck.conformance.wire.schema import spec

CONSUMER = "consumer"
"""The protocol type whose members send a ``ConsumerProtocolSubscription``."""


def groups_text(state: GroupState) -> Iterator[str]:
    found = state.groups()
    yield f"groups: {len(found)}"
    for group in found:
        yield from _group(group, state.pending.get(group.name, 0))
    for record, number in sorted(state.undecoded.items()):
        yield f"not decoded: {record}, {number}"


def _group(group: Group, pending: int) -> Iterator[str]:
    yield f"group {group.name}: {_head(group)}"
    for each in _members(group):
        about = ", ".join(f"{key} {value}" for key, value in each.items() if key != "member" and value is not None)
        yield f"  member {each['member']}: {about}"
    for newest in group.of(OFFSET):
        key, place = newest.record.key or {}, f"{newest.file} at byte {newest.at}"
        offset = "deleted" if newest.record.value is None else newest.record.value["offset"]
        yield f"  {key['topic']}-{key['partition']}: {offset} ({place})"
    if pending:
        yield f"  {pending} offsets of a transaction that has not ended"


def _head(group: Group) -> str:
    parts = []
    if classic := group.classic:
        value = classic.record.value
        if classic.deleted:
            parts.append("deleted")
        elif value is not None:
            parts.append(f"generation {value['generation']}, type {value['protocolType'] or 'none'}, "
                         f"protocol {value['protocol'] or 'none'}, leader {value['leader'] or 'none'}")  # fmt: skip
    for each in group.of(EPOCH):
        parts.append("consumer group deleted" if each.record.value is None
                     else f"consumer group, epoch {each.record.value['epoch']}")  # fmt: skip
    others = [each for each in group.newest if each.record.name not in (GROUP, EPOCH, OFFSET, MEMBER)]
    parts += [f"{name} {number}" for name, number in _by_name(others).items()]
    return ", ".join([*parts, f"{group.tombstones} tombstones"])


def _by_name(records: list[Newest]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for each in records:
        found[each.record.name] = found.get(each.record.name, 0) + 1
    return found


def _members(group: Group) -> list[Mapping[str, Any]]:
    """Of the newest record of the classic group, and of a consumer group."""
    classic = group.classic.record.value if group.classic else None
    found = [_classic_member(classic["protocolType"], each) for each in classic["members"]] if classic else []
    for newest in group.of(MEMBER):
        value = newest.record.value
        if value is not None:
            found.append({
                "member": (newest.record.key or {})["memberId"], "client": value["clientId"],
                "host": value["clientHost"], "instance": value["instanceId"],
                "topics": sorted(value["subscribedTopicNames"]), "expression": value["subscribedTopicRegex"] or None,
            })  # fmt: skip
    return found


def _classic_member(protocol_type: str, member: Mapping[str, Any]) -> Mapping[str, Any]:
    data, read = bytes(member["subscription"]), None
    if protocol_type == CONSUMER:
        read = read_record(read_subscription, data)
    return {
        "member": member["memberId"], "client": member["clientId"], "host": member["clientHost"],
        "instance": member.get("groupInstanceId"),
        "topics": sorted(read.topics) if isinstance(read, Subscription) else None,
        "subscription": None if isinstance(read, Subscription) else data.hex(),
        "damage": None if read is None or isinstance(read, Subscription) else read.why,
        "assignment": bytes(member["assignment"]).hex(),
    }  # fmt: skip


def groups_as_json(state: GroupState) -> Mapping[str, Any]:
    return {
        "groups": [_group_as_json(each, state.pending.get(each.name, 0)) for each in state.groups()],
        "notDecodedRecords": state.undecoded,
    }


def _group_as_json(group: Group, pending: int) -> Mapping[str, Any]:
    classic = group.classic
    value = (classic.record.value if classic else None) or {}
    return {
        "group": group.name,
        "deleted": classic.deleted if classic else None,
        **{key: value.get(key) for key in ("protocolType", "generation", "protocol", "leader")},
        "members": _members(group),
        "offsets": [_offset_as_json(each) for each in group.of(OFFSET) if each.record.value is not None],
        "pending": pending,
        "tombstones": group.tombstones,
        "records": [_record_as_json(each) for each in group.newest],
    }


def _offset_as_json(newest: Newest) -> Mapping[str, Any]:
    key, value = newest.record.key or {}, newest.record.value or {}
    return {
        "topic": key["topic"], "partition": key["partition"], "offset": value["offset"],
        "leaderEpoch": value.get("leaderEpoch", -1), "metadata": value["metadata"],
        "file": str(newest.file), "byte": newest.at,
    }  # fmt: skip


def _record_as_json(newest: Newest) -> Mapping[str, Any]:
    record = newest.record
    value = None
    if record.value is not None and record.version is not None:
        value = spec(APACHE, record.format).at(record.version).codec.to_json(record.value)
    return {
        "record": record.name, "key": record.key, "version": record.version, "value": value,
        "logOffset": newest.offset, "file": str(newest.file), "byte": newest.at,
    }  # fmt: skip
