"""The badge of a run, and several runs together by cause."""

import json
from pathlib import Path
from typing import Any

import pytest

from kipcheck import reports
from kipcheck.conformance.cli import main
from kipcheck.conformance.tests.support.ledgers import CAUSE, FAILURE, FOOTER, HEADER, REASON, Line, verdicts, write
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.reports.history import COMES_AND_GOES, FIXED, NEW, NOT_LOOKED_AT, OPEN, state

PASSED = {**FOOTER, "exit": 0, "exits": [], "meaning": "conformant"}
BROKEN: list[tuple[str, Line]] = [*verdicts("FAIL", 12), ("failure", FAILURE),
                                  ("cause", {**CAUSE, "failures": [FAILURE["id"]]})]  # fmt: skip
CLEAN = verdicts("PASS", 12)


def known() -> list[tuple[str, Line]]:
    return [*verdicts("FAIL", 12), ("failure", {**FAILURE, "known": REASON}), *BROKEN[-1:]]


@for_each([
    (CLEAN, PASSED, "conformant", "brightgreen"),
    (BROKEN, FOOTER, f"1 cause, gravest: {CAUSE['severity']}", "red"),
    (known(), PASSED, "1 known cause", "yellow"),
    (CLEAN, {**PASSED, "exit": 7}, "inconclusive", "lightgrey"),
    (CLEAN, {**PASSED, "exit": 6}, "undecided", "lightgrey"),
    (CLEAN, {**PASSED, "complete": False, "stopped_by": "budget", "exit": 6}, "incomplete", "lightgrey"),
    (CLEAN, {**PASSED, "exit": 3, "meaning": "a target did not start"}, "a target did not start", "lightgrey"),
    (CLEAN, None, "incomplete", "lightgrey"),
])  # fmt: skip
def test_only_a_verdict_without_any_cause_is_green(
    lines: list[tuple[str, Line]], footer: Any, message: str, colour: str, tmp_path: Path
) -> None:
    badge = json.loads(reports.render(write(tmp_path, *lines, footer=footer), "badge"))
    assert badge == {"schemaVersion": 1, "label": "kipcheck", "message": message, "color": colour}


@for_each([
    (["-", "12"], NEW), (["12", "3"], OPEN), (["?", "3"], OPEN), (["12", "-"], FIXED), (["12", "?"], NOT_LOOKED_AT),
    (["-", "12", "-"], COMES_AND_GOES), (["12", "-", "?", "4"], COMES_AND_GOES), (["-", "?", "4"], NEW),
])  # fmt: skip
def test_a_cause_is_new_fixed_or_open_where_runs_looked_at_it(seen: list[str], wanted: str) -> None:
    assert state(seen) == wanted


def of_runs(folder: Path, *runs: tuple[list[tuple[str, Line]], Any]) -> list[Path]:
    """One ledger for each, a day after the other."""
    return [
        write(folder / str(day), *lines, header={**HEADER, "begun": f"2026-11-0{day}T08:00:00+00:00"}, footer=footer)
        for day, (lines, footer) in enumerate(runs, 1)
    ]


def test_runs_are_put_in_order_and_named(tmp_path: Path) -> None:
    first, last = of_runs(tmp_path, (CLEAN, PASSED), (BROKEN, FOOTER))
    text = reports.history_of([last, first])
    assert text.startswith("2 runs, 1 cause: 1 new\n")
    assert text.index("2026-11-01T08:00") < text.index("2026-11-02T08:00")
    assert f"{NEW:15}{CAUSE['severity']:19}  -  {CAUSE['cases']}  {FAILURE['target']}: {CAUSE['title']}" in text
    assert reports.history_of([first]).startswith("1 run, 0 causes\n")


def test_a_run_that_was_cut_off_says_nothing_of_what_it_lacks(tmp_path: Path) -> None:
    cut = {**PASSED, "complete": False, "stopped_by": "budget", "exit": 6}
    assert reports.history_of(of_runs(tmp_path, (BROKEN, FOOTER), (CLEAN, cut))).startswith(
        f"2 runs, 1 cause: 1 {NOT_LOOKED_AT}\n"
    )


def test_the_command_has_the_exit_code_of_the_newest_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_runs(tmp_path, (BROKEN, FOOTER), (CLEAN, PASSED))
    folders = [str(tmp_path / "2"), str(tmp_path / "1")]
    assert main.run(["report", *folders, "--form", "history"]) == 0
    assert f"1 {FIXED}" in capsys.readouterr().out
    assert main.run(["report", *folders]) == 2
    assert "--form history only" in capsys.readouterr().err
    assert main.run(["report", folders[0], str(tmp_path / "9"), "--form", "history"]) == 2
    assert str(tmp_path / "9") in capsys.readouterr().err
