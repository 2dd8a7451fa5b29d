"""The clients of a conversation about a reconciled group: what they observe, and what they remember of it."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Lost, Observation, Op, Refused, Replied
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, payload
from kipcheck.conformance.protocols.reconciled import log_ops
from kipcheck.conformance.protocols.reconciled.terms import Memory

Known = TypeVar("Known")
NO_MEMBER: Final = -1
"""The epoch in the commit of a client that is no member."""
_UNANSWERED = Lost("")


class HeartbeatClients(Generic[Known]):
    def __init__(self, known: Known) -> None:
        self.known = known

    @abstractmethod
    def read(self, op: Op, answer: Mapping[str, Any]) -> AnsweredStep[Any, Any, Known]:
        """A step of the conversation, with what was known before it."""

    def memory_of(self, client: str) -> Memory | None:
        """What a client remembers; None: it has sent nothing. Without it no client commits."""
        return None

    def sent_log(self, event: Any) -> SentRequest | None:
        """The request of an event that is about the log; None: it is none."""
        if not isinstance(event, log_ops.Commit | log_ops.Fetch):
            return None
        if isinstance(event, log_ops.Fetch) or event.client == log_ops.NOBODY:
            return log_ops.sent(event, "", NO_MEMBER)
        memory = self.memory_of(event.client) or Memory(event.client)
        return log_ops.sent(event, event.client, memory.epoch)

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
