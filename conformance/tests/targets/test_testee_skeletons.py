"""The shortest testee in each language is built as its first lines say, follows the protocol and is conformant."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as kipcheck
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.engine.doctor.probes import PROBES
from kipcheck.conformance.engine.doctor.report import run_probes
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.registry import target

SKELETONS = Path(__file__).parents[2] / "docs" / "testee" / "skeletons"
PAGE = SKELETONS.parent.parent / "guides" / "write-a-testee.md"
TOOLS = {"testee.go": "go", "testee.rs": "rustc", "Testee.java": "java", "testee.mjs": "node"}
LINES = 175
"""Of Rust and Java more than half read and write JSON."""


def test_each_is_listed_and_short_and_on_the_page() -> None:
    assert {each.name for each in SKELETONS.iterdir()} == TOOLS.keys()
    page = PAGE.read_text("utf-8")
    for name in TOOLS:
        text = (SKELETONS / name).read_text("utf-8")
        assert len(text.splitlines()) <= LINES
        assert max(len(line.expandtabs(4)) for line in text.splitlines()) <= 120
        assert f"(../testee/skeletons/{name})" in page


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("testee.go", marks=pytest.mark.go),
        pytest.param("testee.rs", marks=pytest.mark.integration),
        pytest.param("Testee.java", marks=pytest.mark.integration),
        pytest.param("testee.mjs", marks=pytest.mark.node),
    ],
)
def test_it_follows_the_protocol_and_is_conformant(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(TOOLS[name]) is None:
        raise Unavailable(f"there is no {TOOLS[name]} on the PATH")
    shutil.copy(SKELETONS / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    head = re.sub(r"^//\s*", "", (tmp_path / name).read_text("utf-8"), flags=re.MULTILINE)
    built = re.search(r'^(?:(.*) && )?kipcheck doctor --target "(cmd:.*)"$', head, re.MULTILINE)
    assert built is not None
    if built[1]:
        subprocess.run(built[1].split(), check=True, timeout=300)
    lines = list(run_probes(target(built[2]), 60, PROBES))
    assert [line for line in lines if line.state == "wrong"] == []
    assert next(line.found for line in lines if line.id == "samples").startswith("1 encoded and 1 decoded")
    code = kipcheck(["run", "--target", built[2], "--cases", "4", "--out", "out"])
    assert code == 0, capsys.readouterr().out
    ledger = read(tmp_path / "out" / "ledger.jsonl")
    assert {line.result for line in ledger.verdicts()} == {"PASS"}
    assert sum(1 for _ in ledger.verdicts()) > 20
