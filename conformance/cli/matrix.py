"""Which release can take another's place in a Streams group that goes on: matrix."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kipcheck.conformance.cli.options import (
    FAILED,
    NOT_STARTED,
    OK,
    UNDECIDED,
    USAGE,
    Commands,
    complain,
    duration,
    positive,
    say,
    say_json,
)
from kipcheck.conformance.engine.interrupts import finish

if TYPE_CHECKING:
    from kipcheck.conformance.engine.progress import Progress
    from kipcheck.conformance.matrix.cells import Cell
    from kipcheck.conformance.matrix.release_lines import Version
    from kipcheck.conformance.matrix.run import Tick

ABOUT = "upgrades of Kafka Streams groups from each release to each other one, played with the released jars"
EPILOG = """\
kipcheck matrix --from 2.0 --to 2.1 --scenario bounce

--from and --to take a line (2.8: its newest patch), an exact patch (2.8.0), and --to also future, the next metadata
version, which our machine plays. By default join is played between all lines, and the other scenarios between one
release of each behaviour class, and all that KIP-268's own table names. A cell folds all orders and points of failure.
In downgrade --from is the older release, too: the group has come to --to and goes back.

What came of a cell is kept until its jars or kipcheck change. Under --out: matrix.json, a page, and of each cell its
worst history, which --case plays again, whatever else is said.

exit codes: 0 every cell is as predicted, or a known deviation; 1 one is not (with --case: it breaks); 2 usage; 3 there
is no JDK, or no jar; 5 a known deviation did not come; 6 the budget or Ctrl-C ended it"""


def add(commands: Commands) -> None:
    from kipcheck.conformance.matrix.scenarios import SCENARIOS

    made = commands.add("matrix", _matrix, ABOUT, EPILOG)
    made.set_defaults(interrupted=UNDECIDED)
    made.add_argument("--from", dest="old", action="append", default=[], metavar="R", help="again for several")
    made.add_argument("--to", dest="new", action="append", default=[], metavar="R", help="again for several")
    made.add_argument("--scenario", action="append", default=[], choices=SCENARIOS, help="again for several")
    made.add_argument("--full", action="store_true", help="all lines in every scenario")
    made.add_argument("--json", action="store_true", help="JSON to standard output, text to standard error")
    made.add_argument("--out", type=Path, default=Path("kipcheck-out"), metavar="DIR", help="default kipcheck-out")
    made.add_argument("--budget", type=duration, metavar="TIME", help="90s, 5m, 8h: stop after that")
    made.add_argument("--workers", type=positive, default=2, metavar="N", help="processes side by side (default 2)")
    made.add_argument("--case", type=Path, metavar="FILE", help="a history of an earlier run: play that again")
    made.add_argument("--predict", type=Path, metavar="FILE", help="write what our machines foretell, without jars")


def _matrix(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.known.files import Wrong
    from kipcheck.conformance.matrix.cells import cells
    from kipcheck.conformance.matrix.release_lines import named
    from kipcheck.conformance.matrix.scenarios import SCENARIOS
    from kipcheck.conformance.targets.toolchains.maven import Unavailable

    try:
        if options.case is not None:
            return _again(options.case)
        old, new = _each(options.old, named), _each(options.new, named)
        asked = cells(tuple(dict.fromkeys(options.scenario)) or SCENARIOS, old, new, options.full)
        if not asked:
            return complain(_none(options, old, new), USAGE)
        if options.predict is not None:
            return _predict(options.predict, asked, options)
        return _played(asked, options)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    except Wrong as wrong:
        return complain(wrong, USAGE)
    except Unavailable as missing:
        return complain(missing, NOT_STARTED)


def _each(texts: Sequence[str], named: "Callable[[str], Version]") -> "tuple[Version, ...]":
    return tuple(dict.fromkeys(map(named, texts)))


def _none(options: argparse.Namespace, old: "Sequence[Version]", new: "Sequence[Version]") -> str:
    from kipcheck.conformance.matrix.scenarios import SCENARIOS, Pair, possible

    told = [
        f"{scenario} from {one.name} to {other.name}: {possible(scenario, Pair(one, other))}"
        for scenario in options.scenario or SCENARIOS
        for one in old
        for other in new or old
    ]
    return "; ".join(told) or "no cell is between these releases in these scenarios"


def _played(asked: "Sequence[Cell]", options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.output_folder import OF_A_MATRIX, OutputFolder, Unusable
    from kipcheck.conformance.matrix.build import Wanted, made
    from kipcheck.conformance.matrix.known import listed
    from kipcheck.conformance.matrix.results import plain, write
    from kipcheck.reports import matrix

    known = listed()
    wanted = Wanted(asked, known, options.full, options.out, options.budget, options.workers)
    folder = OutputFolder(options.out)
    try:
        folder.check(*OF_A_MATRIX)
        with folder.tried():
            pass  # a folder that cannot be written is named before cells are played for hours
    except (Unusable, OSError) as wrong:
        return _not_written(options.out, wrong)
    progress = _progress()
    found = made(wanted, _tick(progress))
    finish()
    progress.close()
    told = plain(found)
    try:
        path = write(found, told)
        text = matrix.write(path)
    except (Unusable, OSError) as wrong:
        return _not_written(options.out, wrong)
    if options.json:
        print(text, end="", file=sys.stderr)
        say_json(told)
    else:
        say(text)
    return matrix.read(path).exit


def _not_written(place: Path, wrong: Exception) -> int:
    if isinstance(wrong, OSError):
        wrong = OSError(f"{wrong.filename or place} cannot be written: {wrong.strerror}")
    return complain(wrong, USAGE)


def _predict(path: Path, asked: "Sequence[Cell]", options: argparse.Namespace) -> int:
    from kipcheck.conformance.matrix.predictions import read, renewed, written
    from kipcheck.conformance.matrix.run import predict

    try:
        before = read(path)
        path.open("a").close()
    except (OSError, ValueError) as wrong:
        return _not_written(path, wrong)
    progress = _progress()
    done = predict(asked, _tick(progress), options.budget, options.workers)
    finish()
    progress.close()
    path.write_text(written(renewed(done.found, before)), "utf-8")
    print(f"{len(done.found)} of {len(asked)} cells are foretold in {path}")
    return OK if done.complete else UNDECIDED


def _again(path: Path) -> int:
    from kipcheck.conformance.matrix.replay import again

    try:
        told, breaks = again(path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as wrong:
        return complain(f"{path} holds no history of a matrix: {wrong}", USAGE)
    say(told.rstrip("\n"))
    return FAILED if breaks else OK


def _progress() -> "Progress":
    from kipcheck.conformance.engine.progress import Progress

    return Progress()


def _tick(progress: "Progress") -> "Tick":
    from time import monotonic

    from kipcheck.conformance.engine.progress import OFTEN, SELDOM

    told = [0.0]

    def tick(what: str, done: int, of: int, last: str) -> None:
        if monotonic() - told[0] >= (OFTEN if progress.live else SELDOM) or done == of:
            told[0] = monotonic()
            progress.say(f"matrix: {what} {done} of {of} cells; {last}")

    return tick
