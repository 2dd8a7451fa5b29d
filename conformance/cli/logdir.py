"""The command ``logdir``: the formats in the log directory of a broker, and the releases that read all of them."""

import argparse
from pathlib import Path

from kipcheck.conformance.cli.options import (
    FAILED,
    INCONCLUSIVE,
    OK,
    USAGE,
    Commands,
    complain,
    print_harmless,
    print_json,
    release,
)

EPILOG = """\
kipcheck logdir /var/lib/kafka/data
kipcheck logdir /var/lib/kafka/data --release 3.3.2
kipcheck logdir /var/lib/kafka/data --groups

Reads the records in __consumer_offsets, __transaction_state and __share_group_state; of KRaft the metadata log,
*.checkpoint, meta.properties and quorum-state; and producer snapshots, checkpoints and partition.metadata beside all
logs. Of other topics it reads the heads of batches. What it does not know or read is printed, with the number of times;
then no release has a verdict. In KRaft each level of a feature counts that a node reads when it starts, also one that
was lowered later. Stop the broker first, or copy the directory. Nothing is written.

exit codes: 0 read, and by each --release; 1 a file is damaged, leader epochs of batches are missing in their
checkpoint, or a --release cannot read a format or level; 2 usage: no such directory, none of a broker, an unknown
release; 7 no verdict: something in the directory, or of a --release, is unknown or was not read"""


def add(commands: Commands) -> None:
    made = commands.add("logdir", _logdir, "print the formats in a broker's log directory, and who reads them", EPILOG)
    made.add_argument("folder", type=Path, metavar="DIR", help="one of log.dirs")
    made.add_argument(
        "--release", type=release, action="append", default=[], metavar="R", help="judge this release; may be repeated"
    )
    made.add_argument("--groups", action="store_true", help="print groups, their members and committed offsets")
    made.add_argument("--json", action="store_true", help="print one JSON object")


def _logdir(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.files.unreadable_file import unreadable
    from kipcheck.conformance.core.values.release import known_release
    from kipcheck.conformance.log_directory import reading, report
    from kipcheck.conformance.log_directory.verdicts import doubts, verdicts

    try:
        wanted = tuple(dict.fromkeys(map(known_release, options.release)))
        found = reading.read(options.folder)
    except LookupError as wrong:
        return complain(wrong.args[0], USAGE)
    except OSError as wrong:
        return complain(f"{options.folder} is no directory" if isinstance(wrong, NotADirectoryError)
                        else unreadable(wrong, options.folder), USAGE)  # fmt: skip
    if options.json:
        print_json(report.as_json(found, wanted, options.groups))
    else:
        for line in report.text(found, wanted, options.groups):
            print_harmless(line)
    reads = [each.reads for each in verdicts(found, wanted).values()] if wanted else []
    if found.damage or (found.epochs and found.clean) or False in reads:
        return FAILED
    return INCONCLUSIVE if None in reads or any(doubts(found)) else OK
