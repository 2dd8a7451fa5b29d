"""The files beside a log: what brokers wrote is read and written the same, and damage is refused with its place."""

from random import Random

import pytest

from kipcheck.conformance.wire import log_files
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.log_files import CLEANER, EPOCHS, METADATA, SNAPSHOT, decode, encode
from kipcheck.golden.log_files import golden_files, made

WRITTEN = {
    SNAPSHOT: bytes.fromhex(  # of a broker 3.9.2: a producer that ended a transaction, and an idempotent one
        "000144227bb9000000020000000000000000000000000000000000000000000000000000000001a2150b686700000000ffffffffffffffff"
        "00000000000000010000000000000000000000000002000000000000000000000000ffffffffffffffffffffffff"
    ),
    EPOCHS: b"0\n2\n0 0\n3 17\n",
    CLEANER: b"0\n2\n__consumer_offsets 0 5\nt 1 9223372036854775807\n",
    METADATA: b"version: 0\ntopic_id: lv6QZCCBQFysnLmkF7Ckkw",
}  # fmt: skip
DAMAGED = WRITTEN[SNAPSHOT][:-1] + b"\0"


def test_values() -> None:
    first, second = decode(SNAPSHOT, WRITTEN[SNAPSHOT])["producerEntries"]
    assert (first["producerId"], first["coordinatorEpoch"], first["currentTxnFirstOffset"]) == (0, 0, -1)
    assert (second["producerId"], second["lastSequence"], second["lastOffset"]) == (1, 0, 2)
    assert decode(EPOCHS, WRITTEN[EPOCHS])["entries"][1] == {"epoch": 3, "startOffset": 17}
    assert decode(CLEANER, WRITTEN[CLEANER])["entries"][1]["offset"] == 2**63 - 1
    assert decode(METADATA, WRITTEN[METADATA]) == {"version": 0, "topicId": "lv6QZCCBQFysnLmkF7Ckkw"}
    for kind, data in WRITTEN.items():
        assert encode(kind, decode(kind, data)) == data


@pytest.mark.parametrize(
    ("kind", "data", "problem", "offset"),
    [
        (SNAPSHOT, b"", "truncated", 0),
        (SNAPSHOT, b"\0\2" + WRITTEN[SNAPSHOT][2:], "version", 0),
        (SNAPSHOT, DAMAGED, "checksum", 2),
        (SNAPSHOT, WRITTEN[SNAPSHOT][:-1], "length", 6),
        (SNAPSHOT, WRITTEN[SNAPSHOT] + b"\0", "trailing", 102),
        (EPOCHS, b"1\n0\n", "version", 0),
        (EPOCHS, b"0\n", "truncated", 2),
        (EPOCHS, b"0\n3\n0 0\n3 17\n", "length", 2),
        (EPOCHS, b"0\n2\n0 0\n3 x\n", "range", 8),
        (EPOCHS, b"0\n2\n0 0\n3\n", "type", 8),
        (EPOCHS, b"0\n2\n3 0\n0 17\n", "range", 8),
        (EPOCHS, b"0\n1\n\xff 0\n", "text", 4),
        (CLEANER, b"0\n2\nt 0 5\nt 0 6\n", "unknown-field", 10),
        (CLEANER, b"0\n1\nt 0 9223372036854775808\n", "range", 4),
        (METADATA, b"version: 1\ntopic_id: lv6QZCCBQFysnLmkF7Ckkw", "version", 0),
        (METADATA, b"version: 0\ntopic_id: x", "text", 11),
        (METADATA, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "text", 11),
        (METADATA, b"version: 0\nid: x", "missing", 11),
        (METADATA, b"version: 0\n", "truncated", 11),
    ],
)
def test_damage_is_refused_with_its_place(kind: str, data: bytes, problem: str, offset: int) -> None:
    with pytest.raises(Refused) as refused:
        decode(kind, data)
    assert (refused.value.kind, refused.value.offset) == (problem, offset)


def test_any_damage_is_refused_or_read_as_a_value_that_can_be_written() -> None:
    random = Random(0)
    for _ in range(2_000):
        kind = random.choice([*WRITTEN])
        data = bytearray(WRITTEN[kind])
        data[random.randrange(len(data))] = random.choice((0, 32, 45, 48, 57, 255, random.randrange(256)))
        try:
            value = decode(kind, bytes(data[: random.randrange(len(data)) + 1]))
        except Refused as refused:
            assert refused.offset is not None and 0 <= refused.offset <= len(data)
        else:
            assert decode(kind, encode(kind, value)) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (SNAPSHOT, {"version": 1}), (SNAPSHOT, {"version": 1, "producerEntries": [{"producerId": 2**63}]}),
        (EPOCHS, {"version": 1, "entries": []}),
        (EPOCHS, {"version": 0, "entries": [{"epoch": 1, "startOffset": "x"}]}),
        (CLEANER, {"version": 0, "entries": [{"topic": "a b", "partition": 0, "offset": 0}]}),
        (METADATA, {"version": 0, "topicId": "x"}), (METADATA, {"version": 0}),
    ],
)  # fmt: skip
def test_values_that_no_file_has_are_refused(kind: str, value: dict[str, object]) -> None:
    with pytest.raises(Refused):
        encode(kind, value)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("00000000000000000042.snapshot", SNAPSHOT), ("leader-epoch-checkpoint", EPOCHS),
        ("partition.metadata", METADATA),
        ("cleaner-offset-checkpoint", CLEANER), ("recovery-point-offset-checkpoint", CLEANER),
        ("00000000000000000000-0000000000.checkpoint", None), ("bootstrap.checkpoint", None), ("meta.properties", None),
    ],
)  # fmt: skip
def test_names(name: str, kind: str | None) -> None:
    assert log_files.kind_of(name) == kind


def test_golden_files_of_jars_are_read_and_written_as_the_jars_do() -> None:
    found = [*golden_files()]
    assert {each.message for each in found} == {SNAPSHOT, EPOCHS, CLEANER, METADATA}
    for each in found:
        if each.value is not None:
            assert not each.refused and encode(each.message, each.value) == each.data, each
            assert decode(each.message, each.data) == decode(each.message, each.data, lenient=True) == each.value
            continue
        with pytest.raises(Refused):
            decode(each.message, each.data)
        try:
            decode(each.message, each.data, lenient=True)
        except Refused:
            assert not each.accepted, each
        else:
            assert each.accepted, each


@pytest.mark.all_jars
def test_golden_files_are_what_the_jars_make_now() -> None:
    assert made() == [*golden_files()]
