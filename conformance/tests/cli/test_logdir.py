"""``kipcheck logdir``: the formats of a directory, who reads them, and what is damaged."""

import json
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.wire import record_batches
from kipcheck.conformance.wire.log_files import EPOCHS, METADATA, SNAPSHOT, encode
from kipcheck.conformance.wire.record_batches import Record, RecordBatch

OFFSET_KEY, GROUP_KEY, CONSUMER_KEY = (
    bytes.fromhex(each) for each in ("000100016700017400000000", "0002000167", "0003000167")
)


def batch(key: bytes, value: bytes | None) -> bytes:
    return record_batches.encode(RecordBatch(0, 0, 0, 0, (Record(0, 0, key, value),)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a broker of 4.1 leaves it."""
    for name in ("__consumer_offsets-7", "data-0"):
        (tmp_path / name).mkdir()
    offsets = tmp_path / "__consumer_offsets-7" / f"{0:020}.log"
    offsets.write_bytes(
        batch(GROUP_KEY, b"\0\3rest")
        + batch(OFFSET_KEY, b"\0\4rest")
        + batch(CONSUMER_KEY, b"\0\0")
        + batch(OFFSET_KEY, None)
    )
    (tmp_path / "data-0" / f"{0:020}.log").write_bytes(b"any data")
    (tmp_path / "data-0" / f"{7:020}.snapshot").write_bytes(encode(SNAPSHOT, {"version": 1, "producerEntries": []}))
    (tmp_path / "data-0" / "leader-epoch-checkpoint").write_bytes(encode(EPOCHS, {"version": 0, "entries": []}))
    topic = {"version": 0, "topicId": "lv6QZCCBQFysnLmkF7Ckkw"}
    (tmp_path / "data-0" / "partition.metadata").write_bytes(encode(METADATA, topic))
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"")
    return tmp_path


def test_who_reads_a_directory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logdir", str(folder), "--json", "--release", "3.4.0", "--release", "3.4.1", "--release", "4.4.0"]) == 1
    found = json.loads(capsys.readouterr().out)
    formats = {(each["format"], each["version"]): each["count"] for each in found["formats"]}
    assert formats == {
        ("ConsumerGroupMetadataValue", 0): 1, ("GroupMetadataValue", 3): 1, ("OffsetCommitValue", 4): 1,
        ("LeaderEpochCheckpoint", 0): 1, ("PartitionMetadata", 0): 1, ("ProducerSnapshot", 1): 1, ("RecordBatch", 2): 4,
    }  # fmt: skip
    assert {release: each["reads"] for release, each in found["releases"].items()} == {
        "3.4.0": False, "3.4.1": True, "4.4.0": True,
    }  # fmt: skip
    unread = found["releases"]["3.4.0"]["unread"]
    assert unread == [
        {"format": "ConsumerGroupMetadataValue", "version": 0},
        {"format": "OffsetCommitValue", "version": 4},
    ]
    (offset,) = (each for each in found["formats"] if each["format"] == "OffsetCommitValue")
    assert offset["file"].endswith("__consumer_offsets-7/00000000000000000000.log") and offset["offset"] > 70


def test_all_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logdir", str(folder)]) == 0
    assert "read by 3.4.1, 3.5.2" in capsys.readouterr().out


def test_damage_names_file_and_offset_and_the_rest_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = folder / "__consumer_offsets-7" / f"{0:020}.log"
    first = len(batch(GROUP_KEY, b"\0\3rest"))
    data = bytearray(log.read_bytes())
    data[first + 70] ^= 1
    log.write_bytes(data)
    (folder / "data-0" / "leader-epoch-checkpoint").write_bytes(b"0\n1\nzero 0\n")
    before = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    assert run(["logdir", str(folder)]) == 1
    out = capsys.readouterr().out
    assert (
        f"damaged: {log} at byte {first + 17}: " in out
        and "leader-epoch-checkpoint: LeaderEpochCheckpoint v0 / [0].epoch at byte 4" in out
    )
    assert "GroupMetadataValue" in out and "PartitionMetadata" in out
    assert before == {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("{0}/none",), "is no directory"), (("{0}/data-0/partition.metadata",), "is no directory"),
        (("{0}/data-0",), "is no log directory"), (("{0}", "--release", "9.9.9"), "unknown release 9.9.9"),
    ],
)  # fmt: skip
def test_what_is_no_directory_is_exit_2(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    assert run(["logdir", *(each.format(folder) for each in words)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err


@pytest.mark.parametrize(
    ("message", "version", "data", "value"),
    [
        ("LeaderEpochCheckpoint", 0, b"0\n1\n3 17\n", '{"version": 0, "entries": [{"epoch": 3, "startOffset": 17}]}'),
        ("PartitionMetadata", 0, b"version: 0\ntopic_id: lv6QZCCBQFysnLmkF7Ckkw",
         '{"version": 0, "topicId": "lv6QZCCBQFysnLmkF7Ckkw"}'),
        ("ProducerSnapshot", 1, encode(SNAPSHOT, {"version": 1, "producerEntries": []}),
         '{"version": 1, "producerEntries": []}'),
    ],
)  # fmt: skip
def test_a_file_is_decoded_and_encoded_as_messages_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, message: str, version: int, data: bytes, value: str
) -> None:
    words = ["--message", message, "--version", str(version)]
    assert run(["decode", *words, data.hex()]) == 0
    assert capsys.readouterr().out == f"{value}\n"
    (tmp_path / "value").write_text(value)
    assert run(["encode", *words, str(tmp_path / "value")]) == 0
    assert capsys.readouterr().out == f"{data.hex()}\n"


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("decode", "--message", "LeaderEpochCheckpoint", "--version", "0", "300a310a"), 1, "count at byte 2: "),
        (("decode", "--message", "LeaderEpochCheckpoint", "--version", "1", "30"), 2, "has no version 1 in"),
        (("decode", "--edition", "apache@2.7.2", "--message", "PartitionMetadata", "--version", "0", "30"), 2,
         "apache@2.7.2 has no PartitionMetadata"),
        (("decode", "--edition", "kip-384", "--message", "PartitionMetadata", "--version", "0", "30"), 2,
         "declares no files of log directories"),
        (("explain", "--message", "ProducerSnapshot", "--version", "1", "30"), 2, "use kipcheck decode"),
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, why: str
) -> None:
    assert run([*words]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err
