"""Draws scripts: the other members, errors and rebalances that a live client has to survive."""

from collections.abc import Iterable
from random import Random
from typing import Final

from kipcheck.conformance.core.case import Step, steps_from
from kipcheck.conformance.protocols.client.model import Scripts, State
from kipcheck.conformance.protocols.client.ops import EVENTS, OPERATIONS, Event, Stop
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject, Value
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.operations import nodes

SCRIPTS: Final[Conversations[State, Event]] = Conversations(
    Scripts(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(*EVENTS[:-1]),
    progress=frozenset({"client-rebalance", "client-answer"}),
    max_steps=6,
    enabled_shares=(1.0,),
    near_shares=(0.0,),
)
CONVERSATIONS: Final = {"client": lambda edition: SCRIPTS}
STOP: Final[Step] = OPERATIONS.step_of(Stop())


def script(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """The steps up to the first ``stop``, which is added if there is none: a program always ends with its script."""
    steps = []
    for each in steps_from(value):
        if each.verb == STOP.verb:
            break
        steps.append(each)
    yield Conversation((*steps, STOP))
