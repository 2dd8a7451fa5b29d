"""Conversations with coordinators of classic groups that can happen, and the steps of others that cannot."""

from collections.abc import Iterator, Sequence

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Op
from kipcheck.conformance.protocols.declare.check import Impossible
from kipcheck.conformance.protocols.declare.conversations import possible_conversation
from kipcheck.conformance.protocols.group.model.possible import RULE, SENTENCE, impossible_events
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations

conversation = possible_conversation(group_conversations)


def impossible(case: Case, answers: Sequence[Op]) -> Iterator[Impossible]:
    """The events that its broker cannot have, whatever the coordinator answers."""
    for at, standing in impossible_events(map(OPERATIONS.event_of, case.steps)):
        yield Impossible(at, RULE, f"{SENTENCE} The partition is {standing.name.lower()}.")
