"""The clients of a conversation about a classic group: what they send, and the names that they learn from answers."""

from collections.abc import Iterable

from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.group.model.names import Names
from kipcheck.conformance.protocols.group.model.service import canonical_reply, resolved
from kipcheck.conformance.protocols.group.ops import ANSWERS, By, Joined, Reply


class GroupClients:
    def __init__(self) -> None:
        self._names = Names()
        self._actors: dict[int, str] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """Of members, as the coordinator gave them, also those that never joined with them."""
        return tuple(id for id, _ in self._names.ids)

    def sent(self, index: int, event: By) -> SentRequest:
        """The request of a step."""
        self._actors[index] = event.actor
        generation = self._names.generation(event.actor, event.behind)
        request = resolved(event.request, self._names, generation, number=index)
        return SentRequest(event.actor, request, ANSWERS[type(request)], event.nameless)

    def observed(self, replies: Iterable[Reply]) -> tuple[Reply, ...]:
        """The answers of a step, in the order of their requests, with canonical ids."""
        found = sorted(replies, key=lambda reply: reply.to)
        joined = [(self._actors[reply.to], reply) for reply in found if isinstance(reply, Joined)]
        self._names = self._names.after_answers(joined)
        return tuple(canonical_reply(reply, self._names) for reply in found)
