"""The command ``corpus``: inspects, merges and exports corpora, and writes seeds for fuzzers."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kipcheck.conformance.cli.options import (
    FAILED,
    NOT_STARTED,
    OK,
    USAGE,
    Call,
    Commands,
    Parser,
    add_out,
    complain,
    edition_name,
    positive,
    print_json,
    target_name,
)
from kipcheck.conformance.core.files.unreadable_file import unreadable, unwritable

if TYPE_CHECKING:
    from kipcheck.conformance.campaign.corpus.entries import Snapshot
    from kipcheck.conformance.campaign.corpus.snapshots import SnapshotStore
    from kipcheck.conformance.campaign.rows import Kept

ABOUT = "manage the corpora of campaigns, and write inputs for other fuzzers"
SEEDS = "write one file for each input: golden, drawn and damaged bytes, and a dictionary"
OF_SEEDS = """\
DIR/MESSAGE/vN/NAME    the bytes of one input; its name is a digest of them, so equal inputs have equal names
DIR/kipcheck.dict      words of the protocol, for afl++ (-x) and libFuzzer (-dict=)
DIR/index.tsv          the origin of each file

exit codes: 0 done, 2 usage"""
INFO = "show the size of a corpus, by check, and its damaged files"
MERGE = "merge the corpora of several campaigns, without redundant entries"
MINIMISE = "reduce a corpus to few and short entries with the same coverage, without undeclared ones"
OF_MINIMISE = """\
With --target, each entry is run again with that target, and its current coverage counts: what was new to an earlier
kipcheck may be covered already.

exit codes: 0 done, 2 usage, 3 the target did not start"""
EXPORT = "write one file for each input, as a seed corpus for other fuzzers"
OF_EXPORT = """\
OUT/MESSAGE/vN/NAME      for codecs: the bytes of one input; its name is a digest of them
OUT/CHECK/NAME.json      for machines, assignors and clients: one conversation, as in failures/ID.json
OUT/index.tsv            the check and the corpus entry of each file

exit codes: 0 done, 2 usage"""
PROMOTE = "make a regression test of a failure that a campaign or a run found"
OF_PROMOTE = """\
Writes DIR/ID.json with the least case, the invariant that it violates, and a note for reviewers. kipcheck replay DIR
runs all of them; --target T with another target. In a checkout of kipcheck, DIR is golden/vectors/regressions, and
python -m kipcheck.golden.make --lock adds it to the lock.

exit codes: 0 done, 1 kipcheck's own models do not pass the case, or cannot judge it, 2 usage"""
DIR = "a campaign's --out, or a folder that contains only its corpus/"
DONE = "exit codes: 0 done, 2 usage"


def add(commands: Commands) -> None:
    parts = commands.add("corpus", _info, ABOUT).add_subparsers(
        metavar="info|merge|minimise|export|promote|seeds", required=True
    )

    def part(name: str, call: Call, about: str, epilog: str = DONE) -> Parser:
        made: Parser = parts.add_parser(
            name, help=about, description=about, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        made.set_defaults(call=_with_errors(call))
        return made

    info = part("info", _info, INFO)
    merge = part("merge", _merge, MERGE)
    merge.add_argument("folders", nargs="+", type=Path, metavar="DIR", help=DIR)
    merge.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for the merged corpus")
    minimise = part("minimise", _minimise, MINIMISE, OF_MINIMISE)
    minimise.add_argument(
        "--target", type=target_name, metavar="T", help="run every entry again with this target, for example reference"
    )
    about = "another folder for the result; default DIR itself, unless DIR has a ledger that refers to its corpus"
    minimise.add_argument("--out", type=Path, metavar="DIR", help=about)
    export = part("export", _export, EXPORT, OF_EXPORT)
    export.add_argument("--out", type=Path, required=True, metavar="OUT", help="a new folder")
    for each in (info, minimise, export):
        each.add_argument("folder", type=Path, metavar="DIR", help=DIR)
    export.add_argument("--check", action="append", metavar="GLOB", help="default all; may be repeated")
    for each in (info, merge, minimise, export):
        each.add_argument("--json", action="store_true", help="print JSON")

    promote = part("promote", _promote, PROMOTE, OF_PROMOTE)
    promote.add_argument("failure", metavar="ID|FILE", help="failures/ID.json of a campaign, or the ID in its --out")
    promote.add_argument("--to", type=Path, required=True, metavar="DIR", help="the folder of the regression tests")
    promote.add_argument("--note", metavar="TEXT", help="what is special about it; default: what was violated")
    add_out(promote)

    seeds = part("seeds", _seeds, SEEDS, OF_SEEDS)
    seeds.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    seeds.add_argument("--edition", type=edition_name, default="apache", metavar="E", help="default apache")
    seeds.add_argument("--message", action="append", metavar="GLOB", help="default all; may be repeated")
    seeds.add_argument("--seed", type=int, default=0, metavar="N", help="decides the values (default 0)")
    about = "values for each version of a message (default 8)"
    seeds.add_argument("--cases", type=positive, default=8, metavar="N", help=about)


def _with_errors(call: Call) -> Call:
    """Wraps a command so that missing, unreadable and unwritable files become one line on stderr."""

    def guarded(options: argparse.Namespace) -> int:
        from kipcheck.conformance.core.files.output_folder import Unusable

        try:
            return call(options)
        except LookupError as unknown:
            return complain(unknown.args[0], USAGE)
        except Unusable as wrong:
            return complain(wrong, USAGE)
        except BrokenPipeError:
            raise  # the reader of standard output closed it
        except OSError as denied:
            return complain(unwritable(denied, options.out), USAGE)

    return guarded


def _latest_of(folder: Path) -> "tuple[SnapshotStore, Snapshot]":
    """Prints the names of damaged files to stderr. Errors: LookupError."""
    from kipcheck.conformance.campaign.corpus import snapshots

    try:
        shelf = snapshots.snapshot_store(folder)
        latest = shelf.latest()
    except OSError as denied:
        raise LookupError(f"{denied.filename} cannot be read: {denied.strerror}") from None
    for each in shelf.set_aside:
        complain(each, OK)
    return shelf, latest


def _size(entries: "Sequence[Kept]") -> dict[str, int]:
    return {"entries": len(entries), "steps": sum(each.steps for each in entries)}


def _in_words(entries: "Sequence[Kept]") -> str:
    return "{entries:,} entries of {steps:,} steps".format(**_size(entries))


def _info(options: argparse.Namespace) -> int:
    from kipcheck.conformance.campaign.corpus.export import readable

    shelf, latest = _latest_of(options.folder)
    by_check: dict[str, list[Kept]] = {}
    for each in latest.entries:
        by_check.setdefault(each.check, []).append(each)
    stale = sum(not readable(each) for each in latest.entries)
    checks: list[dict[str, Any]] = [
        {"check": check, **_size(entries), "subjects": len({(each.subject, each.version) for each in entries})}
        for check, entries in sorted(by_check.items())
    ]
    if options.json:
        return print_json(
            {
                "digest": latest.digest,
                **_size(latest.entries),
                "keys": len(latest.keys),
                "unreadable": stale,
                "checks": checks,
                "snapshots": [str(each) for each in shelf.files()],
                "damaged": [{"file": str(each.path), "why": each.why} for each in shelf.set_aside],
            }
        )
    print(f"{latest.digest or 'nothing'}: {_in_words(latest.entries)}, {len(latest.keys):,} coverage keys")
    if stale:
        print(f"{stale:,} entries are no longer declared: kipcheck corpus minimise removes them")
    head = {name: name for name in ("check", "entries", "steps", "subjects")}
    width = max((len(check) for check in by_check), default=0)
    for row in (head, *checks) if checks else ():
        print("{check:{width}}  {entries:>8}  {steps:>8}  {subjects:>8}".format(width=width, **row))
    return OK


def _merge(options: argparse.Namespace) -> int:
    from kipcheck.conformance.campaign.corpus import entries as corpus_entries, snapshots
    from kipcheck.conformance.core.files.output_folder import CORPUS, OutputFolder

    OutputFolder(options.out).check(CORPUS)
    found = [_latest_of(folder)[1] for folder in options.folders]
    union = corpus_entries.merged(found)
    path = snapshots.save(options.out, union)
    if options.json:
        given = [
            {"folder": str(folder), **_size(each.entries), "keys": len(each.keys)}
            for folder, each in zip(options.folders, found, strict=True)
        ]
        return print_json({**_written(path, union), "from": given})
    for folder, each in zip(options.folders, found, strict=True):
        print(f"{folder}: {_in_words(each.entries)}, {len(each.keys):,} coverage keys")
    print(f"{path}: {_in_words(union.entries)}, {len(union.keys):,} coverage keys")
    return OK


def _written(path: Path, snapshot: "Snapshot") -> dict[str, Any]:
    return {
        "file": str(path),
        "digest": snapshot.digest,
        **_size(snapshot.entries),
        "keys": len(snapshot.keys),
    }


def _minimise(options: argparse.Namespace) -> int:
    from kipcheck.conformance.campaign.corpus import entries as corpus_entries, snapshots
    from kipcheck.conformance.campaign.corpus.export import readable
    from kipcheck.conformance.campaign.corpus.remeasure import remeasured
    from kipcheck.conformance.campaign.report import row_files
    from kipcheck.conformance.core.files.output_folder import CORPUS, OutputFolder
    from kipcheck.conformance.targets.protocol import Broken, Unavailable, Unstable

    out = options.out or options.folder
    if (out / row_files.NAME).is_dir():
        return complain(f"the ledger of {out} refers to its corpus: name another folder with --out", USAGE)
    OutputFolder(out).check(CORPUS)  # before the entries are run, which may take long
    _, latest = _latest_of(options.folder)
    entries = [each for each in latest.entries if readable(each)]
    least = corpus_entries.Snapshot(tuple(entries), latest.keys)
    if options.target is not None:
        try:
            least = corpus_entries.Snapshot(tuple(remeasured(entries, options.target)))
        except (Unavailable, Broken, Unstable) as down:
            return complain(down, NOT_STARTED)
    least = corpus_entries.merged([least])
    path = snapshots.save(out, least)
    if out == options.folder:
        keep = (f"{snapshots.NAME}/{path.name}", f"{snapshots.NAME}/{snapshots.LATEST}")
        OutputFolder(out).remove(CORPUS, but=keep)
    stale = len(latest.entries) - len(entries)
    if options.json:
        return print_json({**_written(path, least), "before": _size(latest.entries), "unreadable": stale})
    print(f"{_in_words(latest.entries)}, of which {stale:,} are no longer declared")
    print(f"{path}: {_in_words(least.entries)}, {len(least.keys):,} coverage keys")
    return OK


def _export(options: argparse.Namespace) -> int:
    from fnmatch import fnmatchcase

    from kipcheck.conformance.campaign.corpus.export import exported, readable
    from kipcheck.conformance.engine.export import input_files

    _, latest = _latest_of(options.folder)
    globs = options.check or ["*"]
    wanted = [each for each in latest.entries if any(fnmatchcase(each.check, glob) for glob in globs)]
    entries = [each for each in wanted if readable(each)]
    count = input_files.write(options.out, exported(entries))
    stale = len(wanted) - len(entries)
    if options.json:
        return print_json({"out": str(options.out), "inputs": count, "entries": len(entries), "unreadable": stale})
    print(f"{count} inputs in {options.out}, of {len(entries)} entries")
    if stale:
        print(f"{stale} entries are no longer declared and were omitted")
    return OK


def _promote(options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli.stored_failures import failure_file
    from kipcheck.conformance.engine.findings.failures import load
    from kipcheck.golden import regressions

    try:
        filed, _ = load(failure_file(options.failure, options.out))
    except OSError as missing:
        return complain(unreadable(missing), USAGE)
    except ValueError as wrong:
        return complain(wrong, USAGE)
    path = options.to / f"{filed.id}.json"
    if path.exists():
        return complain(f"{path} exists: it is a regression test already", USAGE)
    plain = filed.plain if options.note is None else {**filed.plain, "why": options.note}
    options.to.mkdir(parents=True, exist_ok=True)
    path.write_text(regressions.regression(plain), "utf-8")
    if wrong_lines := [*regressions.check(regressions.read(path))]:
        path.unlink()
        return complain(f"no regression test: {'; '.join(wrong_lines)}", FAILED)
    print(f"{path}: kipcheck replay {options.to} runs it, --target T with another target")
    return OK


def _seeds(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.export import seed_corpus

    count = seed_corpus.write(options.out, options.edition, options.message or ["*"], options.seed, options.cases)
    print(f"{count} inputs in {options.out}")
    return OK
