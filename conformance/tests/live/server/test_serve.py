"""The command ``serve``: its first line, its options, and how it ends."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire.framing import decode_response, encode_request, frame, unframe
from kipcheck.conformance.wire.pcap import file_header


@contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port; it is killed at the end if it still runs."""
    argv = [sys.executable, "-m", "kipcheck", "serve", *options]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().removeprefix("listening ").rpartition(":")
        assert host == "127.0.0.1"
        yield process, int(port)
    finally:
        process.kill()
        process.wait()


def asked(port: int) -> int:
    """The error code of a heartbeat."""
    body = {"groupId": "g", "generationId": 1, "memberId": "m"}
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        client.sendall(frame(encode_request("apache", "HeartbeatRequest", 4, 7, "me", body)))
        client.settimeout(5)
        payload, rest = unframe(client.recv(1000))
        assert not rest
        return int(decode_response(payload, "apache", "HeartbeatResponse", 4).body["errorCode"])


@for_each([signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal_and_exits_with_0(number: signal.Signals, tmp_path: Path) -> None:
    with served("--topic", "a:2", "--log", "--pcap", str(tmp_path / "all.pcap")) as (process, port):
        assert asked(port) == 25
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "> Heartbeat v4 id 7 me:" in out
    assert "< Heartbeat v4 id 7 me:" in out
    differs, counts = err.splitlines()
    assert differs.startswith(f"kipcheck: differs from the settings of {NEWEST}: group.initial.rebalance.delay.ms=0 ")
    assert counts == "kipcheck: 1 connections, 1 requests; 0 requests that strict decoding refuses"
    assert (tmp_path / "all.pcap").read_bytes().startswith(file_header())


@for_each(
    [
        (("--config", "group.max.sise=3"), "the nearest: group.max.size"),
        (("--config", "log.dirs=x"), "unknown setting 'log.dirs'"),
        (
            ("--release", "1.1.1", "--config", "group.max.size=3"),
            "1.1.1 has no setting group.max.size: it is in",
        ),
        (("--config", "group.share.max.size=3"), "that is not served"),
        (("--release", "9.9.9"), "unknown release 9.9.9"),
        (("--release", "new"), "invalid release 'new'"),
        (("--edition", "kip-584"), "no group coordinator"),
        (("--host", "0.0.0.0"), "add --allow-remote"),
        (("--model", "grup"), "the nearest: group"),
        (("--topic", "t:x"), "number of partitions"),
        (("--script", "rebalance; restart"), "step 2, 'restart', cannot be played: the test starts and stops"),
        (("--script", "no/such/file"), "no/such/file"),
        (("--script", "move", "--model", "features"), "are for brokers of a release"),
        (("--script", "move", "--edition", "kip-429"), "are for brokers of a release"),
        (("--script", "move", "--host", "0.0.0.0", "--allow-remote"), "serve one address, at which clients are"),
        (("--http", "0", "--host", "192.0.2.1", "--allow-remote"), "--http is for this machine"),
    ]
)
def test_wrong_options_exit_with_2_and_serve_nothing(
    options: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert why in err
    assert len(err.splitlines()) == 1


def test_a_port_in_use_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(["serve", "--port", str(taken.getsockname()[1])]) == 1
    assert "in use" in capsys.readouterr().err


def test_a_remote_host_needs_permission_and_gets_it() -> None:
    argv = [sys.executable, "-m", "kipcheck", "serve", "--host", "0.0.0.0", "--allow-remote"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening 0.0.0.0:")
        process.terminate()
        assert process.wait(10) == 0


def test_a_script_is_played_from_a_file_and_others_over_http(tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text(
        "# before the client comes\nanswer Heartbeat NOT_COORDINATOR at next;\npass 1\n"
    )
    options = ("--script", str(tmp_path / "script.txt"), "--http", "0", "--log", "--pcap", str(tmp_path / "all.pcap"))
    with served(*options) as (process, port):
        assert asked(port) == 16 and asked(port) == 25
        assert process.stdout is not None
        url = process.stdout.readline().strip().removeprefix("scripts at ")
        with urllib.request.urlopen(f"{url}/brokers/1/requests") as answer:
            errors = [each["error"] for each in json.load(answer)["requests"]]
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
        assert process.wait(10) == 0
    assert errors == ["NOT_COORDINATOR", "UNKNOWN_MEMBER_ID"]
    assert err.endswith("2 connections, 2 requests; 0 requests that strict decoding refuses\n")
    assert "script: answer Heartbeat NOT_COORDINATOR at next\n" in out and "> Heartbeat v4 id 7 me:" in out
    assert (tmp_path / "all.pcap").read_bytes().startswith(file_header())


def test_of_several_scripts_none_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script.txt").write_text("rebalance\nmove\n")
    assert run(["serve", "--script", str(tmp_path / "script.txt")]) == 2
    assert "has 2 scripts, and one is played: end its lines with semicolons" in capsys.readouterr().err
