"""The commands ``report`` and ``merge``."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from kipcheck.conformance.cli import options as common

FORMS = ("brief", "text", "html", "junit", "json", "markdown", "sarif", "badge")
"""The same as ``reports.FORMS``; a test compares them. A matrix has fewer."""

HISTORY = "history"
"""The form of several runs together."""
SCHEMA_ERRORS = (LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""Errors that a file raises whose keys are missing or have other types."""


def add(commands: common.Commands) -> None:
    report = commands.add(
        "report",
        _report,
        "render the results of a run, a campaign or a matrix again; the exit code is that of the original",
        common.EXIT_CODES,
    )
    about = "the --out of one, or its ledger.jsonl or matrix.json; if both are there, the newer one"
    common.add_out(report, about, "folder")
    report.add_argument(
        "more", nargs="*", type=Path, default=[], metavar="DIR", help=f"with --form {HISTORY}: further runs"
    )
    report.add_argument(
        "--form", choices=(*FORMS, HISTORY, "all"), default="brief",
        help="print this form; all: write every report file again, beside the data (default brief, at most 40 lines). "
        "badge: the JSON that badge services read; history: several runs by cause: new, open, fixed. A matrix has "
        "text, html, markdown and json",
    )  # fmt: skip
    report.add_argument("--json", action="store_const", const="json", dest="form", help="--form json")
    report.add_argument(
        "--details", action="store_const", const="text", dest="form", help="every failure in full: --form text"
    )
    report.add_argument(
        "--spark", action="store_true",
        help="query a campaign's ledger with Spark SQL: coverage growth, verdicts, time to find, flakiness, clashes",
    )  # fmt: skip
    cluster = report.add_mutually_exclusive_group()
    cluster.add_argument("--master", metavar="URL", help="where --spark runs (default this machine)")
    cluster.add_argument("--remote", metavar="sc://HOST:PORT", help="the Spark Connect server where --spark runs")
    about = (
        "merge several ledgers and reports: the parts of a run, runs of different targets or checks, campaigns with "
        "other seeds"
    )
    merged = commands.add("merge", _merge, about, common.EXIT_CODES)
    merged.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="the --out of one of them")
    merged.add_argument("--out", type=Path, required=True, metavar="DIR", help="another folder, for the merged results")
    common.add_json(merged)


def _report(options: argparse.Namespace) -> int:
    if options.spark:
        return _by_spark(options)
    if options.master or options.remote:
        return common.complain(f"--{'master' if options.master else 'remote'} needs --spark", common.USAGE)
    from kipcheck import reports
    from kipcheck.conformance.core.files.output_folder import Unusable
    from kipcheck.conformance.core.ledger import NAME, missing, read
    from kipcheck.conformance.core.values import exits

    folders = [options.folder, *options.more]
    if len(folders) > 1 and options.form != HISTORY:
        return common.complain(f"several runs are reported together by --form {HISTORY} only", common.USAGE)
    if options.form != HISTORY and (matrix := _matrix(options.folder)) is not None:
        return _of_matrix(matrix, options.form)
    paths = [each if each.is_file() else each / NAME for each in folders]
    path = paths[0]
    try:
        if options.form == HISTORY:
            return _history(paths)
        if options.form == "all":
            reports.write(path)
        form = "brief" if options.form == "all" else options.form
        print_report(path) if form == "brief" else print(reports.render(path, form), end="")
        footer = read(path).footer
    except FileNotFoundError:
        absent = (folder for folder, path in zip(folders, paths, strict=True) if not path.is_file())
        return common.complain(missing(next(absent, options.folder)), common.USAGE)
    except (OSError, ValueError, Unusable) as wrong:
        return common.complain(wrong, common.USAGE)
    except SCHEMA_ERRORS as wrong:
        return common.complain(
            f"{path} cannot be rendered, because a line does not match the schema: {wrong!r}", common.USAGE
        )
    return exits.UNDECIDED if footer is None else footer.exit


def _history(paths: list[Path]) -> int:
    """Prints several runs by cause; the exit code is that of the newest. Errors: as ``reports.history_of``."""
    from kipcheck import reports
    from kipcheck.conformance.core.ledger import read
    from kipcheck.conformance.core.values import exits

    print(reports.history_of(paths), end="")
    newest = max(map(read, paths), key=lambda each: each.header.begun or "")
    return exits.UNDECIDED if newest.footer is None else newest.footer.exit


def _matrix(folder: Path) -> Path | None:
    """Returns the path of the matrix in a folder; None if it has none, or a ledger that was written later."""
    from kipcheck.conformance.core.ledger import NAME
    from kipcheck.reports import matrix

    if folder.is_file():
        return folder if folder.suffix == Path(matrix.NAME).suffix else None
    found, ledger = folder / matrix.NAME, folder / NAME
    if not found.is_file():
        return None
    later = ledger.is_file() and ledger.stat().st_mtime_ns > found.stat().st_mtime_ns
    return None if later else found


def print_report(ledger: Path, as_json: bool = False) -> None:
    """Prints the JSON form, or the brief one: on a terminal in its width, with colours unless NO_COLOR is set."""
    from kipcheck import reports
    from kipcheck.reports import terminal

    if as_json or not common.is_terminal(sys.stdout):
        common.print_harmless(reports.render(ledger, "json" if as_json else "brief"))
        return
    text = terminal.render(reports.loaded(ledger), shutil.get_terminal_size().columns)
    print(text if os.environ.get("NO_COLOR") else terminal.paint(text), end="", flush=True)


def print_written_report(ledger: Path, brief: str, as_json: bool = False) -> None:
    """Prints the JSON or the brief form of a run that has just ended. ``brief``: that for a stream, not a terminal."""
    if as_json or common.is_terminal(sys.stdout):
        print_report(ledger, as_json)
    else:
        common.print_harmless(brief)


def _of_matrix(path: Path, form: str) -> int:
    from kipcheck.conformance.core.files.output_folder import Unusable
    from kipcheck.reports import matrix

    try:
        print(matrix.write(path) if form == "all" else matrix.render(path, "text" if form == "brief" else form), end="")
        return matrix.read(path).exit
    except (LookupError, OSError, ValueError, Unusable) as wrong:
        return common.complain(wrong, common.USAGE)
    except SCHEMA_ERRORS as wrong:
        return common.complain(
            f"{path} cannot be rendered, because it does not match the schema: {wrong!r}", common.USAGE
        )


def _by_spark(options: argparse.Namespace) -> int:
    from kipcheck.conformance.campaign.executors import preflight

    # The answers of Spark are tables, for which the brief form has no place.
    if options.form not in ("brief", "text", "json"):
        return common.complain(f"--spark supports --form text and json, not {options.form}", common.USAGE)
    try:
        preflight.libraries(remote=options.remote is not None)
        from kipcheck.conformance.campaign.report.analysis import QueryFailed, analyse  # its libraries may be missing
    except preflight.Unready as why:
        return common.complain(why, common.USAGE)
    try:
        answers = analyse(options.folder, options.master, options.remote)
    except (preflight.Unready, QueryFailed, OSError) as why:
        return common.complain(why, common.USAGE)
    if options.form == "json":
        return common.print_json({name: each.plain for name, each in answers.items()})
    print("\n\n".join(each.text() for each in answers.values()))
    return common.OK


def _merge(options: argparse.Namespace) -> int:
    from kipcheck import reports
    from kipcheck.conformance.core.files.output_folder import Unusable
    from kipcheck.conformance.engine.ledger.merge import Unlike, merge

    try:
        found = merge(options.folders, options.out)
        reports.write(found.ledger)
        print_report(found.ledger, options.json)
    except (Unlike, Unusable, OSError) as wrong:
        return common.complain(wrong, common.USAGE)
    except SCHEMA_ERRORS as wrong:
        return common.complain(f"a ledger does not match its schema: {wrong!r}", common.USAGE)
    return found.exit_code
