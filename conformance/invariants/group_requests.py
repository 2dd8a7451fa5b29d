"""What a request to a group coordinator speaks of, and what came of it."""

from typing import Final

from kipcheck.conformance.apis.group_trace import Asked, Moment
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.models.group.messages import EMPTY, Blob, Commit, Error, Heartbeat, Join, Leave, Left, Sync
from kipcheck.conformance.models.group.service import Elapse

REFUSED: Final = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION)
"""What is said to whoever is no member, or speaks of another generation."""


def metadata_of(join: Join, protocol: str | None) -> Blob:
    return next((blob for name, blob in join.protocols if name == protocol), EMPTY)


def named(asked: Asked) -> frozenset[str]:
    """The member ids that a request speaks for."""
    match asked.request:
        case Join() | Sync() | Heartbeat() | Commit():
            return frozenset({asked.request.member} - {""})
        case Leave(members=members):
            return frozenset(id for id, _ in members if id)
    return frozenset()


def instances(asked: Asked) -> frozenset[str]:
    match asked.request:
        case Join() | Sync() | Heartbeat() | Commit():
            return frozenset() if asked.request.instance is None else frozenset({asked.request.instance})
        case Leave(members=members):
            return frozenset(instance for _, instance in members if instance is not None)
    return frozenset()


def error_of(asked: Asked) -> Error | None:
    """None: no answer is known."""
    return None if asked.answer is None else asked.answer.error


def granted(asked: Asked) -> bool:
    """Was it done, in part at least?"""
    if isinstance(asked.answer, Left) and asked.answer.members:
        return asked.answer.error == Error.NONE and any(error == Error.NONE for _, _, error in asked.answer.members)
    return error_of(asked) == Error.NONE


def passes_time(moment: Moment) -> bool:
    return isinstance(moment.event, Elapse) and moment.event.ms > 0


def at(index: int) -> str:
    """For people, who count from 1."""
    return f"step {index + 1}"


def breach(why: str, steps: tuple[int, ...], expected: str, observed: str, *shape: str) -> Violation:
    return Violation(why, tuple(sorted(set(steps))), expected, observed, shape=shape)
