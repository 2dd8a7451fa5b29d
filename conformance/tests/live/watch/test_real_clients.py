"""Released clients through the proxy to a released broker: they consume as without it, and keep the laws."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import kafka  # type: ignore[import-untyped]
import pytest
from kafka.admin import NewTopic  # type: ignore[import-untyped]

from kipcheck.conformance.live.client.built_in import Settings, command
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.tests.live.watch.test_watch import started
from kipcheck.conformance.tests.support.kafka_broker import running
from kipcheck.conformance.tests.support.loops import some_by_day

RELEASE: Final = "3.9.2"
RECORDS: Final = 120
WAIT_S: Final = 60.0


def consumed(client: str, port: int, group: str, place: Path, assignors: str) -> tuple[str, ...]:
    """What two members of a group print, the second of which joins later: the records of each partition."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "KIPCHECK_"))}
    files, processes = [], []
    try:
        for number in (1, 2):
            given = Settings(f"127.0.0.1:{port}", group, ("t",), f"{group}-{number}", assignors=assignors,
                             session_ms=6000, heartbeat_ms=500, rebalance_ms=10_000)  # fmt: skip
            files.append(place / f"{group}-{number}.txt")
            with files[-1].open("wb") as out:
                process = subprocess.Popen(
                    command(client), env={**kept, **given.environment}, stdin=subprocess.DEVNULL, stdout=out,
                    stderr=subprocess.DEVNULL, cwd=place,
                )  # fmt: skip
            processes.append(process)
            _wait(files[0], RECORDS)
        time.sleep(8.0)  # a rebalance, and some heartbeats
    finally:
        for each in processes:
            each.terminate()
        for each in processes:
            each.wait(30)
    return tuple(sorted(line for file in files for line in file.read_text().splitlines() if line.startswith("t")))


def _wait(file: Path, lines: int) -> None:
    until = time.monotonic() + WAIT_S
    while file.read_text(errors="replace").count("\n") < lines:
        assert time.monotonic() < until, file.read_text()[-500:]
        time.sleep(0.2)


@pytest.mark.integration
@pytest.mark.jars
@pytest.mark.timeout(500)
@pytest.mark.parametrize(
    ("client", "assignors"),
    some_by_day(
        [
            ("java", ""),
            ("java", "cooperative-sticky"),
            ("kafka-python", ""),
            ("kafka-python", "cooperative-sticky"),
            ("confluent-kafka", ""),
            ("confluent-kafka", "cooperative-sticky"),
        ],
        2,
    ),
)
def test_a_client_consumes_the_same_and_keeps_the_laws(client: str, assignors: str, tmp_path: Path) -> None:
    try:
        command(client)
    except Unavailable as why:
        pytest.skip(str(why))
    with (
        running(RELEASE) as broker,
        started("watch", "--upstream", f"127.0.0.1:{broker}", "--out", str(tmp_path / "out" / client)) as (watch, port),
    ):
        admin: Any = kafka.KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
        admin.create_topics([NewTopic("t", 4, 1)])
        producer: Any = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}")
        for number in range(RECORDS):
            producer.send("t", str(number).encode())
        producer.flush()
        producer.close()
        admin.close()
        place = tmp_path / f"{client}-{assignors}"
        place.mkdir()
        through = consumed(client, port, "through", place, assignors)
        direct = consumed(client, broker, "direct", place, assignors)
        watch.send_signal(signal.SIGINT)
        out, _ = watch.communicate(timeout=60)
    assert set(through) == set(direct)
    assert watch.returncode == 0, out
    assert "FAIL" not in out
    assert "WARN" not in out
