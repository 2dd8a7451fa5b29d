"""The command ``matrix``: upgrades of Kafka Streams groups between releases."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kipcheck.conformance.cli import options as common
from kipcheck.conformance.engine.execution.interrupts import finish

if TYPE_CHECKING:
    from kipcheck.conformance.engine.execution.progress import Progress
    from kipcheck.conformance.matrix.cells import Cell
    from kipcheck.conformance.matrix.release_lines import Version
    from kipcheck.conformance.matrix.run import Tick

ABOUT = "test upgrades of Kafka Streams groups between all releases, with the released jars"
EPILOG = """\
kipcheck matrix --from 2.0 --to 2.1 --scenario bounce

--from and --to take a line (2.8: its newest patch) or an exact patch (2.8.0); --to also takes future, the next metadata
version, which a reference model plays. By default join runs between all lines, and the other scenarios between one
release of each behaviour class and all pairs in the table of KIP-268. A cell covers all orders and points of failure.
In downgrade, too, --from is the older release: the group runs --to and is downgraded to --from.

--scenario store-upgrade is played alone, and only where it is named: released stores that another release opens, on
RocksDB (kipcheck-out/store-upgrade.html). So is records: what the brokers of one release persist, and what others do
with it (records.html).

Results of cells are cached until the jars or kipcheck change. Under --out: matrix.json, an HTML page, and the worst
history of each cell, which --case replays; other options are then ignored.

--scenario features is played only where it is named, and alone: what the KRaft controller of an exact release (--from)
accepts beside a broker, or another controller, of another release (--to). It writes feature-matrix.json and a page.

The output begins with an answer for each pair: which way of an upgrade works, and the lines of its configuration. The
exit code is about predictions. With --require works it is about the answers, too: 1 if an upgrade breaks, or works only
under a condition; 7 if there is no answer, because what decides was not run.

exit codes: 0 every cell is as predicted or a known deviation; 1 a cell is not (with --case: it breaks); 2 usage; 3 no
JDK or no jar is available; 5 a known deviation did not occur; 6 ended by the budget or Ctrl-C; 7 a cell was skipped,
because a jar is missing"""


def add(commands: common.Commands) -> None:
    from kipcheck.conformance.matrix.scenario_names import FEATURES, RECORDS, SCENARIOS, STORE_UPGRADE

    made = commands.add("matrix", _matrix, ABOUT, EPILOG)
    made.set_defaults(interrupted=common.UNDECIDED)
    made.add_argument("--from", dest="old", action="append", default=[], metavar="R", help="may be repeated")
    made.add_argument("--to", dest="new", action="append", default=[], metavar="R", help="may be repeated")
    made.add_argument(
        "--scenario",
        action="append",
        default=[],
        choices=(*SCENARIOS, STORE_UPGRADE, RECORDS, FEATURES),
        help="may be repeated",
    )
    made.add_argument("--full", action="store_true", help="test all lines in every scenario")
    made.add_argument(
        "--require", choices=("works",), help="fail unless each upgrade works, also if a member fails meanwhile"
    )
    made.add_argument("--json", action="store_true", help="print JSON to standard output and text to standard error")
    common.add_out(made, "folder for the tables and the histories")
    made.add_argument("--budget", type=common.duration, metavar="TIME", help="90s, 5m, 8h: stop after that")
    made.add_argument("--workers", type=common.positive, default=2, metavar="N", help="number of processes (default 2)")
    made.add_argument("--case", type=Path, metavar="FILE", help="replay a history of an earlier run")
    made.add_argument(
        "--predict", type=Path, metavar="FILE", help="write the reference models' predictions, without jars"
    )


def _matrix(options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli.feature_matrix import play_features
    from kipcheck.conformance.cli.record_matrix import play_records
    from kipcheck.conformance.cli.store_matrix import play_stores
    from kipcheck.conformance.engine.known.files import InvalidKnownFile
    from kipcheck.conformance.matrix.cells import cells
    from kipcheck.conformance.matrix.release_lines import named
    from kipcheck.conformance.matrix.scenario_names import FEATURES, RECORDS, SCENARIOS, STORE_UPGRADE
    from kipcheck.conformance.targets.protocol import Unavailable

    if RECORDS in options.scenario:
        return play_records(options)
    if FEATURES in options.scenario:
        return play_features(options)
    if STORE_UPGRADE in options.scenario:
        return play_stores(options)
    try:
        if options.case is not None:
            return _replay(options.case)
        old, new = _each(options.old, named), _each(options.new, named)
        selected = cells(tuple(dict.fromkeys(options.scenario)) or SCENARIOS, old, new, options.full)
        if not selected:
            return common.complain(_no_cells(options, old, new), common.USAGE)
        if options.predict is not None:
            return _predict(options.predict, selected, options)
        return _run_matrix(selected, options)
    except LookupError as unknown:
        return common.complain(unknown.args[0], common.USAGE)
    except InvalidKnownFile as wrong:
        return common.complain(wrong, common.USAGE)
    except Unavailable as missing:
        return common.complain(missing, common.NOT_STARTED)


def _each(texts: Sequence[str], named: "Callable[[str], Version]") -> "tuple[Version, ...]":
    return tuple(dict.fromkeys(map(named, texts)))


def _no_cells(options: argparse.Namespace, old: "Sequence[Version]", new: "Sequence[Version]") -> str:
    from kipcheck.conformance.matrix.scenario_names import SCENARIOS
    from kipcheck.conformance.matrix.scenarios import Pair, possible

    reported = [
        f"{scenario} from {one.name} to {other.name}: {possible(scenario, Pair(one, other))}"
        for scenario in options.scenario or SCENARIOS
        for one in old
        for other in new or old
    ]
    return "; ".join(reported) or "these scenarios have no cell between these releases"


def _run_matrix(selected: "Sequence[Cell]", options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli.lone_scenario import not_written
    from kipcheck.conformance.core.files.output_folder import OF_A_MATRIX, OutputFolder, Unusable
    from kipcheck.conformance.matrix.build import MatrixRequest, run_matrix
    from kipcheck.conformance.matrix.known import listed
    from kipcheck.conformance.matrix.results import plain, write
    from kipcheck.reports import matrix

    known = listed()
    request = MatrixRequest(
        selected, known, options.full, options.require, options.out, options.budget, options.workers
    )
    folder = OutputFolder(options.out)
    try:
        folder.check(*OF_A_MATRIX)
        with folder.trial():  # reports a folder that cannot be written before cells run for hours
            progress = _progress()
            found = run_matrix(request, _tick(progress))
            finish()
            progress.close()
            reported = plain(found)
            path = write(found, reported)
            text = matrix.write(path)
    except (Unusable, OSError) as wrong:
        return not_written(options.out, wrong)
    if options.json:
        print(text, end="", file=sys.stderr)
        common.print_json(reported)
    else:
        common.print_harmless(text)
    return matrix.read(path).exit


def _predict(path: Path, selected: "Sequence[Cell]", options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli.lone_scenario import not_written
    from kipcheck.conformance.matrix.predictions import merged, read, written
    from kipcheck.conformance.matrix.run import predict

    try:
        before = read(path)
        path.open("a").close()
    except (OSError, ValueError) as wrong:
        return not_written(path, wrong)
    progress = _progress()
    done = predict(selected, _tick(progress), options.budget, options.workers)
    finish()
    progress.close()
    path.write_text(written(merged(done.found, before)), "utf-8")
    print(f"{len(done.found)} of {len(selected)} cells are predicted in {path}")
    return common.OK if done.complete else common.UNDECIDED


def _replay(path: Path) -> int:
    from kipcheck.conformance.core.files.unreadable_file import unreadable
    from kipcheck.conformance.matrix.replay import replay

    try:
        reported, breaks = replay(path)
    except OSError as denied:
        return common.complain(unreadable(denied, path), common.USAGE)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as wrong:
        return common.complain(f"{path} contains no history of a matrix: {wrong}", common.USAGE)
    common.print_harmless(reported.rstrip("\n"))
    return common.FAILED if breaks else common.OK


def _progress() -> "Progress":
    from kipcheck.conformance.engine.execution.progress import Progress

    return Progress()


def _tick(progress: "Progress") -> "Tick":
    from time import monotonic

    from kipcheck.conformance.engine.execution.progress import OFTEN, SELDOM

    reported = [0.0]

    def tick(what: str, done: int, of: int, last: str) -> None:
        if monotonic() - reported[0] >= (OFTEN if progress.live else SELDOM) or done == of:
            reported[0] = monotonic()
            progress.say(f"matrix: {what} {done} of {of} cells; {last}")

    return tick
