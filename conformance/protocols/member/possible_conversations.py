"""Conversations with consumers that can happen, and the steps of others that cannot."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Observation, Op, Refused, Replied
from kipcheck.conformance.protocols.declare.check import Impossible
from kipcheck.conformance.protocols.declare.conversations import possible_conversation
from kipcheck.conformance.protocols.member.model.client import Action, Client
from kipcheck.conformance.protocols.member.model.possible import conversation_faults
from kipcheck.conformance.protocols.member.model.rules import rules_of
from kipcheck.conformance.protocols.member.ops import ACTIONS, OPERATIONS
from kipcheck.conformance.protocols.member.strategies.conversations import conversations

conversation = possible_conversation(conversations)


def impossible(case: Case, answers: Sequence[Op]) -> Iterator[Impossible]:
    """The steps that no coordinator, network or user can take, up to the first one without an answer.

    Errors: LookupError and TypeError for steps that are no events.
    """
    rules = rules_of(edition(case.edition))
    if rules is None:
        return
    answered = list(takewhile(lambda op: isinstance(op.observation, Replied | Refused), answers))
    events = tuple(map(OPERATIONS.event_of, case.steps[: len(answered)] if answers else case.steps))
    actions = [_actions(each.observation) for each in answered] if answers else None
    for step, rule, why, idle in conversation_faults(Client(rules), events, actions):
        yield Impossible(step, rule.id, f"{rule.sentence} {why[0].upper()}{why[1:]}.", idle)


def _actions(observation: Observation) -> tuple[Action, ...] | None:
    if not isinstance(observation, Replied):
        return None
    return tuple(ACTIONS.from_json(each) for each in dict(observation.payload).get("actions", ()))
