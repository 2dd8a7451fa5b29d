"""What is new in a run or a campaign: triage."""

import argparse
from pathlib import Path

from kipcheck.conformance.cli.options import FAILED, OK, USAGE, Commands, complain, say_json

ABOUT = "the distinct failures of a campaign or a run: new, known, fixed or flaky"
EPILOG = """\
new     nothing tells of it
flaky   it did not come again when it was run alone, or it comes and goes
known   it is on the list of known deviations that the campaign was given, or also in --against
fixed   it was there in --against, and its places were held now and passed

exit codes: 0 done, 2 usage; with --against: 0 nothing is new that breaks a MUST or a SHOULD, 1 something is, 6 nothing
is, as far as it came"""
UNDECIDED = 6


def add(commands: Commands) -> None:
    judged = commands.add("triage", _triage, ABOUT, EPILOG)
    judged.add_argument("folder", type=Path, metavar="DIR", help="the --out of kipcheck campaign or kipcheck run")
    judged.add_argument("--against", type=Path, metavar="DIR2", help="an earlier one, to tell what is new since")
    judged.add_argument("--json", action="store_true", help="one JSON value on standard output")


def _triage(options: argparse.Namespace) -> int:
    from kipcheck.conformance.campaign.report.triage import Unread, lines, triage

    try:
        found = triage(options.folder, options.against)
    except Unread as wrong:
        return complain(wrong, USAGE)
    except (LookupError, TypeError, AttributeError, ValueError) as wrong:
        return complain(f"a ledger is not as the schema has it: {wrong!r}", USAGE)
    if options.json:
        say_json(found.plain)
    else:
        print("\n".join(lines(found)))
    if options.against is None:
        return OK
    return FAILED if found.decides else OK if found.complete else UNDECIDED
