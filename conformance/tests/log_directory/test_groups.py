"""The groups of ``__consumer_offsets``: the newest record of each key, transactions, tombstones, and where each is."""

from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.log_directory import report
from kipcheck.conformance.log_directory.groups_report import groups_as_json, groups_text
from kipcheck.conformance.log_directory.reading import read
from kipcheck.conformance.tests.support.log_directories import LogDirectory, batch, level, marker, metadata
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.record_batches import TRANSACTIONAL

SUBSCRIPTION = layout(APACHE, "ConsumerProtocolSubscription", 1).encode(
    {"topics": ["b", "a"], "userData": None, "ownedPartitions": []}
)


def offset_key(group: str, topic: str, partition: int) -> bytes:
    return layout(APACHE, "OffsetCommitKey", 1).encode({"group": group, "topic": topic, "partition": partition})


def offset(number: int) -> bytes:
    value = {"offset": number, "leaderEpoch": 3, "metadata": "kept", "commitTimestamp": 0}
    return layout(APACHE, "OffsetCommitValue", 3).encode(value)


def group_key(group: str) -> bytes:
    return layout(APACHE, "GroupMetadataKey", 2).encode({"group": group})


def group_value(generation: int, subscription: bytes = SUBSCRIPTION, protocol_type: str = "consumer") -> bytes:
    member = {
        "memberId": "m1", "groupInstanceId": "i1", "clientId": "c1", "clientHost": "/127.0.0.1",
        "rebalanceTimeout": 1, "sessionTimeout": 1, "subscription": subscription, "assignment": b"",
    }  # fmt: skip
    return layout(APACHE, "GroupMetadataValue", 3).encode({
        "protocolType": protocol_type, "generation": generation, "protocol": "range", "leader": "m1",
        "currentStateTimestamp": 0, "members": [member],
    })  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> LogDirectory:
    found = LogDirectory(tmp_path)
    found.kraft(metadata(0, level("metadata.version", 7)))
    return found


def groups(directory: LogDirectory, *batches: bytes) -> dict[str, Any]:
    directory.partition("__consumer_offsets-3", b"".join(batches), {0: 0})
    found = read(directory.folder)
    assert not (found.damage or found.unknown or found.unread)
    return {each["group"]: each for each in groups_as_json(found.groups)["groups"]}


def test_the_newest_record_counts_and_has_its_place(directory: LogDirectory) -> None:
    first = batch(0, [(offset_key("g", "t", 0), offset(5)), (offset_key("g", "t", 1), offset(6))])
    second = batch(2, [(group_key("g"), group_value(1))]) + batch(3, [(group_key("g"), group_value(2))])
    third = batch(4, [(offset_key("g", "t", 0), offset(9))])
    found = groups(directory, first, second, third)["g"]
    assert (found["generation"], found["protocolType"], found["protocol"], found["leader"]) == (
        2, "consumer", "range", "m1",
    )  # fmt: skip
    assert [(each["topic"], each["partition"], each["offset"]) for each in found["offsets"]] == [
        ("t", 1, 6), ("t", 0, 9),
    ]  # fmt: skip
    newest = found["offsets"][1]
    data = Path(newest["file"]).read_bytes()
    assert newest["byte"] > len(first + second)
    assert data[newest["byte"] :].startswith(offset_key("g", "t", 0)) and newest["metadata"] == "kept"
    (member,) = found["members"]
    assert (member["member"], member["client"], member["instance"]) == ("m1", "c1", "i1")
    assert (member["topics"], member["subscription"], member["damage"]) == (["a", "b"], None, None)


def test_tombstones_delete(directory: LogDirectory) -> None:
    records = [(group_key("g"), group_value(1)), (offset_key("g", "t", 0), offset(5))]
    found = groups(directory, batch(0, records), batch(2, [(key, None) for key, _ in records]))["g"]
    assert (found["deleted"], found["tombstones"], found["offsets"], found["members"]) == (True, 2, [], [])
    found = groups(directory, batch(0, records), batch(2, [(records[1][0], None)]), batch(3, records[1:]))["g"]
    assert (found["deleted"], found["tombstones"], len(found["offsets"])) == (False, 0, 1)


@pytest.mark.parametrize(("end", "committed", "pending"), [(True, 9, 0), (False, 5, 0), (None, 5, 1)])
def test_offsets_of_a_transaction_count_once_it_is_committed(
    directory: LogDirectory, end: bool | None, committed: int, pending: int
) -> None:
    key = offset_key("g", "t", 0)
    batches = [batch(0, [(key, offset(5))]), batch(1, [(key, offset(9))], producer=7, attributes=TRANSACTIONAL)]
    other = marker(2, 8, commit=True)
    found = groups(directory, *batches, other, *([] if end is None else [marker(3, 7, end)]))["g"]
    assert ([each["offset"] for each in found["offsets"]], found["pending"]) == ([committed], pending)


def test_subscriptions_that_cannot_be_decoded_stay_bytes(directory: LogDirectory) -> None:
    (member,) = groups(directory, batch(0, [(group_key("g"), group_value(1, b"\0\1"))]))["g"]["members"]
    assert member["topics"] is None and member["subscription"] == "0001" and member["damage"]
    (member,) = groups(directory, batch(0, [(group_key("g"), group_value(1, b"any", "connect"))]))["g"]["members"]
    assert member["topics"] is None and member["subscription"] == b"any".hex() and member["damage"] is None


def test_records_of_consumer_groups_and_records_without_a_schema(directory: LogDirectory) -> None:
    key = {"groupId": "c", "memberId": "m"}
    value = {
        "instanceId": None, "rackId": None, "clientId": "client", "clientHost": "/h", "subscribedTopicNames": ["t"],
        "subscribedTopicRegex": "", "rebalanceTimeoutMs": 1, "serverAssignor": "uniform",
    }  # fmt: skip
    records = [
        (layout(APACHE, "ConsumerGroupMetadataKey", 3).encode({"groupId": "c"}),
         layout(APACHE, "ConsumerGroupMetadataValue", 0).encode({"epoch": 4})),
        (layout(APACHE, "ConsumerGroupMemberMetadataKey", 5).encode(key),
         layout(APACHE, "ConsumerGroupMemberMetadataValue", 0).encode(value)),
        (b"\0\x11\0\1s", b"\0\0any"),
    ]  # fmt: skip
    found = groups(directory, batch(0, records))["c"]
    assert [(each["record"], each["key"]) for each in found["records"]] == [
        ("ConsumerGroupMetadata", {"groupId": "c"}), ("ConsumerGroupMemberMetadata", key),
    ]  # fmt: skip
    (member,) = found["members"]
    assert (member["member"], member["client"], member["topics"]) == ("m", "client", ["t"])
    state = read(directory.folder).groups
    assert state.undecoded == {"StreamsGroupMetadataValue": 1}
    text = [*groups_text(state)]
    assert text[0] == "groups: 1" and "consumer group, epoch 4" in text[1] and text[2].startswith("  member m: ")
    assert text[-1] == "not decoded: StreamsGroupMetadataValue, 1"


def test_text_from_outside_stays_in_its_line(directory: LogDirectory) -> None:
    directory.partition("__consumer_offsets-3", batch(0, [(offset_key("g\nx\x1b", "t\n", 0), offset(5))]), {0: 0})
    text = [*report.text(read(directory.folder), (), groups=True)]
    assert "groups: 1" in text and not any("\n" in each or "\x1b" in each for each in text)
