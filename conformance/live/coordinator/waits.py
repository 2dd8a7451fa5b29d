"""How long conversations wait in real time, and the order in which they begin."""

from collections.abc import Sequence
from typing import Final

from kipcheck.conformance.core.values.case import Case

LONGEST_MS: Final = 60_000
"""Of one wait."""
STARTED_MOST_MS: Final = 290_000
"""Less than the five minutes that a broker gives new members, whatever its settings."""
MOST_MS: Final = 60_000
"""In real time. Of 300 drawn conversations 88 leave out a wait, and 60 where they may take five minutes."""


def longest_first(cases: Sequence[Case]) -> list[int]:
    """The numbers of the cases, those first whose steps wait longest: the last ones to end are not begun late."""
    return sorted(range(len(cases)), key=lambda number: -waits_ms(cases[number], STARTED_MOST_MS))


def waits_ms(case: Case, most_ms: int) -> int:
    """How long the steps of a case wait, in its own time, without the waits that are left out."""
    waited = 0
    for step in case.steps:
        ms: int = step.body.get("ms", 0)
        waited += ms if ms <= LONGEST_MS and waited + ms <= most_ms else 0
    return waited
