"""A report reads the ledger and nothing else."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reports
from conformance.core.ledger import FORMAT, Writer, read

FAILURE: dict[str, Any] = {
    "id": "0123456789ab",
    "target": "somebody",
    "version": "1.0",
    "check": "wire/two-readings",
    "invariant": "wire/decodes",
    "grade": "MUST",
    "sentence": "Legal bytes are read as what they are.",
    "requirements": [{"id": "grp-05", "clause": "generated message classes", "text": "What is written is read back."}],
    "edition": "apache",
    "subject": "HeartbeatResponse",
    "subject_version": 1,
    "why": "errorCode comes out as 65535, not -1",
    "expected": "-1",
    "observed": "65535",
    "path": "errorCode",
    "offset": None,
    "shape": ["misread"],
    "cases": 12,
    "where": {"HeartbeatResponse": "0-4", "SyncGroupResponse": "0"},
    "steps": [{"verb": "decode", "message": "HeartbeatResponse", "version": 1, "hex": "00000000ffff"}],
    "guilty_step": 0,
    "exhibits": [{"kind": "bytes", "rows": [
        {"offset": 0, "bytes": "00000000", "path": "throttleTimeMs", "type": "int32", "value": "0", "guilty": False},
        {"offset": 4, "bytes": "ffff", "path": "errorCode", "type": "int16", "value": "-1", "guilty": True},
    ]}],
    "case_id": "aa",
    "reproduce": "kipcheck replay /somewhere/0123456789ab.json",
}
FOOTER: dict[str, Any] = {
    "complete": True,
    "stopped_by": None,
    "exit": 1,
    "meaning": "an unexpected failure",
    "counts": {"somebody": {"wire/two-readings": {"PASS": 30, "FAIL": 12}}},
    "seconds": 1.0,
}


def ledger(path: Path, *failures: dict[str, Any], footer: dict[str, Any] | None = FOOTER) -> Path:
    with Writer(path / "ledger.jsonl") as writer:
        writer.write("header", {"format": FORMAT})
        for each in failures:
            writer.write("failure", each)
        if footer is not None:
            writer.write("footer", footer)
    return path / "ledger.jsonl"


def test_a_block_shows_sentence_clause_bytes_count_and_command(tmp_path: Path) -> None:
    text = reports.render(ledger(tmp_path, FAILURE))
    assert text.splitlines()[:14] == [
        "FAIL 0123456789ab  somebody 1.0  wire/two-readings  (MUST)",
        "  broken    Legal bytes are read as what they are.",
        "  grp-05    generated message classes: What is written is read back.",
        "  what      errorCode comes out as 65535, not -1",
        "  expected  -1",
        "  observed  65535",
        "  step 1    decode HeartbeatResponse v1: 00000000ffff",
        "  bytes       at bytes    field          type  value",
        "               0 00000000 throttleTimeMs int32 0",
        "            >  4 ffff     errorCode      int16 -1",
        "  seen      12 cases: HeartbeatResponse v0-4; SyncGroupResponse v0",
        "  again     kipcheck replay /somewhere/0123456789ab.json",
        "",
        "somebody",
    ]
    assert text.endswith(f"exit 1, an unexpected failure; {tmp_path / 'ledger.jsonl'}\n")


def test_the_text_of_a_requirement_stands_there_once_and_what_fails_comes_first(tmp_path: Path) -> None:
    warning = {**FAILURE, "id": "second", "grade": "SHOULD"}
    text = reports.render(ledger(tmp_path, warning, FAILURE))
    assert text.count("What is written is read back.") == 1
    assert text.index("FAIL 0123456789ab") < text.index("WARN second")


def test_without_failures_there_is_the_table_and_one_line(tmp_path: Path) -> None:
    footer = {**FOOTER, "exit": 0, "counts": {"somebody": {"wire/two-readings": {"PASS": 42}}}}
    lines = reports.render(ledger(tmp_path, footer=footer)).splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["somebody"],
        ["check", "PASS"],
        ["wire/two-readings", "42"],
        ["complete:", "0"],
    ]


def test_a_ledger_that_was_cut_off_is_called_incomplete(tmp_path: Path) -> None:
    path = ledger(tmp_path, FAILURE, footer=None)
    assert "INCOMPLETE: the ledger ends before its footer" in reports.render(path)
    path.write_text(path.read_text()[:-40])  # in the middle of a line
    assert not read(path).failures
    assert "INCOMPLETE" in reports.render(path)


def test_a_long_message_is_shown_around_its_guilty_bytes(tmp_path: Path) -> None:
    rows = [
        {"offset": n, "bytes": f"{n:02x}", "path": f"numbers[{n}]", "type": "int8", "value": str(n), "guilty": n == 50}
        for n in range(100)
    ]
    text = reports.render(ledger(tmp_path, {**FAILURE, "exhibits": [{"kind": "bytes", "rows": rows}]}))
    assert "(44 fields before)" in text
    assert "(43 fields after)" in text
    assert "numbers[50]" in text
    assert "numbers[10]" not in text


@pytest.mark.parametrize("text", ["", "{}\n", "not JSON\n", '{"type": "header", "format": 99}\n', "[1]\n"])
def test_what_is_no_ledger_is_told_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match="is no ledger"):
        reports.render(path)


def test_an_unknown_form_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="there are text"):
        reports.render(ledger(tmp_path), "stone")


def test_a_report_needs_no_more_than_core(tmp_path: Path) -> None:
    script = f"""if True:
        import sys
        from pathlib import Path
        import reports
        reports.render(Path({str(ledger(tmp_path, FAILURE))!r}))
        print([name for name in sys.modules if name.startswith(("conformance.", "strategies"))])
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.replace("'", '"'))
    assert all(name.startswith("conformance.core") for name in loaded)
