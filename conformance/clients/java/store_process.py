"""A released store in a process of its own, over a directory that stays: it can be killed, and opened again."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.core.files.releases_table import plain_rocksdb, rocksdb
from kipcheck.conformance.targets.toolchains import maven

Result = Mapping[str, Any]
STREAMS: Final = "streams"


class StoreEnded(Exception):
    """The process ended instead of answering."""


def library(release: str) -> str:
    """The version of the RocksDB that the release uses. Errors: LookupError before 1.0."""
    found = rocksdb(release) or plain_rocksdb(release)
    if found is None:
        raise LookupError(f"no store of kafka-streams {release}: use a release from 1.0 on")
    return found


def library_jar(release: str) -> Path:
    """The jar of that RocksDB. Errors: ``Unavailable``; LookupError before 1.0."""
    rocks = _coordinates(release)
    return maven.fetch({rocks: None})[rocks]


def _coordinates(release: str) -> str:
    return f"org.rocksdb:rocksdbjni:{library(release)}"


def jars(release: str) -> tuple[list[Path], Path]:
    """The jars of a release, and that of its RocksDB. Errors: ``Unavailable``; LookupError before 1.0."""
    rocks = _coordinates(release)
    wanted = [*programs.coordinates(release, (STREAMS,))]
    found = maven.fetch({each: None for each in (*wanted, rocks)})
    wanted.sort(key=lambda each: ":kafka-streams:" not in each)
    return [found[each] for each in wanted], found[rocks]


class StoreProcess:
    """Answers operations of the role store."""

    def __init__(self, release: str, directory: Path) -> None:
        """Errors: ``Unavailable`` without a JDK or the jars."""
        own, rocks = jars(release)
        command = [
            programs.tool("java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
            "-Dfile.encoding=UTF-8", "-cp", os.pathsep.join(map(str, (programs.program(), rocks))),
            "kipcheck.StoreProcess", f"{release}={os.pathsep.join(map(str, own))}", str(directory),
        ]  # fmt: skip
        self.release = release
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def send(self, op: str, **body: Any) -> None:
        """Sends an operation without waiting for its answer. ``directory``: of another store than the usual one."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"op": op, **body}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise StoreEnded(f"the store of {self.release} ended") from None

    def receive(self, progress: Callable[[int], None] = lambda done: None) -> Result:
        """The next answer. Errors: ``StoreEnded``."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            found: Result = json.loads(line)
            if found["status"] != "progress":
                return found
            progress(found["done"])
        raise StoreEnded(f"the store of {self.release} ended")

    def answer(self, op: str, **body: Any) -> Result:
        self.send(op, **body)
        return self.receive()

    def kill(self) -> None:
        """Ends the process as kill -9 does."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Ends the process once it has answered."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()

    @property
    def answers_left(self) -> Iterator[Result]:
        """The answers that were printed before the process ended."""
        try:
            while True:
                yield self.receive()
        except (StoreEnded, ValueError):
            return


@contextmanager
def store_process(release: str, directory: Path) -> Iterator[StoreProcess]:
    made = StoreProcess(release, directory)
    try:
        yield made
    finally:
        made.end()
