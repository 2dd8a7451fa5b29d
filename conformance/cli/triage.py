"""The command ``triage``: classifies the failures of a run or a campaign."""

import argparse
from pathlib import Path

from kipcheck.conformance.cli import options as common

ABOUT = "classify the distinct failures of a campaign or a run: new, known, fixed or flaky"
EPILOG = """\
new     it is in no list of known deviations and not in --against
flaky   it did not recur when its case was run alone, or it is listed as flaky
known   it is in the campaign's list of known deviations, or also in --against
fixed   it is in --against, its subjects and versions were run again and passed, and so does its stored case now

exit codes: 0 done, 2 usage, or --against has failures of another format; with --against: 0 no new failure breaks a MUST
or a SHOULD, 1 one does, 6 none does, but the run is incomplete, 7 none does, but too little was tested"""


def add(commands: common.Commands) -> None:
    judged = commands.add("triage", _triage, ABOUT, EPILOG)
    judged.add_argument("folder", type=Path, metavar="DIR", help="the --out of kipcheck campaign or kipcheck run")
    judged.add_argument("--against", type=Path, metavar="DIR2", help="an earlier run or campaign to compare with")
    judged.add_argument(
        "--trust", action="store_true", help="replay earlier failures also if their files name a command (cmd:...)"
    )
    judged.add_argument("--json", action="store_true", help="one JSON value on standard output")


def _triage(options: argparse.Namespace) -> int:
    from functools import partial

    from kipcheck.conformance.campaign.report.triage import Unread, lines, triage
    from kipcheck.conformance.engine.execution.replay import replay

    try:
        found = triage(options.folder, options.against, partial(replay, trusted=options.trust))
    except Unread as wrong:
        return common.complain(wrong, common.USAGE)
    except (LookupError, TypeError, AttributeError, ValueError) as wrong:
        return common.complain(f"a ledger does not match its schema: {wrong!r}", common.USAGE)
    if options.json:
        common.print_json(found.plain)
    else:
        print("\n".join(lines(found)))
    if options.against is None:
        return common.OK
    if found.decides:
        return common.FAILED
    return common.INCONCLUSIVE if found.untested else common.OK if found.complete else common.UNDECIDED
