"""A program that floods the broker of scripts does not outlive the budget of its run."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kipcheck.conformance.engine.execution.run import EMPTY_OVERTIME_S, OVERTIME

pytestmark = [pytest.mark.hostile]
FLOOD = Path(__file__).with_name("flood.py")
BUDGET_S = 5
STARTS_AND_REPORTS_S = 15.0
"""On a busy machine."""


@pytest.mark.parametrize("how", ["reads", "ignores"])
def test_a_flooding_program_ends_with_the_budget(tmp_path: Path, how: str) -> None:
    program = f"client:{sys.executable} {FLOOD} {{bootstrap}} {how} {{group}} {{topics}}"
    words = ["run", "--target", program, "--budget", f"{BUDGET_S}s"]
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "kipcheck", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    took = time.monotonic() - begun
    assert done.returncode == 6, done.stderr
    assert "Traceback" not in done.stderr
    assert "the budget was used up" in done.stderr
    assert took < BUDGET_S * OVERTIME + EMPTY_OVERTIME_S + STARTS_AND_REPORTS_S
    mine = f"{FLOOD} [0-9.:]+ {how} "  # the other one may run beside
    left = subprocess.run(["pgrep", "-f", mine], capture_output=True, text=True, check=False).stdout.split()
    assert not left
