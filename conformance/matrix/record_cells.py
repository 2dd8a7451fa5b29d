"""Cells of the scenario ``records``: what one release persists, and what another does with it, by the brokers' classes.

A row is a version of a format, written by the first and the last release that writes it by default; a column is a
release that reads it. The result of each cell is predicted from the table of ``wire/stored_records.py``.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.stored_records import FIRST, IN_JAVA, Brokers, skipped, unreadable
from kipcheck.conformance.core.files.releases_table import listed, span, table
from kipcheck.conformance.core.values.release import Release, lines, releases
from kipcheck.conformance.matrix.scenario_names import RECORDS as SCENARIO
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.wire.log_files import CLEANER, EPOCHS, METADATA, SNAPSHOT, encode
from kipcheck.conformance.wire.stored_records import InterBroker, newest_readable, written

READS, FAILS, SKIPS, NONE = "reads", "fails", "skips", "none"
"""``none``: the release has no such format, and nothing that reads it."""
TRANSACTIONS: Final = "TransactionLogValue"
RECORDS: Final = ("GroupMetadataValue", "OffsetCommitValue", TRANSACTIONS)
FILES: Final[Mapping[str, Mapping[str, Any]]] = {
    SNAPSHOT: {"version": 1, "producerEntries": [{
        "producerId": 7, "epoch": 3, "lastSequence": 11, "lastOffset": 99, "offsetDelta": 4,
        "timestamp": 1_700_000_000_000, "coordinatorEpoch": 2, "currentTxnFirstOffset": 95}]},
    EPOCHS: {"version": 0, "entries": [{"epoch": 0, "startOffset": 0}, {"epoch": 5, "startOffset": 42}]},
    CLEANER: {"version": 0, "entries": [{"topic": "__consumer_offsets", "partition": 3, "offset": 2**40}]},
    METADATA: {"version": 0, "topicId": "lv6QZCCBQFysnLmkF7Ckkw"},
}  # fmt: skip
UNKNOWN_KEY: Final = "unknown key"
KEYS: Final = {"ConsumerGroupMetadataKey": (3, "0003000167"), UNKNOWN_KEY: (99, "0063000167")}
"""Records by their keys: of a consumer group, and of a kind that no release has."""
BY_SETTING: Final[Mapping[str, tuple[int, str, str]]] = {
    format: (row["version"], row["release"], row["inter-broker"])
    for format, row in table()["records-by-setting"].items()
}
"""Versions that a release writes at another inter-broker version than its default."""
UNKNOWN_VALUE: Final = (99, "0063" + "00" * 40)
"""A version of a value that no release has."""
REQUIREMENTS: Final = {
    **dict.fromkeys(RECORDS, "384-09"), TRANSACTIONS: "384-22", **dict.fromkeys(KEYS, "384-21")
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecordRow:
    format: str
    version: int
    writers: tuple[str, ...]
    """The releases that write it by default; empty: none."""
    setting: str = ""
    """The inter-broker version at which the writer writes it; empty: its default."""


@dataclass(frozen=True, slots=True)
class RecordCell:
    row: RecordRow
    reader: str
    predicted: str
    found: str
    detail: str
    """Of a failure: the exception."""

    @property
    def as_predicted(self) -> bool:
        return self.found == self.predicted


def known_releases() -> tuple[str, ...]:
    """The newest patch of each line whose broker runs, and the patches next to KIP-915 and to version 4 of offsets."""
    newest = {release for release in lines() if Release.parse(release) >= FIRST}
    return tuple(sorted(newest.union(listed("record-readers")), key=Release.parse))


def predicted(format: str, version: int, reader: str) -> str:
    at = Release.parse(reader)
    if format in KEYS:
        if at not in releases(span("skips-unknown-group-keys")):
            return FAILS
        return SKIPS if format == UNKNOWN_KEY or at not in IN_JAVA else READS
    newest = newest_readable(format, at)
    if newest is None or version <= newest:
        return NONE if newest is None else READS
    skips = format == TRANSACTIONS and at in releases(span("skips-unknown-transaction-values"))
    return SKIPS if skips else FAILS


def writers_of(format: str, among: Sequence[str]) -> dict[int, tuple[str, ...]]:
    """Version -> the releases that write it by default."""
    found: dict[int, tuple[str, ...]] = {}
    for each in among:
        at = Release.parse(each)
        version = written(format, at, InterBroker.of(at))
        if version is not None and newest_readable(format, at) is not None:
            found[version] = (*found.get(version, ()), each)
    return found


def play(writers: Sequence[str], readers: Sequence[str]) -> Iterator[RecordCell]:
    """Errors: ``Unavailable`` without a JDK, Maven or the jars."""
    programs.program()
    needed = sorted({*writers, *readers}, key=Release.parse)
    jars = {each: [Path(one) for one in kafka_broker.class_path(each).split(os.pathsep)] for each in needed}
    with programs.judge_of(jars) as judge:
        running = Brokers(judge)
        for format in RECORDS:
            for version, by in sorted(writers_of(format, writers).items()):
                data = {running.write(format, each) for each in (by[0], by[-1])}
                yield from _records(running, RecordRow(format, version, by), data, readers)
            if format in BY_SETTING and (row := BY_SETTING[format])[1] in writers:
                version, writer, setting = row
                data = {running.write(format, writer, setting)}
                yield from _records(running, RecordRow(format, version, (writer,), setting), data, readers)
            version, unknown = UNKNOWN_VALUE
            yield from _records(running, RecordRow(format, version, ()), {bytes.fromhex(unknown)}, readers)
        for format, (version, key) in KEYS.items():
            yield from _records(running, RecordRow(format, version, ()), {bytes.fromhex(key)}, readers)
        for format, value in FILES.items():
            for version, by in sorted(writers_of(format, writers).items()):
                yield from _files(running, RecordRow(format, version, by), encode(format, value), readers)


def _records(running: Brokers, row: RecordRow, data: set[bytes], readers: Sequence[str]) -> Iterator[RecordCell]:
    """The worst result of what the first and the last writer wrote."""
    message = "Key" if row.format in KEYS else row.format
    found: dict[str, tuple[str, str]] = {}
    for each in sorted(data):
        if row.format not in KEYS and int.from_bytes(each[:2], "big") != row.version:
            raise ValueError(f"{row.format} is written in version {int.from_bytes(each[:2], 'big')}, not {row.version}")
        for reader, answer in zip(readers, running.read(message, each, readers), strict=True):
            result = SKIPS if skipped(answer) else READS if answer.status == "accepted" else FAILS
            detail = str(answer.thrown or answer.message) if result == FAILS else ""
            if result == FAILS and not unreadable(answer):
                detail = f"another failure: {detail}"
            if result == FAILS or reader not in found:
                found[reader] = result, detail
    for reader, (result, detail) in found.items():
        yield RecordCell(row, reader, predicted(row.format, row.version, reader), result, detail)


def _files(running: Brokers, row: RecordRow, data: bytes, readers: Sequence[str]) -> Iterator[RecordCell]:
    """The writers write what they read of the same bytes; then the readers read that."""
    made = {answer.hex or "" for answer in running.recode_file(row.format, data, row.writers)}
    for reader in readers:
        expected = predicted(row.format, row.version, reader)
        if expected == NONE:
            yield RecordCell(row, reader, NONE, NONE, "")
            continue
        answers = [running.recode_file(row.format, bytes.fromhex(each), [reader])[0] for each in sorted(made)]
        wrong = next((each for each in answers if each.hex != data.hex()), None)
        detail = "" if wrong is None else str(wrong.thrown or wrong.message or f"written as {wrong.hex}")
        yield RecordCell(row, reader, expected, READS if wrong is None else FAILS, detail)


def plain(cells: Sequence[RecordCell]) -> dict[str, Any]:
    """As ``records.json``."""
    return {
        "scenario": SCENARIO,
        "cells": [
            {"format": each.row.format, "version": each.row.version, "writers": list(each.row.writers),
             "setting": each.row.setting or None,
             "reader": each.reader, "result": each.found, "predicted": each.predicted,
             "as_predicted": each.as_predicted, "requirement": REQUIREMENTS.get(each.row.format),
             "detail": each.detail}
            for each in cells
        ],
        "unlike": sum(not each.as_predicted for each in cells),
    }  # fmt: skip
