"""A model, played by hand or by a program: play."""

import argparse
import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from kipcheck.conformance.cli.options import OK, USAGE, Commands, complain, say_json
from kipcheck.conformance.core.foreign import harmless_json

if TYPE_CHECKING:
    from kipcheck.conformance.explore.games import Game
    from kipcheck.conformance.play.declare import Playable, Scope, Verb

ABOUT = "tell a model events, line by line, and see what it does and how it is then"
EPILOG = """\
echo "up 0 1-3; update 2" | kipcheck play features --edition kip-584

In: one JSON event a line, {"actor": "operator", "verb": "update", "body": {"level": 2, "allow_downgrade": false}}, or
any number of events in shorthand, with semicolons between them. Out, for each of them, {"actions": [...], "state":
{...}}. --events lists what there is. With --scope it is the world that explore goes through which is played, move by
move; a model that has no conversation of its own is always played so.

exit codes: 0 all were played, 2 usage, or an event that is none: its line and why go to stderr, what was said before
it stands"""


def add(commands: Commands) -> None:
    made = commands.add("play", _play, ABOUT, EPILOG)
    made.mixed = True
    made.add_argument("model", metavar="MODEL", help="features, ...: any other name tells which there are")
    made.add_argument("--edition", default="apache", metavar="E", help="default apache")
    made.add_argument("--scope", metavar="S", help="as of explore: members=3,crashes=1; may be empty")
    made.add_argument("--events", action="store_true", help="list events and their fields, and play nothing")
    made.add_argument("--json", action="store_true", help="the list of --events as JSON")
    made.add_argument("input", nargs="?", default="-", metavar="FILE", help="a file, or - for standard input")


def _play(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.edition import edition
    from kipcheck.conformance.explore.games import game
    from kipcheck.conformance.play import playable

    try:
        model, spoken = playable(options.model), edition(options.edition)
        model.played_in(spoken)
        scope = None if options.scope is None else model.scope(options.scope, spoken)
        played = game(model, spoken, scope)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    if options.events:
        return _list(model, scope, options.json)
    with ExitStack() as held:
        source: Iterable[str] = iter(sys.stdin.readline, "")  # as soon as a line is there
        if options.input != "-":
            try:
                source = held.enter_context(open(options.input, encoding="utf-8", errors="surrogateescape"))
            except OSError as missing:
                return complain(missing, USAGE)
        return _told(played, source)


def _told(game: "Game", lines: Iterable[str]) -> int:
    from kipcheck.conformance.explore.games import Unplayable, events

    for number, line in enumerate(lines, 1):
        for text in events(line):
            try:
                found = game.told(text)
            except Unplayable as wrong:
                sys.stdout.flush()
                return complain(f"line {number}: {wrong}", USAGE)
            print(harmless_json(json.dumps(found)), flush=True)
    return OK


def _list(model: "Playable", scope: "Scope | None", as_json: bool) -> int:
    conversing = model.conversation is not None and (scope is None or not model.moves)
    verbs = model.verbs if conversing else model.moves
    if as_json:
        return say_json({"model": model.name, "events": list(map(_plain, verbs))})
    for verb in verbs:
        print(f"{verb.name}  ({' or '.join(verb.actors)})  {verb.meaning}")
        for each in verb.fields:
            print(f"    {each.name}: {each.kind.words}{'' if each.needed else ', may be left out'}: {each.meaning}")
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
