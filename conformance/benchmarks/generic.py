"""Runs the mutants that fit every family: ``python -m kipcheck.conformance.benchmarks.generic``.

Prints what finds them from ``generic_mutants.json``, of which ``docs/internals/mutants.md`` has a summary. ``--record``
runs them first and writes the file, ``--family GLOB`` those of some families alone. ``--by-verb`` prints the operations
whose refusal, or whose acceptance in place of a refusal, passes every default case, which no table has.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.engine.strength.generic_mutation_test import AT, GenericResult, families, run_generic
from kipcheck.conformance.protocols.generic_mutants import GENERIC, learned

FILE: Final = Path(__file__).resolve().parents[1] / "generic_mutants.json"
BEGIN, END = "<!-- generic mutants -->\n", "<!-- end of generic mutants -->\n"
SURVIVES: Final = "**survives**"
WHY_NOT: Final = ("survives", "equivalent")
ONE_VERB: Final = ("refuses-everything", "accepts-everything")


def recorded() -> dict[str, dict[str, Any]]:
    """By family and mutant."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return found


def cell(found: GenericResult) -> dict[str, Any]:
    if found.why_equivalent:
        return {"equivalent": found.why_equivalent}
    invariant = next(iter(found.by_invariant), None)
    if invariant is None:
        return {"survives": found.cases}
    return {"invariant": invariant, "cases": found.by_invariant[invariant], "of": found.cases}


def record(glob: str) -> None:
    for family in families():
        if fnmatchcase(family, glob):
            cells = {mutant: cell(run_generic(f"{mutant}{AT}{family}")) for mutant in GENERIC}
            every = {**recorded(), family: cells}
            rows = [f"{json.dumps(name)}: {json.dumps(every[name])}" for name in families() if name in every]
            FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
            print(family, flush=True)


def table() -> Iterator[str]:
    """A row for each mutant: in how many families it is found, and in which it is the reference by construction."""
    yield "| mutant | found in families | survives in | the reference in |"
    yield "|---" * 4 + "|"
    for mutant in GENERIC:
        cells = {family: by[mutant] for family, by in recorded().items()}
        survived, equal = ([f"`{family}`" for family, each in cells.items() if key in each] for key in WHY_NOT)
        number = len(cells) - len(survived) - len(equal)
        yield f"| `{mutant}` | {number} | {', '.join(survived)} | {', '.join(equal)} |"


def by_family() -> Iterator[str]:
    """The invariant that most cases of each family violate."""
    yield f"| family | cases | {' | '.join(GENERIC)} |"
    yield "|---" * (len(GENERIC) + 2) + "|"
    for family, cells in recorded().items():
        cases = max(each.get("of", 0) for each in cells.values())
        yield f"| `{family}` | {cases} | {' | '.join(_text(cells[mutant]) for mutant in GENERIC)} |"


def _text(found: Mapping[str, Any]) -> str:
    if "equivalent" in found:
        return "the reference"
    if "survives" in found:
        return SURVIVES
    return f"`{found['invariant']}` {found['cases']}"


def survivors_by_verb(glob: str) -> Iterator[str]:
    """``MUTANT/VERB``, and the family in which it passes."""
    for family, asked in families().items():
        if not fnmatchcase(family, glob):
            continue
        (subject, *_) = (each for _, each in asked)
        for verb, forms in learned(subject.name, subject.version, subject.edition).by_verb.items():
            for mutant in ONE_VERB if forms.refused is not None else ():
                found = run_generic(f"{mutant}{AT}{family}", verb=verb)
                if not found.failed:
                    yield f"{family:<28}{mutant}/{verb} passes {found.cases} cases"


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--record", action="store_true")
    options.add_argument("--by-verb", action="store_true")
    options.add_argument("--family", default="*", metavar="GLOB")
    given = options.parse_args(arguments)
    if given.by_verb:
        for line in survivors_by_verb(given.family):
            print(line, flush=True)
        return 0
    if given.record:
        record(given.family)
    print(*by_family(), sep="\n")
    return int(any("survives" in each for cells in recorded().values() for each in cells.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
