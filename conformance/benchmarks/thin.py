"""Prints the mutants that their own check finds too rarely: ``python -m kipcheck.conformance.benchmarks.thin``.

Each mutant is run with the default cases of its own check, on the subject that shows its defect, with seeds 0 to 9;
one of a codec also on 24 other messages, as a run has all. A mutant is thin if it is found with fewer than nine of the
seeds, or if fewer than three cases a seed (the median) violate its invariant: a similar defect, of somebody else, may
then pass. A case of an enumeration (``given`` of the check) is enough, since it does not depend on the seed. Scripts of
live clients take real time and are left out.

``--check GLOB`` selects the checks, ``--seeds N`` the number of seeds, ``--all`` prints the others, too. ``--record``
writes the counts into ``strength.json``, in place of those of the same mutants; ``--asked DIR`` writes which real
targets the run in DIR asked, and counts nothing. Exit code 1 if a mutant is thin.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from kipcheck.conformance.cli.lookup import asked_in
from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.verdict import Result
from kipcheck.conformance.engine.mutation_test import own_check, subject_of
from kipcheck.conformance.engine.strength import FILE, LEAST_CASES, LEAST_SHARE, recorded
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.check import Subject
from kipcheck.conformance.protocols.mutants import MUTANTS

SEEDS: Final = 10
OTHER_SUBJECTS: Final = 24
"""Messages besides its own with which a mutant of a codec is run, at equal distances in the list."""
PATH: Final = Path(__file__).resolve().parents[1] / FILE


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
    check, subjects = CHECKS[mutant.check], subjects_of(name)
    by_seed, drawn, enumerated = [0] * seeds, 0, False
    for subject in subjects:
        results = [own_check(name, seed, subject) for seed in range(seeds)]
        violating = [
            {case for case, _, by in each.cases if by.get(mutant.invariant) == Result.FAIL.name} for each in results
        ]
        by_seed = [before + len(each) for before, each in zip(by_seed, violating, strict=True)]
        drawn += len(results[0].cases)
        given = {Case(check.id, subject.edition, check.role, steps).id for steps, _ in check.given(subject)}
        enumerated = enumerated or bool(given & violating[0])
    return Thickness(name, tuple(by_seed), drawn, enumerated)


def subjects_of(name: str) -> tuple[Subject, ...]:
    """The subject that shows the defect; of a codec, also some of the others that the check has in the same edition.

    A run has all of them, so that one message alone says too little. A mutant that ends its process takes long.
    """
    mutant = MUTANTS[name]
    check, own = CHECKS[mutant.check], subject_of(mutant)
    if check.role is not Role.CODEC or mutant.deadly:
        return (own,)
    others = [each for each in check.family.subjects(own.edition) if check.about(each) and each != own]
    return (own, *others[:: max(1, len(others) // OTHER_SUBJECTS)][:OTHER_SUBJECTS])


def write(*counted: Thickness, asked: Mapping[str, Sequence[str]] | None = None) -> None:
    """Adds counts of mutants to the recorded ones, without those of mutants that are gone."""
    data = recorded()
    new = {each.mutant: {"by_seed": [*each.by_seed], "enumerated": each.enumerated} for each in counted}
    mutants = {name: each for name, each in sorted({**data["mutants"], **new}.items()) if name in MUTANTS}
    kept = data["asked"] if asked is None else dict(sorted(asked.items()))
    parts = [
        "{", '"mutants": {', *_entries(mutants, "},"), '"asked": {', *_entries(kept, "}"), "}",
    ]  # fmt: skip
    PATH.write_text("\n".join(parts) + "\n", "utf-8")


def _entries(found: Mapping[str, Any], end: str) -> Iterator[str]:
    last = len(found) - 1
    for number, (name, each) in enumerate(found.items()):
        yield f"  {json.dumps(name)}: {json.dumps(each)}{',' if number < last else ''}"
    yield end


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", default="*", metavar="GLOB")
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--all", action="store_true")
    options.add_argument("--record", action="store_true")
    options.add_argument("--asked", type=Path, metavar="DIR")
    given = options.parse_args(arguments)
    if given.asked is not None:
        write(asked=asked_in(given.asked))
        return 0
    names = [
        name
        for name, each in MUTANTS.items()
        if fnmatchcase(each.check, given.check) and CHECKS[each.check].role is not Role.CLIENT
    ]
    thin = 0
    for name in names:
        found = thickness(name, given.seeds)
        thin += found.is_thin
        if given.record:
            write(found)
        if found.is_thin or given.all:
            counts = " ".join(map(str, found.by_seed))
            by = ", enumerated" if found.enumerated else ""
            of = f"{found.seeds} of {given.seeds} seeds, cases by seed {counts} of {found.drawn}{by}"
            print(f"{'thin' if found.is_thin else 'ok':<5}{MUTANTS[name].check:<32}{name:<44}{of}", flush=True)
    print(f"{thin} of {len(names)} mutants are thin")
    return int(thin > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
