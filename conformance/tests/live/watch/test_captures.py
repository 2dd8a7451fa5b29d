"""Captures with segments that are missing, late or repeated, and what a damaged file costs."""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import dpkt
import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.watch import verdicts
from kipcheck.conformance.live.watch.capture_input import NoCapture, watch_capture
from kipcheck.conformance.live.watch.tcp import Half
from kipcheck.conformance.tests.support.captures import exchange, laws, packets, watched
from kipcheck.conformance.wire.pcap import Sent, file_header, record

SUBSCRIPTION = bytes.fromhex("00000000000100017400000000")
JOIN = {"groupId": "g", "sessionTimeoutMs": 6000, "rebalanceTimeoutMs": 6000, "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}]}  # fmt: skip
JOINED = {"errorCode": 0, "generationId": 1, "protocolName": "range", "leader": "other", "memberId": "m", "members": []}


def conversation(generation: int = 1, beats: int = 3) -> Iterator[Sent]:
    """A member joins and sends heartbeats; the last one has this generation."""
    yield from exchange("JoinGroup", 5, 1, JOIN, {**JOINED, "errorCode": 79})
    yield from exchange("JoinGroup", 5, 2, {**JOIN, "memberId": "m"}, JOINED)
    dated: dict[str, object] = {"groupId": "g", "memberId": "m", "generationId": 1}
    assignment = bytes.fromhex("000000000001000174000000010000000000000000")
    yield from exchange("SyncGroup", 3, 3, {**dated, "assignments": []}, {"assignment": assignment})
    for each in range(beats):
        last = each == beats - 1
        beat = {**dated, "generationId": generation if last else 1}
        yield from exchange("Heartbeat", 3, 4 + each, beat, {"errorCode": 0})


def test_a_broken_law_is_found_with_packets_out_of_order_and_repeated(tmp_path: Path) -> None:
    every = packets(conversation(7))
    at = len(every) - 8
    every[at : at + 2] = [every[at + 1], every[at], every[at]]
    assert laws(watched(every, tmp_path / "a")[0]) == ["client/names-itself"]


def test_a_violation_beyond_those_that_are_kept_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "MOST_KEPT", 0)
    watched(packets(conversation(7)), tmp_path / "a")
    assert run(["watch", "--pcap", str(tmp_path / "a"), "--out", str(tmp_path / "out")]) == 1
    watched(packets(conversation()), tmp_path / "b")
    assert run(["watch", "--pcap", str(tmp_path / "b"), "--out", str(tmp_path / "out")]) == 0


def test_a_connection_whose_begin_is_missing_is_judged_from_its_next_join_on(tmp_path: Path) -> None:
    for first in range(1, 20):
        found, _ = watched(packets(conversation(1))[first:], tmp_path / "a")
        assert laws(found) == [], first
    found, _ = watched(packets(conversation(7))[6:], tmp_path / "b")
    assert found.counts["connections that began before the capture"] == 1
    assert laws(found) == ["client/names-itself"]


def test_a_missing_segment_is_said_and_blames_no_member(tmp_path: Path) -> None:
    every = packets(conversation(1, beats=6))
    for lost in range(3, len(every) - 3):
        found, _ = watched([*every[:lost], *every[lost + 1 :]], tmp_path / "a")
        assert laws(found) == [], lost
    data = [at for at, each in enumerate(every) if len(each) > 54]
    found, _ = watched([*every[: data[8]], *every[data[8] + 1 :]], tmp_path / "a")
    assert found.counts["places where segments are missing"] == 1


def test_a_capture_that_is_cut_off_says_so(tmp_path: Path) -> None:
    every = packets(conversation(7))
    data = file_header() + b"".join(record(each, at * 50_000) for at, each in enumerate(every))
    (tmp_path / "cut").write_bytes(data[:-7])
    stated: list[str] = []
    watcher = watch_capture(str(tmp_path / "cut"), APACHE, stated.append)
    assert laws(watcher) == ["client/names-itself"]
    assert any("ends amid a packet" in each for each in stated)


def test_a_capture_in_the_newer_format_is_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    writer = dpkt.pcapng.Writer(out)
    for at, each in enumerate(packets(conversation(7))):
        writer.writepkt(each, at * 0.05)
    (tmp_path / "a.pcapng").write_bytes(out.getvalue())
    assert laws(watch_capture(str(tmp_path / "a.pcapng"), APACHE, lambda line: None)) == ["client/names-itself"]


@pytest.mark.integration
def test_no_bytes_end_it(tmp_path: Path) -> None:
    """Damaged captures are read to their end, or refused with a sentence; other protocols are passed over."""
    drawn = random.Random(1)
    data = file_header() + b"".join(record(each, at * 50_000) for at, each in enumerate(packets(conversation(7))))
    for _ in range(300):
        bad = bytearray(data)
        for _ in range(drawn.randrange(1, 20)):
            bad[drawn.randrange(len(bad))] = drawn.randrange(256)
        (tmp_path / "bad").write_bytes(bad)
        try:
            watch_capture(str(tmp_path / "bad"), APACHE, lambda line: None)
        except NoCapture as why:
            assert "capture" in str(why)
    web = [Sent(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True), Sent(b"HTTP/1.1 200 OK\r\n\r\n", False)]
    found, _ = watched(packets(iter(web)), tmp_path / "web")
    assert found.counts["connections"] == 0


def test_an_empty_file_is_no_capture(tmp_path: Path) -> None:
    (tmp_path / "none").write_bytes(b"")
    with pytest.raises(NoCapture, match="is empty: use a file"):
        watch_capture(str(tmp_path / "none"), APACHE, lambda line: None)


def test_segments_in_any_order_give_the_same_bytes() -> None:
    drawn = random.Random(2)
    data = bytes(drawn.randrange(256) for _ in range(5000))
    start = (1 << 32) - 2000  # the numbers wrap
    for _ in range(50):
        got: list[bytes] = []
        lost: list[int] = []
        half = Half(got.append, lambda lost=lost: lost.append(1))  # type: ignore[misc]
        half.opened(start - 1)
        cuts = sorted(drawn.sample(range(1, 5000), 20))
        parts = [(a, data[a : b + drawn.randrange(50)]) for a, b in zip([0, *cuts], [*cuts, 5000], strict=True)]
        drawn.shuffle(parts)
        for at, part in parts:
            half.segment((start + at) % (1 << 32), part)
        assert b"".join(got) == data
        assert not lost
