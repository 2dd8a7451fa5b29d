"""What a run does not show: checks in which every case was skipped, and the reasons for exit code 7."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from kipcheck.conformance.core.ledger import Counts, Inconclusive, Place, Skip
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import invariant_of

MOST_SKIPPED: Final = 10
"""A run is inconclusive if more than one in so many cases of a target in a role were skipped."""
JUDGED: Final = frozenset({"PASS", "FAIL", "WARN", "NOTE", "KNOWN"})
PASSED: Final = JUDGED - {"FAIL"}
"""What shows that a target does something as expected: KNOWN is a failure that a list of known deviations states."""
SKIPPED: Final = Result.SKIP.name
EVERY_TARGET: Final = "*"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The cases of a run, counted."""

    counts: Counts
    """Target -> check -> result -> cases."""
    held_back: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(target, check) -> cases among the skipped ones that were held back behind a known deviation, or that a live
    client cannot begin."""
    by_invariant: Mapping[tuple[str, str], set[str]] = field(default_factory=dict)
    """(target, invariant) -> its results in the cases."""

    def skipped_checks(self) -> Iterator[Skip]:
        """The checks in which every case was skipped."""
        for target, by in self.counts.items():
            for check, counted in by.items():
                cases = sum(counted.values())
                if cases and counted.get(Result.SKIP.name) == cases:
                    why = f"every case was skipped: the target can take none of the {cases}"
                    if self.held_back.get((target, check)):
                        why = f"every case was skipped: {cases}"
                    yield Skip(target=target, check=check, why=why)

    def reasons(self, require: Sequence[str] = ()) -> Iterator[Inconclusive]:
        """Why the run is inconclusive. ``require``: globs over checks, each of which must have judged a case."""
        results: Counter[str] = Counter()
        for by in self.counts.values():
            for counted in by.values():
                results.update(counted)
        if not any(results[each] for each in PASSED):
            why = f"none of {results.total()} cases passed" if results else "there were no cases"
            yield Inconclusive(target=EVERY_TARGET, check="*", why=why)
        yield from self._skipped_roles()
        yield from self._without_essentials()
        yield from self._unmet(require)

    def _skipped_roles(self) -> Iterator[Inconclusive]:
        for target, by in self.counts.items():
            skipped, cases = Counter[str](), Counter[str]()
            for check, counted in by.items():
                role = CHECKS[check].role.value if check in CHECKS else ""
                cases[role] += sum(counted.values())
                skipped[role] += counted.get(Result.SKIP.name, 0) - self.held_back.get((target, check), 0)
            for role, number in skipped.items():
                if number * MOST_SKIPPED > cases[role]:
                    why = f"{number} of {cases[role]} cases in the role {role} were skipped, more than a tenth"
                    yield Inconclusive(target=target, check="*", why=why)

    def _without_essentials(self) -> Iterator[Inconclusive]:
        for target, by in self.counts.items():
            for check, counted in by.items():
                judged = check in CHECKS and any(counted.get(each) for each in JUDGED)
                for id in CHECKS[check].invariants if judged else ():
                    if (why := invariant_of(id).essential) and self.by_invariant.get((target, id)) == {SKIPPED}:
                        yield Inconclusive(target=target, check=check, why=f"{why}: {id} was judged in no case")

    def _unmet(self, require: Sequence[str]) -> Iterator[Inconclusive]:
        judged = {
            check
            for by in self.counts.values()
            for check, counted in by.items()
            if any(counted.get(each) for each in JUDGED)
        }
        for glob in dict.fromkeys(require):
            for check in CHECKS:
                if fnmatchcase(check, glob) and check not in judged:
                    why = f"--require {glob}: no case of this check passed or failed"
                    yield Inconclusive(target=EVERY_TARGET, check=check, why=why)


def by_invariant(results: Iterable[tuple[Place, str, Mapping[str, int]]]) -> dict[tuple[str, str], set[str]]:
    """As ``Conclusion`` has it, of places, invariants, and their cases by result."""
    found: dict[tuple[str, str], set[str]] = {}
    for place, invariant, counted in results:
        found.setdefault((place.target, invariant), set()).update(name for name, cases in counted.items() if cases)
    return found
