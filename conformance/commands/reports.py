"""What a run found, told again: report, merge."""

import argparse
from pathlib import Path

from conformance.commands.declared import EXIT_CODES, USAGE, Commands, complain

FORMS = ("text", "html", "junit", "json", "markdown", "sarif")
"""As ``reports.FORMS``; a test holds them together."""


def add(commands: Commands) -> None:
    told = commands.add(
        "report", _report, "the ledger of a run or a campaign, rendered again; exits as that did", EXIT_CODES
    )
    told.add_argument(
        "folder", nargs="?", type=Path, default=Path("kipcheck-out"), metavar="DIR", help="the --out of one"
    )
    told.add_argument(
        "--form", choices=(*FORMS, "all"), default="text",
        help="to standard output; all: every file of the run, anew, beside its ledger (default text)",
    )  # fmt: skip
    about = (
        "one ledger and one report of several: the parts of a run, runs of different targets or checks, campaigns with "
        "other seeds"
    )
    merged = commands.add("merge", _merge, about, EXIT_CODES)
    merged.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="the --out of one of them")
    merged.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="another folder, for what they are together"
    )


def _report(options: argparse.Namespace) -> int:
    import reports
    from conformance.core import exits
    from conformance.core.ledger import NAME, missing, read

    path = options.folder if options.folder.is_file() else options.folder / NAME
    try:
        if options.form == "all":
            print(reports.write(path), end="")
        else:
            print(reports.render(path, options.form), end="")
        footer = read(path).footer
    except FileNotFoundError:
        return complain(missing(options.folder), USAGE)
    except (OSError, ValueError) as wrong:
        return complain(wrong, USAGE)
    return exits.UNDECIDED if footer is None else int(footer["exit"])


def _merge(options: argparse.Namespace) -> int:
    import reports
    from conformance.merging import Unlike, merge

    try:
        if options.out.resolve() not in {each.resolve() for each in options.folders}:
            reports.forget(options.out)
        found = merge(options.folders, options.out)
        print(reports.write(found.ledger), end="")
    except (Unlike, OSError) as wrong:
        return complain(wrong, USAGE)
    return found.exit_code
