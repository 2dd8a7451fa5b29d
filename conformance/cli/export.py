"""The command ``export``: writes a stored failure in another form."""

import argparse
import sys
from pathlib import Path

from kipcheck.conformance.cli.options import FAILED, OK, USAGE, Commands, add_out, complain
from kipcheck.conformance.core.files.unreadable_file import unreadable, unwritable

ABOUT = "export a stored failure as a program, a test, a packet capture or bytes"
FORMS = ("pytest", "script", "pcap", "hex")
EPILOG = """\
pytest  a test file          script  a program that exits with 1 while the failure occurs
pcap    for Wireshark        hex     the bytes of each step

pytest and script start a testee: the one with which the failure was found, or the command in the environment variable
KIPCHECK_TESTEE. A command in a failure file (cmd:...) is written only with --trust; without it, KIPCHECK_TESTEE must be
set. Where several answers are correct, as for an assignment, the test needs kipcheck, and script is not available.

exit codes: 0 done, 1 this failure cannot be exported in this form, 2 usage"""


def add(commands: Commands) -> None:
    taken = commands.add("export", _export, ABOUT, EPILOG)
    taken.add_argument("failure", metavar="ID|FILE", help="failures/ID.json of a run, or the ID in a run's --out")
    taken.add_argument("--as", dest="form", choices=FORMS, default="script", help="default script")
    taken.add_argument("--to", type=Path, metavar="PATH", help="write to this file or folder; default standard output")
    taken.add_argument(
        "--trust", action="store_true", help="write the command in the failure file (cmd:...) into the program"
    )
    add_out(taken)


def _export(options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli.stored_failures import failure_file
    from kipcheck.conformance.engine.export import formats

    try:
        path = failure_file(options.failure, options.out)
        stored = formats.load(path, options.trust)
    except OSError as missing:
        return complain(unreadable(missing), USAGE)
    except (ValueError, LookupError) as wrong:
        return complain(wrong.args[0], USAGE)
    made, name = formats.FORMS[options.form]
    try:
        data = made(stored)
    except formats.Impossible as why:
        return complain(f"{stored.id} as {options.form}: {why}", FAILED)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as wrong:
        return complain(f"{path} contains no case that can be exported as {options.form}: {wrong!r}", USAGE)
    if options.form in ("pytest", "script") and not stored.target:
        complain(
            f"the program starts the testee in KIPCHECK_TESTEE: {path} names the command "
            f"{stored.line.opened!r}, which is written only with --trust",
            OK,
        )
    if options.to is None:
        sys.stdout.buffer.write(data)
        return OK
    to = options.to / name.format(stored.id) if options.to.is_dir() else options.to
    try:
        to.write_bytes(data)
    except OSError as denied:
        return complain(unwritable(denied, to), USAGE)
    print(to)
    return OK
