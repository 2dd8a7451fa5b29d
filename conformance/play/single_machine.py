"""A single machine as a world of one part, where there is nothing to join it with."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.machine import Machine
from kipcheck.conformance.machines.product import Did, Law, StepLaw


@dataclass(frozen=True)
class Alone:
    name: str
    machine: Machine[Any, Any, Any]
    within: Callable[[Any], bool]
    """A state that is not within is seen and not left."""
    tried: Callable[[Any], Iterable[Any]]
    """What is tried in a state; also what is refused there."""
    step_of: Callable[[Any], Step]
    """An event in the words of the conversation with this machine."""
    shorthand: Callable[[Iterable[Step]], str]
    laws: tuple[Law[Any] | StepLaw[Any, Any, Any], ...]

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
        raise AssertionError("nobody is there to send anything")

    def says(self, said: Any, /) -> str:
        return self.shorthand([self.step_of(said)])
