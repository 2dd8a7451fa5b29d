"""Converts requests to members of a Streams group, and their results, to and from the JSON of the testee protocol."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.streams.model.members import Blob, Joining, Memory, Settings, TaskId, Tasks
from kipcheck.conformance.protocols.streams.model.tasks import order
from kipcheck.conformance.protocols.streams.ops import TOPOLOGY


def plain_settings(settings: Settings) -> dict[str, Any]:
    return {
        "topology": TOPOLOGY.plain(settings.topology),
        "process": settings.process,
        "upgradeFrom": settings.upgrade_from,
        "userEndPoint": settings.end_point,
        "clientTags": dict(settings.tags),
        "tagKeys": [*settings.tag_keys],
    }


def plain_memory(memory: Memory) -> dict[str, Any]:
    return {
        "used": memory.used,
        "unique": memory.unique,
        "active": [*map(str, memory.active)],
        "standby": [*map(str, memory.standby)],
        "sums": {str(task): offsets for task, offsets in memory.sums},
        "error": memory.error,
    }


def memory_of(plain: Mapping[str, Any], before: Memory) -> Memory:
    """Fields that the program omits keep their values of ``before``."""
    changes: dict[str, Any] = {key: plain[key] for key in ("used", "unique", "error") if plain.get(key) is not None}
    changes |= {key: _tasks(plain[key]) for key in ("active", "standby") if key in plain}
    if (sums := plain.get("sums")) is not None:
        changes["sums"] = tuple((task, sums[str(task)]) for task in _tasks(sums))
    return replace(before, **changes)


def _tasks(plain: Iterable[str]) -> Tasks:
    return tuple(sorted(map(TaskId.parse, plain), key=order))


def plain_joining(member: Joining) -> dict[str, Any]:
    return {
        "id": member.id,
        "subscription": [*member.topics],
        "userData": plain_data(member.data),
        "owned": [list(each) for each in member.owned],
        "generation": member.generation,
    }


def partitions_of(plain: Sequence[Sequence[Any]]) -> Partitions:
    return tuple((str(topic), int(number)) for topic, number in plain)


def plain_data(data: Blob) -> str:
    assert isinstance(data, bytes)
    return data.hex()
