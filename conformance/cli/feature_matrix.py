"""``kipcheck matrix --scenario features``: what each KRaft controller makes of its neighbours' features."""

import argparse

from kipcheck.conformance.cli import options as cli_options


def play_features(options: argparse.Namespace) -> int:
    """The exit code of the command."""
    from kipcheck.conformance.cli.lone_scenario import check, not_written, unsuitable
    from kipcheck.conformance.core.files.output_folder import FEATURE_MATRIX, Unusable
    from kipcheck.conformance.matrix import feature_cells
    from kipcheck.conformance.matrix.scenario_names import FEATURES
    from kipcheck.conformance.targets import registry
    from kipcheck.conformance.targets.protocol import Unavailable

    if (wrong := unsuitable(options, FEATURES)) is not None:
        return cli_options.complain(wrong, cli_options.USAGE)
    controllers = options.old or feature_cells.releases()
    neighbours = options.new or feature_cells.releases()
    try:
        cells = [feature_cells.predicted(one, other) for one in dict.fromkeys(controllers)
                 for other in dict.fromkeys(neighbours)]  # fmt: skip
    except LookupError as unknown:
        return cli_options.complain(unknown.args[0], cli_options.USAGE)
    except ValueError as unknown:
        return cli_options.complain(f"{unknown}: use exact releases from 3.3.0 on, such as 3.9.2", cli_options.USAGE)
    try:
        check(options.out, FEATURE_MATRIX)
        found, skipped = feature_cells.played_where_possible(
            cells, lambda release: registry.target(f"java:kafka-metadata:{release}")
        )
    except Unavailable as missing:
        return cli_options.complain(missing, cli_options.NOT_STARTED)
    except (Unusable, OSError) as wrong_place:
        return not_written(options.out, wrong_place)
    return _report(options, feature_cells.plain(found, skipped))


def _report(options: argparse.Namespace, found: dict[str, object]) -> int:
    import sys

    from kipcheck.conformance.cli.lone_scenario import not_written, write
    from kipcheck.conformance.core.files.output_folder import FEATURE_MATRIX, Unusable
    from kipcheck.reports import feature_matrix

    try:
        write(options.out, FEATURE_MATRIX, found, feature_matrix.html(found))
    except (Unusable, OSError) as wrong:
        return not_written(options.out, wrong)
    text = feature_matrix.text(found)
    if options.json:
        print(text, end="", file=sys.stderr)
        cli_options.print_json(found)
    else:
        cli_options.print_harmless(text)
    cells = found["cells"]
    assert isinstance(cells, list)
    if any(each["differs"] for each in cells):
        return cli_options.FAILED
    return cli_options.UNDECIDED if found["skipped"] else cli_options.OK
