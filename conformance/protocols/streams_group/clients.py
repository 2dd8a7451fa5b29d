"""The clients of a conversation about a streams group: what they send, and what they observe and remember."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Observation, Op, Replied
from kipcheck.conformance.protocols.consumer_group import heartbeat as consumers
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.reconciled import log_ops
from kipcheck.conformance.protocols.reconciled.clients import HeartbeatClients, refused
from kipcheck.conformance.protocols.reconciled.terms import LEAVING, Memory
from kipcheck.conformance.protocols.streams_group import heartbeat as messages
from kipcheck.conformance.protocols.streams_group.model import MISSING_INTERNAL_TOPICS, Config
from kipcheck.conformance.protocols.streams_group.ops import (
    OPERATIONS,
    REBALANCE_MS,
    Beat,
    Consume,
    Describe,
    Endpoints,
    Tasks,
)
from kipcheck.conformance.protocols.streams_group.topology import internal_topics
from kipcheck.conformance.protocols.streams_group.trace import Group, GroupStep

CONSUMER: Final = "consumer"
"""The member id of the client that does not run the application."""
STATUSES: Final = (
    "STALE_TOPOLOGY", "MISSING_SOURCE_TOPICS", "INCORRECTLY_PARTITIONED_TOPICS", "MISSING_INTERNAL_TOPICS",
    "SHUTDOWN_APPLICATION", "ASSIGNMENT_DELAYED", "MISSING_CLIENT_TAGS",
)  # fmt: skip
"""``StreamsGroupHeartbeatResponse.Status``, by code."""


class StreamsClients(HeartbeatClients[Group]):
    def __init__(self, config: Config) -> None:
        super().__init__(Group(config=config))

    def read(self, op: Op, answer: Mapping[str, Any]) -> GroupStep:
        return GroupStep(op, OPERATIONS.event_of(op.step), answer, self.known)

    def sent(self, index: int, step: Step) -> SentRequest | None:
        """The request of a step; None: time passes, or the log is read."""
        match OPERATIONS.event_of(step):
            case Beat() as event:
                about = self.asked(index, step)
                request = messages.heartbeat(
                    event, about.epoch, about.owned.active, about.owned.standby, about.stated_endpoint_epoch
                )
                return SentRequest(event.client, request, messages.HeartbeatAnswer, event.flaw == "group")
            case Describe():
                return SentRequest("kipcheck", messages.Describe(), messages.Description)
            case Consume():
                joining = consumers.Heartbeat(CONSUMER, 0, rebalance_ms=REBALANCE_MS, topics=("t",), owned=())
                return SentRequest(CONSUMER, joining, consumers.HeartbeatAnswer)
            case event:
                return self.sent_log(event)

    def memory_of(self, client: str) -> Memory | None:
        known = self.known.clients.get(client)
        return None if known is None else known.memory

    def owed_topics(self, step: Step, answer: Any) -> Mapping[str, int] | None:
        """The internal topics that the broker creates after an answer, with their numbers of partitions; None: the
        answer does not say that it creates any."""
        event = OPERATIONS.event_of(step)
        if not isinstance(event, Beat) or answer.error or MISSING_INTERNAL_TOPICS not in statuses(answer):
            return None
        topology = self.known.topology if self.known.form == "streams" else event.topology or ()
        topics = internal_topics(topology)
        return {name: count for name, count in topics.items() if name not in self.known.created}

    def observed(self, step: Step, answer: Any, created: Mapping[str, int]) -> Observation:
        """``created``: the internal topics that the broker has created since, with their numbers of partitions."""
        match answer:
            case log_ops.CommitAnswer() | log_ops.FetchAnswer():
                return log_ops.observed(answer)
            case _ if answer.error:
                return refused(answer)
            case messages.HeartbeatAnswer():
                return Replied(
                    (
                        ("epoch", answer.epoch), ("tasks", _rows(answer.active)), ("standby", _rows(answer.standby)),
                        ("warmup", _rows(answer.warmup)), ("statuses", statuses(answer)),
                        ("created", sorted(map(list, created.items()))), ("endpoint_epoch", answer.endpoint_epoch),
                        ("endpoints", _rows(answer.endpoints)),
                    )
                )  # fmt: skip
            case messages.Description():
                return described(answer)
            case _:
                return Replied(())

    def farewells(self) -> Iterator[SentRequest]:
        """With which all members leave."""
        for each in self.known.members:
            yield SentRequest("kipcheck", messages.Heartbeat(each.name, LEAVING), messages.HeartbeatAnswer)
        if self.known.form == "consumer":
            yield SentRequest("kipcheck", consumers.Heartbeat(CONSUMER, LEAVING), consumers.HeartbeatAnswer)


def statuses(answer: messages.HeartbeatAnswer) -> list[str]:
    """The names of the status codes. Sorted."""
    codes = answer.statuses or ()
    return sorted(STATUSES[each] if 0 <= each < len(STATUSES) else f"status {each}" for each in codes)


def described(answer: messages.Description) -> Replied:
    members = [
        {
            "client": each.id, "epoch": each.epoch, "topology_epoch": each.topology_epoch,
            "tasks": _rows(each.assigned.active), "target": _rows(each.target.active),
            "standby": _rows(each.assigned.standby), "standby_target": _rows(each.target.standby),
        }
        for each in answer.members
    ]  # fmt: skip
    topology = answer.topology or messages.DescribedTopology(-1, ())
    return Replied(
        (
            ("state", answer.state), ("epoch", answer.epoch), ("assignment_epoch", answer.assignment_epoch),
            ("topology_epoch", topology.epoch), ("topology", [*(topology.subtopologies or ())]),
            ("members", sorted(members, key=lambda each: str(each["client"]))),
        )
    )  # fmt: skip


def _rows(tasks: Tasks | Endpoints | None) -> list[list[Any]] | None:
    return None if tasks is None else [*map(list, tasks)]
