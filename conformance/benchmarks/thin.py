"""Prints the mutants that their own check finds too rarely: ``python -m kipcheck.conformance.benchmarks.thin``.

Each mutant is run with the default cases of its own check, on the subject that shows its defect, with seeds 0 to 9. A
mutant is thin if it is found with fewer than nine of them, or if fewer than three cases a seed (the median) violate its
invariant: a similar defect, of somebody else, may then pass. A case of an enumeration (``given`` of the check) is
enough, since it does not depend on the seed. Scripts of live clients take real time and are left out.

``--check GLOB`` selects the checks, ``--seeds N`` the number of seeds, ``--all`` prints the others, too. Exit code 1 if
a mutant is thin.
"""

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from statistics import median
from typing import Final, NamedTuple

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.verdict import Result
from kipcheck.conformance.engine.mutation_test import own_check, subject_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.mutants import MUTANTS

SEEDS: Final = 10
LEAST_SHARE: Final = 0.9
"""Of the seeds."""
LEAST_CASES: Final = 3


class Thickness(NamedTuple):
    """How often a mutant is found."""

    mutant: str
    by_seed: tuple[int, ...]
    """For each seed the cases that violate the invariant of the mutant."""
    drawn: int
    """The cases of the first seed."""
    enumerated: bool
    """Whether a case that is not drawn violates it."""

    @property
    def seeds(self) -> int:
        return sum(each > 0 for each in self.by_seed)

    @property
    def is_thin(self) -> bool:
        if self.enumerated:
            return False
        return self.seeds < LEAST_SHARE * len(self.by_seed) or median(self.by_seed) < LEAST_CASES


def thickness(name: str, seeds: int = SEEDS) -> Thickness:
    mutant = MUTANTS[name]
    check, subject = CHECKS[mutant.check], subject_of(mutant)
    results = [own_check(name, seed) for seed in range(seeds)]
    violating = [
        {case for case, _, by in each.cases if by.get(mutant.invariant) == Result.FAIL.name} for each in results
    ]
    enumerated = {Case(check.id, subject.edition, check.role, steps).id for steps, _ in check.given(subject)}
    by_seed = tuple(map(len, violating))
    return Thickness(name, by_seed, len(results[0].cases), bool(enumerated & violating[0]))


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", default="*", metavar="GLOB")
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--all", action="store_true")
    given = options.parse_args(arguments)
    names = [
        name
        for name, each in MUTANTS.items()
        if fnmatchcase(each.check, given.check) and CHECKS[each.check].role is not Role.CLIENT
    ]
    thin = 0
    for name in names:
        found = thickness(name, given.seeds)
        thin += found.is_thin
        if found.is_thin or given.all:
            counts = " ".join(map(str, found.by_seed))
            by = ", enumerated" if found.enumerated else ""
            of = f"{found.seeds} of {given.seeds} seeds, cases by seed {counts} of {found.drawn}{by}"
            print(f"{'thin' if found.is_thin else 'ok':<5}{MUTANTS[name].check:<32}{name:<44}{of}", flush=True)
    print(f"{thin} of {len(names)} mutants are thin")
    return int(thin > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
