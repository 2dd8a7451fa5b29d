"""The command ``mutate``: changes a client in small ways, and lists which changes the checks find."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kipcheck.conformance.cli import options as common
from kipcheck.conformance.core.files.unreadable_file import unwritable

if TYPE_CHECKING:
    from kipcheck.conformance.recall.copies import Copies
    from kipcheck.conformance.recall.mutation import Plan, Row

ABOUT = "change a client in small ways, one at a time, and list which changes the checks find"
EPILOG = """\
exit codes: 0 done, 2 usage, 3 the client cannot be installed or run unchanged, 6 interrupted

The installed client stays as it is: the changes are made in a copy. What is measured is kept in --out, and a run that
was interrupted goes on there."""


def add(commands: common.Commands) -> None:
    made = commands.add("mutate", _mutate, ABOUT, EPILOG)
    made.add_argument(
        "--target",
        type=common.target_name,
        required=True,
        metavar="T",
        help="such as kafka-python, client:aiokafka or client:sarama@1.61.1",
    )
    made.add_argument("--part", metavar="P", help="wire, assign, member, client or coordinator; default all of it")
    made.add_argument(
        "--n", type=common.positive, metavar="N", help="changes to each part (default 100), or mistakes (all)"
    )
    made.add_argument("--seed", type=int, default=0, metavar="S", help="of the choice, and of the cases")
    made.add_argument("--only", default="", metavar="N|ID", help="one change: its number from 1, or its id")
    made.add_argument("--out", type=Path, metavar="DIR", help="default: mutate in the cache of kipcheck")
    common.add_json(made)
    made.add_argument("--record", action="store_true", help="write totals and rows to conformance/recall/mutation.json")
    made.add_argument("--workers", type=common.positive, default=1, metavar="N", help="changes at once (default 1)")
    made.add_argument(
        "--mistakes", action="store_true", help="the mistakes of conformance/recall/mistakes.toml, not random changes"
    )


def _mutate(options: argparse.Namespace) -> int:
    from kipcheck.conformance.recall import copies as every, mutation
    from kipcheck.conformance.recall.bugs import InvalidEntry
    from kipcheck.conformance.targets.protocol import Unavailable
    from kipcheck.conformance.targets.toolchains.maven import cache

    rows: list[Row] = []
    try:
        copies = every.copies(options.target)
        out = options.out or cache() / "mutate"
        for part in _parts(options):
            plan = _plan(options, copies, part, out)
            if not options.json:
                common.print_harmless(f"{copies.target} {part}: {len(plan.changes)} changes")
            mine = _measured(options, plan)
            rows += mine
            if options.record and mine:
                common.complain(f"recorded in {mutation.record(mine, plan)}", common.OK)
    except (LookupError, InvalidEntry) as wrong:
        return common.complain(wrong.args[0], common.USAGE)
    except OSError as denied:
        return common.complain(unwritable(denied, options.out), common.USAGE)
    except Unavailable as missing:
        return common.complain(missing, common.NOT_STARTED)
    except KeyboardInterrupt:
        return common.complain("interrupted; the same command goes on with what is missing", common.UNDECIDED)
    if options.json:
        parts = {part: mutation.totals(each for each in rows if each.part == part) for part in _parts(options)}
        common.print_json({"target": copies.target, "totals": parts, "rows": rows})
    else:
        common.print_harmless("\n".join(_summary(rows)))
    return common.OK


def _parts(options: argparse.Namespace) -> Sequence[str]:
    """Errors: LookupError for a part that the target does not have."""
    from kipcheck.conformance.recall.copies import TARGETS

    parts = TARGETS[options.target.partition("@")[0]]
    if options.part is None:
        return parts
    if options.part not in parts:
        raise LookupError(f"{options.target} has no part {options.part!r}: use {' or '.join(parts)}")
    return (options.part,)


def _plan(options: argparse.Namespace, copies: "Copies", part: str, out: Path) -> "Plan":
    from kipcheck.conformance.recall import mutation
    from kipcheck.conformance.recall.copies import PARTS
    from kipcheck.conformance.recall.reached import reached
    from kipcheck.conformance.recall.sources import OF_FACTS, digest

    lines = reached(copies.target, PARTS[part], digest(OF_FACTS, with_known=True))
    return mutation.plan(copies, part, options.seed, options.n, out, lines, options.mistakes)


def _measured(options: argparse.Namespace, plan: "Plan") -> "list[Row]":
    from kipcheck.conformance.recall import mutation

    rows = []
    for row in mutation.results(plan, options.workers, options.only):
        rows.append(row)
        if not options.json:
            found = row.measured
            by = ": ".join(filter(None, found.by)) or found.why
            common.print_harmless(f"{row.result:<10}  {row.about}" + (f"\n            {by}" if by else ""))
    return rows


def _summary(rows: "Sequence[Row]") -> Iterator[str]:
    """The survivors, the number of each reason, and the score."""
    from kipcheck.conformance.recall import mutation
    from kipcheck.conformance.recall.why import WHYS

    for row in rows:
        if row.result == "survived":
            yield from ("", f"{row.about}  survived: {row.measured.why}", *_nearest(row), row.diff.rstrip("\n"))
    counts = mutation.totals(rows)["why"]
    yield ""
    yield from (f"{counts[why]:>4} {why}: {about}" for why, about in WHYS.items() if counts[why])
    yield mutation.score(rows)


def _nearest(row: "Row") -> Iterator[str]:
    found, near = row.measured, row.measured.nearest
    yield (
        f"  {found.reached} of {found.cases} cases ran the line; the client sent something else in {found.differing}; "
        f"a verdict changed in {found.doubted}"
    )
    if found.noticed:
        yield f"  the run ended otherwise than that of the unchanged client: {found.noticed}"
    if found.unsteady:
        yield f"  {', '.join(found.unsteady)} failed in a case that ran beside others, and not again alone"
    if near:
        yield f"  nearest: case {near['case']}: {near['steps']}"
        if "check" in near:
            about = f"--check {near['check']} --message {near['subject']} --seed {row.seed}"
            yield f"  kipcheck run --target {row.target} {about}"
