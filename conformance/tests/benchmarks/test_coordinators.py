"""The table of Kafka-compatible coordinators: sums of seeds, and rows of earlier runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.benchmarks.coordinators import BEGIN, END, HEAD, PAGE, written

EMPTY = f"before\n{BEGIN}{HEAD}{END}after\n"


def run(folder: Path, target: str, version: str, seed: int, **checks: dict[str, int]) -> Path:
    results: dict[str, Any] = {
        "options": {"edition": "apache@3.9.2", "seed": seed},
        "targets": [{"target": target, "version": version}],
        "footer": {"counts": {target: {name.replace("_", "/"): counts for name, counts in checks.items()}}},
    }
    place = folder / f"{target}-{version}-{seed}-{'-'.join(checks)}"
    place.mkdir()
    (place / "results.json").write_text(json.dumps(results), "utf-8")
    return place


def test_a_row_is_the_sum_of_its_seeds_and_known_deviations_are_failures(tmp_path: Path) -> None:
    folders = [
        run(tmp_path, "mine", "1", 0, group_errors={"PASS": 3, "KNOWN": 2}),
        run(tmp_path, "mine", "1", 1, group_errors={"PASS": 4, "FAIL": 1, "UNKNOWN": 5}),
    ]
    line = "| mine | 1 | apache@3.9.2 | `group/errors` | 0, 1 | 7 | 3 | 0 | 0 | 5 | 0 |\n"
    assert written(EMPTY, folders) == f"before\n{BEGIN}{HEAD}{line}{END}after\n"


def test_rows_stay_unless_their_check_or_another_version_of_their_coordinator_was_run(tmp_path: Path) -> None:
    old = [
        run(tmp_path, "kept", "1", 0, group_errors={"PASS": 1}),
        run(tmp_path, "mine", "1", 0, group_errors={"PASS": 2}, damage_requests={"PASS": 3}),
        run(tmp_path, "newer", "1", 0, group_errors={"PASS": 4}, damage_requests={"PASS": 5}),
    ]
    new = [
        run(tmp_path, "mine", "1", 7, group_errors={"PASS": 6}),
        run(tmp_path, "newer", "2", 0, group_errors={"PASS": 7}),
    ]
    page = written(written(EMPTY, old), new)
    rows = [line.split(" | ")[:6] for line in page.splitlines() if "apache" in line]
    assert rows == [
        ["| kept", "1", "apache@3.9.2", "`group/errors`", "0", "1"],
        ["| mine", "1", "apache@3.9.2", "`damage/requests`", "0", "3"],
        ["| mine", "1", "apache@3.9.2", "`group/errors`", "7", "6"],
        ["| newer", "2", "apache@3.9.2", "`group/errors`", "0", "7"],
    ]


def test_a_seed_is_not_counted_twice(tmp_path: Path) -> None:
    folder = run(tmp_path, "mine", "1", 0, group_errors={"PASS": 1})
    with pytest.raises(ValueError, match="mine group/errors was run twice with a seed"):
        written(EMPTY, [folder, folder])


def test_the_page_is_what_the_program_writes() -> None:
    page = PAGE.read_text("utf-8")
    assert written(page, []) == page
