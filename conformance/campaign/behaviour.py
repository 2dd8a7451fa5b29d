"""What a case showed of a target, as coverage keys: small numbers that mean the same in every process.

A key is the hash of a few bounded fields: what was asked, what came back, and what had come back before it. Counters go
into a few buckets. A key that says too much makes every case new, and a corpus of everything is worth nothing.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from conformance.checks import Check
from conformance.core.case import Role
from conformance.core.history import Died, History, Lost, Observation, Op, Refused, Replied, Silent, Unsupported

Fields: TypeAlias = tuple[Any, ...]
"""Texts, integers, flags, None, and tuples of these: their repr is the same in every process."""
KNOWN: Final = 1 << 18
"""Keys that are kept to be looked up: to hash one takes longer."""


def keys(check: Check[Any], subject: Any, history: History) -> tuple[tuple[int, ...], ...]:
    """Of each step, sorted."""
    told = _of_codecs if check.role is Role.CODEC else _of_leaders if check.role is Role.LEADER else _of_machines
    return tuple(tuple(sorted({_number(each) for each in found})) for found in told(subject.name, history.ops))


def new_until(found: Sequence[Sequence[int]], seen: frozenset[int] | set[int]) -> int:
    """How many steps there are up to the last that shows a key not in ``seen``; 0: none does."""
    return max((at for at, each in enumerate(found, 1) if not seen.issuperset(each)), default=0)


@lru_cache(KNOWN)
def _number(fields: Fields) -> int:
    return int.from_bytes(blake2b(repr(fields).encode(), digest_size=8).digest()) >> 1  # signed where they are stored


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


def _of_codecs(name: str, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """Which version answered what in which way; and what was in the fields that were read or written."""
    for op in ops:
        body = op.step.body
        found: list[Fields] = [("codec", name, body.get("version"), op.step.verb, outcome(op.observation))]
        told = dict(op.observation.payload) if isinstance(op.observation, Replied) else {}
        value = told.get("value") if "value" in told else body.get("value") if "hex" in told else None
        found.extend(("codec", name, *each) for each in _places(value, ""))
        yield found


def _places(value: Any, path: str) -> Iterator[Fields]:
    match value:
        case dict():
            for key, each in value.items():
                yield from _places(each, f"{path}.{key}")
        case list():
            yield path, "items", size(len(value))
            for each in value:
                yield from _places(each, f"{path}[]")
        case str():
            yield path, "text", size(len(value))
        case bool() | None:
            yield path, "is", value
        case int():
            yield path, "number", value < 0, min(abs(value).bit_length() // 8, 7)


def _of_leaders(name: str, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """How large the group was, what was in it that is not in every group, and how even the shares are."""
    for op in ops:
        body = op.step.body
        yield [("leader", name, op.step.verb, len(body.get("members", ())), outcome(op.observation))]


def _of_machines(name: str, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """What was said and what came of it, each by itself and after what the same actor had heard before."""
    before: dict[str, Fields] = {}
    for op in ops:
        now: Fields = (op.step.verb, *_heard(op.observation))
        actor = op.step.actor
        yield [("machine", name, now), ("machine", name, before.get(actor, ()), now)]
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
