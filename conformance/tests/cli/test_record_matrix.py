"""``kipcheck matrix --scenario records``: predictions by hand, the page, and every line on jars at night."""

import json
from pathlib import Path

import pytest

from kipcheck.conformance.cli import record_matrix
from kipcheck.conformance.cli.main import run
from kipcheck.conformance.matrix.record_cells import (
    KEYS,
    UNKNOWN_KEY,
    RecordCell,
    RecordRow,
    known_releases,
    plain,
    predicted,
    writers_of,
)
from kipcheck.reports.record_matrix import page_of, text_of


@pytest.mark.parametrize(
    ("format", "version", "reader", "result"),
    [
        ("OffsetCommitValue", 4, "3.4.0", "fails"), ("OffsetCommitValue", 4, "3.4.1", "reads"),
        ("OffsetCommitValue", 3, "2.0.1", "fails"), ("GroupMetadataValue", 3, "2.3.1", "reads"),
        ("ConsumerGroupMetadataKey", 3, "3.3.2", "fails"), ("ConsumerGroupMetadataKey", 3, "4.4.0", "reads"),
        (UNKNOWN_KEY, 99, "3.4.0", "fails"), (UNKNOWN_KEY, 99, "3.9.2", "skips"), (UNKNOWN_KEY, 99, "4.0.2", "skips"),
        ("ConsumerGroupMetadataKey", 3, "3.9.2", "skips"), ("TransactionLogValue", 1, "3.4.0", "fails"),
        ("TransactionLogValue", 99, "4.2.1", "fails"), ("TransactionLogValue", 99, "4.3.1", "skips"),
        ("PartitionMetadata", 0, "2.7.2", "none"), ("ProducerSnapshot", 1, "1.1.1", "reads"),
    ],
)  # fmt: skip
def test_predictions(format: str, version: int, reader: str, result: str) -> None:
    assert predicted(format, version, reader) == result


def test_writers_are_grouped_by_version() -> None:
    found = writers_of("OffsetCommitValue", known_releases())
    assert [(version, by[0]) for version, by in found.items()] == [(1, "1.1.1"), (3, "2.1.1"), (4, "4.1.0")]


def test_a_cell_unlike_its_prediction_is_marked_and_counted() -> None:
    row = RecordRow("OffsetCommitValue", 4, ("4.1.0", "4.4.0"))
    cells = [RecordCell(row, "3.4.1", "reads", "reads", ""), RecordCell(row, "4.4.0", "reads", "fails", "an error")]
    found = plain(cells)
    text = text_of(found)
    assert found["unlike"] == 1 and found["cells"][0]["requirement"] == "384-09"
    assert "4.1.0 to 4.4.0" in text and "X!" in text
    assert "OffsetCommitValue 4, 4.4.0: fails, predicted reads: an error" in text
    assert "<td>an error</td>" in page_of(found)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--from", "1.0.2"), "unknown release '1.0.2' of records"),
        (("--scenario", "join"), "records is played alone"),
        (("--budget", "5s"), "--budget does not apply to records"),
    ],
)  # fmt: skip
def test_what_is_no_cell_is_exit_2(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str) -> None:
    assert run(["matrix", "--scenario", "records", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err


def test_a_line_is_its_newest_patch() -> None:
    assert record_matrix._known("3.9") == "3.9.2" and record_matrix._known("3.4.0") == "3.4.0"


@pytest.mark.all_jars
def test_every_line_is_as_predicted(tmp_path: Path) -> None:
    assert run(["matrix", "--scenario", "records", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "records.json").read_text())
    assert found["unlike"] == 0 and len(found["cells"]) > 250
    assert {each["format"] for each in found["cells"]} > {*KEYS} and (tmp_path / "records.html").is_file()
