"""Failures of format 1, from real files: they still load, replay and export, and are not compared with those of now."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.campaign.manifest import Manifest, UnusableCampaign
from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.core.ledger import FAILURE_FORMAT, read
from kipcheck.conformance.engine.findings.failures import load
from kipcheck.conformance.engine.ledger.merge import Unlike, merge
from kipcheck.conformance.tests.support.ledgers import FAILURE, HEADER, TARGETS, verdicts, write

OLD = Path(str(files("kipcheck.conformance.tests.engine"))) / "format_1" / "failures"
"""Written by kipcheck before the format became 2, with kafka-python 3.0.12."""
CODEC, MEMBER = OLD / "85408ecfc988.json", OLD / "643468a1ce0f.json"
OLD_HEADER = {key: each for key, each in HEADER.items() if key != "failure_format"}


def outcome(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = command([*map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def ledger(folder: Path, *lines: tuple[str, dict[str, Any]], header: dict[str, Any] = HEADER) -> Path:
    write(folder, ("target", TARGETS[0]), *lines, header=header)
    return folder


@pytest.mark.parametrize("path", [CODEC, MEMBER], ids=["codec", "member"])
@pytest.mark.integration
def test_an_old_file_replays_by_its_case_and_states_its_format(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filed, case = load(path)
    assert (filed.failure_format, case.id) == (1, filed.case_id)
    code, out, err = outcome(capsys, "replay", path)
    assert (code, err) == (1, "") and filed.invariant in out and "fails again" in out
    assert "the file is of format 1: a run now gives the failure another id and shape" in out


def test_a_file_of_now_says_nothing_of_its_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / CODEC.name
    new.write_text(json.dumps({**json.loads(CODEC.read_text("utf-8")), "format": FAILURE_FORMAT}))
    assert "format" not in outcome(capsys, "replay", new)[1]
    new.write_text(json.dumps({**json.loads(CODEC.read_text("utf-8")), "format": 3}))
    code, _, err = outcome(capsys, "replay", new)
    assert code == 2 and '"format" is 3, and this kipcheck reads 1 and 2' in err


def test_a_run_of_now_writes_the_format_of_now(tmp_path: Path) -> None:
    assert command(["run", "--target", "kafka-python", "--check", "wire/prefixes", "--message", "HeartbeatRequest",
                    "--workers", "1", "--out", str(tmp_path)]) == 1  # fmt: skip
    assert read(tmp_path / "ledger.jsonl").failure_format == FAILURE_FORMAT
    assert json.loads((tmp_path / "results.json").read_text())["format"] == FAILURE_FORMAT
    found = [json.loads(path.read_text()) for path in (tmp_path / "failures").glob("*.json")]
    assert found and {each["format"] for each in found} == {FAILURE_FORMAT}


@pytest.mark.parametrize("path", [CODEC, MEMBER], ids=["codec", "member"])
@pytest.mark.integration
def test_an_old_file_can_be_exported(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, "export", path, "--as", "pytest", "--to", tmp_path)[0] == 0
    (exported,) = tmp_path.glob("test_*.py")
    env = {key: value for key, value in os.environ.items() if key != "KIPCHECK_TESTEE"}
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(exported)],
                         capture_output=True, text=True, env=env, cwd=tmp_path, check=False)  # fmt: skip
    assert "AttributeError" not in ran.stdout and ran.returncode == 1, ran.stdout


def test_an_old_folder_is_rendered_with_its_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = ledger(tmp_path, ("failure", FAILURE), header=OLD_HEADER)
    code, out, _ = outcome(capsys, "report", old, "--form", "json")
    assert (code, json.loads(out)["format"], json.loads(out)["failures"][0]["id"]) == (1, 1, FAILURE["id"])


def test_a_ledger_of_a_later_format_is_refused(tmp_path: Path) -> None:
    folder = ledger(tmp_path, header={**HEADER, "failure_format": 3})
    with pytest.raises(ValueError, match="its failures have format 3; this kipcheck reads 1 and 2"):
        read(folder / "ledger.jsonl")


@pytest.mark.parametrize("older", ["now", "before"])
def test_triage_says_that_ids_differ(older: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [ledger(tmp_path / name, ("failure", {**FAILURE, "id": id}), header=OLD_HEADER if name == older else HEADER)
             for name, id in (("now", "111111111111"), ("before", "222222222222"))]  # fmt: skip
    code, out, err = outcome(capsys, "triage", paths[0], "--against", paths[1])
    assert (code, out) == (2, "")
    assert f"{tmp_path / older} has failures of format 1" in err and "has failures of format 2" in err
    assert "the same failure has another id and shape in each" in err and f"kipcheck replay {tmp_path / older}" in err
    assert outcome(capsys, "triage", paths[0])[0] == 0


def test_old_ledgers_are_still_compared_and_merged_with_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ledger(tmp_path / "one", *verdicts("FAIL", 1), ("failure", FAILURE), header=OLD_HEADER)
    two = ledger(tmp_path / "two", *verdicts("FAIL", 1, subject="Other"), ("failure", FAILURE), header=OLD_HEADER)
    code, out, _ = outcome(capsys, "triage", one, "--against", two)
    assert (code, out.splitlines()[-1]) == (0, "0 new, 0 flaky, 1 known, 0 fixed; complete")
    assert read(merge([one, two], tmp_path / "both").ledger).failure_format == 1


def test_ledgers_of_different_formats_are_not_merged(tmp_path: Path) -> None:
    old, new = ledger(tmp_path / "old", header=OLD_HEADER), ledger(tmp_path / "new")
    with pytest.raises(Unlike) as why:
        merge([old, new], tmp_path / "both")
    assert f"{old} has failures of format 1 and {new} has failures of format 2" in str(why.value)
    assert not (tmp_path / "both").exists()


def test_a_campaign_of_the_other_format_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 1, "plan": {}}')
    with pytest.raises(UnusableCampaign, match="in which the same failure has another shape: start a new campaign"):
        Manifest.read(tmp_path)
