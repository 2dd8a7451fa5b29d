"""Record batches: the bytes of released jars, both ways; what is refused, and where."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import (
    AFTER_CRC,
    LEAST,
    Header,
    Record,
    RecordBatch,
    batch,
    crc32c,
    decode,
    encode,
    next_offset,
    varint,
)
from kipcheck.golden.batches import RELEASES, asked, batches, made, text

GOLDEN = [pytest.param(data, meant, id=note) for note, data, meant in batches()]
ONE = encode(batch(3, [b"hello"], 17))
TWO = ONE + encode(batch(4, [b"x", None], 18, leader_epoch=6))


def as_data(found: RecordBatch) -> dict[str, Any]:
    """In the form of the golden file."""
    return {
        "magic": 2, "baseOffset": found.base_offset, "lastOffset": found.last_offset,
        "maxTimestamp": found.max_timestamp, "producerId": found.producer_id, "producerEpoch": found.producer_epoch,
        "baseSequence": found.base_sequence, "leaderEpoch": found.leader_epoch,
        "transactional": found.transactional, "control": found.control,
        "records": [
            {
                "offset": each.offset, "timestamp": each.timestamp, "key": hexed(each.key), "value": hexed(each.value),
                "headers": [{"key": header.key, "value": hexed(header.value)} for header in each.headers],
            }
            for each in found.records
        ],
    }  # fmt: skip


def hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


@pytest.mark.parametrize(("data", "meant"), GOLDEN)
def test_what_jars_wrote_is_read_and_written_as_they_do(data: bytes, meant: list[dict[str, Any]]) -> None:
    found = decode(data)
    assert [as_data(each) for each in found] == meant
    assert b"".join(map(encode, found)) == data


@pytest.mark.parametrize(("data", "meant"), GOLDEN)
def test_a_changed_byte_after_the_magic_has_another_checksum(data: bytes, meant: list[dict[str, Any]]) -> None:
    rng = random.Random(len(data))
    for at in {17, 18, 19, 20, AFTER_CRC, len(data) - 1, *(rng.randrange(17, len(data)) for _ in range(20))}:
        with pytest.raises(Refused) as refused:
            decode(data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :])
        assert (refused.value.kind, refused.value.offset) == ("checksum", 17)


def test_the_checksum_is_that_of_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE306_9283
    assert crc32c(b"") == 0


def test_batches_follow_each_other_and_the_last_may_be_cut_off() -> None:
    first, second = decode(TWO)
    assert (first.last_offset, second.base_offset, second.last_offset, second.leader_epoch) == (3, 4, 5, 6)
    assert [each.value for each in second.records] == [b"x", None]
    assert decode(b"") == ()
    for cut in range(len(ONE) + 1, len(TWO)):
        assert decode(TWO[:cut], partial=True) == (first,)
        with pytest.raises(Refused, match="end inside a batch") as refused:
            decode(TWO[:cut])
        assert (refused.value.kind, refused.value.offset) == ("truncated", cut)


@pytest.mark.parametrize(("data", "meant"), GOLDEN)
def test_a_reader_goes_on_after_the_last_whole_batch(data: bytes, meant: list[dict[str, Any]]) -> None:
    assert next_offset(data) == next_offset(data + ONE[:-1]) == meant[-1]["lastOffset"] + 1
    assert next_offset(data[:-1]) == (meant[-2]["lastOffset"] + 1 if len(meant) > 1 else None)


def test_a_batch_without_records_is_read_and_not_made() -> None:
    """Compaction leaves such batches."""
    empty = replace(batch(0, [b"a"]), records=(), last_offset=9)
    assert decode(encode(empty)) == (empty,)
    assert len(encode(empty)) == LEAST
    with pytest.raises(ValueError, match="at least one record"):
        batch(0, [])


def sealed(data: bytes) -> bytes:
    """With the length and the checksum that the bytes have."""
    body = data[AFTER_CRC:]
    return data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:17] + crc32c(body).to_bytes(4, "big") + body


def put(at: int, new: bytes, instead: int | None = None) -> Callable[[bytes], bytes]:
    return lambda data: sealed(data[:at] + new + data[at + (len(new) if instead is None else instead) :])


@pytest.mark.parametrize(
    ("damage", "kind", "offset"),
    [
        pytest.param(lambda data: data[:16] + b"\1" + data[17:], "version", 16, id="magic 1"),
        pytest.param(lambda data: data[:8] + bytes(4) + data[12:], "length", 8, id="length of 0"),
        pytest.param(lambda data: data[:8] + b"\xff" * 4 + data[12:], "length", 8, id="negative length"),
        pytest.param(put(LEAST - 4, b"\0\0\0\2"), "truncated", LEAST + 12, id="a record too few"),
        pytest.param(put(LEAST - 4, b"\0\0\0\0"), "trailing", LEAST, id="a record too many"),
        pytest.param(put(LEAST - 4, b"\xff\xff\xff\xff"), "length", LEAST - 4, id="negative count"),
        pytest.param(put(LEAST, varint(100), 1), "length", LEAST, id="long record"),
        pytest.param(put(LEAST, varint(10)), "truncated", LEAST + 11, id="short record"),
        pytest.param(put(LEAST, b"\x96\0", 1), "varint", LEAST, id="varint of two bytes for one"),
        pytest.param(put(LEAST, b"\x96\x80\x80\x80\x80\0", 1), "varint", LEAST, id="varint of six bytes"),
        pytest.param(put(LEAST, b"\xff\xff\xff\xff\x7f", 1), "varint", LEAST, id="varint of 35 bits"),
        pytest.param(put(LEAST + 4, varint(-2)), "length", LEAST + 4, id="negative key"),
        pytest.param(put(LEAST + 5, varint(7)), "length", LEAST + 5, id="long value"),
        pytest.param(put(LEAST + 11, varint(-1)), "length", LEAST + 11, id="negative number of headers"),
        pytest.param(put(LEAST + 11, varint(1)), "truncated", LEAST + 12, id="a header too few"),
        pytest.param(lambda data: data[:40], "truncated", 40, id="cut off"),
    ],
)
def test_damage_is_refused_where_it_is(damage: Callable[[bytes], bytes], kind: str, offset: int) -> None:
    assert len(ONE) == LEAST + 12
    with pytest.raises(Refused) as refused:
        decode(damage(ONE))
    assert (refused.value.kind, refused.value.offset) == (kind, offset), refused.value
    with pytest.raises(Refused) as refused:
        decode(TWO[len(ONE) :] + damage(ONE))
    assert refused.value.offset == offset + len(TWO) - len(ONE), "offsets count from the first of all bytes"


@pytest.mark.parametrize(("key", "kind"), [(b"\1", "null"), (b"\4k\xff", "text")])
def test_the_key_of_a_header_is_text(key: bytes, kind: str) -> None:
    body = b"\0\0\0\1\1\2" + key + b"\1"
    data = sealed(ONE[:LEAST] + varint(len(body)) + body)
    with pytest.raises(Refused) as refused:
        decode(data)
    assert refused.value.kind == kind


def test_compression_is_not_read() -> None:
    with pytest.raises(NotImplementedError, match="compression 4"):
        decode(put(AFTER_CRC, b"\0\4")(ONE))
    with pytest.raises(NotImplementedError, match="compression 1"):
        encode(replace(batch(0, [b"a"]), attributes=1))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(batch(0, [b"a"]), base_offset=1 << 63),
        replace(batch(0, [b"a"]), last_offset=1 << 31),
        replace(batch(0, [b"a"]), producer_epoch=1 << 15),
        replace(batch(0, [b"a"]), records=(Record(1 << 31, 0),)),
    ],
)
def test_a_number_out_of_range_is_not_written(wrong: RecordBatch) -> None:
    with pytest.raises(Refused) as refused:
        encode(wrong)
    assert refused.value.kind == "range" and refused.value.offset is None


# -- released jars


def drawn(rng: random.Random) -> RecordBatch:
    def some() -> bytes | None:
        return rng.choice((None, b"", rng.randbytes(rng.choice((1, 63, 64, 200)))))

    base, time = rng.choice((0, 1, 1 << 40)), rng.choice((0, 1_700_000_000_000))
    records = tuple(
        Record(
            base + n, time + rng.choice((0, 1, 70, 1 << 40)), some(), some(),
            tuple(Header(rng.choice(("", "h", "grüße")), some()) for _ in range(rng.randrange(3))),
        )
        for n in range(rng.randrange(1, 6))
    )  # fmt: skip
    last = records[-1].offset + rng.choice((0, 3))
    producer = rng.choice(((-1, -1, -1), (7, 2, 99)))
    return RecordBatch(
        base, last, time, max(each.timestamp for each in records), records, rng.randrange(-1, 9), *producer
    )


@pytest.mark.jars
@pytest.mark.parametrize("release", RELEASES)
def test_jars_read_what_is_written_here(release: str) -> None:
    rng = random.Random(release)
    values = [drawn(rng) for _ in range(200)]
    assert all(decode(encode(each)) == (each,) for each in values)
    answers = asked(release, [{"hex": encode(each).hex()} for each in values])
    assert answers == [[as_data(each)] for each in values]


@pytest.mark.jars
@pytest.mark.parametrize("release", RELEASES)
def test_jars_refuse_a_wrong_checksum(release: str) -> None:
    (answer,) = asked(release, [{"hex": (ONE[:-1] + bytes((ONE[-1] ^ 1,))).hex()}])
    assert "thrown" in answer, answer


@pytest.mark.jars
def test_the_golden_batches_are_what_the_jars_make_now() -> None:
    noted = {note: data for note, data, _ in batches()}
    found = made()
    assert {each["note"]: bytes.fromhex(each["hex"]) for each in found["batches"]} == noted
    assert text(found).count("\n") == len(noted) + 1
