"""The doctor of live clients: each probe fails for a program that is wrong in that way."""

import sys

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.live.client import play

PLACES = "{bootstrap} {group} {topics}"
ODD = f"client:{sys.executable} -m kipcheck.conformance.live.client.odd_consumers"


def test_a_consumer_passes_all_probes(capsys: pytest.CaptureFixture[str]) -> None:
    target = f"client:{sys.executable} -m kipcheck.conformance.live.client.consumer {PLACES}"
    assert run(["doctor", "--target", target]) == 0
    shown = capsys.readouterr().out
    assert shown.count("ok ") == 5 and "it lacks {instance}" in shown and "healthy" in shown


@pytest.mark.integration
def test_a_program_that_does_not_leave_or_fetch_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--target", f"{ODD} Vanishes {PLACES}"]) == 3
    assert "wrong   it leaves the group: no LeaveGroup" in capsys.readouterr().out
    assert run(["doctor", "--target", f"{ODD} Silent {PLACES}"]) == 3
    assert "poll in a loop" in capsys.readouterr().out


def test_a_program_that_does_not_connect_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "CONNECT_S", 0.3)
    assert run(["doctor", "--target", f"client:sleep 60 {PLACES}"]) == 3
    assert "connect to {bootstrap}" in capsys.readouterr().out
    assert run(["doctor", "--target", f"client:./nothing {PLACES}"]) == 3
    assert "cannot be started" in capsys.readouterr().out
    assert run(["doctor", "--target", "client:nothing"]) == 2
