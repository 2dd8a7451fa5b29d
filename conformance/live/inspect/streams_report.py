"""Streams groups (KIP-1071) and share groups (KIP-932) that ``kipcheck inspect`` found, as text and as JSON."""

from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.live.inspect.group import (
    ConsumerMember,
    Offsets,
    ShareGroup,
    ShareMember,
    StreamsGroup,
    StreamsMember,
    Subtopology,
    TaskSet,
    task_name,
    task_names,
)
from kipcheck.conformance.protocols.assignment.model.assignment import partition_names

# Text


def head(group: StreamsGroup | ShareGroup) -> str:
    """What the group is, without its name and members."""
    epochs = f"group epoch {group.epoch}, assignment epoch {group.assignment_epoch}"
    if isinstance(group, ShareGroup):
        return f"{group.state}, share group (KIP-932), assignor {group.assignor or '-'}, {epochs}"
    topology = "no topology" if group.topology_epoch is None else f"topology epoch {group.topology_epoch}"
    assignor = "" if group.assignor is None else f"assignor {group.assignor}, "
    return f"{group.state}, streams group (KIP-1071), {assignor}{epochs}, {topology}"


def lines(group: StreamsGroup | ShareGroup) -> Iterator[str]:
    """Topology and members."""
    if isinstance(group, ShareGroup):
        for share_member in group.members:
            yield from _share_member(share_member)
        return
    yield from map(_subtopology, group.subtopologies)
    for member in group.members:
        yield from _streams_member(member)


def _subtopology(found: Subtopology) -> str:
    parts = [f"reads {', '.join(found.sources) or 'no topics'}"]
    parts += [f"writes {', '.join(found.sinks)}"] if found.sinks else []
    parts += [f"keeps its state in {', '.join(found.changelogs)}"] if found.changelogs else []
    return f"  subtopology {found.id}: {'; '.join(parts)}"


def member_head(member: ConsumerMember | StreamsMember) -> str:
    """Who the member is, and its epoch."""
    instance = f", instance {member.instance}" if member.instance is not None else ""
    rack = f", rack {member.rack}" if member.rack is not None else ""
    classic = ", classic protocol" if member.is_classic else ""
    place = f"client id {member.client_id}, {member.host}{rack}"
    return f"  member {member.id}{instance} ({place}){classic}, epoch {member.epoch}"


def _streams_member(member: StreamsMember) -> Iterator[str]:
    yield f"{member_head(member)}, topology epoch {member.topology_epoch}, process {member.process}"
    about = [f"end point {member.end_point}"] if member.end_point is not None else []
    about += ["tags " + " ".join(f"{key}={value}" for key, value in member.tags)] if member.tags else []
    if about:
        yield f"    {', '.join(about)}"
    target = "" if member.target == member.assigned else f"; target: {_tasks(member.target)}"
    yield f"    {_tasks(member.assigned)}{target}"
    ends = _plain_offsets(member.end_offsets)
    if member.offsets:
        shown = (f"{task}={offset}" + (f" of {ends[task]}" if task in ends else "")
                 for task, offset in _plain_offsets(member.offsets).items())  # fmt: skip
        yield f"    offsets {' '.join(shown)}"


def _tasks(found: TaskSet) -> str:
    text = f"active tasks {task_names(found.active)}"
    text += f", standby tasks {task_names(found.standby)}" if found.standby else ""
    return text + (f", warm-up tasks {task_names(found.warm_up)}" if found.warm_up else "")


def _share_member(member: ShareMember) -> Iterator[str]:
    rack = f", rack {member.rack}" if member.rack is not None else ""
    yield f"  member {member.id} (client id {member.client_id}, {member.host}{rack}), epoch {member.epoch}"
    yield f"    subscription: {', '.join(member.topics) or 'no topics'}"
    yield f"    assignment: {partition_names(member.assigned)}"


# JSON


def plain(group: StreamsGroup | ShareGroup) -> dict[str, Any]:
    """The keys of ``docs/inspect.md`` that other groups lack."""
    shown = {"epoch": group.epoch, "assignmentEpoch": group.assignment_epoch, "assignor": group.assignor}
    if isinstance(group, ShareGroup):
        members = [
            {
                "id": each.id, "clientId": each.client_id, "host": each.host, "rack": each.rack, "epoch": each.epoch,
                "topics": [*each.topics], "assigned": [[*part] for part in each.assigned],
            }
            for each in group.members
        ]  # fmt: skip
        return {"type": "share", **shown, "members": members}
    topology = {"epoch": group.topology_epoch, "subtopologies": [*map(_plain_subtopology, group.subtopologies)]}
    return {
        "type": "streams", **shown, "topology": None if group.topology_epoch is None else topology,
        "members": [*map(_plain_streams_member, group.members)],
    }  # fmt: skip


def _plain_subtopology(found: Subtopology) -> dict[str, Any]:
    return {
        "id": found.id, "sources": [*found.sources], "sinks": [*found.sinks], "changelogs": [*found.changelogs],
    }  # fmt: skip


def _plain_streams_member(member: StreamsMember) -> dict[str, Any]:
    return {
        "id": member.id, "instance": member.instance, "clientId": member.client_id, "host": member.host,
        "rack": member.rack, "epoch": member.epoch, "topologyEpoch": member.topology_epoch, "process": member.process,
        "endPoint": member.end_point, "tags": dict(member.tags), "offsets": _plain_offsets(member.offsets),
        "endOffsets": _plain_offsets(member.end_offsets), "assigned": _plain_tasks(member.assigned),
        "target": _plain_tasks(member.target), "classic": member.is_classic,
    }  # fmt: skip


def _plain_tasks(found: TaskSet) -> dict[str, list[str]]:
    return {
        "active": [*map(task_name, found.active)], "standby": [*map(task_name, found.standby)],
        "warmup": [*map(task_name, found.warm_up)],
    }  # fmt: skip


def _plain_offsets(found: Offsets) -> dict[str, int]:
    return {task_name((subtopology, number)): offset for subtopology, number, offset in found}
