"""Commands that connect to a broker which lies end in time, and name it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kipcheck.conformance.engine.execution.run import OVERTIME, OVERTIME_S

pytestmark = [pytest.mark.hostile]
LIAR = Path(__file__).with_name("liar.py")
KINDS = ("silent", "drips", "closes", "speaks HTTP", "announces 2 GiB", "echoes")
COMMANDS = {
    "inspect": ("inspect", "broker:127.0.0.1:{port}", "--timeout", "2s"),
    "features": ("features", "describe", "--bootstrap-server", "127.0.0.1:{port}", "--timeout", "2s"),
    "run": ("run", "--target", "broker:127.0.0.1:{port}", "--timeout", "2s", "--budget", "5s", "--check", "group/*",
            "--edition", "apache@3.9.2", "--topic", "t"),
}  # fmt: skip
LATE = (("silent after 2", "inspect"), ("silent after 3", "run"), ("silent after 40", "run"))
"""Brokers that lie later."""
ENDS_S = 5 * OVERTIME + 3 * OVERTIME_S
"""Within the overtime, and the time for cleaning up twice."""


@pytest.mark.parametrize(("kind", "command"), [*((kind, each) for kind in KINDS for each in COMMANDS), *LATE])
def test_a_command_ends_and_says_what_is_wrong(tmp_path: Path, kind: str, command: str) -> None:
    with subprocess.Popen([sys.executable, str(LIAR), kind], stdout=subprocess.PIPE, text=True) as liar:
        assert liar.stdout is not None
        port = liar.stdout.readline().strip()
        words = [each.format(port=port) for each in COMMANDS[command]]
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "kipcheck", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        took = time.monotonic() - begun
        liar.kill()
    assert done.returncode in ((2,) if command == "features" else (3, 6)), done.stderr
    assert "Traceback" not in done.stderr
    assert took < ENDS_S
    why = done.stderr.splitlines()[-1]
    assert any(each in why for each in ("answer", "response", "closed the connection")), why
