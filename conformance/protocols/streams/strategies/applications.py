"""Groups of Streams members as input of a leader: an application, the members' previous tasks and their state.

A value contains who ran a task, and who has its state, by the letters of members. No positions are used, so that a
value keeps its meaning when a reducer removes parts. ``application_of`` converts it to the input of ``kipcheck
subscribe`` and ``kipcheck assign --assignor stream`` (``streams.group_files``), and accepts every
value.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from kipcheck.conformance.protocols.streams.model.members import TaskId
from kipcheck.conformance.protocols.streams.model.tasks import Work, work
from kipcheck.conformance.protocols.streams.ops import SIZES, TOPOLOGY
from kipcheck.conformance.protocols.streams.strategies.scripts import deployments
from kipcheck.strategies.nodes import Integer, Node, Pick, Record, Row, Seq, nullable, record

Value: TypeAlias = Mapping[str, Any]

MEMBERS: Final = ("c1", "c2", "c3", "c4")
NO_MEMBER: Final = ""
ACCEPTABLE: Final = 10000
"""acceptable.recovery.lag: the most offsets that a copy may be behind and still become active (KIP-441)."""
GENERATION: Final = 5

_letter: Final = Pick((NO_MEMBER, *MEMBERS))
_tag: Final = nullable(record(key=Pick(("zone", "rack")), value=Pick(("1", "2", "3"))))


def _member() -> Record:
    return record(instance=Pick(MEMBERS), end_point=nullable(Pick(MEMBERS)), tag=_tag)


def groups(named: bool = False) -> Record:
    """``named``: also topologies with names (from 3.0 on)."""
    present: Node = nullable(_member())
    return record(
        deployed=deployments(named),
        members=Row((_member(), *(present for _ in MEMBERS[1:]))),
        ran=Seq(_letter, 0, 16),
        keeps=Seq(_letter, 0, 16),
        behind=Seq(Integer(0, 3 * ACCEPTABLE, interesting=(0, ACCEPTABLE, ACCEPTABLE + 1)), 0, 16),
    )


def application_of(value: Value, cooperative: bool = False) -> dict[str, Any]:
    """``cooperative``: members also list the partitions that they own as consumers."""
    deployed = value["deployed"]
    todo = work(TOPOLOGY.read(deployed["topology"]), SIZES.read(deployed["topics"]))
    present = {name: each for name, each in zip(MEMBERS, value["members"], strict=True) if each is not None}
    ran, keeps = _tasks_by_member(todo, value["ran"], present), _tasks_by_member(todo, value["keeps"], present)
    behind = dict(zip(todo.tasks, value["behind"], strict=False))
    members = {}
    for name, each in present.items():
        active = ran[name]
        standby = [task for task in keeps[name] if task not in active and task in todo.stateful]
        described: dict[str, Any] = {
            "processId": str(uuid.uuid5(uuid.NAMESPACE_OID, _of(each["instance"], present))),
            "previousTasks": [*map(str, active)],
            "standbyTasks": [*map(str, standby)],
            "offsetSums": {str(task): behind.get(task, 0) for task in standby},
        }
        if each["end_point"] is not None:
            described["userEndPoint"] = f"{_of(each['instance'], present)}:9092"
        if each["tag"] is not None:
            described["clientTags"] = {each["tag"]["key"]: each["tag"]["value"]}
        if cooperative and active:
            described["owned"] = [[*partition] for task in active for partition in todo.partitions[task]]
            described["generation"] = GENERATION
        members[name] = described
    return {"topics": dict(deployed["topics"]), "topology": deployed["topology"], "members": members}


def _of(letter: str, present: Mapping[str, Any]) -> str:
    """The letter, or the next one in the group: removing a member changes no other's instance."""
    return next((each for each in present if each >= letter), next(iter(present)))


def _tasks_by_member(todo: Work, letters: list[str], present: Mapping[str, Any]) -> dict[str, list[TaskId]]:
    found: dict[str, list[TaskId]] = {name: [] for name in present}
    for task, letter in zip(todo.tasks, letters, strict=False):
        if letter != NO_MEMBER:
            found[_of(letter, present)].append(task)
    return found
