"""Runs of the odd client with a list of its known deviations."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.ledger import Header, Ledger, read
from kipcheck.conformance.engine.execution import run as engine_run
from kipcheck.conformance.engine.execution.run import Options, Outcome, run
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.tests.support.odd_client import ENTRY, SOME, Defect, Odd


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "odd.toml"
    path.write_text('target = "odd"\n' + ENTRY)
    return path


@pytest.fixture
def options(tmp_path: Path, listed: Path) -> Options:
    return Options(
        targets=("odd",), messages=("HeartbeatRe*",), checks=("wire/two-readings",), workers=1,
        known=(str(listed),), out=tmp_path / "out",
    )  # fmt: skip


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Outcome, Ledger]]:
    def executed(options: Options, defects: Mapping[int, Defect] = SOME, **made: Any) -> tuple[Outcome, Ledger]:
        target = made.get("target") or Odd(defects)
        monkeypatch.setattr(engine_run, "target_of", lambda name: InProcess(target))
        outcome = run(options)
        if outcome.exit_code == 2:
            return outcome, Ledger(options.out, Header())
        assert outcome.ledger is not None, outcome.why
        return outcome, read(outcome.ledger)

    return executed
