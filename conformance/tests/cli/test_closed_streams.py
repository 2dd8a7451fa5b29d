"""Standard streams that are closed, and a disk without any room."""

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.tests.support.loops import some_by_default

KIPCHECK = (sys.executable, "-m", "kipcheck")
RUN = ("run", "--target", "reference", "--check", "wire/round-trip", "--message", "HeartbeatRe*", "--cases", "30")


def ended(folder: Path, *command: str, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False, preexec_fn=before
    )


@pytest.mark.parametrize("closed", some_by_default(["<&- >&-", ">&-", ">&- 2>&-"], 1))
def test_a_run_without_standard_streams_writes_its_results(tmp_path: Path, closed: str) -> None:
    done = ended(tmp_path, "sh", "-c", f'"$@" {closed}', "sh", *KIPCHECK, *RUN)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert read(tmp_path / "kipcheck-out" / "ledger.jsonl").complete
    assert json.loads((tmp_path / "kipcheck-out" / "results.json").read_text("utf-8"))


def limited(most: int) -> None:
    """No file of the process may have more bytes: a write fails as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def test_a_ledger_without_room_for_its_header_is_wrong_usage(tmp_path: Path) -> None:
    done = ended(tmp_path, *KIPCHECK, *RUN, before=partial(limited, 1000))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("ledger.jsonl cannot be written: File too large")
    assert "Traceback" not in done.stderr
