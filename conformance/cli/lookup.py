"""Commands that look things up: checks, requirements, targets, editions."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kipcheck.conformance.cli.filters import Fields, NothingFits, Row, add_filters, family, filtered
from kipcheck.conformance.cli.options import (
    FAILED,
    OK,
    USAGE,
    Commands,
    add_json,
    complain,
    edition_name,
    print_json,
    print_table,
)
from kipcheck.conformance.core.values.nearest import hint

if TYPE_CHECKING:
    from kipcheck.conformance.protocols.declare.invariant import Invariant


def add(commands: Commands) -> None:
    listed = commands.add("checks", _checks, "list the checks, their invariants and requirements")
    add_json(listed)
    add_filters(listed, {"family": "of the family, such as wire or client", "role": "of targets that play the role"})
    listed.add_argument(
        "--lint",
        action="store_true",
        help="check that checks, invariants and requirements refer to each other correctly",
    )
    listed.add_argument(
        "--reach",
        action="store_true",
        help="with --lint: check that default cases reach each branch of each invariant, as counted in reach.json",
    )
    wanted = commands.add("requirements", _requirements, "list every normative statement and the checks that cover it")
    wanted.add_argument("id", nargs="?", metavar="ID", help="show one requirement with its clause and text")
    add_json(wanted)
    add_filters(wanted, {"family": "of the KIP or family, such as 268 or grp", "role": "that bind the role"})
    wanted.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="a run: show which requirements a real target answered (real), and which only kipcheck's own reference, "
        "mutants and drills (own); default kipcheck-out, if it exists",
    )
    wanted.add_argument(
        "--strength",
        action="store_true",
        help="show the halves of each requirement, its invariants, in how many cases and seeds its mutants are found, "
        "and the real targets that answered it in the recorded runs, or in the run of --out",
    )
    there = commands.add("targets", _targets, "list the targets, and whether each is available")
    add_json(there)

    texts = commands.add(
        "editions", _editions, "list the editions, and the message versions that each release supports"
    )
    add_json(texts)
    about = "show how two editions differ and which can read the other's bytes; exit 1 if one would misread them"
    diff = texts.add_subparsers(metavar="[diff A B]").add_parser("diff", help=about, description=about)
    diff.add_argument("a", type=edition_name, metavar="A", help="an edition")
    diff.add_argument("b", type=edition_name, metavar="B", help="the edition to compare it with")
    add_json(diff)
    diff.set_defaults(call=_diff)


def _checks(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.catalogue.tables import checks_table, of_every_check

    if options.lint:
        return _lint(options.reach)
    if options.reach:
        return complain("--reach needs --lint", USAGE)
    try:
        rows = filtered(checks_table(), options, OF_ROWS)
    except NothingFits as unknown:
        return complain(unknown, USAGE)
    if options.json:
        return print_json({"checks": rows})
    always = of_every_check()
    for row in rows:
        print(f"{row['id']}  ({row['role']})  {row['sentence']}")
        _print_invariants(each for each in row["invariants"] if each["id"] not in always)
    print("every check")
    _print_invariants(each for each in rows[0]["invariants"] if each["id"] in always)
    return OK


OF_ROWS: Final[Fields] = {"family": lambda row: [family(row["id"])], "role": lambda row: [row["role"]]}
"""The options that filter checks and requirements."""


def _print_invariants(rows: Iterable[Mapping[str, Any]]) -> None:
    for each in rows:
        print(f"    {each['grade']:<6} {each['id']}: {each['statement']}  [{', '.join(each['requirements'])}]")


def _lint(reach: bool) -> int:
    from kipcheck.conformance.engine.catalogue import lint

    found = lint.lint_input()
    troubles = [*lint.troubles(found), *lint.words(found), *(_unreached(found.invariants) if reach else ())]
    for each in troubles:
        complain(each, FAILED)
    print(f"{len(found.checks)} checks, {len(found.invariants)} invariants, {len(found.requirements)} requirements")
    for role, grade, covered, there in lint.coverage_counts(found):
        idle = "" if role in lint.checked_roles() else "  (no check tests this role)"
        print(f"{role:<13} {grade:<6} {covered:>3} of {there:>3} covered{idle}")
    return FAILED if troubles else OK


def _unreached(invariants: Iterable["Invariant"]) -> Iterator[str]:
    from kipcheck.conformance.engine.reach import record

    sources = record.sources()
    searched = record.searched(sources, invariants)
    yield from record.troubles(sources.places, searched, record.Reached.read(), record.excused())


def _requirements(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.values.requirement import requirements
    from kipcheck.conformance.engine.catalogue.tables import requirement, requirements_table, totals

    try:
        answered = _answered(options.out or Path("kipcheck-out"))
    except (OSError, ValueError) as wrong:
        return complain(wrong, USAGE)
    if answered is None and options.out is not None:
        from kipcheck.conformance.core.ledger import missing

        return complain(missing(options.out), USAGE)
    if options.strength:
        return _strength(options)
    options.out = options.out or Path("kipcheck-out")
    rows: list[Row]
    if options.id:
        try:
            rows = [requirement(options.id)]
        except LookupError as unknown:
            return complain(unknown.args[0], USAGE)
    else:
        try:
            rows = filtered(requirements_table(), options, OF_ROWS)
        except NothingFits as unknown:
            return complain(unknown, USAGE)
    if options.json:
        named = [row if answered is None else {**row, "answered": answered.get(row["id"])} for row in rows]
        return print_json({"requirements": named})
    for row in rows:
        covered = _checks_of(row)
        real = "" if answered is None else f"{answered.get(row['id'], 'not reached'):<14} "
        print(f"{row['id']:<8} {row['grade']:<6} {row['edition']:<8} {row['role']:<13} {real}{covered}{_lacking(row)}")
        if options.id:
            print(f"\n{row['clause']}\n{row['text']}")
            for part in row["parts"]:
                print(f"    part: {part['text']}  [{', '.join(part['invariants'])}]")
            for each in row["tests"]:
                print(f"    test: {each}")
            if row["means"]:
                print(f"\nMeaning: {row['means']}")
            print(f"\nHow to fix a violation: {row['fix']}\n\ninvariants: {', '.join(row['invariants']) or 'none'}")
            print(f"releases: {row['releases'] or 'none, a draft'}")
    if not options.id:
        own = sum(bool(row["tests"]) for row in rows)
        covered = f"{sum(bool(row['checks']) for row in rows)} of {len(rows)} covered"
        sides = ", ".join(f"{by} {covered} of {there}" for by, covered, there in totals())
        parts = f"; in parts: {sides}" if len(rows) == len(requirements()) else ""
        print(f"{covered}, {own} more by tests of kipcheck{parts}")
        if answered is not None:
            print(f"{sum(word == REAL for word in answered.values())} answered by a real target in {options.out}")
    return OK


def _strength(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.strength.requirement_strength import strengths, table

    rows = strengths(None if options.out is None else asked_in(options.out))
    known = [each.requirement.id for each in rows]
    if options.id:
        if options.id not in known:
            return complain(f"unknown requirement {options.id!r}{hint(options.id, known)}", USAGE)
        rows = [each for each in rows if each.requirement.id == options.id]
    if options.json:
        return print_json({"strength": [each.plain for each in rows]})
    for each in rows:
        print(*each.lines(), sep="\n")
    if not options.id:
        print(*table(rows), sep="\n")
    return OK


def asked_in(out: Path) -> dict[str, list[str]]:
    """Requirement -> the real targets whose answers were judged by it in a run."""
    from kipcheck.conformance.core.ledger import NAME, read
    from kipcheck.reports.summary import Summary

    reached = Summary(read(out if out.is_file() else out / NAME)).reached
    return {each.id: [*each.asked] for each in reached if each.asked}


def _checks_of(row: Mapping[str, Any]) -> str:
    from kipcheck.conformance.protocols.checks import CHECKS

    if len(row["checks"]) == len(CHECKS):
        return "every check"
    return ", ".join(row["checks"]) or ("tests of kipcheck" if row["tests"] else "not covered yet")


REAL, OWN = "real", "own"


def _lacking(row: Mapping[str, Any]) -> str:
    """For which of drafts and releases it is not covered, or not in all parts."""
    parts = len(row["parts"]) or 1
    lacking = [f"{by} {n} of {parts} parts" if n else f"not {by}" for by, n in row["covered"].items() if n < parts]
    return f"  ({', '.join(lacking)})" if lacking and row["checks"] else ""


def _answered(out: Path) -> dict[str, str] | None:
    """Requirement -> who answered it in a run: a real target, or only kipcheck's own; None without a run in ``out``."""
    from kipcheck.conformance.core.ledger import NAME, read
    from kipcheck.reports.summary import Summary

    try:
        found = Summary(read(out if out.is_file() else out / NAME))
    except FileNotFoundError:
        return None
    return {each.id: REAL if each.real else OWN for each in found.reached}


def _targets(options: argparse.Namespace) -> int:
    from kipcheck.conformance.targets.registry import targets_table

    rows = targets_table()
    if options.json:
        return print_json({"targets": rows})
    print_table(("target", "version", "roles", ""), _folded(rows))
    return OK


def _folded(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Yields a line for each target, and one line for all releases of a Kafka artifact, which may be hundreds."""

    def folded(row: Mapping[str, Any]) -> tuple[str, str, str]:
        artifact = row["name"].rpartition(":")[0]
        name = f"{artifact}:VERSION" if artifact else row["name"]
        return name, ", ".join(row["roles"]), "available" if row["available"] else row["why"]

    for (name, roles, state), group in groupby(rows, folded):
        versions = [row["version"] or "-" for row in group]
        span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}, {len(versions)} releases"
        yield name, span, roles, state


def _editions(options: argparse.Namespace) -> int:
    from kipcheck.conformance.wire import editions

    if options.json:
        return print_json(editions.editions_table())
    print(editions.text())
    return OK


def _diff(options: argparse.Namespace) -> int:
    import json

    from kipcheck.conformance.core.values.edition import edition
    from kipcheck.conformance.wire import diff

    try:
        found = diff.diff(edition(options.a), edition(options.b))
    except LookupError as error:
        return complain(error.args[0], USAGE)
    print(json.dumps(found.as_json()) if options.json else found.text())
    return FAILED if found.misreads else OK
