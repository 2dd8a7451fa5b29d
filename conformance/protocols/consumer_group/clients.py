"""The clients of a conversation about a consumer group: what they send, and what they observe and remember."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Lost, Observation, Op, Refused, Replied
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.protocols.consumer_group.heartbeat import Heartbeat, HeartbeatAnswer, heartbeat
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS, Beat
from kipcheck.conformance.protocols.consumer_group.rules import Config
from kipcheck.conformance.protocols.consumer_group.trace import AnsweredHeartbeat, Group
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.declare.trace import payload
from kipcheck.conformance.protocols.reconciled.terms import LEAVING

_UNANSWERED = Lost("")


class ConsumerClients:
    def __init__(self, config: Config) -> None:
        self.known = Group(config=config)

    def sent(self, index: int, step: Step) -> SentRequest | None:
        """The request of a step; None: time passes."""
        event = OPERATIONS.event_of(step)
        if not isinstance(event, Beat):
            return None
        about = AnsweredHeartbeat(Op(index, step, _UNANSWERED), event, {}, self.known)
        request = heartbeat(event, about.epoch, about.owned)
        return SentRequest(event.client, request, HeartbeatAnswer, event.lacks == "group")

    def observed(self, step: Step, answer: HeartbeatAnswer) -> Observation:
        if answer.error:
            return Refused(error_name(answer.error), answer.message or "")
        given = None if answer.assignment is None else [*map(list, answer.assignment)]
        return Replied((("epoch", answer.epoch), ("assignment", given)))

    def learn(self, index: int, step: Step, observation: Observation) -> None:
        """The clients have observed a step."""
        if isinstance(observation, Replied | Refused):
            op = Op(index, step, observation)
            self.known = AnsweredHeartbeat(op, OPERATIONS.event_of(step), payload(op), self.known).known_after()

    def farewells(self) -> Iterator[SentRequest]:
        """With which all members leave."""
        instances = {each.client: instance for instance, each in self.known.holders.items()}
        for name in self.known.clients:
            yield SentRequest("kipcheck", Heartbeat(name, LEAVING, instances.get(name)), HeartbeatAnswer)
