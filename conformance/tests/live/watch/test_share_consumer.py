"""A released share consumer (KIP-932) through the proxy to a released broker: it gets all records, and each of its
connections passes the proxy."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import kafka  # type: ignore[import-untyped]
import pytest
from kafka.admin import NewTopic  # type: ignore[import-untyped]

from kipcheck.conformance.clients.java.programs import coordinates
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.tests.live.watch.test_watch import started
from kipcheck.conformance.tests.support.kafka_broker import running

RELEASE: Final = "4.4.0"
APP: Final = Path(__file__).with_name("ShareApp.java")
RECORDS: Final = 20
SETTINGS: Final = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


def share_app(place: Path) -> list[str]:
    """The command of the program, with a JDK and the released jars. Errors: pytest's skip."""
    try:
        jars = maven.fetch(coordinates(RELEASE, ("clients",)))
    except Unavailable as missing:
        pytest.skip(str(missing))
    if shutil.which("javac") is None:
        pytest.skip("javac was not found on the PATH: install a JDK, 17 or later")
    path = os.pathsep.join(map(str, jars.values()))
    subprocess.run(["javac", "-proc:none", "-cp", path, "-d", str(place), str(APP)], check=True, timeout=60)
    java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [*java, "-cp", os.pathsep.join([path, str(place)]), APP.stem]


def shared(app: list[str], port: int, producer: Any) -> list[str]:
    """The records that a share consumer got, among those that are written while it runs: it begins at the latest."""
    with subprocess.Popen(
        [*app, f"127.0.0.1:{port}", "share", str(RECORDS)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        number = 0
        while process.poll() is None:
            producer.send("t", str(number).encode()).get(10)
            number += 1
            time.sleep(0.02)
        assert process.stdout is not None
        return process.stdout.read().splitlines()


async def controller(port: int) -> tuple[str, int]:
    """The address of the controller in the answer to DescribeQuorum."""
    over = Connections("127.0.0.1", port)
    try:
        asked = {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}
        found = await over.ask("DescribeQuorum", 2, "me", asked)
        return found["nodes"][0]["listeners"][0]["host"], found["nodes"][0]["listeners"][0]["port"]
    finally:
        await over.close()


@pytest.mark.long
@pytest.mark.jars
@pytest.mark.timeout(200)
def test_a_share_consumer_consumes_through_the_proxy(tmp_path: Path) -> None:
    app = share_app(tmp_path)
    with (
        running(RELEASE, settings=SETTINGS) as broker,
        started("watch", "--upstream", f"127.0.0.1:{broker}", "--out", str(tmp_path / "out")) as (watch, port),
    ):
        admin: Any = kafka.KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{broker}")
        admin.create_topics([NewTopic("t", 2, 1)])
        admin.close()
        producer: Any = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{broker}", linger_ms=0)
        found = shared(app, port, producer)
        producer.close()
        controllers = [asyncio.run(controller(each)) for each in (broker, port)]
        watch.send_signal(signal.SIGINT)
        out, _ = watch.communicate(timeout=60)
    assert len({*found}) == len(found) >= RECORDS
    for partition in "01":
        offsets = [int(each.split()[1]) for each in found if each.startswith(partition)]
        assert offsets == [*range(offsets[0], offsets[-1] + 1)], "a record between others was not delivered"
    assert watch.returncode == 0, out
    assert f"broker 127.0.0.1:{broker} is 127.0.0.1:" in out
    direct, through = controllers
    assert direct != through
    assert f"broker {direct[0]}:{direct[1]} is {through[0]}:{through[1]}" in out
    assert "our bugs" not in out and "FAIL" not in out, out
    assert "watched the coordinator: no unexpected failure" in out
    assert re.search(r"judged: \d+ exchanges: .*\d ShareGroupHeartbeat.*\d ShareFetch", out), out
