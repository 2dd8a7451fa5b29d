"""The command ``show``: a failure of a run, or an example of a message."""

import argparse
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kipcheck.conformance.cli.options import (
    OK,
    USAGE,
    Commands,
    add_json,
    add_out,
    complain,
    edition_name,
    print_harmless,
    print_json,
)
from kipcheck.conformance.core.values.untrusted_text import harmless_json

if TYPE_CHECKING:
    from kipcheck.conformance.core.ledger import Ledger
    from kipcheck.conformance.wire import Layout

ID: Final = re.compile("[0-9a-f]{12}")
EPILOG: Final = """\
12 hex digits are the id of a failure or a cause in DIR; anything else is the name of a message.

examples:
  kipcheck show 7b0fadd99f37                     its requirement, steps and bytes
  kipcheck show JoinGroupRequest --version 9     a value, as `kipcheck encode` reads it, and its bytes

exit codes: 0 shown, 2 unknown"""


def add(commands: Commands) -> None:
    shown = commands.add("show", _show, "show a failure of a run, or a value and the bytes of a message", EPILOG)
    shown.add_argument("what", metavar="ID|MESSAGE", help="a failure, a cause or a message")
    add_out(shown)
    add_json(shown)
    shown.add_argument("--version", type=int, metavar="N", help="of the message; default the newest")
    shown.add_argument(
        "--edition", type=edition_name, default="apache", metavar="E", help="of the message; default apache"
    )


def _show(options: argparse.Namespace) -> int:
    return _failure(options) if ID.fullmatch(options.what) else _message(options)


def _failure(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.ledger import NAME, missing, read
    from kipcheck.reports.phrases import some

    path = options.out if options.out.is_file() else options.out / NAME
    try:
        ledger = read(path)
    except FileNotFoundError:
        return complain(missing(options.out), USAGE)
    except (OSError, ValueError) as wrong:
        return complain(wrong, USAGE)
    causes = [each for each in ledger.causes if options.what in (each.id, *each.failures)]
    members = [id for each in causes if each.id == options.what for id in each.failures]
    failures = [each for each in ledger.failures if each.id in (options.what, *members)]
    if options.json and failures:
        return print_json({"causes": [each.plain for each in causes], "failures": [each.plain for each in failures]})
    lines = list(_blocks(ledger, options.what))
    if not lines:
        number = some(len(ledger.failures), "failure")
        return complain(f"{path} has no failure or cause {options.what}; it has {number}", USAGE)
    print_harmless("\n".join(lines))
    return OK


def _blocks(ledger: "Ledger", id: str) -> Iterator[str]:
    """The block of a failure below the lines of its cause, or of all failures of a cause."""
    from kipcheck.reports.text import block, cause_lines

    written: set[str] = set()
    for cause in ledger.causes:
        if id == cause.id or id in cause.failures:
            wanted = cause.failures if id == cause.id else (id,)
            yield from (*cause_lines(cause), "")
            for failure in ledger.failures:
                if failure.target == cause.target and failure.id in wanted:
                    yield from (*block(failure, written), "")
            others = [each for each in cause.failures if each not in wanted]
            if others:
                yield f"other failures of this cause: {' '.join(others)}"
            return
    for failure in ledger.failures:
        if failure.id == id:
            yield from block(failure, written)


# ---- a message


def _message(options: argparse.Namespace) -> int:
    from kipcheck.conformance.wire import explain
    from kipcheck.conformance.wire.workbench import Unreadable, named, newest

    try:
        layout = (
            newest(options.edition, options.what)
            if options.version is None
            else named(options.edition, options.what, options.version)
        )
    except Unreadable as error:
        return complain(error, USAGE)
    value, data = example(layout)
    if options.json:
        about = {"message": layout.message, "version": layout.version, "edition": str(layout.edition)}
        return print_json({**about, "value": json.loads(value), "hex": data.hex()})
    print_harmless(f"{layout.message} v{layout.version}, edition {layout.edition}")
    print(harmless_json(value))
    print(data.hex())
    print_harmless(explain.text(explain.explain(layout, data)))
    return OK


def example(layout: "Layout") -> tuple[str, bytes]:
    """A value with something in every field, as JSON, and its bytes."""
    from kipcheck.conformance.protocols.codec.checks.example_values import inhabited

    value = inhabited(layout)
    return json.dumps(layout.codec.to_json(value), ensure_ascii=False), layout.encode(value)
