"""Cases that are held back, because they look like those in which the target died."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Died, History, Lost
from kipcheck.conformance.protocols.declare.survival import Look, look, survives

MOST: Final = 3
"""The most cases of a check and subject in which a target dies in one way."""
Shape = tuple[str, ...]
HELD_BACK: Final = Lost("held back: the case looks like those in which the target died")


@dataclass(slots=True)
class Deaths:
    """The deaths of a target in the cases of one check on one subject.

    A death costs a new process or the whole time limit of a case, and after the third of one shape another one shows
    nothing new.
    """

    _seen: Counter[Shape] = field(default_factory=Counter)
    _looks: dict[Look, Shape] = field(default_factory=dict)

    def note(self, history: History) -> None:
        """Counts the death, if the target died in the case."""
        for each in survives(history) if _died(history) else ():
            self._seen[each.shape] += 1
            if self._seen[each.shape] >= MOST:
                self._looks.setdefault(look(history.case, history.ops[each.at[0]].step), each.shape)

    def alike(self, case: Case) -> Shape | None:
        """The shape of the deaths that the case looks like, if there were enough of them."""
        for step in case.steps if self._looks else ():
            if (shape := self._looks.get(look(case, step))) is not None:
                return shape
        return None


def _died(history: History) -> bool:
    return any(isinstance(op.observation, Died) for op in history.ops)
