"""A client that never reads keeps no law of reading: its run is inconclusive, and the doctor refuses it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kipcheck import reports
from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.engine.execution.run import Options, execute
from kipcheck.conformance.engine.ledger.merge import merge
from kipcheck.conformance.protocols.client.mutants import LiveMutant
from kipcheck.conformance.protocols.client.premises import NEVER_READ
from kipcheck.conformance.targets.in_process import InProcess

OPTIONS = Options(targets=("it",), checks=("client/groups",), cases=1, workers=1)


class NeverReads(LiveMutant):
    name = "never-reads"
    consumer = "NeverReads"


class Reads(LiveMutant):
    name = "reads"


def ledger(adapter: LiveMutant, out: Path, code: int) -> Path:
    outcome = execute(replace(OPTIONS, out=out), lambda name: InProcess(adapter))
    assert (outcome.exit_code, outcome.failures) == (code, 0)
    assert outcome.ledger is not None
    return outcome.ledger


def test_a_run_without_records_is_inconclusive_and_names_what_was_not_judged(tmp_path: Path) -> None:
    found = ledger(NeverReads(), tmp_path / "out", exits.INCONCLUSIVE)
    (reason,) = read(found).inconclusive
    assert (reason.check, reason.why) == (
        "client/groups", f"{NEVER_READ}: client/reads-its-own was judged in no case",
    )  # fmt: skip
    results = json.loads(reports.render(found, "json"))
    assert results["invariants"]["never-reads"]["client/reads-its-own"] == {"judged": 0, "cases": 1}
    assert results["invariants"]["never-reads"]["client/beats"] == {"judged": 1, "cases": 1}
    unjudged = results["footer"]["totals"]["unjudged_invariants"]["never-reads"]
    assert {"client/reads-its-own", "client/commits-its-own", "client/starts-at-the-committed-offset"} <= {*unjudged}
    assert "client/leaves" not in unjudged
    (line,) = (each for each in reports.render(found, "brief").splitlines() if "were not judged" in each)
    assert "client/reads-its-own" in line
    page = reports.render(found, "html")
    assert "1 of 1" in page and 'class="small">not judged' in page
    assert merge([found.parent], tmp_path / "all").exit_code == exits.INCONCLUSIVE


def test_a_run_with_records_is_not(tmp_path: Path) -> None:
    found = ledger(Reads(), tmp_path / "out", exits.CONFORMANT)
    assert not read(found).inconclusive
    results = json.loads(reports.render(found, "json"))
    assert results["invariants"]["reads"]["client/reads-its-own"] == {"judged": 1, "cases": 1}
    assert merge([found.parent], tmp_path / "all").exit_code == exits.CONFORMANT


@pytest.mark.integration
def test_the_doctor_judges_as_a_run_does(capsys: pytest.CaptureFixture[str]) -> None:
    program = f"{sys.executable} -m kipcheck.conformance.live.client.defective_consumers NeverReads"
    assert run(["doctor", "--target", f"client:{program} {{bootstrap}} {{group}} {{topics}}"]) == 3
    assert f"wrong   it fetches what it is assigned: {NEVER_READ}: no Fetch" in capsys.readouterr().out
