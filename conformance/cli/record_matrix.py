"""The command ``matrix --scenario records``: what one release persists, and what another does with it."""

import argparse

from kipcheck.conformance.cli.lone_scenario import check, not_written, unsuitable, write
from kipcheck.conformance.cli.options import FAILED, NOT_STARTED, OK, USAGE, complain, print_harmless, print_json
from kipcheck.conformance.core.files.output_folder import RECORD_MATRIX, Unusable
from kipcheck.conformance.engine.execution.progress import Progress
from kipcheck.conformance.matrix.record_cells import RecordCell, known_releases, plain, play
from kipcheck.conformance.matrix.scenario_names import RECORDS as SCENARIO
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.reports import record_matrix


def play_records(options: argparse.Namespace) -> int:
    """Exit codes as those of the matrix of groups."""
    if (why := unsuitable(options, SCENARIO)) is not None:
        return complain(why, USAGE)
    try:
        old, new = ([_known(text) for text in texts] for texts in (options.old, options.new))
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    progress = Progress()
    cells: list[RecordCell] = []
    try:
        check(options.out, RECORD_MATRIX)
        for each in play(old or known_releases(), new or known_releases()):
            if not cells or cells[-1].row != each.row:
                progress.say(f"matrix: {SCENARIO}: {len(cells)} cells; {each.row.format} {each.row.version}")
            cells.append(each)
        found = plain(cells)
        page = write(options.out, RECORD_MATRIX, found, record_matrix.page_of(found))
    except Unavailable as missing:
        return complain(missing, NOT_STARTED)
    except (Unusable, OSError) as wrong:
        return not_written(options.out, wrong)
    finally:
        progress.close()
    if options.json:
        print_json(found)
    else:
        print_harmless(record_matrix.text_of(found) + f"\n{page}\n")
    return FAILED if found["unlike"] else OK


def _known(text: str) -> str:
    """A release, or the newest patch of a line. Errors: LookupError, also for a release whose broker is not run."""
    known = known_releases()
    found = [each for each in known if each == text or each.rpartition(".")[0] == text]
    if not found:
        raise LookupError(f"unknown release {text!r} of {SCENARIO}: use one of {', '.join(known)}, or a line")
    return found[-1]
