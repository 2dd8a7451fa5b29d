"""The command ``logdir``: the formats in the log directory of a broker, and the releases that read all of them."""

import argparse
from pathlib import Path

from kipcheck.conformance.cli.options import FAILED, OK, USAGE, Commands, complain, print_harmless, print_json

EPILOG = """\
kipcheck logdir /var/lib/kafka/data
kipcheck logdir /var/lib/kafka/data --release 3.3.2

Reads the records in __consumer_offsets and __transaction_state, producer snapshots, checkpoints of leader epochs and
offsets, and partition.metadata. Stop the broker first, or copy the directory. Nothing is written.

exit codes: 0 read, and by each --release; 1 a file is damaged, or a --release cannot read a format; 2 usage: no such
directory, none of a broker, an unknown release"""


def add(commands: Commands) -> None:
    made = commands.add("logdir", _logdir, "print the formats in a broker's log directory, and who reads them", EPILOG)
    made.add_argument("folder", type=Path, metavar="DIR")
    made.add_argument("--release", action="append", default=[], metavar="R", help="judge this release; may be repeated")
    made.add_argument("--json", action="store_true")


def _logdir(options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli import log_directory
    from kipcheck.conformance.core.release import known_release
    from kipcheck.conformance.core.unreadable_file import unreadable

    try:
        wanted = tuple(dict.fromkeys(map(known_release, options.release)))
        found = log_directory.read(options.folder)
    except LookupError as wrong:
        return complain(wrong.args[0], USAGE)
    except OSError as wrong:
        return complain(f"{options.folder} is no directory" if isinstance(wrong, NotADirectoryError)
                        else unreadable(wrong, options.folder), USAGE)  # fmt: skip
    if options.json:
        print_json(log_directory.as_json(options.folder, found, wanted))
    else:
        for line in log_directory.text(options.folder, found, wanted):
            print_harmless(line)
    unread = any(log_directory.verdicts(found, wanted).values()) if wanted else False
    return FAILED if found.damage or unread else OK
