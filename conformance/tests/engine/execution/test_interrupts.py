"""SIGTERM and Ctrl-C end a run, a campaign and a matrix with complete reports, and leave no process."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.engine.execution import interrupts
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.tests.support.processes import started

pytestmark = pytest.mark.skipif(not process_tree.LINUX, reason="there is no /proc")

MESSAGES = ("--message", "HeartbeatRe*")
RUN = ("run", "--target", "reference", *MESSAGES, "--cases", "60")
CAMPAIGN = ("campaign", "--target", "reference", "--check", "wire/round-trip", "--cases", "50000")
OUR_MACHINES = """
import sys
from contextlib import nullcontext
from pathlib import Path
from kipcheck import __main__
from kipcheck.conformance.matrix import build, run
from kipcheck.conformance.matrix.cells import outcome
from kipcheck.conformance.matrix.groups import reference_binaries
build.jars = lambda asked: run.Jars({each.patch: each.patch for cell in asked for each in cell.pair})
build.OutcomeCache = lambda digests: run.OutcomeCache(digests, Path("kept"))
run._within = lambda releases: nullcontext()
run._outcome = lambda cell: outcome(cell, reference_binaries(fitted=True))
sys.exit(__main__.main())
"""
"""``kipcheck matrix`` without jars."""
MATRIX = ("matrix", "--scenario", "join")


def has_a_check(out: Path) -> bool:
    ledger = out / "ledger.jsonl"
    return ledger.is_file() and '"type":"check"' in ledger.read_text("utf-8")


def has_a_manifest(out: Path) -> bool:
    return (out / "manifest.json").is_file()


def ledger_ends(out: Path) -> None:
    footer = read(out / "ledger.jsonl").footer
    assert footer is not None and not footer.complete and footer.stopped_by == "interrupted"
    assert {"report.html", "junit.xml", "summary.md"} <= {each.name for each in out.iterdir()}


def matrix_ends(out: Path) -> None:
    assert not json.loads((out / "matrix.json").read_text("utf-8"))["complete"]
    assert (out / "matrix.html").is_file()


Case = tuple[tuple[str, ...], tuple[str, ...], int, Callable[[Path], bool], Callable[[Path], None]]
CASES: dict[str, Case] = {
    "run": ((*RUN, "--workers", "1"), (), 0, has_a_check, ledger_ends),
    "run-workers": ((*RUN, "--workers", "2"), (), 2, has_a_check, ledger_ends),
    "campaign-inline": ((*CAMPAIGN, "--executor", "inline"), (), 2, has_a_manifest, ledger_ends),
    "campaign-pool": ((*CAMPAIGN, "--executor", "pool", "--workers", "2"), (), 4, has_a_manifest, ledger_ends),
    "matrix": (MATRIX, ("-c", OUR_MACHINES), 2, lambda out: any(Path(out.parent, "kept").glob("*")), matrix_ends),
}
"""Command, program, processes at least, has it begun, and what it leaves."""


DAILY = {("run-workers", False), ("run", True), ("campaign-pool", False), ("matrix", True)}
"""For integration. The others run at night."""


STARTS = [
    pytest.param(name, ignored, number, marks=pytest.mark.integration if (name, ignored) in DAILY else pytest.mark.long)
    for name in CASES
    for ignored, number in ((False, signal.SIGTERM), (True, signal.SIGINT))
]


@pytest.mark.parametrize(("name", "ignored", "number"), STARTS)
def test_a_signal_ends_a_command_with_reports_and_leaves_no_process(
    name: str, ignored: bool, number: signal.Signals, tmp_path: Path
) -> None:
    command, program, processes, begun, ends = CASES[name]
    out = tmp_path / "out"
    with started(*command, "--out", out, ignored=ignored, program=program, cwd=tmp_path) as kipcheck:
        kipcheck.wait_for(lambda: len(kipcheck.below()) >= processes and begun(out), name)
        for _ in range(2):  # as ``timeout`` sends it: to the process, and at once to its group
            kipcheck.process.send_signal(number)
        printed = kipcheck.process.communicate(timeout=60)
        assert kipcheck.process.returncode == 6, printed
        assert "Traceback" not in printed[1]
        assert not kipcheck.left()
    ends(out)


def test_an_interrupt_while_reports_are_written_loses_none_and_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in interrupts.SIGNALS]
    with interrupts.handled():
        interrupts.finish()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert capfd.readouterr().err.count("writing the reports") == 2
    assert [signal.getsignal(number) for number in interrupts.SIGNALS] == before


def test_one_request_is_one_interrupt_and_a_later_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with interrupts.handled():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        now[0] += interrupts.ONE_REQUEST_S
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_waits_for_files_that_belong_together() -> None:
    written: list[str] = []
    with interrupts.handled(), pytest.raises(KeyboardInterrupt), interrupts.deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        written.append("all")
    assert written == ["all"]
    with interrupts.handled(), interrupts.deferred():
        written.append("again")
    with interrupts.deferred():  # and for a script that handles no signals there is nothing to wait for
        written.append("alone")
    assert written == ["all", "again", "alone"]


@pytest.mark.integration
def test_the_exit_code_counts_where_nobody_reads_the_report(tmp_path: Path) -> None:
    arguments: tuple[Any, ...] = ("--target", "miniature/forgets-the-sign", "--message", "HeartbeatRe*", "--check",
                                  "wire/two-readings", "--workers", 1, "--out", tmp_path / "out")  # fmt: skip
    with started("run", *arguments, cwd=tmp_path) as kipcheck:
        assert kipcheck.process.stdout is not None
        kipcheck.process.stdout.close()
        assert kipcheck.process.wait(60) == 1


@pytest.mark.parametrize(("command", "code"), [("run", 6), ("campaign", 6), ("matrix", 6), ("explore group", 130)])
def test_before_there_is_anything_to_report_the_exit_code_says_so(
    command: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = main.parser()

    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "parser", lambda: made)
    options = made.parse_args(command.split())
    options.call = interrupted
    monkeypatch.setattr(made, "parse_args", lambda arguments: options)
    assert main.run(command.split()) == code
    assert capsys.readouterr().err == ("kipcheck: interrupted before it started\n" if code == 6 else "")


def test_what_waits_too_long_is_ended_and_its_cleanup_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "AGAIN_S", 0.05)
    ended = []
    with pytest.raises(interrupts.Overdue), interrupts.ends_after(0.05):
        try:
            time.sleep(60)
        except interrupts.Overdue:
            ended.append("work")
            time.sleep(60)
    assert ended == ["work"]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with interrupts.ends_after(None):
        pass


def test_what_python_ignores_is_raised_again(capsys: pytest.CaptureFixture[str]) -> None:
    """An exception in ``__del__``, as one in a callback of a weak reference, ends nothing."""

    class Ignored:
        def __del__(self) -> None:
            time.sleep(1)

    begun = time.monotonic()
    with pytest.raises(interrupts.Overdue), interrupts.ends_after(0.05):
        del (kept := [Ignored()])[:]
        time.sleep(60)
    assert not kept
    assert time.monotonic() - begun < 20
    assert capsys.readouterr().err == ""


def test_a_command_gets_more_time() -> None:
    with interrupts.ends_after(0.05) as ends_in:
        ends_in(60)
        time.sleep(0.2)
        ends_in(0.05)
        with pytest.raises(interrupts.Overdue):
            time.sleep(60)


def test_reports_are_written_after_the_time_of_a_command() -> None:
    with interrupts.handled(), interrupts.ends_after(0.02):
        interrupts.finish()
        time.sleep(0.1)
