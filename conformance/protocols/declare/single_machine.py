"""Adapts a single machine to the interface of a product machine, with one component."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.machine import Driven
from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.machines.symmetry import Symmetry


@dataclass(frozen=True)
class SingleMachine:
    name: str
    machine: Driven[Any, Any, Any]
    within: Callable[[Any], bool]
    """States outside this bound are reached but not expanded."""
    tried: Callable[[Any], Iterable[Any]]
    """The events to try in a state, including those that the machine refuses there."""
    step_of: Callable[[Any], Step]
    """Converts an event to the step of a conversation."""
    shorthand: Callable[[Iterable[Step]], str]
    laws: tuple[Law[Any] | StepLaw[Any, Any, Any], ...]
    symmetry: Symmetry[Any, Any] | None = None
    """Its interchangeable parts, if it has any: ``explore`` searches one of the states that differ in their numbers."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def initial(self) -> tuple[Any, ...]:
        return (self.machine.initial(),)

    def moves(self, index: int, part: Any, /) -> Iterable[Any]:
        return self.tried(part) if self.within(part) else ()

    def act(self, index: int, part: Any, move: Any, /) -> Did[Any, Any]:
        return Did(self.machine.step(part, move).state)

    def take(self, index: int, part: Any, message: Any, /) -> Did[Any, Any] | None:
        raise AssertionError("a single machine receives no messages")

    def describe(self, value: Any, /) -> str:
        return self.shorthand([self.step_of(value)])
