"""The testee of the tutorial is short, in good health and conformant, and its run fails once it has a defect."""

import json
import re
import shutil
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as kipcheck
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.engine.doctor.probes import PROBES
from kipcheck.conformance.engine.doctor.report import run_probes
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.registry import target

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "testee.md"
TESTEE = DOCS / "testee" / "heartbeat.mjs"


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        raise Unavailable("there is no node on the PATH")
    return found


def test_it_is_shorter_than_a_hundred_lines_and_needs_no_package() -> None:
    text = TESTEE.read_text("utf-8")
    assert len(text.splitlines()) < 100
    assert set(re.findall(r"from '([^']*)'", text)) == {"node:readline"}
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.node
def test_it_is_in_good_health(node: str) -> None:
    lines = list(run_probes(target(f"cmd:{node} {TESTEE}"), 60, PROBES))
    assert [line for line in lines if line.state == "wrong"] == []


@pytest.mark.node
def test_it_is_conformant(node: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = kipcheck(["run", "--target", f"cmd:{node} {TESTEE}", "--cases", "4", "--out", str(tmp_path)])
    assert code == 0, capsys.readouterr().out
    ledger = read(tmp_path / "ledger.jsonl")
    assert {line.result for line in ledger.verdicts()} == {"PASS"}
    assert sum(1 for _ in ledger.verdicts()) > 500


@pytest.mark.node
def test_a_defect_in_it_is_found_as_the_page_says(
    node: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = re.search(r"change `(\w+)` to `(\w+)`", PAGE.read_text("utf-8")).groups()  # type: ignore[union-attr]
    text = TESTEE.read_text("utf-8")
    assert text.count(before) == 1
    sick = tmp_path / "sick.mjs"
    sick.write_text(text.replace(before, after), "utf-8")
    named = ["--message", "Heartbeat*", "--check", "wire/two-readings"]
    code = kipcheck(["run", "--target", f"cmd:{node} {sick}", *named, "--out", str(tmp_path / "out")])
    assert code == 1
    capsys.readouterr()
    assert kipcheck(["report", str(tmp_path / "out"), "--details"]) == 1
    printed = capsys.readouterr().out
    assert "null" in printed
    assert {line.invariant for line in read(tmp_path / "out" / "ledger.jsonl").failures} == {"wire/decodes"}


def test_the_messages_on_the_page_keep_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="of the development tools")
    whole = json.loads((DOCS.parent / "targets" / "testee.schema.json").read_text("utf-8"))
    text = PAGE.read_text("utf-8")
    inline = [each for each in re.findall(r"`(\{.*?\})`", text) if each.startswith('{"type"')]
    blocks = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert len(inline) >= 8
    for each in (*inline, *blocks):
        jsonschema.Draft202012Validator(
            {"anyOf": [{"$ref": "#/$defs/toTestee"}, {"$ref": "#/$defs/fromTestee"}], "$defs": whole["$defs"]}
        ).validate(json.loads(each))
