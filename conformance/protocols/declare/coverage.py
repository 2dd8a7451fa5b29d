"""Coverage keys of a conversation: small plain values for each step, unaffected by additional fields in answers."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from kipcheck.conformance.core.values.history import Died, Lost, Observation, Op, Refused, Replied, Silent, Unsupported

Fields: TypeAlias = tuple[Any, ...]
"""Texts, integers, flags, None, and tuples of these: their repr is the same in every process."""


def size(number: int) -> int:
    """The class of a size: 0, 1, 2 to 3, 4 to 7, and so on up to 64 and more."""
    return min(number.bit_length(), 7)


def outcome(observation: Observation) -> str:
    """The observation without the target's messages."""
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


def of_conversations(subject: Any, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """Each operation with its answer, alone and after the previous one of the same actor."""
    before: dict[str, Fields] = {}
    for op in ops:
        now: Fields = (op.step.verb, *_answer_fields(op.observation))
        actor = op.step.actor
        yield [("machine", subject.name, now), ("machine", subject.name, before.get(actor, ()), now)]
        before[actor] = now


def _answer_fields(observation: Observation) -> Iterator[Any]:
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


def _kind(entry: Any) -> tuple[str, str]:
    if not isinstance(entry, dict):
        return "", ""
    return str(entry.get("answer") or entry.get("action") or entry.get("what")), str(entry.get("error", ""))
