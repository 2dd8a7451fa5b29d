"""The metadata log of KRaft: which levels and records count, and which releases can open the directory."""

from pathlib import Path
from uuid import UUID

import pytest

from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.log_directory.contents import Contents, Source
from kipcheck.conformance.log_directory.reading import read
from kipcheck.conformance.log_directory.verdicts import verdict
from kipcheck.conformance.tests.support.log_directories import (
    TYPES,
    LogDirectory,
    batch,
    checkpoint,
    control,
    framed,
    level,
    metadata,
)

METADATA = "metadata.version"
LOG = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def directory(tmp_path: Path) -> LogDirectory:
    return LogDirectory(tmp_path)


def reads(found: Contents, *releases: str) -> list[bool | None]:
    return [verdict(found, Release.parse(each)).reads for each in releases]


def test_a_level_that_was_lowered_later_still_counts(directory: LogDirectory) -> None:
    directory.kraft(
        metadata(0, level(METADATA, 19)) + metadata(1, level(METADATA, 20)) + metadata(2, level(METADATA, 19))
    )
    found = read(directory.folder)
    assert [each.level for each in found.levels] == [19, 20, 19] and not found.damage
    assert reads(found, "3.6.2", "3.7.2", "3.8.1", "4.4.0") == [False, False, True, True]
    (unread,) = verdict(found, Release.parse("3.7.2")).unread
    assert unread.level is not None and unread.level.level == 20
    log = (directory.folder / LOG).read_bytes()
    offset = unread.place.offset
    assert offset is not None and log[offset:].startswith(level(METADATA, 20))


def test_records_before_the_end_of_the_newest_checkpoint_do_not_count(directory: LogDirectory) -> None:
    directory.kraft(metadata(0, level(METADATA, 20)) + metadata(1, level(METADATA, 19)))
    directory.write("__cluster_metadata-0/00000000000000000001-0000000001.checkpoint", checkpoint(level(METADATA, 20)))
    assert reads(read(directory.folder), "3.7.2") == [False]
    directory.write("__cluster_metadata-0/00000000000000000002-0000000001.checkpoint", checkpoint(level(METADATA, 19)))
    found = read(directory.folder)
    assert found.metadata and (found.metadata.end, found.metadata.older) == (2, 2)
    assert [(each.level, each.source) for each in found.levels] == [(19, Source.CHECKPOINT)]
    assert reads(found, "3.6.2", "3.7.2") == [False, True]


def test_of_a_bootstrap_checkpoint_only_metadata_version_counts(directory: LogDirectory) -> None:
    log = metadata(0, level(METADATA, 7))
    directory.kraft(log, bootstrap=checkpoint(level(METADATA, 21), level("group.version", 1)))
    assert reads(read(directory.folder), "3.8.1", "3.9.2") == [False, True]
    # A bootstrap with less than a release starts with: 3.3-IV0 is the least up to 3.9, 3.3-IV3 from 4.0 on.
    directory.kraft(log, bootstrap=checkpoint(level(METADATA, 6)))
    assert reads(read(directory.folder), "3.9.2", "4.0.2") == [True, False]


@pytest.mark.parametrize(("feature", "number", "read_by"), [("group.version", 1, True), ("share.version", 2, False)])
def test_other_features_count_for_controllers(
    directory: LogDirectory, feature: str, number: int, read_by: bool
) -> None:
    log = metadata(0, level(METADATA, 25), level(feature, number))
    directory.kraft(log)
    assert reads(read(directory.folder), "4.0.2") == [read_by]
    state = directory.folder / "__cluster_metadata-0" / "quorum-state"
    controller = state.read_bytes()
    state.write_bytes(controller.replace(b'"voterId":1', b'"voterId":2'))
    assert reads(read(directory.folder), "4.0.2") == [True], "a broker that is no voter"
    state.unlink()
    assert reads(read(directory.folder), "4.0.2") == [True if read_by else None], "no file says what the node is"


def test_a_type_or_version_of_record_that_a_release_does_not_know(directory: LogDirectory) -> None:
    elr = framed(TYPES["ClearElrRecord"], 0, b"\0\0")
    broker = framed(TYPES["RegisterBrokerRecord"], 4, b"any")
    directory.kraft(metadata(0, level(METADATA, 7), elr))
    assert reads(read(directory.folder), "3.9.2", "4.0.2") == [False, True]
    directory.kraft(metadata(0, level(METADATA, 7), broker))
    assert reads(read(directory.folder), "4.2.1", "4.3.1") == [False, True]
    directory.kraft(metadata(0, level(METADATA, 7), framed(99, 0, b"")))
    found = read(directory.folder)
    assert [*found.unknown] == ["metadata record 99 0"] and reads(found, "4.4.0") == [False]


def test_a_directory_of_3_3_and_previews_of_kraft(directory: LogDirectory) -> None:
    directory.kraft(metadata(0, level(METADATA, 7)))
    found = read(directory.folder)
    assert reads(found, "2.7.2", "2.8.2", "3.2.3", "3.3.2") == [False, False, False, True]
    # A preview wrote a range of levels: another layout with the same version.
    written = framed(TYPES["FeatureLevelRecord"], 0, b"\x02x\0\1\0\1\0")
    directory.kraft(metadata(0, written))
    found = read(directory.folder)
    assert not found.damage and [*found.unread] == ["FeatureLevelRecord of a preview of KRaft (2.8.0-3.2.3)"]
    assert reads(found, "3.2.3", "3.3.2") == [None, None]


def test_a_dynamic_quorum(directory: LogDirectory) -> None:
    voter = {
        "voterId": 1, "voterDirectoryId": UUID(int=7), "endpoints": [],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
    }  # fmt: skip
    log = control(0, "KRaftVersionRecord", {"kRaftVersion": 1}) + control(1, "VotersRecord", {"voters": [voter]})
    directory.kraft(log + metadata(2, level(METADATA, 7)))
    directory.write(
        "__cluster_metadata-0/quorum-state",
        b'{"leaderId":1,"leaderEpoch":1,"votedId":1,"votedDirectoryId":"P5_LQuAbxDQ_Zk8PQ-lXBQ","data_version":1}',
    )
    found = read(directory.folder)
    assert not found.damage and found.votes is True and found.metadata and found.metadata.voters == frozenset({1})
    assert reads(found, "3.4.1", "3.7.2", "3.8.1", "3.9.2", "4.4.0") == [False, False, False, True, True]
    unread = {f"{each.format} {each.version}" for each in verdict(found, Release.parse("3.7.2")).unread}
    assert unread == {"KRaftVersionRecord 0", "VotersRecord 0", "quorum-state 1"}


def test_a_log_without_a_level_gives_no_verdict(directory: LogDirectory) -> None:
    directory.kraft(control(0, "LeaderChangeMessage", {"leaderId": 1, "voters": [], "grantingVoters": []}))
    found = read(directory.folder)
    assert verdict(found, Release.parse("4.4.0")).open == ("no level of metadata.version in checkpoints and log",)


def test_without_the_metadata_log_there_is_no_verdict(directory: LogDirectory) -> None:
    directory.kraft(metadata(0, level(METADATA, 7)))
    for file in (directory.folder / "__cluster_metadata-0").iterdir():
        file.unlink()
    (directory.folder / "__cluster_metadata-0").rmdir()
    found = read(directory.folder)
    assert reads(found, "2.7.2", "3.3.2", "4.4.0") == [False, None, None]


def test_meta_properties_of_zookeeper_beside_a_metadata_log(directory: LogDirectory) -> None:
    directory.kraft(metadata(0, level(METADATA, 7)))
    directory.write("meta.properties", b"broker.id=1\ncluster.id=x\n")
    assert reads(read(directory.folder), "3.6.2", "3.7.2", "4.4.0") == [None, True, True]


def test_damage_in_a_record_has_the_offset_of_the_byte(directory: LogDirectory) -> None:
    good = metadata(0, level(METADATA, 7))
    broken = level(METADATA, 7)[:-2]
    file = directory.kraft(good + metadata(1, broken))
    found = read(directory.folder)
    value_at = len(good) + (good + metadata(1, broken))[len(good) :].index(broken)
    assert len(found.damage) == 1 and found.damage[0].startswith(f"{file} at byte {value_at + len(broken) - 1}: ")
    assert reads(found, "2.7.2", "4.4.0") == [False, None]


def test_a_checkpoint_without_its_end_is_damaged(directory: LogDirectory) -> None:
    directory.kraft(metadata(0, level(METADATA, 7)), clean=False)
    whole = checkpoint(level(METADATA, 7))
    last = len(control(2, "SnapshotFooterRecord", {}))
    file = directory.write("__cluster_metadata-0/00000000000000000001-0000000001.checkpoint", whole[:-last])
    assert read(directory.folder).damage == [
        f"{file} at byte {len(whole) - last}: the checkpoint ends without a SnapshotFooterRecord"
    ]
    file.write_bytes(whole[:-3])
    (damage,) = read(directory.folder).damage
    assert damage.startswith(f"{file} at byte {len(whole) - last + 8}: a batch of length ")


def test_a_log_that_begins_after_every_checkpoint_is_damaged(directory: LogDirectory) -> None:
    directory.kraft(metadata(5, level(METADATA, 7)))
    folder = directory.folder / "__cluster_metadata-0"
    (folder / f"{0:020}.log").rename(folder / f"{5:020}.log")
    assert read(directory.folder).damage == [
        f"{folder}: the log begins at offset 5, and no checkpoint has what was before"
    ]
    directory.write("__cluster_metadata-0/00000000000000000005-0000000001.checkpoint", checkpoint(level(METADATA, 7)))
    assert reads(read(directory.folder), "3.3.2") == [True]


def test_a_control_record_of_an_unknown_type(directory: LogDirectory) -> None:
    unknown = batch(1, [(b"\0\0\0\x09", b"\0\0")], attributes=1 << 5)
    directory.kraft(metadata(0, level(METADATA, 7)) + unknown)
    found = read(directory.folder)
    assert [*found.unknown] == ["control record 9 0"]
    assert reads(found, "3.4.1", "3.5.2", "4.4.0") == [None, False, False]
