"""The releases that are named as failing at a damaged record are those whose jars refuse it."""

import struct
from collections.abc import Mapping
from typing import Final

import pytest

from kipcheck.conformance.clients.java.programs import Order, java_judge
from kipcheck.conformance.core.files.releases_table import judges
from kipcheck.conformance.live.recording.embedded import reader, readers
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.embedded import ASSIGNMENT, STREAM, SUBSCRIPTION, Damage, Place, damage

pytestmark = pytest.mark.jars


def subscription(version: int, cut: int = 0, user_data: bytes | None = b"") -> bytes:
    value = {"topics": ["t"], "userData": user_data, "ownedPartitions": [{"topic": "t", "partitions": [0]}]}
    data = layout("apache", SUBSCRIPTION, version).encode(value)
    return data[: len(data) - cut]


def assignment(user_data: bytes | None, cut: int = 0) -> bytes:
    value = {"assignedPartitions": [{"topic": "t", "partitions": [0]}], "userData": user_data}
    data = layout("apache", ASSIGNMENT, 1).encode(value)
    return data[: len(data) - cut]


HEAD: Final = subscription(0)[:9]
"""Version 0 and a topic, without user data."""
CONSUMERS: Final[Mapping[str, tuple[str, bytes]]] = {
    "1 without owned partitions": (SUBSCRIPTION, b"\0\1" + subscription(0)[2:]),
    "1 with null in place of them": (SUBSCRIPTION, b"\0\1" + subscription(0)[2:] + b"\xff" * 4),
    "2 without a generation": (SUBSCRIPTION, b"\0\2" + subscription(1)[2:]),
    "3 without a rack": (SUBSCRIPTION, b"\0\3" + subscription(2)[2:]),
    "later, without owned partitions": (SUBSCRIPTION, b"\0\7" + subscription(0)[2:]),
    "version below 0": (SUBSCRIPTION, b"\xff\xff" + subscription(0)[2:]),
    "no bytes": (SUBSCRIPTION, b""),
    "half a version": (SUBSCRIPTION, b"\0"),
    "no user data": (SUBSCRIPTION, HEAD),
    "user data past the end": (SUBSCRIPTION, HEAD + b"\0\0\0\x09abc"),
    "a length below -1": (SUBSCRIPTION, HEAD + b"\xff\xff\xff\xfe"),
    "topics below -1": (SUBSCRIPTION, b"\0\0\xff\xff\xff\xfe" + HEAD[9:] + b"\xff" * 4),
    "null in place of topics": (SUBSCRIPTION, b"\0\0" + b"\xff" * 8),
    "more topics than bytes": (SUBSCRIPTION, b"\0\0\0\0\x03\xe8" + HEAD[6:]),
    "no UTF-8": (SUBSCRIPTION, b"\0\0\0\0\0\1\0\2\xff\xfe" + b"\xff" * 4),
    "an assignment without user data": (ASSIGNMENT, assignment(None, cut=4)),
    "user data of an assignment past the end": (ASSIGNMENT, assignment(b"abc", cut=1)),
    "null in place of partitions": (ASSIGNMENT, b"\0\0" + b"\xff" * 8),
    "an assignment of no bytes": (ASSIGNMENT, b""),
}
STREAMS: Final[Mapping[str, tuple[str, bytes]]] = {
    "a subscription of no bytes": (SUBSCRIPTION, subscription(1, user_data=b"")),
    "a subscription of version 0": (SUBSCRIPTION, subscription(1, user_data=bytes(40))),
    "a subscription of version 2, cut": (SUBSCRIPTION, subscription(1, user_data=struct.pack(">i", 2) + bytes(16))),
    "a subscription of version 11, cut": (
        SUBSCRIPTION, subscription(1, user_data=struct.pack(">ii", 11, 11) + bytes(18))
    ),
    "an assignment of version 2, cut": (ASSIGNMENT, assignment(struct.pack(">i", 2) + bytes(6))),
    "an assignment of version 11, cut": (ASSIGNMENT, assignment(struct.pack(">ii", 11, 11) + bytes(2))),
}  # fmt: skip


def wrong(record: str, data: bytes, assignor: str = "") -> Damage:
    found = damage(Place("metadata", record, data, assignor))
    assert found is not None
    return found


def test_a_release_of_the_consumer_fails_at_a_record_or_accepts_it() -> None:
    """Through the class that consumers use."""
    with java_judge({release: ("clients",) for release in judges("clients")}) as judge:
        for name, (record, data) in CONSUMERS.items():
            library, reads = reader(wrong(record, data))
            assert library == "clients"
            version = max(0, int.from_bytes(data[:2], "big", signed=True))
            for release in judges("clients"):
                highest = judge.one(Order("versions", record, release=release, public=True)).versions
                assert highest is not None
                order = Order(
                    "decode", record, min(version, highest[1]), hex=data.hex(), release=release, public=True
                )  # fmt: skip
                assert reads(release) == (judge.one(order).status == "accepted"), (name, release, judge.one(order))


def test_a_release_of_streams_fails_at_user_data_or_accepts_it() -> None:
    with java_judge({release: ("streams",) for release in judges("streams")}) as judge:
        for name, (record, data) in STREAMS.items():
            found = wrong(record, data, STREAM)
            library, reads = reader(found)
            assert library == "streams"
            version = int.from_bytes(found.data[:4], "big", signed=True)
            for release in judges("streams"):
                order = Order("decode", found.record, version, hex=found.data.hex(), release=release)
                answer = judge.one(order)
                assert answer.status in ("accepted", "rejected"), (name, release, answer)
                assert reads(release) == (answer.status == "accepted"), (name, release, answer)


def test_the_sentence_names_the_spans() -> None:
    def sentence(name: str) -> str:
        return readers(wrong(*CONSUMERS[name])).partition(";")[0]

    assert sentence("3 without a rack") == (
        "leaders with kafka-clients 3.4.0 to 4.4.0 fail at it, 0.10.0.0 to 3.3.2 accept it"
    )  # fmt: skip
    assert sentence("an assignment of no bytes") == "members with kafka-clients 0.10.0.0 to 4.4.0 fail at it"
    assert sentence("no UTF-8") == "no release of kafka-clients fails at it"
