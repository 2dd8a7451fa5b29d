"""The clients of a conversation about a share group: what they send, and what they observe and remember."""

from collections.abc import Iterator, Mapping
from typing import Any

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Observation, Op
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.reconciled.clients import HeartbeatClients, assigned
from kipcheck.conformance.protocols.reconciled.terms import LEAVING
from kipcheck.conformance.protocols.share_group import heartbeat as messages, trace
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS, Beat
from kipcheck.conformance.protocols.share_group.rules import Config


class ShareClients(HeartbeatClients[trace.Group]):
    def __init__(self, config: Config) -> None:
        super().__init__(trace.Group(config=config))

    def read(self, op: Op, answer: Mapping[str, Any]) -> trace.Heartbeat:
        return trace.Heartbeat(op, OPERATIONS.event_of(op.step), answer, self.known)

    def sent(self, index: int, step: Step) -> SentRequest | None:
        """The request of a step; None: time passes."""
        event = OPERATIONS.event_of(step)
        if not isinstance(event, Beat):
            return None
        request = messages.heartbeat(event, self.asked(index, step).epoch)
        return SentRequest(event.client, request, messages.HeartbeatAnswer, event.flaw == "group")

    def observed(self, step: Step, answer: messages.HeartbeatAnswer) -> Observation:
        return assigned(answer)

    def farewells(self) -> Iterator[SentRequest]:
        """With which all members leave."""
        for name in self.known.clients:
            yield SentRequest("kipcheck", messages.Heartbeat(name, LEAVING), messages.HeartbeatAnswer)
