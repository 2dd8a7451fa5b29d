"""Encodes, decodes and explains messages."""

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kipcheck.conformance.cli.options import FAILED, OK, USAGE, Commands, add_json, complain, edition_name
from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.values.untrusted_text import harmless, harmless_json

if TYPE_CHECKING:
    from kipcheck.conformance.wire import Layout
    from kipcheck.conformance.wire.explain_frame import Sent


EXPLAIN: Final = """\
The bytes are a body, or a frame: size, header and body; the size may be absent. A request needs no option, because its
header has key and version, nor does a subscription, an assignment, or a key or value of a coordinator's record, which
has its version in front. A response needs --message. Where --version is absent, it is the newest with which the
body ends exactly; others are named. Subscriptions, assignments and the user data in them are opened. Several frames
with their sizes, as they follow each other on a connection, are explained one by one.

examples:
  kipcheck explain 000000170000000000000001000163...            a request
  kipcheck explain "[0, 3, 0, 0, 0, 1, 0, 1, 116, ...]"         Java's Arrays.toString of a subscription
  kipcheck explain --message SyncGroupResponse 0000000700...    a response
  kipcheck explain --message SyncGroupResponse --version 3 ...  its body, or all of it

exit codes: 0 complete, 1 damaged (explained up to the damage), 2 unreadable"""


def add(commands: Commands) -> None:
    codec = argparse.ArgumentParser(add_help=False)
    codec.add_argument(
        "--edition",
        type=edition_name,
        default="apache",
        metavar="E",
        help="default apache; apache@3.9.2, kip-584, jar:PATH, maven:4.1.0",
    )
    codec.add_argument("--message", metavar="M", help="JoinGroupRequest, SubscriptionInfo, ...")
    codec.add_argument("--version", type=int, metavar="N", help="of the message")
    for name, call, about, payload, wants in (
        ("encode", _encode, "encode a JSON object as hex", "FILE", "file with a JSON object, or - for standard input"),
        ("decode", _decode, "decode hex to a JSON object", "HEX", "the bytes as hex, or - for standard input"),
        (
            "explain",
            _explain,
            "explain bytes, one line a field: offset, bytes, path, type, value, meaning",
            "HEX",
            "the bytes as hex, or - for standard input",
        ),
    ):
        made = commands.add(name, call, about, partial(_bytes_epilog, name), [codec])
        made.add_argument("input", nargs="?", default="-", metavar=payload, help=wants)
        if name == "explain":
            add_json(made)
        else:
            made.add_argument(
                "--batch", action="store_true", help="read and write JSON Lines, one result for each line"
            )


def _bytes_epilog(name: str) -> str:
    if name == "explain":
        return EXPLAIN
    from kipcheck.conformance.wire.workbench import classes_help

    given, gives = ("value", "hex") if name == "encode" else ("hex", "value")
    return (
        "exit codes: 0 done, 1 refused by the layout, 2 unreadable; with --batch 1 if any line failed\n\n"
        f'--batch: {{"message", "version", "{given}"}} gives {{"{gives}"}}; a line may carry its own "edition";\n'
        f'a failure gives {{"error": {{"class", "message", "path", "offset"}}}}. Classes:\n{classes_help()}'
    )


def _encode(options: argparse.Namespace) -> int:
    from kipcheck.conformance.wire import workbench

    if options.batch:
        return _batch(options, workbench.encode_lines)
    return _one(options, lambda: workbench.hex_of(_layout(options), _text(options.input)))


def _decode(options: argparse.Namespace) -> int:
    from kipcheck.conformance.wire import workbench

    if options.batch:
        return _batch(options, workbench.decode_lines)
    return _one(options, lambda: workbench.json_of(_layout(options), _hex(options.input)))


def _explain(options: argparse.Namespace) -> int:
    import json

    from kipcheck.conformance.wire.explain_frame import find, frames
    from kipcheck.conformance.wire.workbench import Unreadable, unhex

    try:
        asked = unhex(_hex(options.input)), options.edition, options.message, options.version
        several, rest = frames(*asked)
        if not several:
            sent = find(*asked)
            titled = options.message is None or options.version is None or sent.header is not None
            print(harmless_json(json.dumps(_as_data(sent))) if options.json else harmless(_as_text(sent, titled)))
            return complain(sent.explained.damage, FAILED) if sent.explained.damage else OK
    except Unreadable as error:
        return complain(error, USAGE)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    if options.json:
        print(harmless_json(json.dumps({"frames": [{"at": each.at, **_as_data(each.sent)} for each in several]})))
    else:
        print(harmless("\n\n".join(f"at byte {each.at}: {_as_text(each.sent)}" for each in several)))
    last = several[-1]
    damage = rest or (f"frame at byte {last.at}: {last.sent.explained.damage}" if last.sent.explained.damage else "")
    return complain(damage, FAILED) if damage else OK


def _as_data(sent: "Sent") -> dict[str, Any]:
    from kipcheck.conformance.wire import explain
    from kipcheck.conformance.wire.explain_inside import insides

    about = {"size": sent.size, "header": sent.header, "otherVersions": list(sent.others)}
    return {**explain.as_data(sent.explained), **about, "inside": [each.as_data() for each in insides(sent.explained)]}


def _as_text(sent: "Sent", titled: bool = True) -> str:
    from kipcheck.conformance.wire import explain
    from kipcheck.conformance.wire.explain_inside import insides

    inside = (f"\n{each.text()}" for each in insides(sent.explained))
    return "\n".join([*([sent.title()] if titled else []), explain.text(sent.explained), *inside])


def _one(options: argparse.Namespace, work: Callable[[], str]) -> int:
    from kipcheck.conformance.wire.errors import Refused
    from kipcheck.conformance.wire.workbench import Unreadable

    try:
        print(harmless_json(work()))
        return OK
    except Refused as error:
        return complain(error, FAILED)
    except Unreadable as error:
        return complain(error, USAGE)


def _batch(options: argparse.Namespace, work: Callable[..., Iterable[tuple[str, bool]]]) -> int:
    defaults = {key: value for key in ("edition", "message", "version") if (value := getattr(options, key)) is not None}
    if options.input == "-":
        return _lines(work(sys.stdin, defaults))
    try:
        with open(options.input, encoding="utf-8", errors="surrogateescape") as lines:
            return _lines(work(lines, defaults))
    except OSError as error:
        return complain(unreadable(error), USAGE)


def _lines(results: Iterable[tuple[str, bool]]) -> int:
    well = True
    write = sys.stdout.write
    for text, good in results:
        write(harmless_json(text) + "\n")
        well = well and good
    return OK if well else FAILED


def _layout(options: argparse.Namespace) -> "Layout":
    from kipcheck.conformance.wire.workbench import Unreadable, named

    if options.message is None or options.version is None:
        raise Unreadable("bad-line", "--message and --version are required: they name the layout of the bytes")
    return named(options.edition, options.message, options.version)


def _text(source: str) -> str:
    from kipcheck.conformance.wire.workbench import Unreadable

    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise Unreadable("not-json", unreadable(error, source)) from None


def _hex(source: str) -> str:
    return sys.stdin.read() if source == "-" else source
