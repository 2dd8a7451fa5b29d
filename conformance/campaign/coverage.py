"""What a case showed of a target, as coverage keys: small numbers that mean the same in every process.

A key is the hash of a few bounded fields: what was asked, what came back, and what had come back before it. Counters go
into a few buckets. A key that says too much makes every case new, and a corpus of everything is worth nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from kipcheck.conformance.apis.assignment import shares
from kipcheck.conformance.checks import Check
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.history import (
    Died,
    History,
    Lost,
    Observation,
    Op,
    Refused,
    Replied,
    Silent,
    Unsupported,
)
from kipcheck.conformance.wire import Layout

Fields: TypeAlias = tuple[Any, ...]
"""Texts, integers, flags, None, and tuples of these: their repr is the same in every process."""
TAGS: Final = "_unknownTaggedFields"
KNOWN: Final = 1 << 18
"""Keys that are kept to be looked up: to hash one takes longer."""


def keys(check: Check[Any], subject: Any, history: History) -> tuple[tuple[int, ...], ...]:
    """Of each step, sorted."""
    told = _of_codecs if check.role is Role.CODEC else _of_leaders if check.role is Role.LEADER else _of_machines
    return tuple(tuple(sorted({_number(repr(each)) for each in found})) for found in told(subject, history.ops))


@lru_cache(KNOWN)
def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1  # signed where they are stored


def size(number: int) -> int:
    """0, 1, 2 to 3, 4 to 7, and so on to 64 and more."""
    return min(number.bit_length(), 7)


def outcome(observation: Observation) -> str:
    """Without the words of the target."""
    match observation:
        case Replied():
            return "replied"
        case Refused(error):
            return f"refused: {error}"
        case Died(cause):
            return f"died: {cause}"
        case Unsupported(_, limit):
            return f"unsupported: {limit}"
        case Lost():
            return "lost"
        case Silent():
            return "silent"


def _of_codecs(subject: Any, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """Which version answered what in which way; and what was in the fields that were read or written, at whatever
    version.
    """
    layout: Layout = subject.layout
    for op in ops:
        about = ("codec", subject.name)
        found: list[Fields] = [(*about, op.step.body.get("version"), op.step.verb, outcome(op.observation))]
        told = dict(op.observation.payload) if isinstance(op.observation, Replied) else {}
        value = told.get("value", op.step.body.get("value")) if told else None
        if isinstance(value, dict):
            top = (("." + name, _sort(value.get(name))) for name in layout.names)
            found.extend((*about, *each) for each in (*top, *_inside(layout, value, "")))
        yield found


def _inside(layout: Layout, value: Mapping[str, Any], path: str) -> Iterator[Fields]:
    """Along the layout, and not along what a target made of it."""
    if TAGS in value:
        yield path, TAGS
    for slot in layout.slots:
        inner, here = value.get(slot.name), f"{path}.{slot.name}"
        for each in inner if isinstance(inner, list) else [inner]:
            if slot.item is not None and isinstance(each, dict):
                for name in slot.item.names:
                    yield f"{here}.{name}", _sort(each.get(name))
                yield from _inside(slot.item, each, here)


def _sort(value: Any) -> Any:
    """What sort of thing there is in a field."""
    match value:
        case list() | dict() | str():
            return size(len(value))
        case bool() | None:
            return value
        case int():
            return value < 0, min(abs(value).bit_length() // 8, 7)
    return type(value).__name__


def _of_leaders(subject: Any, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """What was in the group that is not in every group; how even the shares are and how much moved, also after what
    had come of the round before.
    """
    before: Fields = ()
    for op in ops:
        about = ("leader", subject.name, op.step.verb)
        group, came = _group(op.step.body), _shares(op)
        yield [(*about, group), (*about, len(op.step.body.get("members", ())), came), (*about, before, came)]
        before = came


def _group(body: Mapping[str, Any]) -> Fields:
    members = body.get("members", ())
    owned = sum(len(each.get("owned", ())) for each in members)
    return (
        min(len(members), 4),
        min(len(body.get("topics", ())), 3),
        len({tuple(sorted(each["subscription"])) for each in members}) > 1,
        0 if not owned else 1 if owned < sum(each["partitions"] for each in body.get("topics", ())) else 2,
        len({each.get("generation") for each in members}) > 1,
        any(each.get("instance") is not None for each in members),
        any(each.get("rack") is not None for each in members),
    )


def _shares(op: Op) -> Fields:
    """Are all served, by how much do the shares differ, how much moved from one to another?"""
    if not isinstance(op.observation, Replied):
        return (outcome(op.observation),)
    try:
        given = {member: {*partitions} for member, partitions in shares(op.observation)}
    except ValueError:  # no assignment was asked for, or it is none
        return ("replied",)
    sizes = sorted(map(len, given.values())) or [0]
    owner = {
        tuple(each): member["id"] for member in op.step.body.get("members", ()) for each in member.get("owned", ())
    }
    moved = sum(owner.get(each, member) != member for member, got in given.items() for each in got)
    return not sizes[0], min(sizes[-1] - sizes[0], 3), size(moved)


def _of_machines(subject: Any, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """What was said and what came of it, each by itself and after what the same actor had heard before."""
    before: dict[str, Fields] = {}
    for op in ops:
        now: Fields = (op.step.verb, *_heard(op.observation))
        actor = op.step.actor
        yield [("machine", subject.name, now), ("machine", subject.name, before.get(actor, ()), now)]
        before[actor] = now


def _heard(observation: Observation) -> Iterator[Any]:
    if not isinstance(observation, Replied):
        yield outcome(observation)
        return
    for name, value in observation.payload:
        if name in ("answers", "actions") and isinstance(value, list):
            yield from sorted({_kind(each) for each in value})
        elif isinstance(value, list):
            yield name, size(len(value))
        elif value is None or isinstance(value, int):
            yield name, value is None or value < 0


def _kind(told: Any) -> tuple[str, str]:
    if not isinstance(told, dict):
        return "", ""
    return str(told.get("answer") or told.get("action") or told.get("what")), str(told.get("error", ""))
