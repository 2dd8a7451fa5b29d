"""The table of Kafka-compatible coordinators: rows of runs, for docs/compatible-coordinators.md.

``python -m kipcheck.conformance.benchmarks.coordinators DIR...`` writes the rows of runs in these folders (``--out``
of ``kipcheck run``) between the markers of the page. A row is a check: nothing in it is written by hand.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parents[1] / "docs" / "compatible-coordinators.md"
BEGIN, END = "<!-- rows -->\n", "<!-- end of rows -->\n"
RESULTS: Final = ("PASS", "FAIL", "WARN", "NOTE", "UNKNOWN", "SKIP")
HEAD: Final = (
    f"| coordinator | version | edition | seed | check | {' | '.join(RESULTS)} |\n|{'---|' * (5 + len(RESULTS))}\n"
)


def rows(results: Any) -> Iterator[str]:
    """Of one run. ``results``: its ``results.json``."""
    options = results["options"]
    versions = {each["target"]: each["version"] for each in results["targets"]}
    for target, checks in results["footer"]["counts"].items():
        for check, counts in checks.items():
            numbers = " | ".join(str(counts.get(each, 0)) for each in RESULTS)
            version = versions.get(target, "")
            yield f"| {target} | {version} | {options['edition']} | {options['seed']} | `{check}` | {numbers} |\n"


def written(page: str, folders: Iterable[Path]) -> str:
    """The page with the rows of these runs, sorted. Errors: OSError, ValueError or KeyError for what is no run."""
    found = sorted({row for each in folders for row in rows(json.loads((each / "results.json").read_text("utf-8")))})
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + HEAD + "".join(found) + END + rest.partition(END)[2]


def main(argv: Sequence[str]) -> int:
    if not argv:
        print("name the folders of runs: DIR...", file=sys.stderr)
        return 2
    PAGE.write_text(written(PAGE.read_text("utf-8"), map(Path, argv)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
