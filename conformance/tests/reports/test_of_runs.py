"""A run leaves its reports whatever becomes of it, and says what goes on while it lasts."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from kipcheck import reports
from kipcheck.conformance.core.files.output_folder import LIST
from kipcheck.conformance.core.ledger import Header, Verdict, Writer, lines, read, type_of
from kipcheck.conformance.core.values.impacts import Severity
from kipcheck.conformance.engine.execution.progress import Progress
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.engine.execution.worker import Unit
from kipcheck.conformance.engine.findings.early_causes import EarlyCause
from kipcheck.conformance.engine.ledger import lines as ledger_lines
from kipcheck.reports import styled, terminal

EVERY = {"ledger.jsonl", *reports.FILES.values()}
SMALL = ("--target", "reference", "--message", "HeartbeatRe*", "--check", "wire/repeat", "--cases", "2")
LONG = ("--target", "reference", "--message", "HeartbeatRe*", "--cases", "60", "--workers", "1")
"""The rest is not done when its first check is."""


def kipcheck(*arguments: object, **more: Any) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "kipcheck", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def executed(*arguments: object) -> tuple[int, str, str]:
    with kipcheck(*arguments) as child:
        printed, stated = child.communicate(timeout=120)
    return child.returncode, printed, stated


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()} - {"failures", LIST}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({}, 0),
        ({"targets": ("cmd:false",)}, 3),
        ({"targets": ("miniature/refuses-unknown-tags",), "checks": ("wire/unknown-tags",)}, 1),
    ],
)
def test_all_reports_are_there_whatever_came_of_the_run(tmp_path: Path, asked: dict[str, Any], code: int) -> None:
    options = Options(("reference",), messages=("HeartbeatRe*",), checks=("wire/repeat",), cases=2, workers=1)
    outcome = run(replace(options, out=tmp_path, **asked))
    assert outcome.exit_code == code, outcome
    assert names(tmp_path) == EVERY
    assert json.loads((tmp_path / "results.json").read_text("utf-8"))["footer"]["exit"] == code
    assert f"exit {code}" in outcome.text


def test_a_report_that_cannot_be_made_is_a_bug_of_ours_and_the_ledger_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(found: object) -> str:
        raise ZeroDivisionError("in the report")

    monkeypatch.setattr(terminal, "render", breaks)
    options = Options(
        targets=("reference",), messages=("HeartbeatRe*",), checks=("wire/repeat",), cases=1, out=tmp_path
    )
    outcome = run(options)
    assert (outcome.exit_code, outcome.why) == (70, "no report: ZeroDivisionError: in the report")
    assert read(tmp_path / "ledger.jsonl").complete
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.integration
def test_what_an_earlier_run_left_is_gone_when_a_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(("reference",), messages=("HeartbeatRe*",), checks=("wire/repeat",), cases=1, out=tmp_path)
    run(options)
    assert names(tmp_path) == EVERY
    seen: list[set[str]] = []

    def writer(*arguments: Any) -> Writer:
        seen.append(names(tmp_path))
        return Writer(*arguments)

    monkeypatch.setattr(ledger_lines, "Writer", writer)
    run(options)
    assert seen == [{"ledger.jsonl"}]
    assert names(tmp_path) == EVERY


def begun(child: "subprocess.Popen[str]", ledger: Path) -> None:
    """Waits until some verdicts are on the disk."""
    end = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < end:
        if ledger.is_file() and '"type":"check"' in ledger.read_text("utf-8"):
            return
        time.sleep(0.05)
    pytest.fail(f"the run did not begin: {child.communicate()}")


@pytest.mark.integration
def test_a_run_that_is_killed_is_reported_as_incomplete(tmp_path: Path) -> None:
    with kipcheck("run", *LONG, "--out", tmp_path) as child:
        begun(child, tmp_path / "ledger.jsonl")
        child.kill()
        child.communicate()
    assert names(tmp_path) == {"ledger.jsonl"}
    code, printed, _ = executed("report", tmp_path, "--form", "all")
    assert code == 6
    assert "INCOMPLETE: the ledger ends before its footer" in printed
    assert printed.splitlines()[1].endswith(" PASS")
    assert names(tmp_path) == EVERY


@pytest.mark.integration
def test_a_run_that_is_cancelled_leaves_its_reports(tmp_path: Path) -> None:
    with kipcheck("run", *LONG, "--out", tmp_path) as child:
        begun(child, tmp_path / "ledger.jsonl")
        child.send_signal(signal.SIGINT)
        printed, stated = child.communicate(timeout=60)
    assert child.returncode == 6, (printed, stated)
    assert "INCOMPLETE (interrupted)" in printed
    assert names(tmp_path) == EVERY


# ---- events


@pytest.mark.integration
def test_events_are_the_ledger_without_its_verdicts(tmp_path: Path) -> None:
    code, printed, _ = executed(
        "run", *SMALL, "--part", "1/1", "--out", tmp_path / "out", "--events", tmp_path / "events.ndjson"
    )
    assert code == 0
    events = list(lines(tmp_path / "events.ndjson"))
    assert events == [line for line in lines(tmp_path / "out" / "ledger.jsonl") if not isinstance(line, Verdict)]
    assert [type_of(each) for each in events] == ["header", "target", "begin", "check", "footer"]
    assert isinstance(events[0], Header) and events[0].part == (1, 1)
    assert printed.splitlines()[0].endswith(": no unexpected failure")


@pytest.mark.integration
def test_events_come_while_the_run_lasts_and_are_all_that_comes(tmp_path: Path) -> None:
    with kipcheck("run", *LONG, "--out", tmp_path, "--events", "-") as child:
        assert child.stdout is not None
        each = (json.loads(line)["type"] for line in iter(child.stdout.readline, ""))
        types = [*dict.fromkeys(takewhile(lambda kind: kind != "check", each))]
        assert child.poll() is None
        child.send_signal(signal.SIGTERM)
        left, _ = child.communicate(timeout=60)
    assert types == ["header", "target", "skip", "begin"], "and a check that is done"
    assert json.loads(left.splitlines()[-1])["type"] == "footer"  # and no report after it


def test_where_events_cannot_go_nothing_is_run(tmp_path: Path) -> None:
    code, printed, stated = executed(
        "run", *SMALL, "--out", tmp_path / "out", "--events", tmp_path / "no" / "such" / "file"
    )
    assert (code, printed) == (2, "")
    assert f"{tmp_path}/no/such/file cannot be written" in stated


# ---- progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    yield now


PLAN = [("wire/damage", 10), ("wire/repeat", 1300)]
CAUSE = EarlyCause("A text is cut off", Severity.WRONG_DATA, known=False)
UNIT = Unit("somebody", "apache", "wire/damage", "HeartbeatRequest", 3, 0, None)


def test_on_a_terminal_one_line_lives_and_leaves(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = io.StringIO()
    shown = Progress(stream, live=True)
    shown.plan("somebody 1.0", PLAN)
    shown.begin()
    shown.step(1, 50, 0)  # too soon
    clock[0] += 2
    shown.step(5, 1000, 3)
    shown.end(2000, 3)
    shown.begin()
    shown.say("looking for the least case of 1 kinds of failure, which takes its time")
    shown.close()
    shown.close()
    states = stream.getvalue().split("\r\x1b[K")
    assert states[1:] == [
        "check 1 of 2  wire/damage  1,310 subjects left  0 causes",
        "check 1 of 2  wire/damage  1,305 subjects left  0 causes",
        "check 2 of 2  wire/repeat  1,300 subjects left  0 causes",
        "looking for the least case of 1 kinds of failure, which tak",
        "",
    ]
    assert "\n" not in stream.getvalue()


@pytest.mark.parametrize("columns", [20, 40, 80, 120, 200])
def test_a_live_line_fits_the_terminal(clock: list[float], monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = io.StringIO()
    shown = Progress(stream, live=True)
    shown.plan("somebody 1.0 of a vendor with a long name", PLAN)
    shown.begin()
    (line,) = re.sub(r"\x1b\[\d+m", "", stream.getvalue().removeprefix("\r\x1b[K")).splitlines()
    assert len(line) < columns
    assert ("━" in line) == (columns > 64)
    assert ("0 causes" in line) == (columns > 40)
    assert ("check 1 of 2" in line) == (columns > 12)
    assert ("0 failed" in line) == (columns > 120)


def test_the_bar_of_the_live_line_has_the_share_of_all_subjects(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = io.StringIO()
    shown = Progress(stream, live=True)
    shown.plan("somebody 1.0", [("wire/damage", 10), ("wire/repeat", 30)])
    shown.begin()
    shown.end(1, 0)
    shown.begin()
    clock[0] += 2
    shown.step(10, 20, 0)
    half = stream.getvalue().split("\r\x1b[K")[-1]
    pieces = re.findall(r"\x1b\[(\d+)m([━╸╺]+)", half)
    colours = [colour for colour, piece in pieces for _ in piece]
    assert (len(colours), len(set(colours))) == (16, 2) and colours.count(colours[0]) == 8, half


def test_a_table_wraps_on_a_terminal_and_reads_no_markup() -> None:
    shown = styled.table(("name", "number"), [("[red]a[/red] " + "word " * 9, "12"), ("b", "7")], (1,), 40)
    lines = re.sub(r"\x1b\[\d+m", "", shown).splitlines()
    assert max(map(len, lines)) <= 40 and len(lines) > 3
    assert lines[1].startswith("[red]a[/red] word") and lines[-1].split() == ["b", "7"]


def test_a_cause_is_named_above_the_live_line_when_it_is_found(clock: list[float]) -> None:
    stream = io.StringIO()
    shown = Progress(stream, live=True)
    shown.plan("somebody 1.0", PLAN)
    shown.begin()
    shown.found(CAUSE, UNIT)
    shown.found(replace(CAUSE, known=True), UNIT)
    clock[0] += 2
    shown.step(5, 1000, 3)
    _, first, erased, last = stream.getvalue().split("\r\x1b[K")
    assert erased == "  wrong data: A text is cut off  (wire/damage on HeartbeatRequest v3)\n"
    assert "2 causes" in last and "0 causes" in first


def test_elsewhere_the_line_is_printed_now_and_then(clock: list[float]) -> None:
    stream = io.StringIO()
    shown = Progress(stream, live=False)
    shown.plan("somebody 1.0", PLAN)
    shown.begin()
    clock[0] += 1
    shown.step(1, 50, 0)
    clock[0] += 5
    shown.end(2000, 3)
    shown.begin()
    clock[0] += 6
    shown.step(200, 400, 2)
    assert list(shown.shrinking(after(clock, 11, range(2)), 2)) == [0, 1]
    shown.close()
    assert stream.getvalue().splitlines() == [
        "somebody 1.0  check 1 of 2  wire/damage  1 of 10  1,309 subjects left  0 failed  0 causes  0:01  50 cases/s",
        (
            "somebody 1.0  check 2 of 2  wire/repeat  200 of 1300  1,100 subjects left  5 failed  0 causes  "
            "0:12  200 cases/s"
        ),
        "somebody 1.0  searching for 2 least cases",
        "somebody 1.0  searching for the least cases: 1 of 2",
        "somebody 1.0  searching for the least cases: 2 of 2",
    ]


def after(clock: list[float], seconds: float, items: Iterable[int]) -> Iterator[int]:
    for each in items:
        clock[0] += seconds
        yield each


def test_a_check_that_comes_again_keeps_its_number(clock: list[float]) -> None:
    stream = io.StringIO()
    shown = Progress(stream, live=False)
    shown.plan("somebody 1.0", [("wire/damage", 4), ("wire/repeat", 3), ("wire/damage", 6)])
    for _ in range(3):
        clock[0] += 10
        shown.begin()
        shown.end(100, 0)
    lines = [
        re.search(r"(check . of .)  (\S+)  (\d+ of \d+)  (\d+) subjects left", each)
        for each in stream.getvalue().splitlines()
    ]
    assert [each and each.groups() for each in lines] == [
        ("check 1 of 2", "wire/damage", "4 of 4", "9"),
        ("check 2 of 2", "wire/repeat", "3 of 3", "6"),
        ("check 1 of 2", "wire/damage", "6 of 6", "0"),
    ]


def test_a_reader_of_progress_that_went_away_stops_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    Progress(stream, live=False).say("nobody listens")


@pytest.mark.integration
def test_a_run_on_a_terminal_leaves_no_line_behind(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    words = [sys.executable, "-m", "kipcheck", "run", *SMALL, "--out", str(tmp_path)]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:
        pass  # the other end is closed
    assert child.wait(60) == 0
    os.close(ours)
    assert b"\n" not in seen
    assert seen == b"" or seen.endswith(b"\r\x1b[K")
