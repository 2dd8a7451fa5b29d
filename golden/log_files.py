"""Golden files of a log directory, written and read by jars: ``python -m kipcheck.golden.log_files [--check]``.

``golden/log_files.json`` has what the classes of brokers write of a value, and what they do with damaged files. They
are not vectors: a file is no message with a schema (see ``wire.log_files``).
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.programs import JavaCodec, Order
from kipcheck.conformance.core.files.releases_table import listed
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.wire.log_files import CLEANER, EPOCHS, METADATA, SNAPSHOT, VERSIONS, in_order
from kipcheck.conformance.wire.stored_records import newest_readable
from kipcheck.golden.disagreement import Disagreement

FILE: Final = "log_files.json"
RELEASES: Final = listed("log-file-writers")
"""One of each place that the classes had."""
Value = dict[str, Any]


def producer(**fields: int) -> Value:
    usual = {
        "producerId": 7, "epoch": 3, "lastSequence": 11, "lastOffset": 99, "offsetDelta": 4,
        "timestamp": 1_700_000_000_000, "coordinatorEpoch": 2, "currentTxnFirstOffset": 95,
    }  # fmt: skip
    return {**usual, **fields}


def epoch(number: int, offset: int) -> Value:
    return {"epoch": number, "startOffset": offset}


def offset(topic: str, partition: int, at: int) -> Value:
    return {"topic": topic, "partition": partition, "offset": at}


SAMPLES: Final[Mapping[str, Mapping[str, Value]]] = {
    SNAPSHOT: {
        "no producer": {"producerEntries": []},
        "a transaction": {"producerEntries": [producer()]},
        "no transaction": {"producerEntries": [producer(currentTxnFirstOffset=-1, coordinatorEpoch=-1)]},
        "highest numbers": {
            "producerEntries": [
                producer(
                    producerId=2**63 - 1, epoch=2**15 - 1, lastSequence=2**31 - 1, lastOffset=2**63 - 1,
                    offsetDelta=2**31 - 1, timestamp=2**63 - 1, coordinatorEpoch=2**31 - 1,
                    currentTxnFirstOffset=2**63 - 1,
                )
            ]
        },
        "three producers": {"producerEntries": [producer(producerId=each) for each in (1, 2, 3)]},
    },
    EPOCHS: {
        "no epoch": {"entries": []},
        "two epochs": {"entries": [epoch(0, 0), epoch(5, 42)]},
        "highest numbers": {"entries": [epoch(2**31 - 1, 2**63 - 1)]},
    },
    CLEANER: {
        "no partition": {"entries": []},
        "two partitions": {"entries": [offset("__consumer_offsets", 3, 2**40), offset("a.b-c_d", 0, 0)]},
        "highest numbers": {"entries": [offset("t", 2**31 - 1, 2**63 - 1)]},
    },
    METADATA: {
        "a topic": {"topicId": "lv6QZCCBQFysnLmkF7Ckkw"},
        "a topic with all letters": {"topicId": "_-9BCDEFGHIJKLMNOPQRSQ"},
    },
}  # fmt: skip
"""By kind and note: what is written, the version aside."""
TEXT: Final[Mapping[str, bytes]] = {
    "another version": b"1\n0\n", "version as text": b"v\n0\n", "count too high": b"0\n1\n",
    "count too low": b"0\n0\n5 42\n",
    "count as text": b"0\nx\n", "a word of a line": b"0\n1\n5\n", "no count": b"0\n", "nothing": b"",
}  # fmt: skip
DAMAGED: Final[Mapping[str, Mapping[str, bytes]]] = {
    SNAPSHOT: {
        "nothing": b"", "another version": bytes.fromhex("000248674bc700000000"),
        "another checksum": bytes.fromhex("000148674bc600000000"), "cut off": bytes.fromhex("000148674bc7000000"),
        "a producer is missing": bytes.fromhex("000148674bc700000001"),
    },
    EPOCHS: {**TEXT, "an epoch falls": b"0\n2\n5 42\n4 43\n", "an offset falls": b"0\n2\n4 43\n5 42\n"},
    CLEANER: {**TEXT, "a partition twice": b"0\n2\nt 0 1\nt 0 2\n", "partition as text": b"0\n1\nt x 0\n"},
    METADATA: {
        "another version": b"version: 1\ntopic_id: lv6QZCCBQFysnLmkF7Ckkw",
        "topic without bits": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "no topic": b"version: 0\n",
        "another key": b"version: 0\ntopic: lv6QZCCBQFysnLmkF7Ckkw", "nothing": b"",
        "version as text": b"version: v\ntopic_id: lv6QZCCBQFysnLmkF7Ckkw",
    },
}  # fmt: skip


class GoldenFile(NamedTuple):
    message: str
    note: str
    data: bytes
    value: Value | None
    """None for a damaged file."""
    accepted: tuple[str, ...]
    """The releases that read it."""
    refused: tuple[str, ...]


def releases_with(message: str) -> tuple[str, ...]:
    return tuple(each for each in RELEASES if newest_readable(message, Release.parse(each)) is not None)


def made() -> list[GoldenFile]:
    """What the jars make now. Errors: ``Disagreement`` between releases; ``Unavailable``."""
    programs.program()
    jars = {each: [Path(one) for one in kafka_broker.class_path(each).split(os.pathsep)] for each in RELEASES}
    with programs.judge_of(jars) as judge:
        found = [_written(judge, kind, note, value) for kind, of in SAMPLES.items() for note, value in of.items()]
        return found + [_damaged(judge, kind, note, data) for kind, of in DAMAGED.items() for note, data in of.items()]


def _written(judge: JavaCodec, message: str, note: str, value: Value) -> GoldenFile:
    """Each release writes the value, and reads the bytes that each of them wrote."""
    version, by = VERSIONS[message], releases_with(message)
    given = {"version": version, **value}
    orders = (Order("encode", message, version, given, release=each) for each in by)
    found = dict(zip(by, judge.answers(orders), strict=True))
    texts = {each.hex for each in found.values()}
    (text,) = texts if len(texts) == 1 else (None,)
    if text is None:
        raise Disagreement(f"{message}, {note}: releases write {found}")
    orders = (Order("decode", message, version, hex=text, release=each) for each in by)
    for release, answer in zip(by, judge.answers(orders), strict=True):
        if in_order(message, answer.value) != in_order(message, given):
            raise Disagreement(f"{message}, {note}: {release} reads {answer}")
    return GoldenFile(message, note, bytes.fromhex(text), given, by, ())


def _damaged(judge: JavaCodec, message: str, note: str, data: bytes) -> GoldenFile:
    by = releases_with(message)
    orders = (Order("decode", message, VERSIONS[message], hex=data.hex(), release=each) for each in by)
    found = {release: answer.status for release, answer in zip(by, judge.answers(orders), strict=True)}
    if {*found.values()} - {"accepted", "rejected"}:
        raise Disagreement(f"{message}, {note}: {found}")
    took = tuple(each for each in by if found[each] == "accepted")
    return GoldenFile(message, note, data, None, took, tuple(each for each in by if each not in took))


def golden_files() -> Iterator[GoldenFile]:
    """From the file."""
    for each in json.loads((files("kipcheck.golden") / FILE).read_text("utf-8"))["files"]:
        yield GoldenFile(
            each["message"], each["note"], bytes.fromhex(each["hex"]), each["value"], tuple(each["accepted"]),
            tuple(each["refused"]),
        )  # fmt: skip


def text(found: Sequence[GoldenFile]) -> str:
    rows = ({**each._asdict(), "hex": each.data.hex()} for each in found)
    names = ("message", "note", "hex", "value", "accepted", "refused")
    lines = ",\n  ".join(json.dumps({name: row[name] for name in names}, ensure_ascii=False) for row in rows)
    head = json.dumps({"made_by": "the class path of org.apache.kafka:kafka_2.12 and kafka_2.13", "releases": RELEASES})
    return f'{head[:-1]}, "files": [\n  {lines}]}}\n'


def main(argv: Sequence[str]) -> int:
    """Exit code 1: with ``--check``, the file would change."""
    path, wanted = Path(__file__).parent / FILE, text(made())
    changed = not path.exists() or path.read_text("utf-8") != wanted
    if changed and "--check" not in argv:
        path.write_text(wanted, "utf-8")
    print(f"{FILE}: {'changed' if changed else 'unchanged'}")
    return int(changed and "--check" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
