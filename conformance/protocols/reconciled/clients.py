"""The clients of a conversation about a reconciled group: what they observe, and what they remember of it."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Lost, Observation, Op, Refused, Replied
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, payload

Known = TypeVar("Known")
_UNANSWERED = Lost("")


class HeartbeatClients(Generic[Known]):
    def __init__(self, known: Known) -> None:
        self.known = known

    @abstractmethod
    def read(self, op: Op, answer: Mapping[str, Any]) -> AnsweredStep[Any, Any, Known]:
        """A step of the conversation, with what was known before it."""

    def asked(self, index: int, step: Step) -> Any:
        """The step that is sent next, which has no answer yet."""
        return self.read(Op(index, step, _UNANSWERED), {})

    def learn(self, index: int, step: Step, observation: Observation) -> None:
        """The clients have observed a step."""
        if isinstance(observation, Replied | Refused):
            op = Op(index, step, observation)
            self.known = self.read(op, payload(op)).known_after()


def refused(answer: Any) -> Refused:
    """What a client observes of an answer with an error."""
    return Refused(error_name(answer.error), answer.message or "")


def assigned(answer: Any) -> Observation:
    """What a client observes of the answer of a consumer group or a share group."""
    if answer.error:
        return refused(answer)
    given = None if answer.assignment is None else [*map(list, answer.assignment)]
    return Replied((("epoch", answer.epoch), ("assignment", given)))
