"""Draws scripts: the other members, errors and rebalances that a live client has to survive."""

from collections.abc import Iterable
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step, steps_from
from kipcheck.conformance.protocols.client.model import Scripts, State, is_worth
from kipcheck.conformance.protocols.client.ops import EVENTS, OPERATIONS, SETTINGS, Event, Refuse, Stop
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject, Value
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

PROGRESS: Final = frozenset({"client-rebalance", "client-answer"})
WEIGHTS: Final = {**dict.fromkeys(PROGRESS, 4), "client-member": 3, "client-assign": 2, "client-restart": 0.5,
                  "client-fence": 4, **dict.fromkeys((OPERATIONS.verb_of[each] for each in SETTINGS), 0.4)}  # fmt: skip
"""The weights of steps; others: 1. A script that needs a placeholder is skipped for a command without it."""
DRAWN: Final = nodes(*EVENTS[:-3])
"""All but ``freeze``, which costs seconds, and what ends a script."""
REFUSAL: Final = nodes(Refuse)
REFUSED: Final = 0.25
"""The share of scripts at whose end the client is refused: nothing that follows would matter."""
TRIES: Final = 100


def likely(state: State, swarm: Swarm, random: Random) -> Step | None:
    """A step that the client can notice."""
    weights = [WEIGHTS.get(each, 1) for each in swarm.verbs]
    for _ in range(TRIES):
        (verb,) = random.choices(swarm.verbs, weights)
        found = Step(**compiled(DRAWN[verb])(random))
        if is_worth(state, OPERATIONS.event_of(found)):
            return found
    return None


SCRIPTS: Final[Conversations[State, Event]] = Conversations(
    Scripts(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=DRAWN,
    progress=PROGRESS,
    max_steps=6,
    likely=likely,
    enabled_shares=(1.0,),
    near_shares=(0.0,),
)
CONVERSATIONS: Final = {"client": lambda edition: SCRIPTS}
STOP: Final[Step] = OPERATIONS.step_of(Stop())


def script(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """The steps up to the first ``stop``. If there is none, as in what is drawn, it is added, perhaps after a refusal:
    a program always ends with its script."""
    steps = []
    for each in steps_from(value):
        if each.verb == STOP.verb:
            break
        steps.append(each)
    else:
        if random.random() < REFUSED:
            steps += refusal(steps, random)
    yield Conversation((*steps, STOP))


def refusal(steps: Iterable[Step], random: Random) -> Iterable[Step]:
    """A refusal that the client can notice after these steps, if there is one."""
    state = Scripts().initial()
    for each in steps:
        state = Scripts().step(state, OPERATIONS.event_of(each)).state
    (node,) = REFUSAL.values()
    for _ in range(TRIES):
        found = Step(**compiled(node)(random))
        if is_worth(state, OPERATIONS.event_of(found)):
            return (found,)
    return ()
