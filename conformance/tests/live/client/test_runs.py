"""Runs of live clients in CI: the exit codes, JUnit, lists of known deviations, names, and how few scripts a least case
takes."""

import re
import sys
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.release import NEWEST

PLACES = "{bootstrap} {group} {topics}"
ODD = f"client:{sys.executable} -m kipcheck.conformance.live.client.defective_consumers Vanishes {PLACES}"


@pytest.mark.integration
def test_a_run_has_exit_codes_junit_and_known_deviations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, known = tmp_path / "out", tmp_path / "known.toml"
    about = ["--check", "client/groups", "--target", ODD, "--name", "mine"]
    asked = ["run", *about, "--script", "stop", "--out", str(out)]
    assert run(asked) == 1
    (failure,) = out.glob("failures/*.json")
    assert "mine" in failure.read_text("utf-8")
    assert "without LeaveGroup" in (out / "junit.xml").read_text("utf-8")
    run(["known", "update", str(known), "--from", str(out)])
    assert run(["replay", str(failure)]) == 2
    assert run(["replay", str(failure), "--trust"]) == 1
    assert run([*asked, "--patience", "5s"]) == 1
    (failure,) = out.glob("failures/*.json")
    assert f"{PLACES}?patience=5" in failure.read_text("utf-8")
    assert run(["replay", str(failure), "--trust", "--patience", "3s"]) == 1
    text = re.sub(
        r"^reason = .*$",
        'reason = "The program closes its socket without LeaveGroup when it is stopped."',
        known.read_text("utf-8"),
        flags=re.MULTILINE,
    )
    known.write_text(re.sub(r"^link = .*$", 'link = "https://a.org/1"', text, flags=re.MULTILINE), "utf-8")
    capsys.readouterr()
    assert run([*asked, "--known", str(known)]) in (0, 7), capsys.readouterr()


ONCE = """
import pathlib, runpy, sys

marker = pathlib.Path(sys.argv.pop(1))
leaves = marker.exists()
marker.touch()
sys.argv[1:1] = [] if leaves else ["Vanishes"]
module = "consumer" if leaves else "defective_consumers"
runpy.run_module("kipcheck.conformance.live.client." + module, run_name="__main__")
"""
SELDOM = """
target = "mine"

[[deviation]]
checks = ["client/groups"]
invariant = "client/leaves"
versions = "all"
shape = ["no LeaveGroup"]
reason = "It closes its socket without LeaveGroup when it is stopped for the first time."
link = "https://a.org/1"
seldom = true
where = { client = "" }
"""


@pytest.mark.integration
def test_a_failure_that_does_not_come_again_is_unstable_unless_it_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, known, marker = tmp_path / "once.py", tmp_path / "known.toml", tmp_path / "ran"
    program.write_text(ONCE, "utf-8")
    known.write_text(SELDOM, "utf-8")
    target = f"client:{sys.executable} {program} {marker} {{bootstrap}} {{group}} {{topics}}"
    exact = ["--edition", f"apache@{NEWEST}"]  # no start shows which versions the program sends
    about = ["--check", "client/groups", "--target", target, "--name", "mine", *exact]
    asked = ["run", *about, "--script", "stop", "--least", "10s"]
    assert run([*asked, "--out", str(tmp_path / "out")]) == 4
    shown = capsys.readouterr().out
    assert "client/leaves: " in shown and "run alone the case does not fail" in shown
    marker.unlink()
    code = run([*asked, "--known", str(known), "--out", str(tmp_path / "known")])
    shown = capsys.readouterr().out
    assert code in (0, 7) and "1 KNOWN" in shown, shown
