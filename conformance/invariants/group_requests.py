"""Member ids, instance ids and errors of requests to a classic group coordinator."""

from typing import Final

from kipcheck.conformance.apis.group_trace import Asked, Moment
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.models.group.messages import EMPTY, Blob, Commit, Error, Heartbeat, Join, Leave, Left, Sync
from kipcheck.conformance.models.group.service import Elapse

REFUSED: Final = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION)
"""Errors for a request with an unknown member id, a fenced instance id or another generation."""


def metadata_of(join: Join, protocol: str | None) -> Blob:
    return next((blob for name, blob in join.protocols if name == protocol), EMPTY)


def named(asked: Asked) -> frozenset[str]:
    """The member ids in a request."""
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
    """The error of the answer; None if no answer is known."""
    return None if asked.answer is None else asked.answer.error


def granted(asked: Asked) -> bool:
    """Was the request granted, at least in part?"""
    if isinstance(asked.answer, Left) and asked.answer.members:
        return asked.answer.error == Error.NONE and any(error == Error.NONE for _, _, error in asked.answer.members)
    return error_of(asked) == Error.NONE


def passes_time(moment: Moment) -> bool:
    return isinstance(moment.event, Elapse) and moment.event.ms > 0


def at(index: int) -> str:
    """A step in a message: readers count from 1."""
    return f"step {index + 1}"


def breach(why: str, steps: tuple[int, ...], expected: str, observed: str, *shape: str) -> Violation:
    return Violation(why, tuple(sorted(set(steps))), expected, observed, shape=shape)
