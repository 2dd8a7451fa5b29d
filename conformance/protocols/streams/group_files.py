"""Parses a file that describes a Streams group: the application, and each member's configuration and memory.

All functions raise ``Unreadable``, with the path of the invalid value and the expected form.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

from kipcheck.conformance.protocols.assignment import group_files
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.streams.model import members as model_members
from kipcheck.conformance.protocols.streams.model.tasks import order
from kipcheck.conformance.wire.jsontext import Path
from kipcheck.conformance.wire.workbench import object_of

LARGEST_PORT: Final = 65535
LARGEST_LONG: Final = (1 << 63) - 1


@final
@dataclass(frozen=True, slots=True)
class Member:
    """A member, as described in the file."""

    id: str
    topics: tuple[str, ...]
    process: str
    upgrade_from: str | None
    active: model_members.Tasks
    standby: model_members.Tasks
    sums: tuple[tuple[model_members.TaskId, int], ...]
    end_point: str | None
    tags: tuple[tuple[str, str], ...]
    owned: Partitions
    generation: int
    data: bytes | None
    """Its encoded subscription, if the file has it."""

    def remembers(self, initial: model_members.Memory) -> model_members.Memory:
        """Its memory: tasks and offset sums of the file, other fields from ``initial``."""
        return replace(initial, active=self.active, standby=self.standby, sums=self.sums)


@final
@dataclass(frozen=True, slots=True)
class Application:
    """The contents of a file."""

    topics: tuple[Topic, ...]
    topology: model_members.Topology
    members: tuple[Member, ...]

    def settings(self, member: Member, release: str) -> model_members.Settings:
        """Settings of a member; ``rack.aware.assignment.tags`` contains the tag keys of all members."""
        keys = sorted({key for each in self.members for key, _ in each.tags})
        return model_members.Settings(
            release, self.topology, member.process, member.upgrade_from, member.end_point, member.tags, tuple(keys)
        )

    def joining(self) -> tuple[model_members.Joining, ...]:
        """All members, as their leader receives them."""
        return tuple(map(_joining, self.members))


def application(text: str) -> Application:
    given = object_of(text)
    group_files.keys_of((), given, ("topics", "topology", "members"))
    topics = tuple(_topic(("topics", name), name, each) for name, each in _object(given, "topics").items())
    topology = given.get("topology")
    if topology is None and not topics:
        group_files.refuse(("topics",), 'must not be empty without a topology; for example {"t": 3}')
    read = model_members.Topology((model_members.Subtopology(0, tuple(each.name for each in topics)),))
    if topology is not None:
        read = topology_at(("topology",), topology)
    members = _object(given, "members")
    if not members:
        group_files.refuse(("members",), 'must not be empty; for example {"c1": {}}')
    return Application(topics, read, tuple(_member(("members", id), id, each, read) for id, each in members.items()))


def topology_at(path: Path, given: Any) -> model_members.Topology:
    """Parses a topology at any path of a file."""
    group_files.keys_of(path, group_files.object_at(path, given), ("subtopologies", "standbys"))
    path_in = (*path, "subtopologies")
    found = [
        _subtopology((*path_in, n), each)
        for n, each in enumerate(group_files.list_at(path_in, given.get("subtopologies")))
    ]
    if not found:
        group_files.refuse(path_in, 'must not be empty; for example {"id": 0, "sources": ["t"]}')
    known: set[tuple[str | None, int]] = set()
    stores: set[str] = set()
    for n, each in enumerate(found):
        if (each.topology, each.id) in known:
            group_files.refuse((*path_in, n, "id"), f"duplicate subtopology id {each.id}: use another")
        known.add((each.topology, each.id))
        for m, store in enumerate(each.stores):
            if store.name in stores:
                group_files.refuse(
                    (*path_in, n, "stores", m, "name"), f"duplicate store name {store.name!r}: use another"
                )
            stores.add(store.name)
    return model_members.Topology(tuple(found), group_files.number_at((*path, "standbys"), given.get("standbys", 0), 0))


def _subtopology(path: Path, given: Any) -> model_members.Subtopology:
    group_files.keys_of(
        path, group_files.object_at(path, given), ("id", "sources", "repartition", "stores", "copartition", "topology")
    )
    if "id" not in given:
        group_files.refuse(path, "'id', the number of the subtopology, is missing")
    sources = group_files.each_once((*path, "sources"), given.get("sources", []), _name_at)
    if not sources:
        group_files.refuse((*path, "sources"), "must name at least one topic")
    groups = group_files.list_at((*path, "copartition"), given.get("copartition", []))
    copartition = [group_files.each_once((*path, "copartition", n), each, _name_at) for n, each in enumerate(groups)]
    for n, group in enumerate(copartition):
        for m, topic in enumerate(group):
            if topic not in sources:
                group_files.refuse(
                    (*path, "copartition", n, m), f"{topic!r} must be one of the sources of the subtopology"
                )
    stores = group_files.list_at((*path, "stores"), given.get("stores", []))
    named = given.get("topology")
    return model_members.Subtopology(
        group_files.number_at((*path, "id"), given["id"], 0),
        tuple(sources),
        tuple(group_files.each_once((*path, "repartition"), given.get("repartition", []), _name_at)),
        tuple(_store((*path, "stores", n), each) for n, each in enumerate(stores)),
        tuple(map(tuple, copartition)),
        None if named is None else _name_at((*path, "topology"), named),
    )


def _store(path: Path, given: Any) -> model_members.Store:
    group_files.keys_of(path, group_files.object_at(path, given), ("name", "logged"))
    return model_members.Store(
        _name_at((*path, "name"), given.get("name")), group_files.flag_at((*path, "logged"), given.get("logged", True))
    )


def _topic(path: Path, name: str, given: Any) -> Topic:
    _name_at(path, name)
    if isinstance(given, dict):
        group_files.keys_of(path, given, ("partitions",))
        path, given = (*path, "partitions"), given.get("partitions")
    return Topic(name, group_files.number_at(path, given, 0))


def _member(path: Path, id: str, given: Any, topology: model_members.Topology) -> Member:
    _name_at(path, id)
    group_files.keys_of(path, group_files.object_at(path, given), (
        "subscription", "upgradeFrom", "processId", "previousTasks", "standbyTasks", "offsetSums", "userEndPoint",
        "clientTags", "owned", "generation", "userData",
    ))  # fmt: skip
    topics = sorted(topology.source_topics) if given.get("subscription") is None else given["subscription"]
    upgrade_from, process, end_point, data = (
        given.get(key) for key in ("upgradeFrom", "processId", "userEndPoint", "userData")
    )
    at = (*path, "offsetSums")
    offsets = group_files.object_at(at, given.get("offsetSums", {})).items()
    sums = [
        (_task_at(at, task), group_files.number_at((*at, task), each, -LARGEST_LONG - 1, LARGEST_LONG))
        for task, each in offsets
    ]
    tags = group_files.object_at((*path, "clientTags"), given.get("clientTags", {}))
    return Member(
        id,
        tuple(group_files.each_once((*path, "subscription"), topics, group_files.text_at)),
        str(uuid.uuid5(uuid.NAMESPACE_OID, id)) if process is None else _uuid_at((*path, "processId"), process),
        None if upgrade_from is None else group_files.text_at((*path, "upgradeFrom"), upgrade_from),
        _tasks_at((*path, "previousTasks"), given.get("previousTasks", [])),
        _tasks_at((*path, "standbyTasks"), given.get("standbyTasks", [])),
        tuple(sorted(sums, key=lambda each: order(each[0]))),
        None if end_point is None else _end_point_at((*path, "userEndPoint"), end_point),
        tuple(sorted((_name_at(path, key), group_files.text_at((*path, "clientTags", key), each)) for key,
        each in tags.items())),
        tuple(group_files.each_once((*path, "owned"), given.get("owned", []), group_files.partition_at)),
        group_files.number_at((*path, "generation"), given.get("generation", -1), -group_files.LARGEST - 1),
        None if data is None else bytes.fromhex(group_files.hex_at((*path, "userData"), data)),
    )  # fmt: skip


def _joining(member: Member) -> model_members.Joining:
    if member.data is None:
        group_files.refuse(("members", member.id, "userData"), "is missing: add the hex output of `kipcheck subscribe`")
    return model_members.Joining(member.id, member.topics, member.data, member.owned, member.generation)


def _object(given: Mapping[str, Any], key: str) -> dict[str, Any]:
    return group_files.object_at((key,), given.get(key, {}))


def _name_at(path: Path, given: Any) -> str:
    if not (text := group_files.text_at(path, given)):
        group_files.refuse(path, "must not be empty")
    return text


def _uuid_at(path: Path, given: Any) -> str:
    try:
        return str(uuid.UUID(group_files.text_at(path, given)))
    except ValueError:
        group_files.refuse(path, f"must be a UUID, got {group_files.shown(given)}")


def _end_point_at(path: Path, given: Any) -> str:
    host, _, port = group_files.text_at(path, given).rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > LARGEST_PORT:
        group_files.refuse(path, f"must be host:port, got {group_files.shown(given)}")
    return f"{host}:{int(port)}"


def _tasks_at(path: Path, given: Any) -> model_members.Tasks:
    return tuple(sorted(group_files.each_once(path, given, _task_at), key=order))


def _task_at(path: Path, given: Any) -> model_members.TaskId:
    try:
        task = model_members.TaskId.parse(group_files.text_at(path, given))
    except ValueError as wrong:
        group_files.refuse(path, str(wrong))
    group_files.number_at(path, max(task.subtopology, task.partition), 0)
    return task
