"""The command ``play``: drives a model with events, interactively or from a program."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from kipcheck.conformance.cli.options import OK, USAGE, Commands, complain, edition_name, print_json
from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.values.untrusted_text import harmless_json

if TYPE_CHECKING:
    from kipcheck.conformance.explore.games import InteractiveSession
    from kipcheck.conformance.protocols.declare.play import Playable, Scope, Verb

CLIENT = "client"
"""The machine of live clients."""
ABOUT = "send events to a model, line by line, and print its actions and its state"
EPILOG = """\
echo "up 0 1-3; update 2" | kipcheck play features --edition kip-584

Input: one JSON event a line: {"actor": "operator", "verb": "update", "body": {"level": 2, "allow_downgrade": true}}, or
any number of events in shorthand, separated by semicolons. Output, for each event: {"actions": [...], "state":
{...}}. --events lists the events. With --scope the session plays the product machine that explore searches, move by
move; a model without a conversation of its own is always played this way.

exit codes: 0 all events were played, 2 usage, or an invalid event: its line and the reason go to stderr, and the output
for earlier events remains"""


def add(commands: Commands) -> None:
    made = commands.add("play", _play, ABOUT, EPILOG)
    made.mixed = True
    made.add_argument("model", metavar="MODEL", help="features, ...: an unknown name lists the models")
    made.add_argument("--edition", type=edition_name, default="apache", metavar="E", help="default apache")
    made.add_argument("--scope", metavar="S", help="bounds, as for explore: members=3,crashes=1; may be empty")
    made.add_argument("--events", action="store_true", help="list the events and their fields, and play nothing")
    made.add_argument("--json", action="store_true", help="print the list of --events as JSON")
    made.add_argument("input", nargs="?", default="-", metavar="FILE", help="a file, or - for standard input")


def _play(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.values.edition import edition
    from kipcheck.conformance.explore.games import open_session
    from kipcheck.conformance.protocols.playables import playable

    if options.model == CLIENT:
        return _list_client(options)
    try:
        model, edition_used = playable(options.model), edition(options.edition)
        model.require_edition(edition_used)
        scope = None if options.scope is None else model.scope(options.scope, edition_used)
        played = open_session(model, edition_used, scope)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    if options.events:
        return _list(model, scope, options.json)
    with ExitStack() as stack:
        source: Iterable[str] = iter(sys.stdin.readline, "")  # line by line, as soon as each is complete
        if options.input != "-":
            try:
                source = stack.enter_context(open(options.input, encoding="utf-8", errors="surrogateescape"))
            except OSError as missing:
                return complain(unreadable(missing), USAGE)
        return _play_lines(played, source)


def _play_lines(game: "InteractiveSession", lines: Iterable[str]) -> int:
    from kipcheck.conformance.explore.games import RejectedEvent, events

    for number, line in enumerate(lines, 1):
        for text in events(line):
            try:
                found = game.apply(text)
            except RejectedEvent as wrong:
                sys.stdout.flush()
                return complain(f"line {number}: {wrong}", USAGE)
            print(harmless_json(json.dumps(found)), flush=True)
    return OK


def _list(model: "Playable", scope: "Scope | None", as_json: bool) -> int:
    conversing = model.conversation is not None and (scope is None or not model.moves)
    return _print(model.name, model.verbs if conversing else model.moves, as_json)


def _list_client(options: argparse.Namespace) -> int:
    """The steps of the scripts of live clients, which have no model: a program plays them."""
    from kipcheck.conformance.protocols import registry
    from kipcheck.conformance.protocols.declare.play import verbs

    if not options.events:
        why = f"{CLIENT} has no model: a program plays it, kipcheck run --target client:... --script STEPS"
        return complain(f"{why}; --events lists the steps", USAGE)
    return _print(CLIENT, verbs(registry.operations()[CLIENT]), options.json)


def _print(model: str, verbs: "Sequence[Verb]", as_json: bool) -> int:
    if as_json:
        return print_json({"model": model, "events": list(map(_plain, verbs))})
    for verb in verbs:
        print(f"{verb.name}  ({' or '.join(verb.actors)})  {verb.meaning}")
        for each in verb.fields:
            print(f"    {each.name}: {each.kind.words}{'' if each.needed else ', optional'}: {each.meaning}")
        if verb.shorthand:
            print(f"    in shorthand: {verb.shorthand}")
    return OK


def _plain(verb: "Verb") -> dict[str, Any]:
    fields = [
        {"name": each.name, "type": each.kind.words, "needed": each.needed, "meaning": each.meaning}
        for each in verb.fields
    ]
    named = {"verb": verb.name, "actors": list(verb.actors), "meaning": verb.meaning}
    return {**named, "fields": fields, "shorthand": verb.shorthand}
