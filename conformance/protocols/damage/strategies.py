"""Draws damaged requests: first each kind at each place, then any."""

from collections.abc import Iterable, Iterator
from itertools import cycle
from random import Random
from typing import Any, Final, get_args

from kipcheck.conformance.core.values.case import Step, steps_from
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.damage import ops
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject, Value
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

MOST: Final = 6
APIS: Final[tuple[ops.Api, ...]] = get_args(ops.Api)
ENDS: Final[tuple[ops.End, ...]] = get_args(ops.End)
KINDS: Final[tuple[ops.Kind, ...]] = get_args(ops.Kind)
OF_VALUES: Final = tuple(each for each in KINDS if each not in (*ops.FRAMES, *ops.HEADERS))
PLACES: Final = (
    *(("frame", each) for each in ops.FRAMES), *(("header", each) for each in (*ops.HEADERS, *OF_VALUES)),
    *(("body", each) for each in OF_VALUES),
)  # fmt: skip
"""Where each kind of damage can be."""


class Damages:
    """A client may send anything at any time."""

    def initial(self) -> None:
        return None

    def step(self, state: None, event: ops.Event, /) -> Transition[None, Any]:
        return Transition(state)


def likely(state: None, swarm: Swarm, random: Random) -> Step:
    place, kind = random.choice(PLACES)
    fields = random.choice(APIS), random.randrange(10), place, kind, random.randrange(ops.PLACES_OF_A_KIND)
    return ops.OPERATIONS.step_of(ops.Send(*fields, random.choice((0, 0, 1, 5)), random.choice(ENDS)))  # type: ignore[arg-type]


DRAWN: Final = nodes(ops.Send)
SENT: Final[Conversations[None, ops.Event]] = Conversations(
    Damages(),
    ops.OPERATIONS.step_of,
    ops.OPERATIONS.event_of,
    events=DRAWN,
    progress=frozenset(DRAWN),
    max_steps=MOST,
    likely=likely,
    enabled_shares=(1.0,),
    near_shares=(0.0,),
)
CONVERSATIONS: Final = {"damage": lambda edition: SENT}
OTHERS: Final[Step] = ops.OPERATIONS.step_of(ops.Others())


def systematic() -> Iterator[Value]:
    """Each kind at each place once, a few in each value, of the newest versions and with all ends."""
    ends, apis = cycle(ENDS), cycle(APIS)
    steps = [
        ops.OPERATIONS.step_of(ops.Send(next(apis), 9, place, kind, number, number % 3, next(ends)))  # type: ignore[arg-type]
        for number, (place, kind) in enumerate(PLACES)
    ]
    for at in range(0, len(steps), MOST):
        yield [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps[at : at + MOST]]


def oldest() -> Iterator[Value]:
    """A request of each API in the oldest version that KIP-896 keeps."""
    for api, version in ops.OLDEST.items():
        step = ops.OPERATIONS.step_of(ops.Old(api, version))
        yield [{"actor": step.actor, "verb": step.verb, "body": dict(step.body)}]


def conversation(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """The damage; then the others are looked at."""
    yield Conversation((*(each for each in steps_from(value) if each.verb != OTHERS.verb), OTHERS))
