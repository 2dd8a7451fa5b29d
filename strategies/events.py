"""Draws event sequences with a model: mostly events that it accepts, or nearly, sometimes any event.

The events are recorded as concrete steps, so a case is replayed, mutated and reduced without the model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, cast

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.machine import Driven, E, Machine, S
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.mutate import mutate
from kipcheck.strategies.nodes import Node, OneOf, Pick, Record, Seq, record

ENABLED_SHARES = (0.95, 0.8, 0.5)
"""A swarm uses one of these shares of enabled events; others are arbitrary: their error responses are tested too."""
NEAR_SHARES = (0.0, 0.3, 0.6)
"""A swarm uses one of these shares of enabled events that are changed in one place, which often disables them."""
PROGRESS = 3
"""The weight of enabled events that make progress."""


def event(actor: str, verb: str, body: Node | None = None, **fields: Node) -> Record:
    """The declaration of a step, by its fields, or by ``body`` where fields depend on each other."""
    return record(actor=Pick((actor,)), verb=Pick((verb,)), body=record(**fields) if body is None else body)


@dataclass(frozen=True, slots=True)
class Swarm:
    """Parameters of a few conversations: without some verbs, others occur more often."""

    verbs: tuple[str, ...]
    enabled: float
    near: float
    traits: Any = None
    """Chosen by the machine's module: the participants, for example."""


def _none(random: Random) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Conversations(Generic[S, E]):
    """The event sequences of one machine, and the declaration of any event by verb."""

    machine: Driven[S, E, Any]
    step_of: Callable[[E], Step]
    event_of: Callable[[Step], E]
    events: Mapping[str, Node]
    progress: frozenset[str]
    """Verbs that every swarm contains: without them no event would happen that a fault could disturb."""
    max_steps: int = 20
    usual_steps: int = 1
    """Shorter sequences are allowed and not drawn: they test too little."""
    likely: Callable[[S, Swarm, Random], Step | None] | None = None
    """Chooses a step that the machine accepts, or nearly, better than among all enabled ones; None: no choice.

    If set, the machine does not list its enabled events, of which there may be very many.
    """
    traits: Callable[[Random], Any] = _none
    possible: Callable[[S, E], E] | None = None
    """An event that can happen in a state, in place of one that cannot; None: anything can happen."""
    enabled_shares: tuple[float, ...] = ENABLED_SHARES
    near_shares: tuple[float, ...] = NEAR_SHARES

    @property
    def declaration(self) -> Seq:
        return Seq(OneOf(tuple(self.events.values())), 1, self.max_steps)

    def swarm(self, random: Random) -> Swarm:
        verbs = tuple(verb for verb in self.events if verb in self.progress or random.random() < 0.5)
        shares = random.choice(self.enabled_shares), random.choice(self.near_shares)
        return Swarm(verbs, *shares, self.traits(random))

    def draw(self, random: Random, swarm: Swarm, begun: Sequence[Step] = ()) -> tuple[Step, ...]:
        """``begun``: the first steps; at least one more follows, up to ``max_steps``."""
        state, steps = self.machine.initial(), list[Step]()
        for each in begun[: self.max_steps]:
            state = self._continued(steps, state, each)
        least = min(max(self.usual_steps, len(steps) + 1), self.max_steps)
        for _ in range(random.randint(least, self.max_steps) - len(steps)):
            state = self._continued(steps, state, self._next(state, random, swarm))
        return tuple(steps)

    def mended(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """As many steps, each of which can happen: the same ones, if they can."""
        if self.possible is None:
            return tuple(steps)
        state, found = self.machine.initial(), list[Step]()
        for each in steps:
            state = self._continued(found, state, each)
        return tuple(found)

    def _continued(self, steps: list[Step], state: S, following: Step) -> S:
        """Adds the step, or one that can happen in its place, and returns the state after it."""
        event = self.event_of(following)
        if self.possible is not None and (other := self.possible(state, event)) is not event:
            event, following = other, self.step_of(other)
        steps.append(following)
        return self.machine.step(state, event).state

    def _next(self, state: S, random: Random, swarm: Swarm) -> Step:
        if random.random() < swarm.enabled:
            found = (self.likely or self._enabled)(state, swarm, random)
            if found is not None:
                return self._near(found, random) if random.random() < swarm.near else found
        return Step(**compiled(self.events[random.choice(swarm.verbs)])(random))

    def _enabled(self, state: S, swarm: Swarm, random: Random) -> Step | None:
        enabled: dict[type, list[E]] = {}
        for each in cast(Machine[S, E, Any], self.machine).enabled(state):
            enabled.setdefault(type(each), []).append(each)
        # The kind first, then its arguments: a kind with many arguments is not more likely.
        kinds = {self.step_of(events[0]).verb: events for events in enabled.values()}
        weights = {verb: PROGRESS if verb in self.progress else 1 for verb in kinds if verb in swarm.verbs}
        if not weights:
            return None
        (verb,) = random.choices([*weights], [*weights.values()])
        return self.step_of(random.choice(kinds[verb]))

    def _near(self, found: Step, random: Random) -> Step:
        data = {"actor": found.actor, "verb": found.verb, "body": dict(found.body)}
        return Step(**mutate(self.events[found.verb], data, random))
