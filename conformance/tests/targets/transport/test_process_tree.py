"""No process outlives a kipcheck that is killed, in any command."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.tests.support.processes import Started, started

pytestmark = pytest.mark.skipif(not process_tree.LINUX, reason="there is no /proc")

SILENT = "cmd:sh -c 'sleep 600 & sleep 600'"
"""A testee that never answers, and that started a program of its own."""
ANSWERING = f"cmd:sh -c 'sleep 600 & exec {sys.executable} -m kipcheck testee reference'"
MESSAGES = ("--message", "HeartbeatRe*", "--cases", "500")
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run-inline": (("run", "--target", ANSWERING, *MESSAGES, "--workers", "1"), ("sleep", "testee")),
    "run-workers": (
        ("run", "--target", ANSWERING, *MESSAGES, "--workers", "2"), ("run", "run", "sleep", "sleep", "sleep")
    ),
    "run-dry": (("run", "--target", SILENT, "--dry-run"), ("sleep", "sleep")),
    "mutants": (("mutants", "--check", "wire/*", "--workers", "2"), ("mutants", "mutants")),
    "campaign": (
        ("campaign", "--target", ANSWERING, "--check", "wire/round-trip", "--executor", "pool", "--workers", "2"),
        ("campaign", "campaign", "campaign", "campaign", "sleep", "sleep"),  # forks of the driver, and their shards
    ),
    "matrix": (("matrix", "--predict", "p.json", "--scenario", "failure", "--workers", "2"), ("matrix", "matrix")),
    "doctor": (("doctor", "--target", SILENT), ("sleep", "sleep")),
}  # fmt: skip
"""With words that the command lines of its processes hold, one each at least."""
JVM = "kipcheck.Testee"
"""The class that it runs; ``java`` stands in the names of targets, too."""
WITH_JARS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run": (("run", "--target", "java:kafka-clients:3.9.2", *MESSAGES), (JVM,)),
    "matrix": (("matrix", "--scenario", "join", "--out", "out"), (JVM, JVM)),
    "assign": (("assign", "--target", "java:kafka-clients:3.9.2", "--assignor", "range", "group.json"), (JVM,)),
    "testee": (("testee", "java:kafka-clients:3.9.2", "--listen", "0"), ()),
}  # fmt: skip


def has(found: dict[int, str], words: tuple[str, ...]) -> bool:
    lines = [*found.values()]
    for word in words:
        line = next((each for each in lines if word in each), None)
        if line is None:
            return False
        lines.remove(line)
    return True


def killed(kipcheck: Started) -> dict[int, str]:
    kipcheck.process.kill()
    kipcheck.process.wait()
    return kipcheck.left()


QUICK = {"run-workers"}
"""Testees and workers: what most users start."""


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in QUICK else pytest.mark.integration) for each in COMMANDS]
)
def test_no_process_outlives_a_command_that_is_killed(name: str, tmp_path: Path) -> None:
    command, words = COMMANDS[name]
    with started(*command, cwd=tmp_path) as kipcheck:
        kipcheck.wait_for(lambda: has(kipcheck.below(), words), name)
        assert not killed(kipcheck)


def test_no_build_tool_outlives_a_kipcheck_that_is_killed(tmp_path: Path) -> None:
    module = "kipcheck.conformance.targets.transport.process_tree"
    code = f"from {module} import run; run(['sh', '-c', 'sleep 600 & sleep 600'])"
    with started(program=("-c", code), cwd=tmp_path) as kipcheck:
        kipcheck.wait_for(lambda: has(kipcheck.below(), ("sleep", "sleep")), "sh")
        assert not killed(kipcheck)


def test_a_tool_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        process_tree.run(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; sleep 600"], 1)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        while True:  # until somebody has taken note of its end
            os.kill(pid, 0)
            if "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]:
                raise ProcessLookupError
    done = process_tree.run(["sh", "-c", "echo said; printf 'com\\377plained\\n' >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "com\ufffdplained\n")


def test_a_testee_does_not_inherit_that_interrupts_are_ignored(tmp_path: Path) -> None:
    code = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "from kipcheck.conformance.targets.transport.pipe import Command, Pipe; "
        "made = Pipe(Command(('sleep', '600'))); print(made.pid, flush=True); time.sleep(600)"
    )
    with started(program=("-c", code), cwd=tmp_path) as kipcheck:
        assert kipcheck.process.stdout is not None
        pid = int(kipcheck.process.stdout.readline())
        (ignored,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "SigIgn" in line]
        assert not int(ignored.split()[1], 16) & (1 << (signal.SIGINT - 1))


@pytest.mark.spark
@pytest.mark.faults
def test_no_spark_outlives_a_campaign_that_is_killed(tmp_path: Path) -> None:
    asked = ("--check", "wire/round-trip", "--cases", "200000", "--executor", "spark", "--workers", "2")
    for words in (("SparkSubmit",), ("fork_server",) * 4):  # while it starts, and while it holds shards
        with started("campaign", "--target", "reference", *asked, "--out", "out", cwd=tmp_path) as kipcheck:
            kipcheck.wait_for(lambda: has(kipcheck.below(), words), "campaign")  # noqa: B023
            assert not killed(kipcheck)


@pytest.mark.jars
@pytest.mark.faults
@pytest.mark.parametrize("name", WITH_JARS)
def test_no_jvm_outlives_a_command_that_is_killed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path / "cache"))  # cells that were played before start no JVM
    (tmp_path / "group.json").write_text('{"topics": {"t": 1}, "members": {"a": {"subscription": ["t"]}}}')
    command, words = WITH_JARS[name]
    with started(*command, cwd=tmp_path) as kipcheck:
        kipcheck.wait_for(lambda: has(kipcheck.below(), words), name)
        assert not killed(kipcheck)
