"""The table of what releases write into the topics of coordinators."""

import pytest

from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.wire.stored_records import InterBroker, messages, newest_readable, thresholds, written

OFFSET, GROUP, TRANSACTION = "OffsetCommitValue", "GroupMetadataValue", "TransactionLogValue"


def of(message: str, release: str, inter_broker: str = "", expiring: bool = False) -> int | None:
    at = Release.parse(release)
    named = InterBroker.parse(inter_broker) if inter_broker else InterBroker.of(at)
    return written(message, at, named, expiring=expiring)


def test_inter_broker_versions_are_ordered_by_line_and_step() -> None:
    names = ["0.8.0", "0.10.0-IV1", "0.10.1-IV0", "1.0", "2.1-IV0", "2.1-IV2", "2.1", "2.2-IV0", "2.10", "3.0-IV1"]
    parsed = [*map(InterBroker.parse, names)]
    assert parsed == sorted(parsed) and [*map(str, parsed)] == names
    assert InterBroker.parse("2.1.1") == InterBroker.parse("2.1") == InterBroker.of(Release.parse("2.1.0"))


@pytest.mark.parametrize(
    "text", ["", "2", "2.1-IV", "2.1-iv0", "0.10", "latest", "2.1-IV0 ", "2.1.0-IV0", "-1.0", "2.1000"]
)
def test_invalid_inter_broker_versions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid inter-broker version"):
        InterBroker.parse(text)


@pytest.mark.parametrize(
    ("message", "release", "inter_broker", "version"),
    [
        (GROUP, "2.3.1", "0.10.0", 0),
        (GROUP, "2.3.1", "0.10.1-IV0", 1),
        (GROUP, "2.3.1", "2.2", 2),
        (GROUP, "2.3.1", "", 3),
        (GROUP, "4.4.0", "3.3-IV3", 3),
        (OFFSET, "2.0.1", "", 1),
        (OFFSET, "2.1.1", "2.1-IV0", 2),
        (OFFSET, "2.1.1", "2.1-IV1", 3),
        (OFFSET, "4.0.2", "", 3),
        (OFFSET, "4.1.0", "3.3-IV3", 4),
        (TRANSACTION, "0.10.2.2", "", None),
        (TRANSACTION, "3.9.2", "", 0),
        (TRANSACTION, "4.0.0", "", 1),
    ],
)
def test_the_version_that_is_written(message: str, release: str, inter_broker: str, version: int | None) -> None:
    assert of(message, release, inter_broker) == version


def test_a_commit_with_its_own_retention_time_is_always_version_1() -> None:
    assert [of(OFFSET, each, expiring=True) for each in ("2.1.1", "3.9.2", "4.4.0")] == [1, 1, 1]
    assert of(GROUP, "3.9.2", expiring=True) == 3


def test_transaction_version_selects_the_value_of_the_transaction_log() -> None:
    found = [
        written(TRANSACTION, Release.parse("4.4.0"), InterBroker.parse("4.4"), transactions=level) for level in range(3)
    ]
    assert found == [0, 1, 1]


def test_the_inter_broker_versions_that_change_what_is_written() -> None:
    between = thresholds(GROUP, InterBroker.parse("2.0"), InterBroker.parse("2.3"))
    assert {str(each): version for each, version in between.items()} == {"2.1-IV0": 2, "2.3-IV0": 3}
    assert not thresholds(OFFSET, InterBroker.parse("2.1-IV1"), InterBroker.parse("4.4"))


def test_every_release_reads_what_it_writes() -> None:
    for release in ("1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.8.2", "3.4.0", "3.4.1", "3.9.2", "4.0.0", "4.4.0"):
        for message in messages():
            version, newest = of(message, release), newest_readable(message, Release.parse(release))
            assert version is not None and newest is not None and version <= newest, (release, message)
    assert newest_readable(TRANSACTION, Release.parse("0.10.2.2")) is None
