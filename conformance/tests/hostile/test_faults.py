"""What a command owes after a fault: its exit code, files that can be read, and no process of its own."""

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.tests.engine.execution.test_interrupts import CASES, MATRIX, MESSAGES, Case
from kipcheck.conformance.tests.support.processes import Started, started
from kipcheck.conformance.tests.targets.transport.test_process_tree import JVM, has

pytestmark = [pytest.mark.faults, pytest.mark.skipif(not process_tree.LINUX, reason="there is no /proc")]
SECOND = {
    "run": ("run", "--target", "reference", *MESSAGES, "--cases", "1"),
    "campaign": ("campaign", "--target", "reference", "--check", "wire/round-trip", "--cases", "300"),
    "matrix": MATRIX,
}
JUMPS = """
import time
real, real_ns = time.time, time.time_ns
DAY = 86_400
def jump():
    return DAY * (int(time.monotonic() * 4) % 3 - 1)
time.time = lambda: real() + jump()
time.time_ns = lambda: real_ns() + jump() * 1_000_000_000
"""
"""The wall clock of a process, which is set a day back or forward four times a second."""


def case(name: str) -> Case:
    return CASES["campaign-pool" if name == "campaign" else name]


def first(name: str) -> Sequence[str]:
    return case(name)[0]


def program(name: str) -> Sequence[str]:
    return case(name)[1]


def wait(kipcheck: Started, name: str, out: Path) -> None:
    _, _, processes, begun, _ = case(name)
    kipcheck.wait_for(lambda: len(kipcheck.below()) >= processes and begun(out), name)


@pytest.mark.parametrize(("name", "second"), [("run", "campaign"), ("campaign", "run"), ("matrix", "matrix")])
def test_a_second_command_in_one_folder_is_refused_and_the_first_goes_on(
    name: str, second: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with started(*first(name), "--out", out, program=program(name), cwd=tmp_path) as kipcheck:
        wait(kipcheck, name, out)
        with started(*SECOND[second], "--out", out, program=program(second), cwd=tmp_path) as other:
            printed = other.process.communicate(timeout=60)
        assert other.process.returncode == 2, printed
        assert f"kipcheck: {out} is in use: " in printed[1] and "--out" in printed[1]
        kipcheck.process.send_signal(signal.SIGINT)
        printed = kipcheck.process.communicate(timeout=60)
        assert kipcheck.process.returncode == 6, printed
        assert not kipcheck.left()
    case(name)[4](out)


@pytest.mark.parametrize("name", SECOND)
def test_a_second_interrupt_changes_nothing(name: str, tmp_path: Path) -> None:
    """Apart from both in the same moment, as test_interrupts has them."""
    out = tmp_path / "out"
    with started(*first(name), "--out", out, program=program(name), cwd=tmp_path) as kipcheck:
        wait(kipcheck, name, out)
        kipcheck.process.send_signal(signal.SIGINT)
        until = time.monotonic() + 60
        while kipcheck.process.poll() is None and time.monotonic() < until:
            time.sleep(0.3)
            kipcheck.process.send_signal(signal.SIGINT)
        printed = kipcheck.process.communicate(timeout=60)
        assert kipcheck.process.returncode == 6, printed
        assert "Traceback" not in printed[1]
        assert not kipcheck.left()
    case(name)[4](out)


def test_the_ledger_of_a_killed_run_is_read_and_the_next_run_takes_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with started(*first("run"), "--out", out, cwd=tmp_path) as kipcheck:
        wait(kipcheck, "run", out)
        kipcheck.process.kill()
        kipcheck.process.wait()
        assert not kipcheck.left()
    assert read(out / "ledger.jsonl").footer is None
    assert main.run(["report", str(out / "ledger.jsonl")]) == 6
    assert "INCOMPLETE" in capsys.readouterr().out
    assert main.run([*SECOND["run"], "--out", str(out)]) == 0
    footer = read(out / "ledger.jsonl").footer
    assert footer is not None and footer.complete


@pytest.mark.jars
def test_a_matrix_whose_jvm_is_killed_names_the_cells_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("matrix", "--scenario", "join", "--from", "2.3", "--to", "3.9", "--out", out)
    with started(*words, cwd=tmp_path) as kipcheck:
        kipcheck.wait_for(lambda: has(kipcheck.below(), (JVM,)), "matrix")
        victim = next(pid for pid, line in kipcheck.below().items() if JVM in line)
        os.kill(victim, signal.SIGKILL)
        printed = kipcheck.process.communicate(timeout=600)
        assert "Traceback" not in printed[1]
        assert kipcheck.process.returncode in (0, 3), printed
        assert not kipcheck.left()
    if kipcheck.process.returncode == 0:  # it was started again
        assert json.loads((out / "matrix.json").read_text("utf-8"))["complete"]
    else:
        assert "killed by SIGKILL" in printed[1]


@pytest.mark.parametrize("name", ["run", "campaign"])
def test_durations_do_not_depend_on_the_wall_clock(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in child processes, which import the same file when they begin."""
    (tmp_path / "sitecustomize.py").write_text(JUMPS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    out = tmp_path / "out"
    words = {"run": ("--workers", "2"), "campaign": ("--executor", "pool", "--workers", "2")}[name]
    begun = time.monotonic()
    with started(*SECOND[name], *words, "--budget", "5m", "--out", out, cwd=tmp_path) as kipcheck:
        printed = kipcheck.process.communicate(timeout=300)
        assert kipcheck.process.returncode == 0, printed
    took = time.monotonic() - begun
    found = [json.loads(line) for line in (out / "ledger.jsonl").read_text("utf-8").splitlines()]
    durations = [each["seconds"] for each in found if "seconds" in each]
    assert durations and all(0 <= each <= took for each in durations)
