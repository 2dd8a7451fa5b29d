"""The table of Kafka-compatible coordinators: rows of runs, for docs/compatible-coordinators.md.

``python -m kipcheck.conformance.benchmarks.coordinators DIR...`` writes the rows of runs in these folders (``--out``
of ``kipcheck run``) between the markers of the page. A row is a check, with the sum of its seeds: nothing in it is
written by hand. Rows of what was not run anew are kept, unless the coordinator was run in another version. The runs
are also recorded for the table by groups of laws (``coordinator_laws``), which is written again.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.benchmarks import coordinator_laws
from kipcheck.conformance.benchmarks.pages import with_section

PAGE: Final = Path(__file__).parents[1] / "docs" / "compatible-coordinators.md"
BEGIN, END = "<!-- rows -->\n", "<!-- end of rows -->\n"
RESULTS: Final = ("PASS", "FAIL", "WARN", "NOTE", "UNKNOWN", "SKIP")
HEAD: Final = (
    f"| coordinator | version | edition | check | seeds | {' | '.join(RESULTS)} |\n|{'---|' * (5 + len(RESULTS))}\n"
)


@dataclass(frozen=True, order=True)
class Place:
    """What a row is about."""

    coordinator: str
    version: str
    edition: str
    check: str


@dataclass(frozen=True)
class Run:
    """One check of one run."""

    place: Place
    seed: int
    counts: Counter[str]
    """By result. Known deviations are failures."""


def runs(results: Any) -> Iterator[Run]:
    """``results``: the ``results.json`` of a run."""
    options = results["options"]
    versions = {each["target"]: each["version"] for each in results["targets"]}
    for target, checks in results["footer"]["counts"].items():
        for check, counts in checks.items():
            found = Counter(counts)
            found["FAIL"] += found.pop("KNOWN", 0)
            yield Run(Place(target, versions.get(target, ""), options["edition"], check), options["seed"], found)


def row(place: Place, found: Sequence[Run]) -> str:
    """Errors: ValueError if a seed was run twice."""
    seeds = sorted(each.seed for each in found)
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"{place.coordinator} {place.check} was run twice with a seed")
    counts = sum((each.counts for each in found), Counter[str]())
    cells = [place.coordinator, place.version, place.edition, f"`{place.check}`", ", ".join(map(str, seeds))]
    return f"| {' | '.join([*cells, *(str(counts[each]) for each in RESULTS)])} |"


def kept(page: str, places: Iterable[Place]) -> Iterator[str]:
    """The rows of the page that no run replaces."""
    replaced = {(each.coordinator, each.edition, each.check) for each in places}
    versions = {each.coordinator: each.version for each in places}
    for line in page.partition(BEGIN)[2].partition(END)[0].removeprefix(HEAD).splitlines():
        coordinator, version, edition, check, *_ = (each.strip(" `") for each in line.strip("|").split("|"))
        if (coordinator, edition, check) not in replaced and versions.get(coordinator, version) == version:
            yield line


def written(page: str, folders: Iterable[Path]) -> str:
    """The page with the rows of these runs, sorted. Errors: OSError, ValueError or KeyError for what is no run."""
    found: dict[Place, list[Run]] = {}
    for each in folders:
        for run in runs(json.loads((each / "results.json").read_text("utf-8"))):
            found.setdefault(run.place, []).append(run)
    lines = sorted([*kept(page, found), *(row(place, several) for place, several in found.items())])
    return with_section(page, BEGIN, END, [*HEAD.splitlines(), *lines])


def with_laws(page: str, runs: Sequence[coordinator_laws.Recorded]) -> str:
    """The page with the table by groups of laws."""
    return with_section(page, coordinator_laws.BEGIN, coordinator_laws.END, coordinator_laws.table(runs))


def main(argv: Sequence[str]) -> int:
    if not argv:
        print("name the folders of runs: DIR...", file=sys.stderr)
        return 2
    folders = [*map(Path, argv)]
    page = written(PAGE.read_text("utf-8"), folders)
    coordinator_laws.add(
        run for each in folders
        for run in coordinator_laws.recorded(json.loads((each / "results.json").read_text("utf-8")))
    )  # fmt: skip
    PAGE.write_text(with_laws(page, coordinator_laws.read()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
