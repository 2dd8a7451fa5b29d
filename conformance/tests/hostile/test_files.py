"""3,000 mutated files, over all commands that read files of others: a sentence, and never a traceback or a hang."""

import math
import random
import resource
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.tests.cli.test_storedir import EDITS, made, record
from kipcheck.conformance.tests.live.watch.test_captures import JOIN, JOINED
from kipcheck.conformance.tests.log_directory.test_groups import group_key, group_value, offset, offset_key
from kipcheck.conformance.tests.support.captures import exchange
from kipcheck.conformance.tests.support.log_directories import LogDirectory, batch, checkpoint, level, metadata
from kipcheck.conformance.wire.pcap import file_header

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(3000)]
FILES: Final = 3000
USAGE: Final = 2
OURS: Final = 70
DIRECTORY: Final = (0, 1, 2, 7)
"""What ``storedir`` and ``logdir`` end with."""
LONGEST_S: Final = 20.0
"""Of processor time, for one file."""
MOST_MIB: Final = 400
GROUP: Final = """{"topics": {"t": 3, "u": {"partitions": 1, "racks": [["r1", "r2"]]}},
 "members": {"c1": {"subscription": ["t", "u"], "owned": [["t", 1]], "generation": 10},
             "c2": {"subscription": ["t"], "instance": "i2", "rack": "r1"}}}"""
FEATURES: Final = """{"brokers": [{"group_coordinator": [1, 2]}, {"group_coordinator": [1, 3]}],
 "node": {"version": 0, "status": 1, "features":
          {"group_coordinator": {"min_version_level": 1, "max_version_level": 1}}},
 "epoch": 1, "known": {"2.7.0": {"group_coordinator": 2}}}"""
RUN: Final = ("run", "--target", "miniature/forgets-the-sign", "--check", "wire/*", "--message", "HeartbeatRes*")
CAMPAIGN: Final = (
    "campaign",
    "--target",
    "reference",
    "--check",
    "wire/round-trip",
    "--cases",
    "300",
    "--executor",
    "inline",
)


def mutations(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """Files with other bytes, without a part, with a part twice, and with other numbers and words."""
    while True:
        found = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            at, size = draw.randrange(len(found) + 1), draw.choice((1, 1, 2, 4, 50))
            match draw.randrange(4):
                case 0:
                    found[at : at + size] = draw.randbytes(size)
                case 1:
                    del found[at : at + size]
                case 2:
                    found[at:at] = found[at : at + size * 10]
                case _:
                    found[at : at + size] = draw.choice(
                        (b"null", b"-1", b"1e999", b'"', b"[", b"{}", b"\xff", b"9" * 30)
                    )
            found = found or bytearray(b"0")
        yield bytes(found)


@dataclass(frozen=True, slots=True)
class Reader:
    path: Path
    command: Sequence[str]
    whole: bytes
    """What is mutated."""
    wrapped: Callable[[bytes], bytes] = lambda data: data
    """The file that has it: with a checksum that fits, for instance, so that what is read behind it is mutated too."""
    codes: Collection[int] = range(OURS)
    share: float = 1.0
    """Of the files: less for a command that works for seconds with what it read."""


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Reader]:
    """Files, and the command that reads each of them."""
    place = tmp_path_factory.mktemp("files")
    run, campaign = place / "run", place / "campaign"
    main.run([*RUN, "--cases", "20", "--out", str(run)])
    main.run([*CAMPAIGN, "--out", str(campaign)])
    failure = next((run / "failures").glob("*.json"))
    corpus = next((campaign / "corpus").glob("*.gz"))
    features, known, pcap, group = (
        place / "features.json",
        place / "known.toml",
        place / "client.pcap",
        place / "g.json",
    )
    features.write_text(FEATURES)
    group.write_text(GROUP)
    main.run(["known", "update", str(known), "--from", str(run)])
    pcap.write_bytes(file_header() + b"".join(each.data for each in exchange("JoinGroup", 5, 1, JOIN, JOINED)))
    merged = ("merge", str(run), "--out", str(place / "merged"))
    commands: Sequence[tuple[Path, Sequence[str]]] = [
        (failure, ("replay", str(failure), "--target", "reference")),
        (run / "ledger.jsonl", ("report", str(run / "ledger.jsonl"))),
        (run / "ledger.jsonl", merged),
        (run / "ledger.jsonl", ("triage", str(run))),
        (run / "ledger.jsonl", ("show", failure.stem, "--out", str(run))),
        (corpus, ("corpus", "info", str(campaign))),
        (campaign / "manifest.json", ("campaign", "--resume", str(campaign))),
        (features, ("features", "describe", "--state", str(features))),
        (known, ("known", "check", str(known))),
        (pcap, ("watch", "--pcap", str(pcap), "--out", str(place / "watched"))),
        (group, ("assign", "--target", "reference", "--assignor", "range", str(group))),
    ]
    found = [Reader(path, command, path.read_bytes()) for path, command in commands]
    slow = [replace(each, share=0.1) if each.command[0] == "campaign" else each for each in found]
    return [*slow, *stores(place), *logs(place)]


def stores(place: Path) -> Iterator[Reader]:
    """A directory of a store: each of its files, and edits whose checksums fit."""
    folder = made(place / "store", "default", "keyValueWithTimestamp")
    command = ("storedir", str(folder))
    for each in sorted(folder.iterdir()):
        yield Reader(each, command, each.read_bytes(), codes=DIRECTORY)
    yield Reader(folder / "MANIFEST-000005", command, b"".join(EDITS), record, DIRECTORY)


def logs(place: Path) -> Iterator[Reader]:
    """A log directory: each of its files, and records in batches whose checksums fit."""
    folder = LogDirectory(place / "log")
    folder.folder.mkdir()
    kept = [(group_key("g"), group_value(3)), (offset_key("g", "t", 0), offset(7))]
    value = level("metadata.version", 7)
    folder.kraft(metadata(0, value), checkpoint(value))
    offsets = folder.partition("__consumer_offsets-0", batch(0, kept), {0: 0})
    command = ("logdir", str(folder.folder), "--release", "4.4.0", "--release", "3.3.2", "--groups")
    for each in sorted(folder.folder.rglob("*")):
        if each.is_file() and each.stat().st_size:
            yield Reader(each, command, each.read_bytes(), codes=DIRECTORY)
    for at, (key, content) in enumerate(kept):
        yield Reader(offsets, command, content, partial(with_value, kept[:at], key), DIRECTORY)
        yield Reader(offsets, command, key, partial(with_key, content), DIRECTORY)
    log = folder.folder / "__cluster_metadata-0" / offsets.name
    yield Reader(log, command, value, lambda data: metadata(0, data), DIRECTORY)


def with_value(before: Sequence[tuple[bytes, bytes]], key: bytes, value: bytes) -> bytes:
    return batch(0, [*before, (key, value)])


def with_key(value: bytes, key: bytes) -> bytes:
    return batch(0, [(key, value)])


def test_no_mutated_file_is_a_bug(readers: Sequence[Reader], capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(0)
    failed: list[str] = []
    before = memory_mib()
    for reader in readers:
        original = reader.path.read_bytes()
        assert ended(lambda command=reader.command: main.run(command)) != USAGE, (reader, capsys.readouterr())  # type: ignore[misc]
        mutated = mutations(reader.whole, draw)
        for number in range(math.ceil(FILES * reader.share / sum(each.share for each in readers))):
            reader.path.write_bytes(reader.wrapped(next(mutated)))
            begun = time.process_time()
            try:
                code = ended(lambda command=reader.command: main.run(command))  # type: ignore[misc]
            except Exception as ours:  # noqa: BLE001 - is what is looked for
                code, why = OURS, f"{type(ours).__name__}: {ours}"
            else:
                why = capsys.readouterr().err[-300:]
            took = time.process_time() - begun
            if code not in reader.codes or "Traceback" in why or took > LONGEST_S:
                about = f"{reader.command[0]}, {reader.path.name} #{number}: exit {code} after {took:.1f} s"
                failed.append(f"{about}: {why}")
        reader.path.write_bytes(original)
    assert not failed, "\n".join(failed[:20]) + f"\n{len(failed)} in all"
    assert memory_mib() - before < MOST_MIB


def memory_mib() -> float:
    """The most that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ended(call: Callable[[], int]) -> int:
    try:
        return call()
    except SystemExit as usage:
        return int(usage.code or 0)
