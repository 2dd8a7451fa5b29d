"""Reads a group from JSON, and lets a target's assignor compute its assignment (``kipcheck assign``)."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Refused, Replied, Silent, Unsupported
from kipcheck.conformance.protocols.assignment.group_files import (
    LARGEST,
    each_once,
    error_line,
    hex_at,
    keys_of,
    list_at,
    number_at,
    object_at,
    partition_at,
    read_lines,
    refuse,
    shown,
    text_at,
)
from kipcheck.conformance.targets.protocol import BATCH, NotPlayed, Session, Target, Unstable
from kipcheck.conformance.wire.jsontext import Path
from kipcheck.conformance.wire.workbench import Unreadable, object_of

CLASSES: Final = {
    "not-json": "the line or file is not a JSON object",
    "bad-group": "an unknown key, or an invalid value",
    "Unsupported": "the target does not have this assignor, or does not support this group",
    "crashed": "the target crashed",
    "timeout": "the target exceeded its time limit",
    "memory": "the target exceeded its memory limit",
    "garbled": "the target's answer is not an assignment",
    "unstable": "the target had crashed too often and was not run",
}
"""The classes of errors that kipcheck itself reports; any other is the class of an exception of the target."""

Group: TypeAlias = dict[str, Any]
"""``topics`` and ``members``, as lists: the input of an assignor."""


def group(text: str) -> Group:
    """Errors: ``Unreadable`` with path and valid values."""
    return _group(object_of(text))


def assigned(text: str, target: Target, assignor: str, edition: str) -> tuple[str, bool]:
    """A line of JSON, and whether it is an assignment. Errors: ``Unreadable`` before the target is started;
    ``Unavailable``, ``Broken``.
    """
    ((line, well),) = _lines([group(text)], target, assignor, edition)
    return line, well


def assign_lines(lines: Iterable[str], target: Target, assignor: str, edition: str) -> Iterator[tuple[str, bool]]:
    """One result for each line, also for unreadable ones; the target is started once. Errors: ``Unavailable``,
    ``Broken``.
    """
    return _lines(read_lines(group, lines), target, assignor, edition)


def _lines(
    groups: Iterable[Group | Unreadable], target: Target, assignor: str, edition: str
) -> Iterator[tuple[str, bool]]:
    try:
        with target.open(edition, Role.LEADER) as session:
            known = session.info.claims.assignors
            if assignor in known:
                yield from _answers(session, iter(groups), assignor, edition)
                return
            why = f"{target.name} does not support the assignor {assignor}; it supports {', '.join(known)}"
    except NotPlayed:
        why = f"{target.name} has no assignors"
    for read in groups:
        yield error_line(read.kind, str(read)) if isinstance(read, Unreadable) else error_line("Unsupported", why)


def _answers(
    session: Session, groups: Iterator[Group | Unreadable], assignor: str, edition: str
) -> Iterator[tuple[str, bool]]:
    while batch := list(islice(groups, BATCH)):
        readable = [read for read in batch if not isinstance(read, Unreadable)]
        steps = [step("leader", "assign", assignor=assignor, **read) for read in readable]
        try:
            results = session.run([Case("assign", edition, Role.LEADER, (assign,)) for assign in steps])
        except Unstable as why:
            results = [(Lost(str(why)),) for _ in readable]
        answers = iter(results)
        for read in batch:
            if isinstance(read, Unreadable):
                yield error_line(read.kind, str(read))
            else:
                (observation,) = next(answers)
                yield _shown(observation, read["members"])


def _shown(observation: Observation, members: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    match observation:
        case Replied():
            return json.dumps(_shares(observation, members), ensure_ascii=False), True
        case Refused(kind, why):
            return error_line(kind, why)
        case Unsupported(reason):
            return error_line("Unsupported", reason)
        case Died(cause, detail, _):
            return error_line(cause, detail)
        case Lost(reason):
            return error_line("unstable", reason)
        case Silent():
            return error_line("timeout", "the target never answered")


def _shares(answer: Replied, members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By member, sorted. A member that the answer leaves out gets nothing; ids that are not members are kept."""
    shares = {
        share["id"]: {"partitions": sorted(share["partitions"]), "userData": share.get("userData") or None}
        for share in answer["assignment"]
    }
    for member in members:
        shares.setdefault(member["id"], {"partitions": [], "userData": None})
    return dict(sorted(shares.items()))


# ---- reading a group


def _group(content: Mapping[str, Any]) -> Group:
    keys_of((), content, ("topics", "members"))
    topics = object_at(("topics",), content.get("topics", {}))
    members = object_at(("members",), content.get("members", {}))
    group_members = [_member(("members", id), id, value) for id, value in members.items()]
    static: dict[str, str] = {}
    for member in group_members:
        if member["instance"] is not None:
            other = static.setdefault(member["instance"], member["id"])
            if other != member["id"]:
                refuse(
                    ("members", member["id"], "instance"), f"{member['instance']!r} is the instance of {other!r} too"
                )
    group_topics = [_topic(("topics", name), name, value) for name, value in topics.items()]
    return {"topics": group_topics, "members": group_members}


def _topic(path: Path, name: str, value: Any) -> dict[str, Any]:
    text_at(path, name)
    if type(value) is int:
        return {"name": name, "partitions": number_at(path, value, 0), "racks": None}
    if not isinstance(value, dict):
        refuse(path, f'must be a number of partitions or {{"partitions": 3, "racks": [...]}}, got {shown(value)}')
    keys_of(path, value, ("partitions", "racks"))
    racks = value.get("racks")
    if racks is not None:
        racks = [
            [text_at((*path, "racks", n, m), rack) for m, rack in enumerate(list_at((*path, "racks", n), some))]
            for n, some in enumerate(list_at((*path, "racks"), racks))
        ]
    elif "partitions" not in value:
        refuse(path, "'partitions' is missing: give the number of partitions")
    count = number_at((*path, "partitions"), value.get("partitions", len(racks or ())), 0)
    if racks is not None and len(racks) != count:
        refuse((*path, "racks"), f"must have one list for each of the {count} partitions, got {len(racks)}")
    return {"name": name, "partitions": count, "racks": racks}


def _member(path: Path, id: str, content: Any) -> dict[str, Any]:
    text_at(path, id)
    keys_of(path, object_at(path, content), ("subscription", "owned", "generation", "instance", "rack", "userData"))
    subscription = each_once((*path, "subscription"), content.get("subscription", []), text_at)
    owned = each_once((*path, "owned"), content.get("owned", []), partition_at)
    instance, rack, user_data = (content.get(key) for key in ("instance", "rack", "userData"))
    return {
        "id": id,
        "subscription": subscription,
        "owned": [list(partition) for partition in owned],
        "generation": number_at((*path, "generation"), content.get("generation", -1), -LARGEST - 1),
        "instance": None if instance is None else text_at((*path, "instance"), instance),
        "rack": None if rack is None else text_at((*path, "rack"), rack),
        "userData": None if user_data is None else hex_at((*path, "userData"), user_data),
    }
