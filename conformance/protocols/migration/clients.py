"""The clients of the classic protocol in a conversation with members of both protocols: what they send and observe.

The machine of such groups has clients of its own, who are these.
"""

from typing import Any

from kipcheck.conformance.core.operations.wire_form import Value
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.group.model.messages import Reply
from kipcheck.conformance.protocols.group.ops import ANSWERS
from kipcheck.conformance.protocols.migration.metadata import metadata_of, partitions_of, printed
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import NOTHING, PARKED, Classic, ClassicJoin, Receive, Received
from kipcheck.conformance.protocols.migration.state import State, with_client
from kipcheck.conformance.protocols.reconciled import log_ops
from kipcheck.conformance.protocols.reconciled.terms import Partitions
from kipcheck.conformance.wire import embedded, layout
from kipcheck.conformance.wire.errors import Refused

OWNED_SINCE = 1
"""The version of subscriptions in metadata."""


class ClassicClients:
    def __init__(self) -> None:
        self._machine = MixedGroup()
        self._state: State = self._machine.initial()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(each.id for each in self._state.clients if each.id)

    def sent(self, event: Classic) -> SentRequest | None:
        """The request of a client; None: it sends none, because it receives or waits."""
        client = self._state.client(event.client)
        if isinstance(event, Receive) or client.asked >= 0:
            return None
        number = self._state.requests
        if isinstance(event, ClassicJoin):
            client = client._replace(instance=event.instance)
        self._state = with_client(self._state._replace(requests=number + 1), client._replace(asked=number))
        request = self._machine.request_of(self._state, client, event, number)
        return SentRequest(event.client, request, ANSWERS[type(request)])

    def commit(self, event: log_ops.Commit) -> SentRequest:
        client = self._state.client(event.client)
        return log_ops.sent(event, client.id, client.generation)

    def answered(self, reply: Reply) -> None:
        """The answer to a request, whose number is in it, has come."""
        self._state = self._machine.delivered(self._state, reply.to, *self._machine.read(reply))

    def received(self, name: str) -> Received:
        """What a client receives now."""
        client = self._state.client(name)
        if client.answer is None:
            return Received(name, NOTHING if client.asked < 0 else PARKED)
        self._state, (found,) = self._machine.received(self._state, client)
        assert isinstance(found, Received)
        return found


def blobs(topics: Value) -> Value:
    """How messages have the metadata and assignments of these clients. ``topics``: the names of topics."""
    subscription = layout(APACHE, embedded.SUBSCRIPTION, OWNED_SINCE)
    assignment = layout(APACHE, embedded.ASSIGNMENT, 0)

    def rows(partitions: Partitions) -> list[dict[str, Any]]:
        by_topic: dict[str, list[int]] = {}
        for topic, number in partitions:
            by_topic.setdefault(topics.write(topic), []).append(number)
        return [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()]

    def written(text: Any) -> bytes:
        if "|" not in text:
            return assignment.encode({"assignedPartitions": rows(partitions_of(text)), "userData": None})
        subscribed, owned = metadata_of(text)
        value = {"topics": [*map(topics.write, subscribed)], "userData": None, "ownedPartitions": rows(owned)}
        return subscription.encode(value)

    def read(data: bytes) -> str:
        """Of an assignment. A leader is sent the metadata of all members, too, which are read as no partitions: no
        client of a conversation needs them."""
        try:
            assigned = embedded.read_assignment(data).partitions
        except Refused:
            return ""
        return printed(tuple(sorted((topics.read(topic), number) for topic, number in assigned)))

    return Value(written, read)
