"""The command ``matrix --scenario store-upgrade``: stores that one release wrote and another one opens."""

import argparse
from collections.abc import Sequence

from kipcheck.conformance.cli.lone_scenario import check, not_written, unsuitable, write
from kipcheck.conformance.cli.options import FAILED, NOT_STARTED, OK, USAGE, complain, print_harmless, print_json
from kipcheck.conformance.core.files.output_folder import STORE_MATRIX, Unusable
from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.release import lines
from kipcheck.conformance.engine.execution.progress import Progress
from kipcheck.conformance.matrix.release_lines import named
from kipcheck.conformance.matrix.scenario_names import STORE_UPGRADE
from kipcheck.conformance.matrix.store_cells import StoreCell, cells, impossible, releases
from kipcheck.conformance.matrix.store_run import plain, play
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.reports import store_matrix


def play_stores(options: argparse.Namespace) -> int:
    """Exit codes as those of the matrix of groups."""
    if (why := unsuitable(options, STORE_UPGRADE)) is not None:
        return complain(why, USAGE)
    try:
        old, new = ([named(text, lines("streams")).patch for text in texts] for texts in (options.old, options.new))
        selected = _selected(old, new)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    progress = Progress()
    try:
        check(options.out, STORE_MATRIX)
        played = play(
            selected, lambda what, done, of: progress.say(f"matrix: {STORE_UPGRADE}: {done} of {of} stores {what}")
        )
        reported = plain(played)
        page = write(options.out, STORE_MATRIX, reported, store_matrix.page_of(reported))
    except Unavailable as missing:
        return complain(missing, NOT_STARTED)
    except (Unusable, OSError) as wrong:
        return not_written(options.out, wrong)
    finally:
        progress.close()
    if options.json:
        print_json(reported)
    else:
        print_harmless(store_matrix.text_of(reported) + f"\n{page}\n")
    return FAILED if played.unlike else OK


def _selected(old: Sequence[str], new: Sequence[str]) -> list[StoreCell]:
    """Errors: LookupError where no pair is a cell."""
    found = cells(old, new)
    if not found:
        pairs = [(one, other) for one in old or releases()[:1] for other in new or (since("timestamped-stores"),)]
        raise LookupError("; ".join(filter(None, (impossible(*each) for each in pairs))) or "no cell is selected")
    return found
