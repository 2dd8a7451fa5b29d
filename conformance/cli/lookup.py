"""Looking up: checks, requirements, targets, editions."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from kipcheck.conformance.cli.options import FAILED, OK, USAGE, Commands, complain, say_json


def add(commands: Commands) -> None:
    listed = commands.add("checks", _checks, "what is checked, against which requirements")
    listed.add_argument("--json", action="store_true")
    listed.add_argument(
        "--lint", action="store_true", help="is what checks, invariants and requirements say of each other in order?"
    )
    wanted = commands.add("requirements", _requirements, "every normative statement, and the checks that cover it")
    wanted.add_argument("id", nargs="?", metavar="ID", help="one of them, with its clause and text")
    wanted.add_argument("--json", action="store_true")
    there = commands.add("targets", _targets, "what can be tested, and what is there of it")
    there.add_argument("--json", action="store_true")

    texts = commands.add("editions", _editions, "the editions, and which versions each release speaks")
    texts.add_argument("--json", action="store_true")
    about = "what differs, and who can read what of whom; exit 1 where a reader would misread"
    diff = texts.add_subparsers(metavar="[diff A B]").add_parser("diff", help=about, description=about)
    diff.add_argument("a", metavar="A")
    diff.add_argument("b", metavar="B")
    diff.add_argument("--json", action="store_true")
    diff.set_defaults(call=_diff)


def _checks(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.catalogue import checks_table

    if options.lint:
        return _lint()
    rows = checks_table()
    if options.json:
        return say_json({"checks": rows})
    for row in rows:
        print(f"{row['id']}  ({row['role']})  {row['sentence']}")
        for each in row["invariants"]:
            print(f"    {each['grade']:<6} {each['id']}: {each['statement']}  [{', '.join(each['requirements'])}]")
    return OK


def _lint() -> int:
    from kipcheck.conformance.engine import lint

    found = lint.here()
    troubles = list(lint.troubles(found))
    for each in troubles:
        complain(each, FAILED)
    print(f"{len(found.checks)} checks, {len(found.invariants)} invariants, {len(found.requirements)} requirements")
    for role, grade, covered, there in lint.numbers(found):
        idle = "" if role in lint.played() else "  (no check plays this role)"
        print(f"{role:<13} {grade:<6} {covered:>3} of {there:>3} covered{idle}")
    return FAILED if troubles else OK


def _requirements(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.catalogue import requirement, requirements_table

    if options.id:
        try:
            rows = [requirement(options.id)]
        except LookupError as unknown:
            return complain(unknown.args[0], USAGE)
    else:
        rows = requirements_table()
    if options.json:
        return say_json({"requirements": rows})
    for row in rows:
        covered = ", ".join(row["checks"]) or "not covered yet"
        print(f"{row['id']:<8} {row['grade']:<6} {row['edition']:<8} {row['role']:<13} {covered}")
        if options.id:
            print(f"\n{row['clause']}\n{row['text']}")
            if row["means"]:
                print(f"\nIn plain words: {row['means']}")
            print(f"\nHow to mend a breach: {row['fix']}\n\ninvariants: {', '.join(row['invariants']) or 'none'}")
            print(f"releases: {row['releases'] or 'none, a draft'}")
    if not options.id:
        print(f"{sum(bool(row['checks']) for row in rows)} of {len(rows)} covered")
    return OK


def _targets(options: argparse.Namespace) -> int:
    from kipcheck.conformance.targets.registry import targets_table

    rows = targets_table()
    if options.json:
        return say_json({"targets": rows})
    lines = [("target", "version", "roles", ""), *_folded(rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for line in lines:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]).rstrip())
    return OK


def _folded(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """A line for each target; one for all releases of an artifact of Kafka's, of which there may be hundreds."""

    def said(row: Mapping[str, Any]) -> tuple[str, str, str]:
        artifact = row["name"].rpartition(":")[0]
        name = f"{artifact}:VERSION" if artifact else row["name"]
        return name, ", ".join(row["roles"]), "available" if row["available"] else row["why"]

    for (name, roles, state), group in groupby(rows, said):
        versions = [row["version"] or "-" for row in group]
        span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}, {len(versions)} releases"
        yield name, span, roles, state


def _editions(options: argparse.Namespace) -> int:
    from kipcheck.conformance.wire import editions

    if options.json:
        return say_json(editions.editions_table())
    print(editions.text())
    return OK


def _diff(options: argparse.Namespace) -> int:
    import json

    from kipcheck.conformance.core.edition import edition
    from kipcheck.conformance.wire import diff

    try:
        found = diff.diff(edition(options.a), edition(options.b))
    except LookupError as error:
        return complain(error.args[0], USAGE)
    print(json.dumps(found.as_json()) if options.json else found.text())
    return FAILED if found.misreads else OK
