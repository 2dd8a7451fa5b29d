"""Bounded exhaustive exploration of any machine, breadth first, shortest path kept."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple

from kipcheck.conformance.core.machine import A_co, E, Machine, S


class Edge(NamedTuple, Generic[S, E, A_co]):
    """One transition, and the shortest way there."""

    path: tuple[E, ...]
    """All events, the last one included."""
    before: S
    actions: tuple[A_co, ...]
    after: S


def explore(
    machine: Machine[S, E, A_co],
    within: Callable[[S], bool],
    events: Callable[[S], Iterable[E]] | None = None,
) -> Iterator[Edge[S, E, A_co]]:
    """Every transition out of every state; a state that is not ``within`` is seen and not left.

    The bound belongs to the search: ``enabled`` also serves generation, which has none. ``events``, where it is given,
    says what is tried in a state instead: also what is refused there.
    """
    tried = events or machine.enabled
    start = machine.initial()
    seen = {start}
    paths: deque[tuple[tuple[E, ...], S]] = deque([((), start)])
    while paths:
        path, state = paths.popleft()
        for event in tried(state):
            after, actions = machine.step(state, event)
            yield Edge((*path, event), state, actions, after)
            if after not in seen:
                seen.add(after)
                if within(after):
                    paths.append(((*path, event), after))
