"""Bounded exhaustive exploration of any machine, breadth first, shortest path kept."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple

from kipcheck.conformance.core.values.machine import A_co, E, Machine, S


class Edge(NamedTuple, Generic[S, E, A_co]):
    """One transition, and the shortest path to it."""

    path: tuple[E, ...]
    """All events from the initial state, including this one."""
    before: S
    actions: tuple[A_co, ...]
    after: S


def explore(
    machine: Machine[S, E, A_co],
    within: Callable[[S], bool],
    events: Callable[[S], Iterable[E]] | None = None,
) -> Iterator[Edge[S, E, A_co]]:
    """Yields every transition out of every reachable state ``within`` the bound; other states are not expanded.

    The bound belongs to the search: ``enabled`` also serves generation, which has none. ``events`` replaces
    ``enabled``, for example to try events that the machine refuses.
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
