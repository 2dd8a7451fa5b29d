"""The trace of a history: its answered steps, each with what the answers before it say.

Invariants of machines that answer one step at a time read it. Each protocol says what is known at first, and what a
step changes; a wrong answer counts for the following steps, so that one defect is one violation.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied

Request = TypeVar("Request")
Answer = TypeVar("Answer")
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class AnsweredStep(Generic[Request, Answer, State]):
    """A step that was accepted or refused, and what was known before it."""

    op: Op
    request: Request
    answer: Answer
    before: State

    @property
    def verb(self) -> str:
        return self.op.step.verb

    @property
    def accepted(self) -> bool:
        return isinstance(self.op.observation, Replied)

    @property
    def error(self) -> str:
        """The error of a refusal; empty if the step was accepted."""
        return self.op.observation.error if isinstance(self.op.observation, Refused) else ""

    @abstractmethod
    def known_after(self) -> State:
        """What is known after the step."""


Answered = TypeVar("Answered", bound=AnsweredStep[Any, Any, Any])


def answered_steps(history: History, known: State, read: Callable[[Op, State], Answered | None]) -> Iterator[Answered]:
    """The steps up to the first without an answer, or that ``read`` takes for none: after it nothing is known.

    ``known`` is what is known before the first one.
    """
    for op in history.ops:
        step = read(op, known) if isinstance(op.observation, Replied | Refused) else None
        if step is None:
            return
        yield step
        known = step.known_after()


def plain_steps(
    history: History, known: State, made: Callable[[Op, Step, Mapping[str, Any], State], Answered]
) -> tuple[Answered, ...]:
    """The answered steps of a machine whose requests are the steps, and whose answers are the fields of replies."""
    return tuple(answered_steps(history, known, lambda op, known: made(op, op.step, payload(op), known)))


def payload(op: Op) -> Mapping[str, Any]:
    """The fields of an accepted step's answer; none of a refusal."""
    return dict(op.observation.payload) if isinstance(op.observation, Replied) else {}
