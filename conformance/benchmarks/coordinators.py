"""Records runs of coordinators: ``python -m kipcheck.conformance.benchmarks.coordinators DIR...`` adds those in these
folders (``--out`` of ``kipcheck run``) to ``coordinator_runs.json``, and writes the table of
docs/compatible-coordinators.md again.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kipcheck.conformance.benchmarks import coordinator_laws
from kipcheck.conformance.benchmarks.pages import with_section

PAGE: Final = Path(__file__).parents[1] / "docs" / "compatible-coordinators.md"


def with_laws(page: str, runs: Sequence[coordinator_laws.Recorded]) -> str:
    """The page with the table by groups of laws."""
    return with_section(page, coordinator_laws.BEGIN, coordinator_laws.END, coordinator_laws.table(runs))


def main(argv: Sequence[str]) -> int:
    if not argv:
        print("name the folders of runs: DIR...", file=sys.stderr)
        return 2
    coordinator_laws.add(
        run for each in map(Path, argv)
        for run in coordinator_laws.recorded(json.loads((each / "results.json").read_text("utf-8")))
    )  # fmt: skip
    PAGE.write_text(with_laws(PAGE.read_text("utf-8"), coordinator_laws.read()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
