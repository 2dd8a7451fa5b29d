"""The clients of a conversation about a share group: what they send, and what they observe and remember."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Lost, Observation, Op, Refused, Replied
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.declare.trace import payload
from kipcheck.conformance.protocols.reconciled.terms import LEAVING
from kipcheck.conformance.protocols.share_group import heartbeat as messages, trace
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS, Beat
from kipcheck.conformance.protocols.share_group.rules import Config

_UNANSWERED = Lost("")


class ShareClients:
    def __init__(self, config: Config) -> None:
        self.known = trace.Group(config=config)

    def sent(self, index: int, step: Step) -> SentRequest | None:
        """The request of a step; None: time passes."""
        event = OPERATIONS.event_of(step)
        if not isinstance(event, Beat):
            return None
        epoch = trace.Heartbeat(Op(index, step, _UNANSWERED), event, {}, self.known).epoch
        request = messages.heartbeat(event, epoch)
        return SentRequest(event.client, request, messages.HeartbeatAnswer, event.flaw == "group")

    def observed(self, step: Step, answer: messages.HeartbeatAnswer) -> Observation:
        if answer.error:
            return Refused(error_name(answer.error), answer.message or "")
        given = None if answer.assignment is None else [*map(list, answer.assignment)]
        return Replied((("epoch", answer.epoch), ("assignment", given)))

    def learn(self, index: int, step: Step, observation: Observation) -> None:
        """The clients have observed a step."""
        if isinstance(observation, Replied | Refused):
            op = Op(index, step, observation)
            self.known = trace.Heartbeat(op, OPERATIONS.event_of(step), payload(op), self.known).known_after()

    def farewells(self) -> Iterator[SentRequest]:
        """With which all members leave."""
        for name in self.known.clients:
            yield SentRequest("kipcheck", messages.Heartbeat(name, LEAVING), messages.HeartbeatAnswer)
