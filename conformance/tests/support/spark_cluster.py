"""A Spark on the loopback interface, as many processes as a real one has: a master, workers, a Connect server."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kipcheck.conformance.campaign.executors import preflight

NONE: Final[Mapping[str, str]] = {}
STARTS_S: Final = 300.0
CONNECTED: Final = r"Spark Connect server started at: .*:(\d+)"
JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def home() -> Path:
    """Of the Spark that PySpark brings."""
    import pyspark

    return Path(pyspark.__file__).parent


def environment(folder: Path) -> Mapping[str, str]:
    settings = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder), "SPARK_LOG_DIR": str(folder)}
    java = {"JAVA_HOME": str(preflight.java()), "SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": JVM}
    return {**os.environ, **settings, **java, "SPARK_HOME": str(home()), "PYSPARK_PYTHON": sys.executable}


@dataclass(frozen=True, slots=True)
class Part:
    process: subprocess.Popen[bytes]
    log: Path

    def says(self, pattern: str) -> re.Match[str]:
        """Waits until it has said that."""
        until = time.monotonic() + STARTS_S
        while (found := re.search(pattern, self.log.read_text("utf-8", "replace"))) is None:
            reported = self.log.read_text("utf-8", "replace")[-2000:]
            assert self.process.poll() is None, reported
            assert time.monotonic() < until, f"it never said {pattern}: {reported}"
            time.sleep(0.2)
        return found


@contextmanager
def part(folder: Path, name: str, *arguments: str, env: Mapping[str, str]) -> Iterator[Part]:
    """``name``: a class below ``org.apache.spark``."""
    log = folder / f"{name.rpartition('.')[2]}-{len(list(folder.iterdir()))}.log"
    command = [str(home() / "bin" / "spark-class"), f"org.apache.spark.{name}", *arguments]
    with started(command, log, env) as made:
        yield made


@contextmanager
def started(command: Sequence[str], log: Path, env: Mapping[str, str]) -> Iterator[Part]:
    """In the folder of its log; terminated at the end."""
    with log.open("wb") as written:
        process = subprocess.Popen(
            command, env=env, cwd=log.parent, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT
        )
    try:
        yield Part(process, log)
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def standalone(
    folder: Path, hosts: Sequence[str] = ("127.0.0.1", "127.0.0.1"), surroundings: Mapping[str, str] = NONE
) -> Iterator[str]:
    """Its URL. A worker with one core on each of the hosts, and what is in the environment of all of them."""
    env = environment(folder)
    with ExitStack() as stack:
        ports = ("--port", "0", "--webui-port", "0")
        master = stack.enter_context(part(folder, "deploy.master.Master", "--host", "127.0.0.1", *ports, env=env))
        url = master.says(r"Starting Spark master at (spark://127.0.0.1:\d+)")[1]
        takes = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"))
        for host in hosts:
            there = {**env, "SPARK_LOCAL_IP": host, **surroundings}
            named = ("--host", host, "--webui-port", "0")
            worker = stack.enter_context(part(folder, "deploy.worker.Worker", *named, *takes, url, env=there))
            worker.says("Successfully registered with master")
        yield url


@contextmanager
def connect(folder: Path, master: str) -> Iterator[str]:
    """The URL of a Spark Connect server in front of that master."""
    env = environment(folder)
    reported = {"spark.connect.grpc.binding.port": "0", "spark.connect.grpc.binding.address": "127.0.0.1"}
    arguments = [each for name, value in reported.items() for each in ("--conf", f"{name}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    arguments += ["--class", name, "spark-internal"]
    with part(folder, "deploy.SparkSubmit", "--master", master, *arguments, env=env) as server:
        yield f"sc://127.0.0.1:{server.says(CONNECTED)[1]}"
