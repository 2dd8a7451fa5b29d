"""Digests of a target's answers to a case, by which two targets are compared."""

from collections.abc import Callable
from typing import Any

from kipcheck.conformance.core.values.history import Died, History, Observation, Refused, Replied, Unsupported
from kipcheck.conformance.core.values.plain import short_digest

REFUSED = "refused"


def payload(answer: Replied) -> Any:
    """The whole answer, as plain data."""
    return dict(answer.payload)


def answer_digest(history: History, compared: Callable[[Replied], Any] = payload) -> str:
    """A digest of all answers to a case. All refusals are equal, whatever their messages.

    ``compared``: the part of an answer that counts, as plain data.
    """
    answers = [_of_observation(op.observation, compared) for op in history.ops]
    return REFUSED if set(answers) == {REFUSED} else ",".join(answers)


def _of_observation(observation: Observation, compared: Callable[[Replied], Any]) -> str:
    match observation:
        case Replied():
            return short_digest(compared(observation))
        case Refused():
            return REFUSED
        case Died() | Unsupported():
            return type(observation).__name__.lower()
    return ""
