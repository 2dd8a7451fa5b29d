"""The brief report: at most 40 lines whatever a run found, and a command for each line that is left out."""

import re
from pathlib import Path
from typing import Any

import pytest

from kipcheck import reports
from kipcheck.conformance.cli.reports import print_report
from kipcheck.conformance.tests.support.ledgers import (
    CAUSE,
    DIFFERENCE,
    FAILURE,
    FLAKY,
    FOOTER,
    REASON,
    SEEN,
    Line,
    campaign,
    campaigned,
    everything,
    verdicts,
    write,
)
from kipcheck.reports import terminal

SKIP: Line = {"target": "another", "check": "wire/claims", "why": "it claims nothing that this is about"}
STALE: Line = {
    "kind": "passes", "entry": "known.toml:9", "why": "it no longer fails", "target": "another",
    "checks": ["wire/claims"], "invariant": "survives", "where": {"sticky": ""}, **REASON,
}  # fmt: skip


def failures(number: int, **about: Any) -> list[tuple[str, Line]]:
    """Failures with a cause each."""
    ids = [f"{each:012x}" for each in range(number)]
    lines = [("failure", {**FAILURE, "id": id, **about}) for id in ids]
    causes = [
        {**CAUSE, "id": f"c{id[1:]}", "failures": [id], "least": id, "cases": 100 - at, "title": f"Defect {at}"}
        for at, id in enumerate(ids)
    ]
    return [*lines, *(("cause", each) for each in causes)]


def rendered(folder: Path, *lines: tuple[str, Line], **more: Any) -> list[str]:
    return reports.render(write(folder, *lines, **more), "brief").splitlines()


def test_a_cause_is_one_line_with_effect_cases_id_title_and_page(tmp_path: Path) -> None:
    found = rendered(tmp_path, *everything())
    assert found[0] == "somebody 1.0, another 2.0: 3 failures, 1 warning, 1 note of 4 causes, the gravest first"
    assert found[1] == "stuck group 13 0123456789ab  An assignment is lost  findings/no-such"
    assert found[2] == "FAIL         1 ba9876543210  A partition has one owner."
    assert "known deviation" in found[-1] and "111111111111" not in "\n".join(found)


def test_three_commands_and_the_verdict_end_the_report(tmp_path: Path) -> None:
    *_, show, replay, details, last = rendered(tmp_path, *everything())
    assert show.split()[:5] == ["kipcheck", "show", "0123456789ab", "--out", str(tmp_path)]
    assert replay.split()[:5] == ["kipcheck", "replay", "0123456789ab", "--out", str(tmp_path)]
    assert details.split()[:4] == ["kipcheck", "report", str(tmp_path), "--details"]
    assert last.startswith("complete: 3 distinct failures, 1 warning, 1 known deviation, 1 stale entry; exit 1")
    assert last.endswith(f"; {tmp_path / 'ledger.jsonl'}")


def test_nothing_unexpected_is_said_first(tmp_path: Path) -> None:
    known = [("failure", {**FAILURE, "known": REASON})]
    found = rendered(tmp_path, *verdicts("FAIL", 3), *known, footer={**FOOTER, "exit": 0, "exits": []})
    assert found[0] == "somebody: no unexpected failure"
    assert found[1] == "somebody: 3 cases in 1 check: 3 FAIL; 1 check as expected"
    assert not any("kipcheck show" in each for each in found)


def test_notes_are_no_failures(tmp_path: Path) -> None:
    found = rendered(
        tmp_path, *verdicts("NOTE", 2), *failures(2, grade="INFO"), footer={**FOOTER, "exit": 0, "exits": []}
    )
    assert found[0] == "somebody: no unexpected failure; 2 notes of 2 causes"


def test_failures_without_causes_are_counted_alone(tmp_path: Path) -> None:
    found = rendered(tmp_path, ("failure", FAILURE), footer=None)
    assert found[0] == "somebody, another: 1 failure, the gravest first"
    assert found[1] == "FAIL 12 0123456789ab  Legal bytes are read as what they are."


def test_the_gravest_25_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    found = rendered(tmp_path, *failures(60))
    assert [re.findall("Defect [0-9]+", each) for each in found[1:26]] == [[f"Defect {at}"] for at in range(25)]
    assert found[26] == f"and 35 causes more, of 35 failures: kipcheck report {tmp_path} --details"
    assert len(found) <= terminal.LINES


MANY = 50
TOO_MUCH: dict[str, list[tuple[str, Line]]] = {
    "errors of targets": [("trouble", {"target": "another", "why": f"went down {at}\nand more"}) for at in range(MANY)],
    "stale entries": [("stale", {**STALE, "entry": f"known.toml:{at}"}) for at in range(MANY)],
    "flaky failures": [("flaky", {**FLAKY, "version": at}) for at in range(MANY)],
    "differences between targets": [("difference", {**DIFFERENCE, "check": f"wire/{at}"}) for at in range(MANY)],
    "skipped checks": [("skip", {**SKIP, "why": f"reason {at}"}) for at in range(MANY)],
}


@pytest.mark.parametrize("name", TOO_MUCH)
@pytest.mark.parametrize("causes", [0, 3, 60])
def test_what_does_not_fit_is_counted_with_the_command_that_shows_it(tmp_path: Path, name: str, causes: int) -> None:
    found = rendered(tmp_path, *verdicts("PASS", 2), *failures(causes), *TOO_MUCH[name])
    assert len(found) == terminal.LINES
    (counted,) = [each for each in found if each.startswith("not shown: ")]
    assert counted.endswith(f": kipcheck report {tmp_path} --details")
    number, total = map(int, re.findall(rf"(\d+) of (\d+) {name}", counted)[0])
    assert total == MANY and 0 < number < MANY


def test_of_everything_at_once_each_kind_has_a_line(tmp_path: Path) -> None:
    every = [line for lines in TOO_MUCH.values() for line in lines]
    found = rendered(tmp_path, *verdicts("PASS", 2), *failures(60), *every)
    assert len(found) == terminal.LINES
    text = "\n".join(found)
    for each in ("went down 0", "stale: known.toml:0", "flaky: another", "differ: wire/0", "skipped: reason 0"):
        assert each in text, each


def test_a_campaign_fits_too(tmp_path: Path) -> None:
    found = rendered(tmp_path, *campaign(), *failures(60), header=campaigned())
    assert len(found) <= terminal.LINES
    assert any(each.startswith("campaign c0ffee00c0ffee00: ") for each in found)
    assert any(each.startswith("failures: 61 new") for each in found)


@pytest.mark.parametrize("width", [60, 80, 110, 160])
def test_on_a_terminal_no_line_of_a_cause_wraps(tmp_path: Path, width: int) -> None:
    long = {**CAUSE, "title": "An assignment is lost " * 9, "page": "conformance/docs/findings/kafka-python-x.md"}
    path = write(tmp_path, *verdicts("FAIL", 1), ("failure", FAILURE), ("failure", SEEN), ("cause", long))
    found = terminal.render(reports.loaded(path), width).splitlines()
    assert all(len(each) <= width for each in found[:3])
    assert ("findings/kafka-python-x" in found[1]) == (width > 100)
    assert " ..." in found[1]


def test_a_terminal_has_colours_unless_no_color_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, *everything())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_report(path)
    assert "\x1b" not in capsys.readouterr().out  # it is no terminal
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_report(path)
    assert "\x1b[31mstuck group\x1b[0m 13" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_report(path)
    assert "\x1b" not in (text := capsys.readouterr().out) and "stuck group 13" in text


def test_a_note_has_no_effect_in_the_first_column(tmp_path: Path) -> None:
    """A NOTE is no violation: its line does not begin with what one would do to users."""
    noted = {**FAILURE, "grade": "INFO"}
    cause = {**CAUSE, "failures": [FAILURE["id"]], "cases": 12}
    path = write(tmp_path, *verdicts("NOTE", 12), ("failure", noted), ("cause", cause))
    shown = reports.render(path, "brief").splitlines()
    assert shown[1].startswith(f"NOTE 12 {FAILURE['id']}  {CAUSE['title']}")
    failed = write(tmp_path, *verdicts("FAIL", 12), ("failure", FAILURE), ("cause", cause))
    assert reports.render(failed, "brief").splitlines()[1].startswith(f"{CAUSE['severity']} 12 {FAILURE['id']}")
