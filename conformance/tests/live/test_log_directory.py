"""Log directories of one released broker opened by another, upwards and back: nothing is lost, or as the table says."""

import pytest

from kipcheck.conformance.core.release import Release
from kipcheck.conformance.live.log_directory import directory, there_and_back
from kipcheck.conformance.log_directory.reading import read
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker

PAIRS = [("3.3.2", "3.9.2"), ("3.3.2", "4.0.2"), ("3.9.2", "4.0.2"), ("3.9.2", "4.4.0"), ("4.0.2", "4.4.0")]


def needs(*releases: str) -> None:
    for release in releases:
        try:
            kafka_broker.class_path(release)
        except Unavailable as why:
            pytest.skip(str(why))


@pytest.mark.all_jars
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_groups_offsets_and_producers_survive_the_upgrade_and_the_way_back(old: str, new: str) -> None:
    needs(old, new)
    with directory() as folder:
        up, back = there_and_back(old, new, folder)
        assert (up.opened, up.lost) == (True, ()), up
        assert (back.opened, back.lost) == (True, ()), back
        found = read(folder)
        assert found.damage == [] and not found.unread(Release.parse(old)) and not found.unread(Release.parse(new))
        assert {format for format, _ in found.first} >= {
            "ProducerSnapshot", "LeaderEpochCheckpoint", "CleanerCheckpoint", "PartitionMetadata",
            "GroupMetadataValue", "OffsetCommitValue", "TransactionLogValue",
        }  # fmt: skip


@pytest.mark.all_jars
def test_3_3_loses_groups_and_offsets_after_4_4_although_no_level_was_raised() -> None:
    needs("3.3.2", "4.4.0")
    with directory() as folder:
        up, back = there_and_back("3.3.2", "4.4.0", folder)
        assert up.opened and up.lost == () and back.opened
        assert "the committed offset (-1) of 3.3.2" in back.lost and "the group (Dead) of 4.4.0" in back.lost
        assert [format for format, _ in read(folder).unread(Release.parse("3.3.2"))] == ["OffsetCommitValue"]


@pytest.mark.all_jars
@pytest.mark.parametrize(("new", "old"), [("4.4.0", "3.9.2"), ("4.4.0", "4.0.2"), ("3.9.2", "3.3.2")])
def test_an_older_release_refuses_a_directory_of_a_newer_metadata_version(new: str, old: str) -> None:
    needs(old, new)
    with directory() as folder:
        refused, again = there_and_back(new, old, folder)
        assert not refused.opened and refused.why
        assert again.opened and again.lost == (), "the refusal changed nothing"
