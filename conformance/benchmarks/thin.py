"""Prints the mutants that their own check finds too rarely: ``python -m kipcheck.conformance.benchmarks.thin``.

Each mutant is run with the default cases of its own check, on the subject that shows its defect, with seeds 0 to 9;
one of a codec also on 24 other messages, as a run has all. A mutant is thin if it is found with fewer than nine of the
seeds, or if fewer than three cases a seed (the median) violate its invariant: a similar defect, of somebody else, may
then pass. A case of an enumeration (``given`` of the check) is enough, since it does not depend on the seed. No more
than five cases are counted. Scripts of live clients take real time and are left out.

``--check GLOB`` selects the checks, ``--seeds N`` the number of seeds, ``--all`` prints the others, too. ``--record``
writes the counts into ``strength.json``, in place of those of the same mutants; ``--asked DIR ...`` writes which real
targets the runs in these folders asked, and counts nothing; ``--keep`` adds them to those recorded. Exit code 1
if a mutant is thin.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.cli.lookup import asked_in
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.engine.strength.mutation_test import subject_of, violating
from kipcheck.conformance.engine.strength.requirement_strength import ENOUGH, FILE, Found, recorded
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.check import Subject
from kipcheck.conformance.protocols.mutants import MUTANTS

SEEDS: Final = 10
OTHER_SUBJECTS: Final = 24
"""Messages besides its own with which a mutant of a codec is run, at equal distances in the list."""
PATH: Final = Path(__file__).resolve().parents[1] / FILE


def counted(name: str, seeds: int = SEEDS) -> Found:
    """The violating cases by seed, up to ``ENOUGH``; of an enumeration one seed says all."""
    by_seed = []
    for seed in range(seeds):
        cases = 0
        for subject in subjects_of(name):
            found, enumerated = violating(name, seed, ENOUGH - cases, subject)
            cases += found
            if enumerated:
                return Found(name, (min(cases, ENOUGH),), enumerated=True)
            if cases >= ENOUGH:
                break
        by_seed.append(min(cases, ENOUGH))
    return Found(name, tuple(by_seed))


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


def write(*found: Found, asked: Mapping[str, Sequence[str]] | None = None) -> None:
    """Adds counts of mutants to the recorded ones, without those of mutants that are gone."""
    data = recorded()
    new = {each.id: {"by_seed": [*each.by_seed], "enumerated": each.enumerated} for each in found}
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


def asked_in_all(runs: Sequence[Path], recorded: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Requirement -> the real targets that answered it in one of the runs, or are recorded."""
    found = [recorded, *map(asked_in, runs)]
    return {id: sorted({name for each in found for name in each.get(id, ())}) for id in {*chain(*found)}}


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", default="*", metavar="GLOB")
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--all", action="store_true")
    options.add_argument("--record", action="store_true")
    options.add_argument("--asked", type=Path, metavar="DIR", nargs="+")
    options.add_argument("--keep", action="store_true")
    given = options.parse_args(arguments)
    if given.asked is not None:
        write(asked=asked_in_all(given.asked, recorded()["asked"] if given.keep else {}))
        return 0
    names = [
        name
        for name, each in MUTANTS.items()
        if fnmatchcase(each.check, given.check) and CHECKS[each.check].role is not Role.CLIENT
    ]
    thin = 0
    for name in names:
        found = counted(name, given.seeds)
        thin += found.is_thin
        if given.record:
            write(found)
        if found.is_thin or given.all:
            word = "thin" if found.is_thin else "ok"
            print(f"{word:<5}{MUTANTS[name].check:<32}{found.text}: {' '.join(map(str, found.by_seed))}", flush=True)
    print(f"{thin} of {len(names)} mutants are thin")
    return int(thin > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
