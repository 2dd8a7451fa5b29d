"""What is read of a log directory: unknown things, incomplete ends, damage with its place, and leader epochs."""

import os
import re
from pathlib import Path
from random import Random

import pytest

from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.log_directory import report
from kipcheck.conformance.log_directory.contents import Contents
from kipcheck.conformance.log_directory.reading import read
from kipcheck.conformance.log_directory.verdicts import verdict
from kipcheck.conformance.tests.support.log_directories import (
    ZOOKEEPER,
    LogDirectory,
    batch,
    checkpoint,
    level,
    metadata,
)

OFFSET = bytes.fromhex("000100016700017400000000")
COMMIT = bytes.fromhex("0003 0000000000000007 ffffffff 0000 0000000000000000")
"""OffsetCommitValue 3: offset 7."""


@pytest.fixture
def directory(tmp_path: Path) -> LogDirectory:
    """Of a node in KRaft mode that was stopped cleanly."""
    found = LogDirectory(tmp_path)
    found.kraft(metadata(0, level("metadata.version", 7)))
    return found


def reads(found: Contents, release: str = "4.4.0") -> bool | None:
    return verdict(found, Release.parse(release)).reads


def test_a_healthy_directory(directory: LogDirectory) -> None:
    directory.partition("t-0", batch(0, [(None, b"x")]), {0: 0})
    directory.write("t-0/00000000000000000000.index", b"any")
    directory.write("t-0/00000000000000000000.log.deleted", b"any")
    directory.write(".lock", b"")
    found = read(directory.folder)
    assert not (found.damage or found.unknown or found.unread or found.tails or found.epochs) and reads(found) is True
    assert found.skipped == {
        "batches of topics, but for their heads": 1, "indexes": 1,
        "files that are not finished, or about to be deleted": 1,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "cleaner-offset-checkpoint"])
@pytest.mark.parametrize("data", [b"", b"0\n"])
def test_an_empty_checkpoint_has_no_entries(directory: LogDirectory, name: str, data: bytes) -> None:
    directory.partition("t-0", b"")
    directory.write(f"t-0/{name}" if name.startswith("leader") else name, data)
    found = read(directory.folder)
    assert not found.damage and reads(found) is True


def test_an_empty_partition_metadata_is_damaged(directory: LogDirectory) -> None:
    directory.partition("t-0", b"")
    file = directory.write("t-0/partition.metadata", b"")
    (damage,) = read(directory.folder).damage
    assert damage.startswith(f"{file}: PartitionMetadata v0 / version at byte 0: ")


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("notes.txt", "file notes.txt"),
        ("t-0/notes.txt", "file notes.txt"),
        ("lost+found/any", "folder lost+found"),
        ("u-0/leader-epoch-checkpoint", "partition folders without a log"),
        ("t-0/more/any", "more, which is no file"),
    ],
)
def test_what_is_unknown_is_named_and_gives_no_verdict(directory: LogDirectory, path: str, what: str) -> None:
    directory.partition("t-0", b"")
    (directory.folder / path).parent.mkdir(parents=True, exist_ok=True)
    directory.write(path, b"")
    found = read(directory.folder)
    assert [*found.unknown] == [what] and found.unknown[what].number == 1
    assert reads(found) is None and reads(found, "2.7.2") is False


def test_what_is_no_file_is_not_opened(directory: LogDirectory) -> None:
    directory.partition("t-0", b"")
    os.mkfifo(directory.folder / "t-0" / f"{1:020}.log")
    (directory.folder / "__cluster_metadata-0" / f"{9:020}-{1:010}.checkpoint").symlink_to("nowhere")
    found = read(directory.folder)
    assert len(found.unknown) == 2 and all(each.endswith(", which is no file") for each in found.unknown)


def test_any_damage_is_reported_and_never_an_error(directory: LogDirectory) -> None:
    """A changed byte, or the loss of the end, in any file: what is printed has the place, as the file has it."""
    directory.kraft(metadata(0, level("metadata.version", 7)), bootstrap=checkpoint(level("metadata.version", 7)))
    directory.write(
        "__cluster_metadata-0/00000000000000000001-0000000001.checkpoint", checkpoint(level("x.version", 0))
    )
    directory.partition("__consumer_offsets-0", batch(0, [(OFFSET, COMMIT)]) + batch(1, [(OFFSET, None)]), {0: 0})
    assert reads(read(directory.folder)) is True
    newest, random, outcomes = (Release.parse("4.4.0"),), Random(0), set()
    files = sorted(each for each in directory.folder.rglob("*") if each.is_file() and each.stat().st_size)
    for _ in range(200):
        file = random.choice(files)
        data = file.read_bytes()
        at = random.randrange(len(data))
        changed = (
            data[:at]
            if random.random() < 0.3
            else data[:at] + bytes([data[at] ^ random.randrange(1, 256)]) + data[at + 1 :]
        )
        file.write_bytes(changed)
        found = read(directory.folder)
        for each in found.damage:
            assert str(file) in each, (file, each)
            offsets = [int(text) for text in re.findall(r"at byte (\d+)", each)]
            assert offsets and max(offsets) <= len(changed), each
        assert not found.damage or reads(found) is not True
        assert [*report.text(found, newest, groups=True)] and report.as_json(found, newest, groups=True)
        outcomes.add((bool(found.damage), bool(found.unknown)))
        file.write_bytes(data)
    assert outcomes >= {(True, False), (False, False)}


def test_compressed_batches_and_old_message_sets_are_not_read(directory: LogDirectory) -> None:
    gzip = bytearray(batch(0, [(OFFSET, COMMIT)]))
    gzip[22] |= 1
    old = bytes(8) + (22).to_bytes(4, "big") + bytes(4) + b"\1" + bytes(17)
    directory.partition("__consumer_offsets-0", bytes(gzip) + old, {0: 0})
    found = read(directory.folder)
    assert [*found.unread] == [
        "batches compressed with gzip in __consumer_offsets-0", "message sets of magic 1 in __consumer_offsets-0",
    ]  # fmt: skip
    assert not found.damage and reads(found) is None


def test_an_unknown_record_of_a_coordinator_is_named(directory: LogDirectory) -> None:
    directory.partition("__consumer_offsets-0", batch(0, [(b"\0\x63any", b"\0\0")]), {0: 0})
    found = read(directory.folder)
    assert [*found.unknown] == ["__consumer_offsets: record 99"] and reads(found) is None


@pytest.mark.parametrize(
    ("key", "release", "expected"),
    [
        (17, "3.3.2", False), (17, "3.4.1", True), (17, "3.9.2", True), (17, "4.0.2", True), (17, "4.1.0", True),
        (3, "3.4.0", False), (3, "3.9.2", True), (3, "4.4.0", True),
    ],
)  # fmt: skip
def test_newer_records_of_groups_are_skipped_since_kip_915(
    directory: LogDirectory, key: int, release: str, expected: bool
) -> None:
    group = key.to_bytes(2, "big") + b"\0\1g"
    directory.partition("__consumer_offsets-0", batch(0, [(group, b"\0\0\0\0\0\1\0")]), {0: 0})
    found = read(directory.folder)
    assert not (found.damage or found.unknown) and reads(found, release) is expected


@pytest.mark.parametrize("topic", ["t-0", "__consumer_offsets-0", "__cluster_metadata-0"])
@pytest.mark.parametrize("cut", [1, 30, 70])
def test_recovery_cuts_an_incomplete_batch_after_a_kill(directory: LogDirectory, topic: str, cut: int) -> None:
    whole = metadata(0, level("metadata.version", 7)) if "cluster" in topic else batch(0, [(OFFSET, COMMIT)], epoch=1)
    file = directory.partition(topic, whole + whole[:-cut], {1: 0})
    after = len(whole)
    found = read(directory.folder)
    place = after + 8 if len(whole) - cut >= 17 else after
    assert not found.tails and len(found.damage) == 1 and found.damage[0].startswith(f"{file} at byte {place}: ")
    (directory.folder / ".kafka_cleanshutdown").unlink()
    found = read(directory.folder)
    assert not found.damage and reads(found) is True
    assert found.tails == [f"{file} at byte {after}: {len(whole) - cut} bytes of an incomplete batch"]


def test_zeros_at_the_end_and_a_torn_last_batch_are_cut_after_a_kill(directory: LogDirectory) -> None:
    whole = batch(0, [(OFFSET, COMMIT)])
    torn = whole[:-1] + b"\7"
    (directory.folder / ".kafka_cleanshutdown").unlink()
    for end in (bytes(100), torn):
        file = directory.partition("__consumer_offsets-0", whole + end, {0: 0})
        found = read(directory.folder)
        assert not found.damage and found.tails == [
            f"{file} at byte {len(whole)}: {len(end)} bytes of an incomplete batch"
        ]
    directory.partition("__consumer_offsets-0", torn + whole, {0: 0})
    found = read(directory.folder)
    assert found.damage and not found.tails, "a batch follows"


def test_an_incomplete_batch_before_the_last_segment_is_damage(directory: LogDirectory) -> None:
    (directory.folder / ".kafka_cleanshutdown").unlink()
    whole = batch(0, [(None, b"x")])
    file = directory.partition("t-0", whole + whole[:40], {0: 0})
    directory.write("t-0/00000000000000000001.log", batch(1, [(None, b"x")]))
    found = read(directory.folder)
    (damage,) = found.damage
    assert damage.startswith(f"{file} at byte {len(whole) + 8}: a batch of length ") and not found.tails


def test_damage_is_where_it_is(directory: LogDirectory) -> None:
    first, second = batch(0, [(OFFSET, COMMIT)]), batch(1, [(OFFSET, COMMIT[:8])])
    file = directory.partition("__consumer_offsets-0", first + second, {0: 0})
    (damage,) = read(directory.folder).damage
    value_at = len(first) + second.index(COMMIT[:8])
    assert damage.startswith(f"{file} at byte {value_at + 2}: OffsetCommitValue / offset: ")
    file.write_bytes(first + second[:16] + b"\x09" + second[17:])
    (damage,) = read(directory.folder).damage
    assert damage.startswith(f"{file} at byte {len(first) + 16}: magic 9")
    file.write_bytes(first + batch(1, [(b"\0", b"\0\0")]))
    (damage,) = read(directory.folder).damage
    assert f"{file} at byte {len(first) + batch(1, [(b'S', b'')]).index(b'S')}: record: " in damage


def test_epochs_of_batches_that_the_checkpoint_lacks(directory: LogDirectory) -> None:
    first, second = batch(0, [(None, b"x")], epoch=0), batch(1, [(None, b"x")], epoch=4)
    file = directory.partition("t-0", first + second, {4: 1})
    found = read(directory.folder)
    (missing,) = found.epochs
    assert missing.startswith(f"{file} at byte 0: leader epoch 0 begins at offset 0, and leader-epoch-checkpoint does")
    assert reads(found) is True, "the checkpoint can be read"
    # Recovery may add it, or not: 2.3 to 2.6 drop epoch 0.
    (directory.folder / ".kafka_cleanshutdown").unlink()
    assert reads(read(directory.folder)) is None
    directory.partition("t-0", first + second, {0: 0, 4: 2})
    assert read(directory.folder).epochs == [
        f"{file} at byte {len(first)}: leader epoch 4 begins at offset 1, and leader-epoch-checkpoint has 2"
    ]
    # Batches before the start of the log do not count, nor do epochs of batches that compaction removed.
    directory.partition("t-0", first + second, {3: 1, 4: 1})
    directory.write("log-start-offset-checkpoint", b"0\n1\nt 0 1\n")
    assert read(directory.folder).epochs == []


def test_a_directory_of_zookeeper(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    directory.write("meta.properties", ZOOKEEPER)
    directory.partition("__consumer_offsets-0", batch(0, [(OFFSET, COMMIT)]), {0: 0})
    found = read(tmp_path)
    assert [reads(found, each) for each in ("2.0.1", "2.1.1", "3.9.2", "4.0.2")] == [False, True, True, None]
    directory.write("meta.properties", b"version=7\n")
    found = read(tmp_path)
    assert [*found.unknown] == ["meta.properties 7"] and reads(found, "3.9.2") is False


def test_a_folder_to_be_deleted_and_one_that_is_moved(directory: LogDirectory) -> None:
    number = "0123456789abcdef" * 2
    directory.partition(f"__consumer_offsets-0.{number}-delete", b"any")
    directory.partition(f"__consumer_offsets-0.{number}-future", batch(0, [(OFFSET, COMMIT)]), {0: 0})
    found = read(directory.folder)
    assert found.skipped["folders of partitions to be deleted (-delete)"] == 1
    assert {each.name for each in found.formats} >= {"OffsetCommitValue"} and reads(found) is True


def test_a_segment_that_recovery_puts_into_place_is_not_read(directory: LogDirectory) -> None:
    directory.partition("t-0", b"")
    directory.write("t-0/00000000000000000000.log.swap", b"any")
    found = read(directory.folder)
    assert [*found.unread] == ["segments that recovery puts into their place (.swap)"] and reads(found) is None
