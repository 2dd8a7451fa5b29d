"""A failure that does not come again alone is played beside copies of its case: its rate decides."""

import sys
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.release import NEWEST

RARE = """
import fcntl, pathlib, runpy, sys

counter, failing = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1).split(",")
with counter.open("a+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(".")
    file.flush()
    started = counter.stat().st_size
leaves = str(started) not in failing
sys.argv[1:1] = [] if leaves else ["Vanishes"]
module = "consumer" if leaves else "defective_consumers"
runpy.run_module("kipcheck.conformance.live.client." + module, run_name="__main__")
"""
"""A consumer that does not leave at its starts with these numbers."""


def outcome(tmp_path: Path, *starts: int) -> int:
    """The exit code of a run of one script: it starts the program once, three times alone, and twelve times as a race.

    ``starts``: those that fail."""
    program = tmp_path / "rare.py"
    program.write_text(RARE, "utf-8")
    failing = ",".join(map(str, starts))
    target = f"client:{sys.executable} {program} {tmp_path / 'starts'} {failing} {{bootstrap}} {{group}} {{topics}}"
    asked = ["run", "--check", "client/groups", "--cases", "1", "--least", "30s", "--target", target, "--name", "mine"]
    return run([*asked, "--script", "stop", "--edition", f"apache@{NEWEST}", "--out", str(tmp_path / "out")])


@pytest.mark.integration
@pytest.mark.parametrize(("failing", "code"), [(range(5, 11), 1), (range(5, 7), 4)])
def test_a_race_is_a_failure_if_more_than_a_third_of_its_plays_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], failing: range, code: int
) -> None:
    assert outcome(tmp_path, 1, *failing) == code
    ledger = read(tmp_path / "out" / "ledger.jsonl")
    if code == 1:
        (failure,) = ledger.failures
        assert failure.invariant == "client/leaves" and failure.rate == (6, 12)
        run(["report", str(tmp_path / "out"), "--details"])
        assert "a race: it occurs in 6 of 12 plays beside copies of its case, and not alone" in " ".join(
            capsys.readouterr().out.split()
        )
        for form in ("report.html", "results.sarif", "junit.xml", "summary.md"):
            assert "a race: it occurs in 6 of 12 plays" in " ".join(
                (tmp_path / "out" / form).read_text("utf-8").split()
            )
        again = ["replay", str(tmp_path / "out" / "failures" / f"{failure.id}.json"), "--trust"]
        assert run(again) == 0 and "gone (in 0 of 12 plays beside copies" in capsys.readouterr().out
        (tmp_path / "starts").write_text("....", "utf-8")
        assert run([*again, "--trace"]) == 1
        shown = capsys.readouterr().out
        assert "fails again, in 6 of 12 plays" in shown and "is sent SIGTERM" in shown
        (tmp_path / "starts").write_text("........", "utf-8")
        assert run(again) == 4 and "fails too seldom to be a failure, in 2 of 12" in capsys.readouterr().out
    else:
        (trouble,) = ledger.troubles
        assert trouble.why.endswith("; beside copies of it, in 2 of 12 plays") and not ledger.failures
