"""Interchangeable parts of a machine: a search keeps one state of those that only differ in how parts are numbered."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

S = TypeVar("S", bound=Hashable)
V = TypeVar("V", bound=Hashable)
Renumbering: TypeAlias = tuple[int, ...]
"""At the place of each number the number that it becomes."""


@dataclass(frozen=True, slots=True)
class Symmetry(Generic[S, V]):
    """A machine whose parts have numbers, and treats all numbers alike.

    For every state, move and renumbering, the step of the renumbered state on the renumbered move is the renumbered
    step; a law that holds in a state holds in the renumbered one.
    """

    canonical: Callable[[S], tuple[S, Renumbering]]
    """The one state that stands for all its renumberings, and how the given state becomes it."""
    renumbered: Callable[[V, Renumbering], V]
    """The same move of another part."""


def inverse(of: Renumbering) -> Renumbering:
    return tuple(sorted(range(len(of)), key=of.__getitem__))


def original(symmetry: Symmetry[S, V], initial: S, step: Callable[[S, V], S], moves: Iterable[V]) -> Iterator[V]:
    """A path through canonical states as a path of the machine itself, which keeps the numbers of its parts."""
    state, (_, there) = initial, symmetry.canonical(initial)
    for each in moves:
        move = symmetry.renumbered(each, inverse(there))
        yield move
        state = step(state, move)
        _, there = symmetry.canonical(state)
