"""The command ``explore``: exhaustive search of a model."""

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from kipcheck.conformance.cli.options import (
    OK,
    USAGE,
    Commands,
    add_json,
    add_out,
    complain,
    duration,
    edition_name,
    positive,
    print_json,
)
from kipcheck.conformance.core.files.unreadable_file import unwritable

if TYPE_CHECKING:
    from kipcheck.conformance.core.values.edition import Edition
    from kipcheck.conformance.protocols.declare.play import Playable

MOST_STATES = 5_000_000
"""So many states take about 1 GB of memory."""
ABOUT = "explore every order of a model's events within a scope, and search for violated invariants"
EPILOG = """\
kipcheck explore features --edition kip-584 --scope brokers=2

The search is breadth-first, so a counter-example is a shortest one. It is printed as a diagram, and written under --out
as a page and as events that kipcheck play reads. --scope list prints the bounds of a model and their defaults.

exit codes: 0 complete, no violation; 1 a counter-example; 2 usage; 6 incomplete (--max-states, --budget)"""


def add(commands: Commands) -> None:
    made = commands.add("explore", _explore, ABOUT, EPILOG)
    made.add_argument("model", metavar="MODEL", help="features, ...: an unknown name lists the models")
    made.add_argument("--edition", type=edition_name, default="apache", metavar="E", help="default apache")
    made.add_argument("--scope", default="", metavar="S", help="bounds: members=3,crashes=1; list prints them")
    made.add_argument(
        "--max-states",
        type=positive,
        default=MOST_STATES,
        metavar="N",
        help=f"stop after so many states (default {MOST_STATES:,})",
    )
    made.add_argument("--budget", type=duration, metavar="TIME", help="90s, 5m, 8h: stop after that")
    add_json(made)
    add_out(made, "folder for the counter-example")


def _explore(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.files.output_folder import OutputFolder, Unusable, of_a_search
    from kipcheck.conformance.core.values.edition import edition
    from kipcheck.conformance.explore.exploration import explored
    from kipcheck.conformance.protocols.playables import playable

    try:
        model, edition_used = playable(options.model), edition(options.edition)
        model.require_edition(edition_used)
        if options.scope == "list":
            return _bounds(model, edition_used)
        scope = model.scope(options.scope, edition_used)
        product = model.world(edition_used, scope)
        OutputFolder(options.out).check(of_a_search(model.name))
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    except Unusable as wrong:
        return complain(wrong, USAGE)
    done = explored(model, edition_used, scope, product, options.max_states, options.budget, _progress)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    found = done.found(shutil.get_terminal_size((100, 24)).columns - 2)
    try:
        done.write(found, options.out)
    except Unusable as wrong:
        return complain(wrong, USAGE)
    except OSError as denied:
        return complain(unwritable(denied, options.out), USAGE)
    if options.json:
        print_json(found)
    else:
        print(done.text(found, options.out), end="")
    return done.exit_code


def _bounds(model: "Playable", edition: "Edition") -> int:
    for name, usual in model.scope("", edition).items():
        bound = model.dials[name]
        print(f"{name}={usual}  {bound.meaning}; one of {', '.join(map(str, bound.values))}")
    return OK


def _progress(states: int, depth: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{states:,} states, depth {depth}", end="", file=sys.stderr, flush=True)
