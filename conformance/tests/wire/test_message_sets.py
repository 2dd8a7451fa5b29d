"""Message sets against bytes that Kafka 3.9.2 answered to Fetch 0 and 2, and damaged ones."""

import pytest

from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.message_sets import decode, encode
from kipcheck.conformance.wire.record_batches import Record, next_offset

PLAIN = Record(0, 5, None, b"t 0")
KEYED = Record(4, 5, b"k", b"b")
OLD = bytes.fromhex(
    "000000000000000000000011691c73fd0000ffffffff00000003742030000000000000000400000010053603770000000000016b0000000162"
)
"""Magic 0: the answer of a broker to Fetch 0, with what it had as batches of magic 2."""


def test_messages_of_magic_0_are_those_of_a_broker() -> None:
    assert encode([PLAIN, KEYED], 0) == OLD
    assert decode(OLD) == (Record(0, -1, None, b"t 0"), Record(4, -1, b"k", b"b"))


@pytest.mark.parametrize("magic", (0, 1))
def test_what_is_written_is_read(magic: int) -> None:
    records = (PLAIN, KEYED, Record(7, 9, b"", b""), Record(8, 10, b"k", None))
    data = encode(records, magic)
    assert [(each.offset, each.key, each.value) for each in decode(data)] == [
        (each.offset, each.key, each.value) for each in records
    ]
    assert [each.timestamp for each in decode(data)] == ([-1] * 4 if magic == 0 else [5, 5, 9, 10])
    assert decode(data[:-1]) == decode(data)[:-1], "a message that is cut off is left out"
    assert next_offset(data) == 9
    assert next_offset(data[:-1]) == 8


@pytest.mark.parametrize(("at", "byte", "kind"), ((12, 0, "checksum"), (16, 2, "length"), (16, 9, "version")))
def test_damage_is_refused_where_it_is(at: int, byte: int, kind: str) -> None:
    data = bytearray(encode([PLAIN], 0))
    data[at] = byte
    with pytest.raises(Refused) as refused:
        decode(bytes(data))
    assert refused.value.kind == kind


def test_a_compressed_message_is_not_read() -> None:
    import zlib

    body = bytes((0, 1)) + encode([KEYED], 0)[18:]
    data = (4).to_bytes(8, "big") + (len(body) + 4).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body
    with pytest.raises(NotImplementedError):
        decode(data)


def test_no_number_is_too_large_for_a_message() -> None:
    with pytest.raises(Refused) as refused:
        encode([Record(1 << 63, 0, None, b"")], 0)
    assert refused.value.kind == "range"
