"""The clients of a conversation about a share partition: what they send, and what they observe and remember."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Observation, Op, Replied
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.reconciled.clients import HeartbeatClients, refused
from kipcheck.conformance.protocols.share_partition import messages, trace
from kipcheck.conformance.protocols.share_partition.ops import OPERATIONS, Acknowledge, Fetch
from kipcheck.conformance.protocols.share_partition.rules import Config


class ShareConsumers(HeartbeatClients[trace.Known]):
    def __init__(self, config: Config) -> None:
        super().__init__(trace.Known(config=config))

    def read(self, op: Op, answer: Mapping[str, Any]) -> trace.ShareStep:
        return trace.ShareStep(op, OPERATIONS.event_of(op.step), answer, self.known)

    def sent(self, index: int, step: Step) -> SentRequest | None:
        """The request of a step; None: it has none."""
        event = OPERATIONS.event_of(step)
        if not isinstance(event, Fetch | Acknowledge):
            return None
        wait_ms = messages.WAIT_MS if self.known.loaded else messages.LOADS_MS
        request = messages.request(event, self.asked(index, step).epoch, wait_ms)
        answer = messages.ShareFetched if isinstance(event, Fetch) else messages.ShareAcknowledged
        return SentRequest(event.client, request, answer)

    def observed(self, answer: messages.ShareFetched | messages.ShareAcknowledged) -> Observation:
        """An error of the partition counts as that of the acknowledgement: the session goes on."""
        if answer.error:
            return refused(answer)
        codes = [code for each in answer.errors for code in (each if isinstance(each, tuple) else (each,)) if code]
        wrong = [("refused", error_name(codes[0]))] if codes else []
        if isinstance(answer, messages.ShareAcknowledged):
            return Replied(tuple(wrong))
        return Replied((("acquired", [*map(list, answer.acquired)]), *wrong))
