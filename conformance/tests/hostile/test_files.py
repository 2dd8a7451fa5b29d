"""3,000 mutated files, over all commands that read files of others: a sentence, and never a traceback or a hang."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.tests.live.watch.test_captures import JOIN, JOINED
from kipcheck.conformance.tests.support.captures import exchange
from kipcheck.conformance.wire.pcap import file_header

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(3000)]
FILES: Final = 3000
OURS: Final = 70
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


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Sequence[tuple[Path, Sequence[str]]]:
    """Files, and the command that reads each of them."""
    place = tmp_path_factory.mktemp("files")
    run, campaign = place / "run", place / "campaign"
    main.run([*RUN, "--cases", "20", "--out", str(run)])
    main.run([*CAMPAIGN, "--out", str(campaign)])
    failure = next((run / "failures").glob("*.json"))
    corpus = next((campaign / "corpus").glob("*.gz"))
    features, known, pcap = place / "features.json", place / "known.toml", place / "client.pcap"
    features.write_text(FEATURES)
    main.run(["known", "update", str(known), "--from", str(run)])
    pcap.write_bytes(file_header() + b"".join(each.data for each in exchange("JoinGroup", 5, 1, JOIN, JOINED)))
    return [
        (failure, ("replay", str(failure), "--target", "reference")),
        (run / "ledger.jsonl", ("report", str(run / "ledger.jsonl"))),
        (corpus, ("corpus", "info", str(campaign))),
        (features, ("features", "describe", "--state", str(features))),
        (known, ("known", "check", str(known))),
        (pcap, ("watch", "--pcap", str(pcap), "--out", str(place / "watched"))),
    ]


def test_no_mutated_file_is_a_bug(
    readers: Sequence[tuple[Path, Sequence[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(0)
    failed: list[str] = []
    for path, command in readers:
        whole = path.read_bytes()
        made = mutations(whole, draw)
        for number in range(FILES // len(readers)):
            data = next(made)
            path.write_bytes(data)
            try:
                code = ended(lambda command=command: main.run(command))  # type: ignore[misc]
            except Exception as ours:  # noqa: BLE001 - is what is looked for
                code, why = OURS, f"{type(ours).__name__}: {ours}"
            else:
                why = capsys.readouterr().err[-300:]
            if code == OURS or "Traceback" in why:
                failed.append(f"{' '.join(command[:2])} #{number}: {why}")
        path.write_bytes(whole)
    assert not failed, "\n".join(failed[:20]) + f"\n{len(failed)} in all"


def ended(call: Callable[[], int]) -> int:
    try:
        return call()
    except SystemExit as usage:
        return int(usage.code or 0)
