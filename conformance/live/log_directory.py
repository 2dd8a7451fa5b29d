"""Opens the log directory of one release with the broker of another: what it finds of groups, offsets and producers.

A broker writes a group with a member, a committed offset, a finished transaction, and a batch of an idempotent
producer, and is stopped. The broker that opens the directory then has to have them: as the coordinators answer, not as
its log says. Producer snapshots, leader epoch and cleaner checkpoints, and partition.metadata are beside the logs.
"""

import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder
from kipcheck.conformance.wire import record_batches
from kipcheck.conformance.wire.record_batches import TRANSACTIONAL

PATIENCE_S: Final = 60.0
"""The time limit for a coordinator to load its partition, and for a topic to have a leader."""
TOPIC: Final = b"kipcheck-data"
OFFSET: Final = 1234
MEMBERSHIP_MS: Final = 1_800_000
"""Sessions of this length outlive the restarts: the longest that brokers allow, by default from 2.3 on."""
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": str(MEMBERSHIP_MS),
    "num.partitions": "1",
}
TRANSIENT: Final = frozenset({3, 5, 6, 14, 15, 16, 51})
"""Errors of topics and coordinators that are not there yet, and of a transaction that is about to end."""
DUPLICATE_SEQUENCE: Final = 46
PRODUCE, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND, JOIN, SYNC, DESCRIBE = 0, 3, 8, 9, 10, 11, 14, 15
INIT_PRODUCER, ADD_PARTITIONS, END_TXN = 22, 24, 26


@dataclass(frozen=True, slots=True)
class Written:
    """What one broker left."""

    by: str
    """The broker, such as its release; the names of group and transaction contain it."""
    producer: int
    epoch: int
    """Of the transactional producer."""
    batch: bytes
    """The last batch of the idempotent producer."""
    offset: int
    """The offset of that batch."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a broker found of what another one wrote."""

    release: str
    opened: bool
    lost: tuple[str, ...] = ()
    why: str = ""
    """Why it did not start: the end of its log."""


@contextmanager
def directory() -> Iterator[Path]:
    """A directory for ``visit``, removed at the end."""
    with temporary_folder("log") as folder:
        yield folder


def there_and_back(first: str, second: str, folder: Path) -> tuple[Found, Found]:
    """The first release writes, the second reads and writes more, and the first reads both.

    The directory is formatted by the first one. Errors: ``Unavailable``; ``Broken`` where the first does not start on
    the empty directory; LookupError.
    """
    left = [leave(first, folder)]
    there = visit(second, folder, left)
    return there, visit(first, folder, left, writes=False)


def leave(release: str, folder: Path, *, killed: bool = False) -> Written:
    """A broker writes into the directory, and is stopped, or killed with SIGKILL. Errors: as of ``there_and_back``."""
    with kafka_broker.running(release, SETTINGS, data=folder) as broker:
        left = write(broker.port, release)
        if killed:
            os.kill(broker.pids[-1], signal.SIGKILL)
    return left


def visit(release: str, folder: Path, left: list[Written], *, writes: bool = True) -> Found:
    """Opens the directory; reads what is ``left`` there, and adds what this broker writes to it."""
    try:
        with kafka_broker.running(release, SETTINGS, data=folder) as broker:
            lost = []
            for place, each in enumerate(left):
                missing, left[place] = read(broker.port, each)
                lost += [f"{what} of {each.by}" for what in missing]
            if writes:
                left.append(write(broker.port, release))
            return Found(release, True, tuple(lost))
    except Broken as wrong:
        return Found(release, False, why=str(wrong))


# Requests


def _text(text: bytes | None) -> bytes:
    return b"\xff\xff" if text is None else struct.pack(">h", len(text)) + text


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _one(element: bytes) -> bytes:
    return struct.pack(">i", 1) + element


def _until(port: int, key: int, version: int, body: bytes, error: Callable[[bytes], int]) -> bytes:
    """The first response without a transient error. Errors: ``Broken``."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            found = kafka_broker.ask(port, key, version, body)
            code = error(found)
        except OSError as lost:
            found, code = b"", -2
            if time.monotonic() >= until:
                raise Broken(f"API {key} is not answered: {lost}") from None
        if found and code not in TRANSIENT:
            return found
        if time.monotonic() >= until:
            raise Broken(f"API {key} is answered with error {code} for {PATIENCE_S:.0f} s")
        time.sleep(0.2)


def _at(form: str, place: int) -> Callable[[bytes], int]:
    return lambda data: int(struct.unpack_from(form, data, place)[0])


def _done(code: int, what: str) -> None:
    if code:
        raise Broken(f"{what} is answered with error {code}")


# Writing


def write(port: int, by: str) -> Written:
    """``by``: see ``Written``. Errors: ``Broken`` where the broker refuses a request."""
    name, now = by.encode(), int(time.time() * 1000)  # a broker forgets producers of yesterday
    # Auto-creation of the topic: brokers, controller, then one topic with its error.
    _until(port, METADATA, 1, _one(_text(TOPIC)), _topic_error)
    _until(port, FIND, 0, _text(b"group-" + name), _at(">h", 0))
    _until(port, FIND, 1, _text(b"transaction-" + name) + b"\x01", _at(">h", 4))
    _group(port, b"group-" + name)
    producer, epoch = _producer(port, b"transaction-" + name)
    partition = _text(TOPIC) + _one(struct.pack(">i", 0))
    ids = _text(b"transaction-" + name) + struct.pack(">qh", producer, epoch)
    _until(port, ADD_PARTITIONS, 0, ids + _one(partition), lambda data: _last_error(data, len(TOPIC)))
    batch = replace(record_batches.batch(0, [b"in a transaction"], now), attributes=TRANSACTIONAL)
    _produce(port, _numbered(batch, producer, epoch), b"transaction-" + name)
    _done(_at(">h", 4)(_until(port, END_TXN, 0, ids + b"\x01", _at(">h", 4))), "EndTxn")
    other, other_epoch = _producer(port, None)
    idempotent = _numbered(record_batches.batch(0, [b"once"], now), other, other_epoch)
    _, offset = _produce(port, idempotent, None)
    return Written(by, producer, epoch, idempotent, offset)


def _topic_error(data: bytes) -> int:
    """Of Metadata v1: the larger of the topic's error and that of its partition."""
    (brokers,) = struct.unpack_from(">i", data)
    place = 4
    for _ in range(brokers):
        (host,) = struct.unpack_from(">h", data, place + 4)
        place += 10 + host
        (rack,) = struct.unpack_from(">h", data, place)
        place += 2 + max(rack, 0)
    place += 8  # the controller, and the number of topics
    (code,) = struct.unpack_from(">h", data, place)
    place += 2 + 2 + len(TOPIC) + 1
    (partitions,) = struct.unpack_from(">i", data, place)
    if code or not partitions:
        return code or 3
    return int(struct.unpack_from(">h", data, place + 4)[0])


def _last_error(data: bytes, name: int) -> int:
    """Of AddPartitionsToTxn v0: that of the only partition."""
    return int(struct.unpack_from(">h", data, 4 + 4 + 2 + name + 4 + 4)[0])


def _numbered(batch: record_batches.RecordBatch, producer: int, epoch: int) -> bytes:
    return record_batches.encode(replace(batch, producer_id=producer, producer_epoch=epoch, base_sequence=0))


def _group(port: int, group: bytes) -> None:
    times = struct.pack(">ii", MEMBERSHIP_MS, MEMBERSHIP_MS)
    joining = _text(group) + times + _text(b"") + _text(b"consumer") + _one(_text(b"range") + _bytes(b"\0" * 10))
    joined = _until(port, JOIN, 2, joining, _at(">h", 4))
    _done(_at(">h", 4)(joined), "JoinGroup")
    (generation,) = struct.unpack_from(">i", joined, 6)
    place = 10
    for _ in range(2):  # the protocol, and the leader
        place += 2 + int(struct.unpack_from(">h", joined, place)[0])
    (size,) = struct.unpack_from(">h", joined, place)
    member = joined[place + 2 : place + 2 + size]
    ids = _text(group) + struct.pack(">i", generation) + _text(member)
    synced = _until(port, SYNC, 1, ids + _one(_text(member) + _bytes(b"assigned")), _at(">h", 4))
    _done(_at(">h", 4)(synced), "SyncGroup")
    partition = struct.pack(">iq", 0, OFFSET) + _text(b"kept")
    commit = ids + struct.pack(">q", -1) + _one(_text(TOPIC) + _one(partition))
    answer = _until(port, OFFSET_COMMIT, 2, commit, lambda data: int(struct.unpack(">h", data[-2:])[0]))
    _done(int(struct.unpack(">h", answer[-2:])[0]), "OffsetCommit")


def _producer(port: int, transaction: bytes | None) -> tuple[int, int]:
    body = _text(transaction) + struct.pack(">i", 60_000)
    answer = _until(port, INIT_PRODUCER, 0, body, _at(">h", 4))
    code, producer, epoch = struct.unpack_from(">hqh", answer, 4)
    _done(code, "InitProducerId")
    return producer, epoch


def _produce(port: int, batch: bytes, transaction: bytes | None) -> tuple[int, int]:
    """Error and base offset. Errors: ``Broken`` for any error but one of a repeated batch."""
    partition = struct.pack(">i", 0) + _bytes(batch)
    body = _text(transaction) + struct.pack(">hi", -1, 10_000) + _one(_text(TOPIC) + _one(partition))
    place = 4 + 2 + len(TOPIC) + 4 + 4
    answer = _until(port, PRODUCE, 3, body, _at(">h", place))
    code, offset = struct.unpack_from(">hq", answer, place)
    if code != DUPLICATE_SEQUENCE:
        _done(code, "Produce")
    return code, offset


# Reading


def read(port: int, written: Written) -> tuple[list[str], Written]:
    """What is missing of what a broker wrote, and the same with the epoch that its transactional producer has now."""
    name = written.by.encode()
    lost = []
    _until(port, FIND, 0, _text(b"group-" + name), _at(">h", 0))
    _until(port, FIND, 1, _text(b"transaction-" + name) + b"\x01", _at(">h", 4))
    if (found := _committed(port, b"group-" + name)) != OFFSET:
        lost.append(f"the committed offset ({found})")
    if (state := _state(port, b"group-" + name)) != "Stable":
        lost.append(f"the group ({state})")
    producer, epoch = _producer(port, b"transaction-" + name)
    if producer != written.producer or epoch <= written.epoch:
        lost.append("the transactional producer")
    if _produce(port, written.batch, None)[1] != written.offset:
        lost.append("the last batch of the idempotent producer")
    return lost, replace(written, producer=producer, epoch=epoch)


def _committed(port: int, group: bytes) -> int:
    body = _text(group) + _one(_text(TOPIC) + _one(struct.pack(">i", 0)))
    answer = _until(port, OFFSET_FETCH, 1, body, lambda data: int(struct.unpack(">h", data[-2:])[0]))
    return int(struct.unpack_from(">q", answer, 4 + 2 + len(TOPIC) + 4 + 4)[0])


def _state(port: int, group: bytes) -> str:
    answer = _until(port, DESCRIBE, 0, _one(_text(group)), _at(">h", 4))
    place = 4 + 2 + 2 + len(group)
    (size,) = struct.unpack_from(">h", answer, place)
    return answer[place + 2 : place + 2 + size].decode()
