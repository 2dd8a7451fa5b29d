"""The files beside a log: every release reads what every other one writes, byte for byte, and refuses damage."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.stored_records import Brokers
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.wire.log_files import CLEANER, EPOCHS, METADATA, SNAPSHOT, encode
from kipcheck.conformance.wire.stored_records import InterBroker, log_files, newest_readable, written

RELEASES = [
    "0.11.0.3", "1.1.1", "2.0.1", "2.3.1", "2.8.2", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2",
    "4.0.2", "4.1.2", "4.2.1", "4.4.0",
]  # fmt: skip
UNCHECKED = ("3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.4.0")
"""The releases whose reader of partition.metadata does not compare the version."""
PRODUCER = {
    "producerId": 7, "epoch": 3, "lastSequence": 11, "lastOffset": 99, "offsetDelta": 4, "timestamp": 1_700_000_000_000,
    "coordinatorEpoch": 2, "currentTxnFirstOffset": 95,
}  # fmt: skip
VALUES = {
    SNAPSHOT: {"version": 1, "producerEntries": [PRODUCER]},
    EPOCHS: {"version": 0, "entries": [{"epoch": 0, "startOffset": 0}, {"epoch": 5, "startOffset": 42}]},
    CLEANER: {"version": 0, "entries": [{"topic": "__consumer_offsets", "partition": 3, "offset": 2**40}]},
    METADATA: {"version": 0, "topicId": "lv6QZCCBQFysnLmkF7Ckkw"},
}


@pytest.fixture(scope="module")
def released() -> Iterator[Brokers]:
    try:
        jars = {each: [Path(one) for one in kafka_broker.class_path(each).split(":")] for each in RELEASES}
        with programs.judge_of(jars) as judge:
            yield Brokers(judge)
    except Unavailable as why:
        pytest.skip(str(why))


def those_with(kind: str) -> list[str]:
    return [each for each in RELEASES if newest_readable(kind, Release.parse(each)) is not None]


@pytest.mark.all_jars
@pytest.mark.parametrize("kind", [*VALUES])
def test_what_a_release_writes_every_release_reads_and_writes_the_same(released: Brokers, kind: str) -> None:
    data, known = encode(kind, VALUES[kind]), those_with(kind)
    assert kind in log_files() and len(known) > 10
    for release, answer in zip(known, released.recode_file(kind, data, known), strict=True):
        assert answer.hex == data.hex(), (release, answer)
        at = Release.parse(release)
        assert written(kind, at, InterBroker.of(at)) == newest_readable(kind, at) == VALUES[kind]["version"]


@pytest.mark.all_jars
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (SNAPSHOT, b"\0\2" + encode(SNAPSHOT, VALUES[SNAPSHOT])[2:]),
        (SNAPSHOT, encode(SNAPSHOT, VALUES[SNAPSHOT])[:-1] + b"\1"),
        (EPOCHS, b"1\n1\n0 0\n"), (EPOCHS, b"0\n2\n0 0\n"), (EPOCHS, b"0\n1\n0\n"),
        (CLEANER, b"1\n0\n"), (CLEANER, b"0\n1\nt x 0\n"), (METADATA, b"version: 1\ntopic_id: lv6QZCCBQFysnLmkF7Ckkw"),
        (METADATA, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"),
    ],
)  # fmt: skip
def test_another_version_and_damage_are_refused_by_every_release(released: Brokers, kind: str, data: bytes) -> None:
    known = those_with(kind)
    for release, answer in zip(known, released.recode_file(kind, data, known), strict=True):
        accepts = kind == METADATA and data.startswith(b"version: 1") and release in UNCHECKED
        assert answer.status == ("accepted" if accepts else "rejected"), (release, answer)
