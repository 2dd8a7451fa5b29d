"""What ``kipcheck inspect`` found, as text and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.live.inspect import streams_report
from kipcheck.conformance.live.inspect.group import (
    ConsumerGroup,
    ConsumerMember,
    Group,
    Inspectable,
    Member,
    OtherGroup,
    Partitions,
    ShareGroup,
    StreamsGroup,
    Unreadable,
    claims,
    streams_assignment,
    streams_subscription,
)
from kipcheck.conformance.live.inspect.inspection import Inspected
from kipcheck.conformance.live.inspect.verdicts import Broken
from kipcheck.conformance.protocols.assignment.model.assignment import NO_GENERATION, partition_names
from kipcheck.conformance.protocols.client.wording import damaged
from kipcheck.conformance.protocols.streams.blobs import releases_with_latest
from kipcheck.conformance.protocols.streams.model import members
from kipcheck.conformance.wire.embedded import Assignment, Subscription

# Text


def lines(inspected: Inspected, advice: Sequence[str] = ()) -> Iterator[str]:
    """One group, for a terminal. ``advice``: what the group can be upgraded to, in sentences."""
    group = inspected.group
    if isinstance(group, OtherGroup):
        yield f"group {group.id}: not inspected: {group.why}"
        return
    yield _head(group)
    yield from _members(group)
    if isinstance(group, Group) and group.leader_unknown:
        yield f"  leader: not known: {group.leader_unknown}"
    judged = inspected.judged
    if judged.unjudged:
        yield f"  not judged: {judged.unjudged}"
    elif group.members:
        yield f"  judged by {', '.join(law.id for law in judged.laws)}"
    for broken in judged.broken:
        yield from _broken(broken)
    yield from (f"  note: {note}" for note in judged.notes)
    yield from (f"  upgrade{'' if sentence.startswith(('to', 'from')) else ':'} {sentence}" for sentence in advice)


def _members(group: Inspectable) -> Iterator[str]:
    if isinstance(group, StreamsGroup | ShareGroup):
        yield from streams_report.lines(group)
        return
    for member in group.members:
        if isinstance(group, ConsumerGroup):
            assert isinstance(member, ConsumerMember)
            yield from _consumer_member(member)
        else:
            assert isinstance(member, Member)
            yield from _member(group, member)


def _head(group: Inspectable) -> str:
    count = f"{len(group.members)} member{'s' * (len(group.members) != 1)}"
    at = f"coordinator {group.coordinator[0]}:{group.coordinator[1]}"
    if isinstance(group, StreamsGroup | ShareGroup):
        return f"group {group.id}: {streams_report.head(group)}, {count}, {at}"
    if isinstance(group, ConsumerGroup):
        epochs = f"group epoch {group.epoch}, assignment epoch {group.assignment_epoch}"
        return f"group {group.id}: {group.state}, KIP-848, assignor {group.assignor or '-'}, {epochs}, {count}, {at}"
    generation = "" if group.generation is None else f", generation {group.generation}"
    kind = f"{group.protocol_type or 'no'} protocol type, protocol {group.protocol or '-'}"
    return f"group {group.id}: {group.state}{generation}, {kind}, {count}, {at}"


def _member(group: Group, member: Member) -> Iterator[str]:
    leads = " leads" if member.id == group.leader else ""
    instance = f", instance {member.instance}" if member.instance is not None else ""
    yield f"  member {member.id}{instance} (client id {member.client_id}, {member.host}){leads}"
    match member.subscription:
        case Subscription() as subscription:
            owned, generation = claims(group, subscription)
            owns = f"; owned {partition_names(owned)}" if subscription.version or owned else ""
            owns += f" in generation {generation}" if generation != NO_GENERATION else ""
            rack = f"; rack {subscription.rack}" if subscription.rack else ""
            topics = ", ".join(subscription.topics) or "no topics"
            yield f"    subscription v{subscription.version}: {topics}{owns}{rack}"
        case Unreadable(data, why):
            yield f"    subscription cannot be read: {why}; {data.hex()}"
    match streams_subscription(group, member):
        case members.SubscriptionInfo() as info:
            yield f"    sends {_streams_subscription(info)}"
        case Unreadable(data, why):
            yield f"    user data cannot be read: {why}; {data.hex()}"
        case None if isinstance(member.subscription, Subscription) and member.subscription.user_data:
            yield f"    user data {member.subscription.user_data.hex()}"
    match member.assignment:
        case Assignment() as assignment:
            yield f"    assignment v{assignment.version}: {partition_names(assignment.partitions)}"
        case Unreadable(data, why):
            yield f"    assignment cannot be read: {why}; {data.hex()}"
    match streams_assignment(group, member):
        case members.AssignmentInfo() as assigned:
            yield f"    gets {_streams_assignment(assigned)}"
        case Unreadable(data, why):
            yield f"    user data cannot be read: {why}; {data.hex()}"
        case None if isinstance(member.assignment, Assignment) and member.assignment.user_data:
            yield f"    user data {member.assignment.user_data.hex()}"


def _streams_subscription(info: members.SubscriptionInfo) -> str:
    high = newest_of(info)
    parts = [f"metadata version {info.used} of {high} ({release_span(high)})", f"process {info.process}"]
    parts += [f"previous tasks {_tasks(info.active)}"] if info.active else []
    parts += [f"standby tasks {_tasks(info.standby)}"] if info.standby else []
    parts += ["offset sums " + " ".join(f"{task}={sum}" for task, sum in info.sums)] if info.sums else []
    parts += [f"end point {info.end_point}"] if info.end_point else []
    parts += ["tags " + " ".join(f"{key}={value}" for key, value in info.tags)] if info.tags else []
    return ", ".join(parts)


def newest_of(info: members.SubscriptionInfo) -> int:
    """The newest metadata version that the member supports."""
    return info.used if info.latest == members.NO_VERSION else info.latest


def release_span(version: int) -> str:
    """The releases whose latest metadata version this is."""
    named = releases_with_latest(version)
    return "a release that kipcheck does not know" if not named else " to ".join(dict.fromkeys((named[0], named[-1])))


def _streams_assignment(info: members.AssignmentInfo) -> str:
    supported = "" if info.supported == members.NO_VERSION else f" ({info.supported} supported)"
    parts = [f"metadata version {info.used}{supported}", f"active tasks {_tasks(info.active)}"]
    parts += [f"standby tasks {_tasks(tuple(task for task, _ in info.standby))}"] if info.standby else []
    parts += (
        ["hosts " + "; ".join(f"{host}: {partition_names(owned)}" for host, owned in info.hosts)] if info.hosts else []
    )
    parts += [f"error {info.error}"] if info.error else []
    parts += [f"next rebalance at {info.next_ms} ms"] if info.next_ms != members.NO_REBALANCE else []
    return ", ".join(parts)


def _tasks(tasks: members.Tasks) -> str:
    return " ".join(map(str, tasks)) or "none"


def _consumer_member(member: ConsumerMember) -> Iterator[str]:
    yield streams_report.member_head(member)
    regex = f" and {member.regex}" if member.regex is not None else ""
    yield f"    subscription: {', '.join(member.topics) or 'no topics'}{regex}"
    target = "" if {*member.target} == {*member.assigned} else f"; target {partition_names(member.target)}"
    yield f"    assignment: {partition_names(member.assigned)}{target}"


def _broken(broken: Broken) -> Iterator[str]:
    law, violation = broken.law, broken.violation
    yield f"  {law.grade.word} {law.id} ({law.grade.value}): {violation.why}"
    yield f"    broken: {law.statement}"
    yield from (
        f"    {requirement.id}: {requirement.clause}"
        for requirement in map(requirements().__getitem__, law.requirements)
    )
    yield f"    expected {violation.expected or '-'}, observed {violation.observed or '-'}"
    if broken.damage is not None and broken.damage.hex:
        yield from (f"    {requirement}" for requirement in damaged(broken.damage).text().splitlines())


# JSON


def plain(inspected: Inspected, advice: Sequence[str] = ()) -> dict[str, Any]:
    """One group, as ``docs/inspect.md`` describes it."""
    group, judged = inspected.group, inspected.judged
    shown: dict[str, Any] = {"group": group.id, "unjudged": judged.unjudged or None}
    if not isinstance(group, OtherGroup):
        shown |= _plain_group(group)
    return shown | {
        "laws": [law.id for law in judged.laws],
        "broken": [_plain_broken(broken) for broken in judged.broken],
        "notes": [*judged.notes],
        "upgrade": [*advice],
    }


def _plain_group(group: Inspectable) -> dict[str, Any]:
    host, port = group.coordinator
    shown: dict[str, Any] = {"coordinator": f"{host}:{port}", "state": group.state}
    if isinstance(group, StreamsGroup | ShareGroup):
        return shown | streams_report.plain(group)
    if isinstance(group, ConsumerGroup):
        return shown | {
            "type": "consumer", "epoch": group.epoch, "assignmentEpoch": group.assignment_epoch,
            "assignor": group.assignor, "members": [_plain_consumer_member(member) for member in group.members],
        }  # fmt: skip
    return shown | {
        "type": "classic", "protocolType": group.protocol_type, "protocol": group.protocol,
        "generation": group.generation, "leader": group.leader, "leaderUnknown": group.leader_unknown or None,
        "members": [_plain_member(group, member) for member in group.members],
    }  # fmt: skip


def _plain_member(group: Group, member: Member) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": member.id, "instance": member.instance, "clientId": member.client_id, "host": member.host,
        "subscription": None, "assignment": None,
    }  # fmt: skip
    match member.subscription:
        case Subscription() as subscription:
            owned, generation = claims(group, subscription)
            shown["subscription"] = {
                "version": subscription.version, "topics": [*subscription.topics], "owned": _plain_partitions(owned),
                "generation": generation, "rack": subscription.rack, "userData": subscription.user_data.hex(),
                "streams": _plain_info(streams_subscription(group, member)),
            }  # fmt: skip
        case Unreadable(data, why):
            shown["subscription"] = {"unreadable": why, "bytes": data.hex()}
    match member.assignment:
        case Assignment() as assignment:
            shown["assignment"] = {
                "version": assignment.version, "partitions": _plain_partitions(assignment.partitions),
                "userData": assignment.user_data.hex(), "streams": _plain_info(streams_assignment(group, member)),
            }  # fmt: skip
        case Unreadable(data, why):
            shown["assignment"] = {"unreadable": why, "bytes": data.hex()}
    return shown


def _plain_info(info: members.SubscriptionInfo | members.AssignmentInfo | Unreadable | None) -> dict[str, Any] | None:
    match info:
        case members.SubscriptionInfo():
            return {
                "used": info.used, "latest": None if info.latest == members.NO_VERSION else info.latest,
                "process": info.process, "previousTasks": [*map(str, info.active)],
                "standbyTasks": [*map(str, info.standby)], "offsetSums": {str(task): sum for task, sum in info.sums},
                "endPoint": info.end_point, "tags": dict(info.tags), "error": info.error,
            }  # fmt: skip
        case members.AssignmentInfo():
            return {
                "used": info.used, "supported": None if info.supported == members.NO_VERSION else info.supported,
                "active": [*map(str, info.active)], "standby": [str(task) for task, _ in info.standby],
                "hosts": {host: _plain_partitions(owned) for host, owned in info.hosts},
                "standbyHosts": {host: _plain_partitions(owned) for host, owned in info.standby_hosts},
                "error": info.error, "nextRebalanceMs": None if info.next_ms == members.NO_REBALANCE else info.next_ms,
            }  # fmt: skip
        case Unreadable(data, why):
            return {"unreadable": why, "bytes": data.hex()}
    return None


def _plain_consumer_member(member: ConsumerMember) -> dict[str, Any]:
    return {
        "id": member.id, "instance": member.instance, "clientId": member.client_id, "host": member.host,
        "rack": member.rack, "epoch": member.epoch, "topics": [*member.topics], "regex": member.regex,
        "assigned": _plain_partitions(member.assigned), "target": _plain_partitions(member.target),
        "classic": member.is_classic,
    }  # fmt: skip


def _plain_partitions(partitions: Partitions) -> list[list[Any]]:
    return [[*partition] for partition in partitions]


def _plain_broken(broken: Broken) -> dict[str, Any]:
    law, violation = broken.law, broken.violation
    return {
        "law": law.id, "grade": law.grade.value, "result": law.grade.word, "requirements": [*law.requirements],
        "why": violation.why, "expected": violation.expected, "observed": violation.observed,
        "bytes": None if broken.damage is None else damaged(broken.damage).as_data(),
    }  # fmt: skip
