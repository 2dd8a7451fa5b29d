"""``kipcheck logdir``: the formats of a directory, who reads them, and what is damaged."""

import json
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.tests.support.log_directories import LogDirectory, batch, level, metadata
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.log_files import SNAPSHOT, encode

OFFSET_KEY, GROUP_KEY, CONSUMER_KEY = (
    bytes.fromhex(each) for each in ("000100016700017400000000", "0002000167", "0003000167")
)
GROUP = layout(APACHE, "GroupMetadataValue", 3).encode({
    "protocolType": "consumer", "generation": 7, "protocol": "range", "leader": "m", "currentStateTimestamp": 0,
    "members": [],
})  # fmt: skip
OFFSET = layout(APACHE, "OffsetCommitValue", 4).encode({"offset": 7, "metadata": "", "commitTimestamp": 0})
EPOCH = layout(APACHE, "ConsumerGroupMetadataValue", 0).encode({"epoch": 5})
LOG = "__consumer_offsets-7"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a broker of 4.1 leaves it, after an upgrade from 3.3 in which no level was raised."""
    directory = LogDirectory(tmp_path)
    directory.kraft(metadata(0, level("metadata.version", 7)))
    records = (GROUP_KEY, GROUP), (OFFSET_KEY, OFFSET), (CONSUMER_KEY, EPOCH), (OFFSET_KEY, None)
    directory.partition(LOG, b"".join(batch(at, [each]) for at, each in enumerate(records)), {0: 0})
    directory.partition("data-0", batch(0, [(None, b"any data")]), {0: 0})
    directory.write(f"data-0/{7:020}.snapshot", encode(SNAPSHOT, {"version": 1, "producerEntries": []}))
    directory.write("cleaner-offset-checkpoint", b"")
    return tmp_path


def test_who_reads_a_directory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logdir", str(folder), "--json", "--release", "3.4.0", "--release", "3.4.1", "--release", "4.4.0"]) == 1
    found = json.loads(capsys.readouterr().out)
    formats = {(each["format"], each["version"]): each["count"] for each in found["formats"]}
    assert formats == {
        ("ConsumerGroupMetadataValue", 0): 1, ("GroupMetadataValue", 3): 1, ("OffsetCommitValue", 4): 1,
        ("LeaderEpochCheckpoint", 0): 3, ("PartitionMetadata", 0): 3, ("ProducerSnapshot", 1): 1, ("RecordBatch", 2): 6,
        ("FeatureLevelRecord", 0): 1, ("meta.properties", 1): 1, ("quorum-state", 0): 1,
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
    data = (folder / LOG / f"{0:020}.log").read_bytes()
    assert offset["file"].endswith(f"{LOG}/{0:020}.log") and data[offset["offset"] :].startswith(OFFSET)
    assert [(each["feature"], each["level"], each["source"]) for each in found["levels"]] == [
        ("metadata.version", 7, "log")
    ]


def test_all_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logdir", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "read by 3.4.1, 3.5.2" in out and "level: metadata.version 7 (3.3-IV3) in log: " in out
    assert "not read, and decides nothing: batches of topics, but for their heads, 1\n" in out


def test_a_level_that_a_release_does_not_know(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogDirectory(folder).kraft(metadata(0, level("metadata.version", 21)))
    assert run(["logdir", str(folder), "--release", "3.3.2", "--release", "3.9.2"]) == 1
    out = capsys.readouterr().out
    assert f"3.3.2 cannot read metadata.version 21 (it supports 1 to 7): {log} at byte " in out
    assert "3.9.2 reads all of it" in out and "3.3.2 reads" not in out
    assert run(["logdir", str(folder), "--json", "--release", "3.3.2"]) == 1
    unread = json.loads(capsys.readouterr().out)["releases"]["3.3.2"]["unread"]
    assert {"format": "FeatureLevelRecord", "version": 0, "feature": "metadata.version", "level": 21} in unread


def test_damage_names_file_and_offset_and_the_rest_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = folder / LOG / f"{0:020}.log"
    first = len(batch(0, [(GROUP_KEY, GROUP)]))
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
    assert "read by" not in out and "reads all" not in out
    assert run(["logdir", str(folder), "--release", "4.4.0", "--release", "2.7.2"]) == 1
    out = capsys.readouterr().out
    assert "reads all" not in out and "no verdict on 4.4.0: damage" in out and "2.7.2 cannot read " in out
    assert before == {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_an_unknown_thing_is_exit_7(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "notes.txt").write_text("any")
    assert run(["logdir", str(folder)]) == 7
    out = capsys.readouterr().out
    assert f"unknown: file notes.txt, 1, first: {folder / 'notes.txt'}\n" in out
    assert "read by no release" in out and "no verdict: unknown: file notes.txt" in out
    assert run(["logdir", str(folder), "--release", "4.4.0"]) == 7
    assert "no verdict on 4.4.0: unknown: file notes.txt" in capsys.readouterr().out
    assert run(["logdir", str(folder), "--release", "4.4.0", "--release", "3.3.2"]) == 1, "3.3.2 reads no commit 4"


def test_a_release_without_a_verdict_is_exit_7_if_it_was_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=x\n")
    assert run(["logdir", str(folder)]) == 0
    assert "no verdict on 3.4.1, 3.5.2, 3.6.2" in capsys.readouterr().out
    assert run(["logdir", str(folder), "--release", "3.5.2"]) == 7
    assert "no verdict on 3.5.2: meta.properties of ZooKeeper beside a metadata log" in capsys.readouterr().out


def test_epochs_that_are_missing_are_exit_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "data-0" / "leader-epoch-checkpoint").write_bytes(b"")
    assert run(["logdir", str(folder)]) == 1
    assert "epochs: " in capsys.readouterr().out
    (folder / ".kafka_cleanshutdown").unlink()
    assert run(["logdir", str(folder), "--release", "4.4.0"]) == 7
    assert "no verdict on 4.4.0: leader epochs that recovery may add or drop" in capsys.readouterr().out


def test_groups(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logdir", str(folder), "--groups"]) == 0
    out = capsys.readouterr().out
    head = "generation 7, type consumer, protocol range, leader m, consumer group, epoch 5, 1 tombstones"
    assert f"groups: 1\ngroup g: {head}\n  t-0: deleted (" in out
    assert run(["logdir", str(folder), "--groups", "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert (group["group"], group["generation"], group["offsets"], group["tombstones"]) == ("g", 7, [], 1)
    assert run(["logdir", str(folder), "--json"]) == 0
    assert "groups" not in json.loads(capsys.readouterr().out)


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
