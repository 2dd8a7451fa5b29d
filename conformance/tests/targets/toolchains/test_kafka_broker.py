"""Brokers of released jars: they start, answer as their release, and leave nothing."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from kipcheck.conformance.targets.protocol import Broken, Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker, maven

STARTER = """
import sys, time
from kipcheck.conformance.targets.toolchains import kafka_broker
with kafka_broker.running(sys.argv[1]) as broker:
    print(broker.log.parent, *broker.pids, flush=True)
    time.sleep(60)
"""
GONE_S = 20.0


def needs(release: str) -> None:
    try:
        kafka_broker.class_path(release)
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.mark.jars
@pytest.mark.parametrize("release", ["1.1.1", "2.3.1", "2.8.2", "3.9.2", "4.4.0"])
def test_a_broker_answers_as_its_release_and_leaves_nothing(release: str) -> None:
    needs(release)
    with kafka_broker.running(release) as broker:
        assert kafka_broker.is_release(broker.port, release)
        assert kafka_broker._coordinates(broker.port)
        assert all(is_alive(each) for each in broker.pids)
    assert not broker.log.parent.exists()
    assert not any(is_alive(each) for each in broker.pids)
    with pytest.raises(OSError):
        kafka_broker.ranges(broker.port)


@pytest.mark.jars
@pytest.mark.parametrize(
    "release, how", [("2.8.2", signal.SIGKILL), ("3.9.2", signal.SIGINT), ("3.9.2", signal.SIGKILL)]
)
def test_a_broker_ends_with_the_process_that_started_it(release: str, how: signal.Signals) -> None:
    needs(release)
    with subprocess.Popen([sys.executable, "-c", STARTER, release], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        folder, *pids = starter.stdout.readline().split()
        assert Path(folder).is_dir() and all(is_alive(int(each)) for each in pids)
        starter.send_signal(how)
    end = time.monotonic() + GONE_S
    while time.monotonic() < end and (Path(folder).exists() or any(is_alive(int(each)) for each in pids)):
        time.sleep(0.1)
    assert not Path(folder).exists()
    assert not any(is_alive(int(each)) for each in pids)


@pytest.mark.jars
def test_a_broker_that_does_not_start_is_reported_with_its_log() -> None:
    needs("3.9.2")
    with pytest.raises(Broken, match=r"group\.max\.size"), kafka_broker.running("3.9.2", {"group.max.size": "many"}):
        pass


@pytest.mark.parametrize("release", ["3.9", "9.9.9", "newest"])
def test_an_unknown_release_is_wrong_usage(release: str) -> None:
    with pytest.raises(LookupError, match="release"), kafka_broker.running(release):
        pass


def test_without_maven_a_broker_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(maven.CACHE, str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="mvn is not on the PATH"):
        kafka_broker.class_path("3.9.2")


def test_another_broker_on_the_port_is_not_taken_for_the_new_one() -> None:
    with answering(b"\x00\x00\x00\x00\x00\x01\x00\x12\x00\x00\x00\x04") as port:
        assert kafka_broker.ranges(port) == {18: (0, 4)}
        with pytest.raises(Broken, match=r"is not Kafka 3\.9\.2: it has DescribeGroups not at all"):
            kafka_broker.is_release(port, "3.9.2")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps ports for others to bind")
def test_a_port_is_kept_for_the_broker_alone() -> None:
    with kafka_broker.reserved_ports(20) as kept, kafka_broker.reserved_ports(20) as others:
        assert not {*kept} & {*others}
        with socket.socket() as program, pytest.raises(OSError):
            program.bind((kafka_broker.HOST, kept[0]))
        for _ in range(2):  # a broker that is started again has its port
            with socket.create_server((kafka_broker.HOST, kept[0])):  # sets SO_REUSEADDR, as servers in Java do
                assert kafka_broker.accepts(kept[0])
                with pytest.raises(OSError):
                    socket.create_server((kafka_broker.HOST, kept[0]))
    with socket.socket() as program:
        program.bind((kafka_broker.HOST, kept[1]))


@contextmanager
def answering(body: bytes) -> Iterator[int]:
    """A server that gives each request this answer."""

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall((len(body) + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + body)

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
