"""Which invariants were judged in which edition, for subjects that a check judges in several.

A run of ``apache`` plays some machines in the form of a draft too. Their cases cover the rules of the draft only.
"""

from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.verdict import Result
from kipcheck.conformance.engine.worker import UnitResult

UNDECIDED: Final = frozenset({Result.SKIP.name, Result.UNKNOWN.name})


@dataclass(slots=True)
class JudgedByEdition:
    """Of the units of one check with one target."""

    _found: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)
    """Subject -> edition -> invariants."""

    def add(self, result: UnitResult) -> None:
        unit = result.unit
        invariants = self._found.setdefault(unit.subject, {}).setdefault(unit.edition, {})
        for _, _, by in result.cases:
            invariants.update(dict.fromkeys(id for id, came in by.items() if came not in UNDECIDED))

    def of_several(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Of the subjects that have several editions."""
        return {
            subject: {edition: tuple(invariants) for edition, invariants in by.items()}
            for subject, by in self._found.items()
            if len(by) > 1
        }
