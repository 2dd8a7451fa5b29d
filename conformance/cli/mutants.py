"""The command ``mutants``: runs the mutation test."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kipcheck.conformance.cli.options import FAILED, OK, USAGE, Commands, add_json, complain, positive, print_json

if TYPE_CHECKING:
    from kipcheck.conformance.engine.strength.mutation_test import MutationResult

ABOUT = "run the checks against every planted defect and print which check catches it; exit 1 if one survives"


def add(commands: Commands) -> None:
    codes = (
        "exit codes: 0 every mutant is caught, 1 a mutant survives, or the reference breaks the invariant of "
        "one, 2 usage"
    )
    planted = commands.add("mutants", _mutants, ABOUT, codes, aliases=("vices",))
    planted.add_argument(
        "--check", action="append", metavar="GLOB", help="only these checks and the defects planted for them"
    )
    planted.add_argument("--seed", type=int, default=0, metavar="N", help="decides the cases (default 0)")
    planted.add_argument("--workers", type=positive, metavar="N", help="processes (default 2, or 1 on one core)")
    add_json(planted)


def _mutants(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.execution import selection
    from kipcheck.conformance.engine.strength import mutation_test

    globs = options.check or ["*"]
    try:
        names = mutation_test.selected(globs)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    found = mutation_test.run_mutants(names, globs, options.seed, options.workers or selection.WORKERS)
    if options.json:
        rows = [*found]
        print_json({"vices": rows})
    else:
        rows = []
        for each, line in _lines(found):
            rows.append(each)
            print(line, flush=True)
    wrong = [each for each in rows if each.trouble]
    if not options.json:
        print(*_counts(rows), sep="\n")
    return complain(_summary(wrong), FAILED) if wrong else OK


def _counts(rows: Sequence["MutationResult"]) -> Iterator[str]:
    """Planted defects, and mutants that fit every family, apart."""
    from kipcheck.conformance.engine.strength.generic_mutation_test import AT

    for name, generic in (("planted defects", False), ("mutants of every family", True)):
        of = [each for each in rows if (AT in each.id) is generic and not each.equivalent]
        same = sum(bool(each.equivalent) for each in rows) if generic else 0
        if of or not generic:
            answers = f"; {same} more answer as the reference, as declared" if same else ""
            yield f"{sum(bool(each.caught_by) for each in of)} of {len(of)} {name} are caught{answers}"


def _summary(wrong: Sequence["MutationResult"]) -> str:
    """Survivors together, then the others one by one."""
    survivors = [each.id for each in wrong if each.trouble == "not caught"]
    others = [f"{each.id}: {each.trouble}" for each in wrong if each.id not in survivors]
    return "; ".join(([f"not caught: {', '.join(survivors)}"] if survivors else []) + others)


def _lines(found: Iterable["MutationResult"]) -> Iterator[tuple["MutationResult", str]]:
    """Yields each result with its line as it comes; the name column is as wide as the longest name of any defect."""
    from kipcheck.conformance.engine.strength import generic_mutation_test
    from kipcheck.conformance.protocols.mutants import MUTANTS

    width = max(map(len, (*MUTANTS, *generic_mutation_test.ids())))
    print(f"{'mutant':<{width}}  {'cases':>5}  {'cpu s':>6}  {'steps':>5}  caught by")
    for each in found:
        by = ", ".join(each.caught_by) or (f"declared: {each.equivalent}" if each.equivalent else "NOTHING")
        by += "".join(f" - {why}" for why in (each.trouble, each.remark) if each.caught_by and why)
        cases, steps = ("-" if number is None else str(number) for number in (each.cases, each.least_steps))
        yield each, f"{each.id:<{width}}  {cases:>5}  {each.cpu_s:>6.3f}  {steps:>5}  {by}"
