"""Adapts the consumer model, a member of classic groups, to the operations of the testee protocol."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kipcheck.conformance.core.values.edition import APACHE, Edition, edition
from kipcheck.conformance.protocols.member.model.client import Client
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.rules import Config, rules_of
from kipcheck.conformance.protocols.member.ops import MEMBER, OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.targets.protocol import Claims


def member(edition: Edition, make: Callable[[Config], Consumer] = Consumer) -> MachineAdapter[Any, Any, Any] | None:
    """The consumer of an edition; None where the edition specifies no consumer."""
    rules = rules_of(edition)
    return (
        None
        if rules is None
        else MachineAdapter(Client(rules, make), OPERATIONS.verbs, OPERATIONS.event_of, OPERATIONS.answer_of)
    )


class ConsumerAdapter:
    """Adapts one class of consumer."""

    name = "member"
    version = "0"
    issues = ""
    consumer: ClassVar[type[Consumer]] = Consumer

    def __init__(self) -> None:
        self._player = member(APACHE, self.consumer)

    def claims(self) -> Claims:
        return Claims(machines=(MEMBER,))

    def configure(self, edition_name: str, /) -> str | None:
        self._player = member(edition(edition_name), self.consumer)
        return None if self._player is not None else f"edition {edition_name} specifies no consumer of classic groups"

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        assert self._player is not None
        return self._player.answer(op)


ADAPTERS = {MEMBER: member}
