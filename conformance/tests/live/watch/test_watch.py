"""The command ``watch``: a proxy before a broker, what it says, and the reports that it writes."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.tests.support.loops import for_each

QUICK = ("--config", "group.min.session.timeout.ms=100")


@contextmanager
def started(*command: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A command whose first line is its address; it is killed at the end if it still runs."""
    argv = [sys.executable, "-m", "kipcheck", *command]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        assert first.startswith("listening 127.0.0.1:"), first
        yield process, int(first.rpartition(":")[2])
    finally:
        process.kill()
        process.communicate()


READS = """
import sys

import kafka

port, group = sys.argv[1:]
consumer = kafka.KafkaConsumer(
    "t", bootstrap_servers=f"127.0.0.1:{port}", group_id=group, auto_offset_reset="earliest",
    consumer_timeout_ms=10_000,
)
found = sorted((each.partition, each.offset, each.value) for _, each in zip(range(30), consumer))
consumer.close()
print(*found, sep="\\n")
"""
"""In a process of its own: kafka-python's loop in the background once never woke up in one that had run other tests."""


def records(port: int, group: str) -> str:
    argv = [sys.executable, "-c", READS, str(port), group]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


def played(name: str, port: int, group: str) -> "subprocess.Popen[bytes]":
    module = f"kipcheck.conformance.live.client.{'defective_consumers' if name != 'Consumer' else 'consumer'}"
    named = [name] if name != "Consumer" else []
    argv = [sys.executable, "-m", module, *named, f"127.0.0.1:{port}", group, "t"]
    return subprocess.Popen(argv)


@pytest.mark.integration
def test_a_client_gets_the_same_through_it_and_nothing_is_reported(tmp_path: Path) -> None:
    with (
        started("serve", "--topic", "t:3") as (_, broker),
        started("watch", "--upstream", f"127.0.0.1:{broker}", "--output", str(tmp_path / "out")) as (watch, port),
    ):
        through = records(port, "through")
        assert through.count("\n") == 30
        assert through == records(broker, "direct")
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=30)
    assert watch.returncode == 0, out
    assert f"broker 127.0.0.1:{broker} is 127.0.0.1:" in out
    assert "ApiVersions is narrowed to Fetch 4 to 15 (of 4 to 18)" in out
    assert "FAIL" not in out
    assert "1 members" in err
    assert '"target":"watched the coordinator"' in (tmp_path / "out" / "ledger.jsonl").read_text().replace(": ", ":")
    assert json.loads((tmp_path / "out" / "ledger.jsonl").read_text().splitlines()[-1])["exit"] == 0
    assert {each.name for each in (tmp_path / "out").iterdir()} >= {"ledger.jsonl", "report.html", "junit.xml"}


@pytest.mark.integration
def test_a_member_that_breaks_a_law_is_named_with_group_clause_and_bytes(tmp_path: Path) -> None:
    capture = tmp_path / "all.pcap"
    with (
        started("serve", *QUICK, "--pcap", str(capture)) as (serve, broker),
        started("watch", "--upstream", f"127.0.0.1:{broker}", "--out", str(tmp_path / "out")) as (watch, port),
    ):
        consumers = [played("Consumer", port, "sound"), played("NamesAnother", port, "odd")]
        assert watch.stdout is not None
        seen = [watch.stdout.readline() for _ in range(4)]
        while "groupInstanceId" not in seen[-1]:  # the last field of a heartbeat
            seen.append(watch.stdout.readline())
        for each in consumers:
            each.terminate()
        assert [each.wait(20) for each in consumers] == [0, 0]
        watch.terminate()
        out, _ = watch.communicate(timeout=30)
        serve.terminate()
        serve.communicate(timeout=10)
    shown = "".join(seen)
    assert watch.returncode == 1
    assert "FAIL client/names-itself (MUST): group odd, member small-" in shown
    assert "grp-64: " in shown
    assert "header.requestApiKey" in shown
    assert "sound" not in shown
    assert "watched small: 2 cases in 1 check: 1 PASS, 1 FAIL" in out
    failure = next((tmp_path / "out" / "failures").iterdir())
    again = subprocess.run(
        [sys.executable, "-m", "kipcheck", "replay", str(failure)], capture_output=True, text=True, check=False
    )
    assert again.returncode == 6
    assert "watch the client again" in again.stderr
    the_capture_says_the_same(capture, failure.name, tmp_path / "again")


def the_capture_says_the_same(capture: Path, failure: str, out: Path) -> None:
    assert run(["watch", "--pcap", str(capture), "--out", str(out)]) == 1
    assert [each.name for each in (out / "failures").iterdir()] == [failure]


@for_each(
    [
        ((), "name a broker with --upstream"),
        (("--upstream", "127.0.0.1:0"), "port 0"),
        (("--upstream", "127.0.0.1:9", "--listen", "0.0.0.0:0"), "add --allow-remote"),
        (("--upstream", "127.0.0.1:9", "--edition", "kip-584"), "editions of Apache Kafka"),
        (("--upstream", "127.0.0.1:9", "--edition", "apache@9.9.9"), "unknown release 9.9.9"),
        (("--pcap", "x", "--listen", "127.0.0.1:0"), "leave out --listen"),
        (("--pcap", "no-such-file"), "--pcap no-such-file cannot be read: No such file"),
        (("--pcap", "/"), "--pcap / cannot be read: Is a directory"),
        (("--pcap", __file__), "is no packet capture, it begins with the bytes 22222254"),
    ]
)
def test_wrong_options_exit_with_2(
    options: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["watch", "--out", str(tmp_path / "out"), *options]) == 2
    err = capsys.readouterr().err
    assert why in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_broker_that_cannot_be_reached_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert run(["watch", "--upstream", f"127.0.0.1:{port}", "--out", str(tmp_path / "out")]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert f"no broker can be reached: 127.0.0.1:{port} accepts no connection" in err
    assert "name another with --upstream" in err


@pytest.mark.integration
def test_other_machines_are_served_if_that_is_allowed(tmp_path: Path) -> None:
    with started("serve") as (_, broker):
        argv = [sys.executable, "-m", "kipcheck", "watch", "--upstream", f"127.0.0.1:{broker}", "--listen",
                "0.0.0.0:0", "--allow-remote", "--out", str(tmp_path / "out")]  # fmt: skip
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("listening 0.0.0.0:")
            process.terminate()
            assert process.wait(20) == 7, "no client came"
