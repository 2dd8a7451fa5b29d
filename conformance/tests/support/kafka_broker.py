"""Runs one broker of a Kafka release from its jars, with the settings of Kafka's quickstart."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kipcheck.conformance.clients.java.programs import tool
from kipcheck.conformance.targets.toolchains import maven

STARTS_S = 90.0
"""The time limit for a broker to accept connections, on a busy machine."""
PARTS = (
    "clients", "coordinator-common", "group-coordinator", "group-coordinator-api", "metadata", "raft", "server",
    "server-common", "share-coordinator", "storage", "storage-api", "tools-api", "transaction-coordinator",
)  # fmt: skip
OTHERS = (
    "at.yawk.lz4:lz4-java:1.11.2", "com.dynatrace.hash4j:hash4j:0.22.0",
    "com.fasterxml.jackson.core:jackson-annotations:2.21", "com.fasterxml.jackson.core:jackson-core:2.21.7",
    "com.fasterxml.jackson.core:jackson-databind:2.21.7",
    "com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.21.7",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.7", "com.github.ben-manes.caffeine:caffeine:3.2.0",
    "com.github.luben:zstd-jni:1.5.7-17", "com.google.re2j:re2j:1.8",
    "com.typesafe.scala-logging:scala-logging_2.13:3.9.6", "com.yammer.metrics:metrics-core:2.2.0",
    "commons-validator:commons-validator:1.10.1", "net.sf.jopt-simple:jopt-simple:5.0.4",
    "net.sourceforge.argparse4j:argparse4j:0.7.0", "org.apache.logging.log4j:log4j-api:2.25.5",
    "org.apache.logging.log4j:log4j-core:2.25.5", "org.bitbucket.b_c:jose4j:0.9.6",
    "org.hdrhistogram:HdrHistogram:2.2.2", "org.pcollections:pcollections:4.0.2",
    "org.scala-lang:scala-library:2.13.18",
    "org.scala-lang:scala-reflect:2.13.18", "org.slf4j:slf4j-api:1.7.36", "org.xerial.snappy:snappy-java:1.1.10.7",
    "org.yaml:snakeyaml:2.5",
)  # fmt: skip
"""The dependencies that the pom of kafka_2.13 4.4.0 names."""
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller}
controller.listener.names=CONTROLLER
log.dirs={logs}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
"""


@contextmanager
def running(release: str, place: Path) -> Iterator[int]:
    """The port of a broker that accepts connections; it ends with the block. Skips the test without its jars."""
    names = [f"org.apache.kafka:kafka_2.13:{release}", *(f"org.apache.kafka:kafka-{each}:{release}" for each in PARTS)]
    try:
        jars = maven.fetch([*names, *OTHERS])
    except maven.Unavailable as unavailable:
        pytest.skip(str(unavailable))
    port, controller = free_ports()
    settings = place / "server.properties"
    settings.write_text(SETTINGS.format(port=port, controller=controller, logs=place / "data"), "utf-8")
    java = [tool("java"), "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, jars.values()))]
    formatted = [*java, "kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", str(settings)]
    subprocess.run(formatted, check=True, capture_output=True, timeout=STARTS_S)
    with (place / "broker.log").open("w") as log:
        broker = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        try:
            wait(broker, port)
            yield port
        finally:
            broker.kill()
            broker.wait()


def free_ports() -> tuple[int, int]:
    with socket.create_server(("localhost", 0)) as one, socket.create_server(("localhost", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def wait(broker: "subprocess.Popen[bytes]", port: int) -> None:
    end = time.monotonic() + STARTS_S
    while broker.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("localhost", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the broker did not start, it ended with {broker.poll()}")
