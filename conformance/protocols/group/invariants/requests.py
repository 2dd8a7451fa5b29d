"""Member ids, instance ids and errors of requests to a classic group coordinator."""

from functools import cache
from typing import Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.service import Elapse
from kipcheck.conformance.protocols.group.trace import TracedRequest, TracedStep

REFUSED: Final = (
    Error.UNKNOWN_MEMBER_ID,
    Error.FENCED_INSTANCE_ID,
    Error.ILLEGAL_GENERATION,
)
"""Errors for a request with an unknown member id, a fenced instance id or another generation."""


def metadata_of(join: messages.Join, protocol: str | None) -> messages.Blob:
    return next((blob for name, blob in join.protocols if name == protocol), messages.EMPTY)


def named(exchange: TracedRequest) -> frozenset[str]:
    """The member ids in a request."""
    match exchange.request:
        case messages.Join() | messages.Sync() | messages.Heartbeat() | messages.Commit():
            return frozenset({exchange.request.member} - {""})
        case messages.Leave(members=members):
            return frozenset(id for id, _ in members if id)
    return frozenset()


def instances(exchange: TracedRequest) -> frozenset[str]:
    match exchange.request:
        case messages.Join() | messages.Sync() | messages.Heartbeat() | messages.Commit():
            return frozenset() if exchange.request.instance is None else frozenset({exchange.request.instance})
        case messages.Leave(members=members):
            return frozenset(instance for _, instance in members if instance is not None)
    return frozenset()


def error_of(exchange: TracedRequest) -> Error | None:
    """The error of the answer; None if no answer is known."""
    return None if exchange.answer is None else exchange.answer.error


def granted(exchange: TracedRequest) -> bool:
    """Was the request granted, at least in part?"""
    if isinstance(exchange.answer, messages.Left) and exchange.answer.members:
        return exchange.answer.error == Error.NONE and any(
            error == Error.NONE for _, _, error in exchange.answer.members
        )
    return error_of(exchange) == Error.NONE


def passes_time(step: TracedStep) -> bool:
    return isinstance(step.event, Elapse) and step.event.ms > 0


def at(index: int) -> str:
    """A step in a message: readers count from 1."""
    return f"step {index + 1}"


def breach(why: str, steps: tuple[int, ...], expected: str, observed: str, *shape: str) -> Violation:
    return Violation(why, tuple(sorted(set(steps))), expected, observed, shape=shape)


@cache
def in_force(requirement: str, edition_name: str) -> bool:
    """Is the requirement in force in the edition's release?"""
    spans = requirements()[requirement].releases
    return Release.parse(edition(edition_name).release) in releases(spans)
