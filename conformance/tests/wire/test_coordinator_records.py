"""Records of coordinators: what the key and the value are, and where damage is."""

import pytest

from kipcheck.conformance.wire.coordinator_records import GROUPS, SHARES, TRANSACTIONS, decode, names
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import Record

KEY = bytes.fromhex("0002000167")


def test_names_of_keys() -> None:
    assert names(TRANSACTIONS) == {0: "TransactionLog"}
    assert names(SHARES) == {0: "ShareSnapshot", 1: "ShareUpdate"}
    found = names(GROUPS)
    assert [found[each] for each in (0, 1, 2, 3, 11, 17)] == [
        "OffsetCommit", "OffsetCommit", "GroupMetadata", "ConsumerGroupMetadata", "ShareGroupMetadata",
        "StreamsGroupMetadata",
    ]  # fmt: skip


def test_keys_and_values() -> None:
    tombstone = decode(GROUPS, Record(0, 0, KEY, None))
    assert (tombstone.name, tombstone.key, tombstone.version, tombstone.value) == (
        "GroupMetadata", {"group": "g"}, None, None,
    )  # fmt: skip
    newer = decode(GROUPS, Record(0, 0, KEY, b"\0\x63any"))
    assert (newer.format, newer.version, newer.value, newer.known) == ("GroupMetadataValue", 99, None, True)
    streams = decode(GROUPS, Record(0, 0, b"\0\x11any", b"\0\0any"))
    assert (streams.format, streams.key, streams.value, streams.known) == (
        "StreamsGroupMetadataValue", None, None, True,
    )  # fmt: skip
    unknown = decode(GROUPS, Record(0, 0, b"\0\x63any", b"\0\0any"))
    assert (unknown.format, unknown.known) == ("record 99", False)


@pytest.mark.parametrize(
    ("key", "value", "message", "offset"),
    [
        (None, b"", "record", 10), (b"\0", b"", "record", 10), (KEY[:-1], b"", "GroupMetadataKey", 12),
        (KEY, b"\0\3\0", "GroupMetadataValue", 22),
    ],
)  # fmt: skip
def test_damage_has_its_offset_in_the_bytes_of_the_batch(
    key: bytes | None, value: bytes, message: str, offset: int
) -> None:
    with pytest.raises(Refused) as refused:
        decode(GROUPS, Record(0, 0, key, value, key_at=10, value_at=20))
    assert (refused.value.message, refused.value.offset) == (message, offset)
