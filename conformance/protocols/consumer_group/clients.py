"""The clients of a conversation about a consumer group: what they send, and what they observe and remember."""

from collections.abc import Iterator, Mapping
from typing import Any

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Observation, Op
from kipcheck.conformance.protocols.consumer_group.heartbeat import Heartbeat, HeartbeatAnswer, heartbeat
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS, Beat
from kipcheck.conformance.protocols.consumer_group.rules import Config
from kipcheck.conformance.protocols.consumer_group.trace import AnsweredHeartbeat, Group
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.reconciled import log_ops
from kipcheck.conformance.protocols.reconciled.clients import HeartbeatClients, assigned
from kipcheck.conformance.protocols.reconciled.terms import LEAVING, Memory


class ConsumerClients(HeartbeatClients[Group]):
    def __init__(self, config: Config) -> None:
        super().__init__(Group(config=config))

    def read(self, op: Op, answer: Mapping[str, Any]) -> AnsweredHeartbeat:
        return AnsweredHeartbeat(op, OPERATIONS.event_of(op.step), answer, self.known)

    def sent(self, index: int, step: Step) -> SentRequest | None:
        """The request of a step; None: time passes, or the log is read."""
        event = OPERATIONS.event_of(step)
        if not isinstance(event, Beat):
            return self.sent_log(event)
        about = self.asked(index, step)
        request = heartbeat(event, about.epoch, about.owned)
        return SentRequest(event.client, request, HeartbeatAnswer, event.lacks == "group")

    def memory_of(self, client: str) -> Memory | None:
        known = self.known.clients.get(client)
        return None if known is None else known.memory

    def observed(self, step: Step, answer: Any) -> Observation:
        return assigned(answer) if isinstance(answer, HeartbeatAnswer) else log_ops.observed(answer)

    def farewells(self) -> Iterator[SentRequest]:
        """With which all members leave."""
        instances = {each.client: instance for instance, each in self.known.holders.items()}
        for name in self.known.clients:
            yield SentRequest("kipcheck", Heartbeat(name, LEAVING, instances.get(name)), HeartbeatAnswer)
