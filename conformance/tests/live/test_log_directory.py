"""Log directories of one released broker opened by another, upwards and back: nothing is lost, or as the table says."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from kipcheck.conformance.core.values.release import Release, lines, releases
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.live.log_directory import OFFSET, TOPIC, directory, leave, there_and_back, visit
from kipcheck.conformance.log_directory.contents import Contents
from kipcheck.conformance.log_directory.groups_report import groups_as_json
from kipcheck.conformance.log_directory.reading import read
from kipcheck.conformance.log_directory.verdicts import verdict
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA
from kipcheck.conformance.protocols.features.ops import kraft
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker, kafka_nodes

KRAFT = [each for each in lines() if Release.parse(each) in releases("3.3.0+")]
WITH_ZOOKEEPER = ["1.0.2", "1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2"]
"""Older ones, but for 0.10.0, do not start on a current JDK; 3.0 to 3.2 start as these do."""
PAIRS = [("3.3.2", "3.9.2"), ("3.3.2", "4.0.2"), ("3.9.2", "4.0.2"), ("3.9.2", "4.4.0"), ("4.0.2", "4.4.0")]


def reads(found: Contents, release: str) -> bool | None:
    return verdict(found, Release.parse(release)).reads


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
        assert found.damage == [] and reads(found, old) and reads(found, new)
        assert {each.name for each in found.formats} >= {
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
        unread = verdict(read(folder), Release.parse("3.3.2")).unread
        assert {each.format for each in unread} == {"OffsetCommitValue"}


@pytest.mark.all_jars
@pytest.mark.parametrize(("new", "old"), [("4.4.0", "3.9.2"), ("4.4.0", "4.0.2"), ("3.9.2", "3.3.2")])
def test_an_older_release_refuses_a_directory_of_a_newer_metadata_version(new: str, old: str) -> None:
    needs(old, new)
    with directory() as folder:
        refused, again = there_and_back(new, old, folder)
        assert not refused.opened and refused.why
        assert reads(read(folder), old) is False and reads(read(folder), new) is True
        assert again.opened and again.lost == (), "the refusal changed nothing"


def checked(folder: Path, release: str, killed: bool) -> Contents:
    """What was read of a directory that a broker left, which has nothing unknown, and the group of the broker."""
    found = read(folder)
    assert not (found.damage or found.unknown or found.unread or found.epochs) and found.clean is not killed
    assert reads(found, release) is True
    (group,) = groups_as_json(found.groups)["groups"]
    assert group["group"] == f"group-{release}" and group["generation"] == 1 and len(group["members"]) == 1
    assert [each["offset"] for each in group["offsets"]] == [OFFSET]
    return found


@pytest.mark.all_jars
@pytest.mark.parametrize("release", KRAFT)
def test_logdir_predicts_which_brokers_open_a_directory(release: str, tmp_path: Path) -> None:
    """Its own line, both neighbours, the oldest and the newest, after a clean stop and after a kill."""
    at = KRAFT.index(release)
    others = [KRAFT[each] for each in sorted({0, max(at - 1, 0), at, min(at + 1, len(KRAFT) - 1), len(KRAFT) - 1})]
    needs(*others)
    for killed in (False, True):
        written = tmp_path / f"killed-{killed}"
        written.mkdir()
        leave(release, written, killed=killed)
        found = checked(written, release, killed)
        for other in others:
            shutil.copytree(written, copy := tmp_path / f"{other}-{killed}")
            opened = visit(other, copy, [], writes=False)
            assert reads(found, other) is opened.opened, (other, killed, verdict(found, Release.parse(other)), opened)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", WITH_ZOOKEEPER)
@pytest.mark.parametrize("killed", [False, True])
def test_directories_of_releases_with_zookeeper_are_read(release: str, killed: bool, tmp_path: Path) -> None:
    needs(release)
    leave(release, tmp_path, killed=killed)
    found = checked(tmp_path, release, killed)
    assert not found.kraft and reads(found, "3.9.2") is True and reads(found, "4.4.0") is None


@pytest.mark.all_jars
@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.4.0"])
def test_recovery_cuts_the_ends_that_logdir_names(release: str, tmp_path: Path) -> None:
    needs(release)
    left = leave(release, tmp_path, killed=True)
    logs = [tmp_path / f"{each}-0" / f"{0:020}.log" for each in ("__consumer_offsets", TOPIC.decode())]
    logs.append(tmp_path / "__cluster_metadata-0" / f"{0:020}.log")
    sizes = [each.stat().st_size for each in logs]
    for each in logs:
        with each.open("ab") as stream:
            stream.write(each.read_bytes()[:40])
    found = read(tmp_path)
    assert sorted(found.tails) == sorted(
        f"{each} at byte {size}: 40 bytes of an incomplete batch" for each, size in zip(logs, sizes, strict=True)
    )
    assert not found.damage and reads(found, release) is True
    opened = visit(release, tmp_path, [left], writes=False)
    assert opened.opened and opened.lost == (), opened
    found = read(tmp_path)
    assert not found.tails and not found.damage, "the broker removed them, and wrote behind what was left"


@pytest.mark.all_jars
def test_a_dynamic_quorum_is_for_releases_with_kraft_version_1() -> None:
    needs("3.8.1", "3.9.2", "4.4.0")
    with kafka_nodes.cluster("3.9-IV0", {1: kafka_nodes.BOTH}, dynamic=True) as nodes:
        for release in ("3.9.2", "4.4.0"):
            nodes.start(1, release)
            nodes.wait(1)
            nodes.stop(1)
            found = read(nodes.nodes[1].folder / "data")
            assert not (found.damage or found.unknown or found.unread) and found.votes is True
            assert found.quorum is not None and found.quorum["version"] == 1
            assert [reads(found, each) for each in ("3.8.1", "3.9.2", "4.0.2", "4.4.0")] == [False, True, True, True]
            levels = {(each.feature, each.level) for each in found.levels}
            assert levels == {("kraft.version", 1), ("metadata.version", 21)}
        nodes.start(1, "3.8.1")
        code, log = nodes.ended(1, 60)
        assert code is not None, log


def update(port: int, level: int, kind: int) -> None:
    """Sets metadata.version. Errors: AssertionError for a refusal."""

    async def send() -> None:
        connections = Connections(kafka_broker.HOST, port)
        try:
            versions = await versions_of(connections)
            change = [kraft.TypedUpdate(METADATA, level, kind)]
            result = await requests.update(connections, versions[requests.UPDATE_FEATURES][1], change, False)
            assert {result.error, *(each.error for each in result.results)} == {"NONE"}, result
        finally:
            await connections.close()

    asyncio.run(send())


@pytest.mark.all_jars
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_level_that_was_lowered_counts_until_a_checkpoint_is_newer(snapshot: bool) -> None:
    needs("3.7.2", "3.8.1")
    settings = {"metadata.log.max.snapshot.interval.ms": "2000"} if snapshot else {}
    with kafka_nodes.cluster("3.7-IV4", {1: kafka_nodes.BOTH}, settings=settings) as nodes:
        nodes.start(1, "3.8.1")
        nodes.wait(1)
        update(nodes.nodes[1].port, 20, kraft.UPGRADE)
        update(nodes.nodes[1].port, 19, kraft.SAFE_DOWNGRADE)
        data = nodes.nodes[1].folder / "data"
        until = time.monotonic() + 60
        while snapshot and reads(read(data), "3.7.2") is not True and time.monotonic() < until:
            time.sleep(1)
        nodes.stop(1)
        found = read(data)
        assert (20 in {each.level for each in found.levels}) is not snapshot
        assert [reads(found, each) for each in ("3.7.2", "3.8.1")] == [snapshot, True]
        nodes.start(1, "3.7.2")
        if snapshot:
            nodes.wait(1)
        else:
            code, log = nodes.ended(1, 60)
            assert code == 1 and "this controller only supports versions 1-19" in log
