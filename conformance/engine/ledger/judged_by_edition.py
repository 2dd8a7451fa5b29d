"""Which invariants a check judged on its subjects, in which edition, where its cases do not show that alone.

A run of ``apache`` plays some machines in the form of a draft too. Their cases cover the rules of the draft only. And
a target may refuse all that an invariant is about: then its cases violate nothing, and judge nothing.
"""

from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.worker import UnitResult

UNDECIDED: Final = frozenset({Result.SKIP.name, Result.UNKNOWN.name})


@dataclass(slots=True)
class JudgedByEdition:
    """Of the units of one check with one target."""

    _found: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)
    """Subject -> edition -> invariants."""
    _decided: dict[str, set[str]] = field(default_factory=dict)
    """Subject -> invariants with a verdict, judged or not."""

    def add(self, result: UnitResult) -> None:
        unit = result.unit
        invariants = self._found.setdefault(unit.subject, {}).setdefault(unit.edition, {})
        decided = self._decided.setdefault(unit.subject, set())
        for _, _, by in result.cases:
            some = [id for id, came in by.items() if came not in UNDECIDED]
            decided.update(some)
            invariants.update(dict.fromkeys(id for id in some if id in result.reached))

    def lines(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Of the subjects that have several editions, or an invariant with verdicts that no case could violate."""
        return {
            subject: {edition: tuple(invariants) for edition, invariants in by.items()}
            for subject, by in self._found.items()
            if len(by) > 1 or not self._decided[subject] <= {id for each in by.values() for id in each}
        }
