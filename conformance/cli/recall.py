"""The command ``recall``: which released bugs the ordinary checks find."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kipcheck.conformance.cli import options as common
from kipcheck.conformance.core.values.untrusted_text import one_line

if TYPE_CHECKING:
    from kipcheck.conformance.recall.bugs import Bug
    from kipcheck.conformance.recall.measure import Budget, Measured
    from kipcheck.conformance.recall.runs import Job

ABOUT = "run the checks against released bugs, and against the releases that fixed them, and print which are found"
EPILOG: Final = """\
Each bug is run with the checks that judge what it breaks, which know of no bug, on the affected and the fixed release,
with the default cases of seeds 0 to 2; where these miss it, with those of further seeds, within the budget. It is found
if the affected release fails in a way that the entry counts, and the fixed one does not. Runs are kept in DIR: the same
command continues after an interrupt, and runs nothing twice as long as the sources of kipcheck are the same.

exit codes: 0 done, 1 a total is below recall/floor.toml, or a false alarm is not explained, 2 usage or an
invalid entry, 3 no release could be installed"""
WORST: Final = ("false alarm", "missed", "undecided", "skipped", "found with budget", "found")
BUDGET: Final = "5x"


def add(commands: common.Commands) -> None:
    recall = commands.add("recall", _recall, ABOUT, EPILOG)
    recall.add_argument("--id", action="append", metavar="GLOB", help="only these bugs; default all; may be repeated")
    recall.add_argument("--kind", action="append", metavar="K", help="only bugs of this kind; may be repeated")
    recall.add_argument("--seeds", type=common.positive, default=None, metavar="N", help="seeds 0 to N-1 (default 3)")
    recall.add_argument(
        "--budget",
        type=_budget,
        metavar="TIME|Nx",
        help=f"where the default cases miss a bug: up to N times the default cases (default {BUDGET}; 1x: no more), or "
        "a time such as 10m for each bug, within which they are run",
    )
    recall.add_argument(
        "--record",
        action="store_true",
        help="write the results into the entries, results.json and the floor; with fewer seeds than a recorded result "
        "had, that one stays",
    )
    recall.add_argument("--list", action="store_true", help="print the entries, and run nothing")
    common.add_json(recall)
    recall.add_argument("--out", type=Path, metavar="DIR", help="where runs are kept (default: in kipcheck's cache)")
    recall.add_argument(
        "--why", action="store_true", help="count why bugs are missed, by two or three more runs of each"
    )


def _budget(text: str) -> tuple[float | None, float | None]:
    """How many times the default cases, and seconds; None: the default."""
    if times := re.fullmatch(r"([1-9]\d*)x", text, re.ASCII):
        return float(times[1]), None
    try:
        return None, common.duration(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"invalid budget {text!r}: use 5x, 90s, 5m or 8h") from None


def _recall(options: argparse.Namespace) -> int:
    from kipcheck.conformance.recall.bugs import InvalidEntry

    try:
        chosen = _chosen(options)
        return _listed(chosen, options.json) if options.list else _run(chosen, options)
    except (InvalidEntry, LookupError) as wrong:
        return common.complain(wrong.args[0], common.USAGE)
    except KeyboardInterrupt:
        return common.complain("interrupted: the same command continues with what is missing", common.INTERRUPTED)
    except OSError as denied:
        return common.complain(f"{denied.filename or options.out}: {denied.strerror}", common.USAGE)


def _chosen(options: argparse.Namespace) -> list["Bug"]:
    """Errors: LookupError for a glob or a kind without a bug; ``InvalidEntry``."""
    from kipcheck.conformance.core.values.nearest import hint
    from kipcheck.conformance.recall.bugs import KINDS, bugs

    entered = bugs()
    for glob in options.id or ():
        if not any(fnmatchcase(id, glob) for id in entered):
            near = hint(glob, entered) or "; kipcheck recall --list prints all"
            raise LookupError(f"--id: no bug matches {glob!r}{near}")
    if unknown := [each for each in options.kind or () if each not in KINDS]:
        raise LookupError(f"--kind: unknown kind {', '.join(unknown)}: use {', '.join(KINDS)}")
    found = [
        bug
        for id, bug in entered.items()
        if any(fnmatchcase(id, glob) for glob in options.id or ("*",)) and bug.kind in (options.kind or KINDS)
    ]
    if not found:
        raise LookupError("no bug is selected: kipcheck recall --list prints all")
    return found


def _listed(chosen: Sequence["Bug"], as_json: bool) -> int:
    if as_json:
        return common.print_json({"bugs": [_plain(each) for each in chosen]})
    head = "bug", "kind", "releases", "role", "", "first", "today"
    common.print_table(
        head,
        (
            (bug.id, bug.kind, f"{bug.affected} -> {bug.fixed}", bug.role.value, "guard" if bug.is_guard else "",
             bug.first or "-", bug.today or "-")
            for bug in chosen
        ),
    )  # fmt: skip
    print(f"{len(chosen)} bugs; nothing was run")
    return common.OK


def _plain(bug: "Bug") -> dict[str, object]:
    return {
        "id": bug.id, "link": bug.link, "observed": bug.observed, "affected": bug.affected, "fixed": bug.fixed,
        "edition": bug.edition, "role": bug.role.value, "kind": bug.kind, "requirements": [*bug.requirements],
        "counts": bug.counts, "guard": bug.is_guard, "first": bug.first, "today": bug.today, "explained": bug.explained,
    }  # fmt: skip


def _run(chosen: Sequence["Bug"], options: argparse.Namespace) -> int:
    from kipcheck.conformance.recall import floor, measure, missed_bug, record, runs
    from kipcheck.conformance.recall.bugs import bugs, folder

    for bug in chosen:
        measure.judging_checks(bug)  # an invalid entry is an error before anything runs
    times, seconds = options.budget or (None, None)
    budget = measure.Budget(times or measure.TIMES, seconds)
    measured: dict[str, Measured] = {}
    for number, bug in enumerate(chosen, 1):
        begins = _progress(f"{number}/{len(chosen)} {bug.id}")
        runner = runs.KeptRuns(options.out or runs.default_folder(), begins)
        more = (missed_bug.Explainer(runner.folder, begins),) if options.why else ()
        measured[bug.id] = measure.measure(bug, options.seeds or measure.SEEDS, budget, runner, *more)
        print(f"{number}/{len(chosen)} {bug.id}: {measured[bug.id].result}", file=sys.stderr, flush=True)
        if options.record:
            record.record([measured[bug.id]])
    unexplained = [bug for bug in chosen if measured[bug.id].result == "false alarm"]
    fallen = floor.below(floor.totals(bugs().values(), measured))
    if options.json:
        common.print_json({"bugs": [measured[bug.id].plain for bug in chosen], "below": fallen})
    else:
        _print(chosen, measured, budget)
    for line in fallen:
        common.complain(f"a total is below {folder() / floor.FLOOR}: {line}", common.FAILED)
    for bug in unexplained:
        about = f"{bug.fixed} fails in each way in which {bug.affected} fails and that counts"
        common.complain(f"{bug.id}: {about}: read the failures, and narrow counts or write explained", common.FAILED)
    if all(each.result == "skipped" for each in measured.values()):
        return common.complain("no release could be installed", common.NOT_STARTED)
    return common.FAILED if fallen or unexplained else common.OK


def _progress(about: str) -> Callable[["Job | str"], None]:
    def begins(job: "Job | str") -> None:
        what = job if isinstance(job, str) else " ".join(job.words)
        print(one_line(f"{about}: {what}"), file=sys.stderr, flush=True)

    return begins


def _print(chosen: Sequence["Bug"], measured: dict[str, "Measured"], budget: "Budget") -> None:
    """The worst results first."""
    order = sorted(chosen, key=lambda bug: (WORST.index(measured[bug.id].result), not measured[bug.id].alarms))
    for bug in order:
        for line in _lines(bug, measured[bug.id]):
            common.print_harmless(one_line(line))
    counted = ((word, sum(each.result == word for each in measured.values())) for word in reversed(WORST))
    print(f"{len(chosen)} bugs: {', '.join(f'{number} {word}' for word, number in counted if number)}")


def _lines(bug: "Bug", found: "Measured") -> Iterator[str]:
    guard = ", guard" if bug.is_guard else ""
    yield f"{found.result.upper():<12} {bug.id}  {bug.affected} -> {bug.fixed}  ({bug.kind}{guard})"
    yield f"    {bug.observed}"
    if found.seeds:
        seeds = ", ".join(
            f"seed {seed}: {cases} cases, {cpu_s:g} s"
            for seed, cases, cpu_s in zip(found.seeds, found.cases, found.cpu_s, strict=True)
        )
        shape = f" ({', '.join(found.shape)})" if found.shape else ""
        failure = f"{found.grade} {found.invariant}{shape} on {found.subject}"
        yield f"    {failure}, by {len(found.seeds)} of {found.of_seeds} seeds; {seeds}"
        yield from (f"      {step}" for step in found.least)
    yield from (f"    and {each}" for each in found.also)
    if found.reason:
        yield f"    why {found.result}: {found.reason}"
    if found.why:
        yield f"    why missed: {found.why}"
    if found.budget:
        yield f"    budget: {found.budget} more runs"
    explained = f", explained: {bug.explained}" if bug.explained else ""
    yield from (f"    the fixed release fails: {each}{explained}" for each in found.alarms)
    yield from (f"    {each}" for each in found.remarks)
    if found.result != "found":
        yield f"    {bug.link}"
