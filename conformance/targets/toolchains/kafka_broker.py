"""Starts a broker of a Kafka release from its jars, on loopback, with data that are removed at the end.

From 3.3 on it is one node in KRaft mode; an older one gets a ZooKeeper of its own. Broker, ZooKeeper and data are gone
when the block ends, at Ctrl-C, and when this process is killed with ``kill -9``: see ``_Watch``.
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.release import Release, known_release, releases
from kipcheck.conformance.targets.protocol import Broken, Unavailable
from kipcheck.conformance.targets.toolchains import jar_digests, maven
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.wire.schema import messages, spec

HOST: Final = "127.0.0.1"
CLUSTER_ID: Final = "A" * 22
"""Of clusters in KRaft mode."""
STARTS_S: Final = 120.0
"""The time limit for a broker to answer FindCoordinator, on a busy machine."""
STOPS_S: Final = 10.0
"""After SIGTERM; then it is killed: its data are removed anyway."""
KRAFT: Final = releases("3.3.0+")
LOG4J_2: Final = releases("4.0.0+")
SCALA: Final = (("2.13", releases("2.4.0+")), ("2.12", releases("0.11.0.0+")), ("2.11", releases("all")))
"""Of several builds of a release the one with the newest Scala that was published for all of these."""
OLD_ZOOKEEPER: Final = releases("2.0.0-2.3.1")
"""Their ZooKeeper client cannot connect on Java 14 and later; the one of 1.1 does."""
ZOOKEEPER: Final = "3.4.10"
USES_JAXB: Final = releases("0.0.0-0.11.0.3")
"""They start with a class that was in the JDK up to Java 10."""
JAXB: Final = "javax.xml.bind:jaxb-api:2.3.0"
PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:build-classpath"
RESOLVES_S: Final = 600.0
ENDS_S: Final = 90.0
"""The same for a broker whose data stay: on a busy machine it has to write its snapshots and checkpoints."""
GROUP_APIS: Final = (
    "ApiVersions", "DescribeGroups", "FindCoordinator", "Heartbeat", "JoinGroup", "LeaveGroup", "ListGroups",
    "OffsetCommit", "OffsetFetch", "SyncGroup",
)  # fmt: skip
"""Their versions must be those of the release: another broker may answer on the port."""

LONGEST_SESSION_MS: Final = 600_000
"""Of sessions with ZooKeeper: a broker may ask for so much."""

COMMON: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.cleaner.dedupe.buffer.size": "4194304",
}
_JAVA: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jmx.log4j.disable=true")
_WATCHED: Final = (
    'read -r _; for p in $1; do kill -s KILL -- "-$p"; done 2>/dev/null; n=0; '
    'while rm -rf -- "$2" && [ -e "$2" ] && [ $n -lt 50 ]; do n=$((n+1)); sleep 0.1; done; sleep 0.3; rm -rf -- "$2"'
)
"""Nothing is written to its pipe, so it reads until this process has ended. A killed process may still be writing."""


@dataclass(slots=True)
class Broker:
    release: str
    port: int
    log: Path
    """The output of broker and ZooKeeper, in the folder that is removed at the end."""
    pids: tuple[int, ...]
    started_s: float
    secured: Mapping[str, int] = field(default_factory=dict)
    """Protocol -> the port of its listener, which is advertised as ``localhost``."""
    other: int = 0
    """The port of the listener of the controller, or of ZooKeeper."""
    programs: "Programs | None" = None

    def restart(self) -> float:
        """Stops the broker, and starts it with its data, on its port. Returns when its new process was started, by the
        monotonic clock. Errors: ``Broken``."""
        assert self.programs is not None
        started = self.programs.restart()
        self.pids = self.programs.pids
        wait_until_ready(self.programs, self.release, self.port, coordinates=True)
        return started

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"


@final
@dataclass(frozen=True, slots=True)
class Secured:
    """Listeners besides the plaintext one. Their keys and mechanisms are among the settings of the broker."""

    protocols: tuple[str, ...] = ()
    """Such as ``SASL_SSL``."""
    scram: Mapping[str, str] = field(default_factory=dict)
    """User -> password, for SCRAM-SHA-256 and SCRAM-SHA-512."""

    @property
    def format_options(self) -> list[str]:
        return [
            each for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512") for user, password in self.scram.items()
            for each in ("--add-scram", f"{mechanism}=[name={user},password={password}]")
        ]  # fmt: skip


PLAINTEXT: Final = Secured()


@contextmanager
def running(
    release: str,
    settings: Mapping[str, str] | None = None,
    secured: Secured = PLAINTEXT,
    level: str | None = None,
    coordinates: bool = True,
    data: Path | None = None,
) -> Iterator[Broker]:
    """A broker that coordinates groups. ``settings`` go before those that its start needs. ``secured``: from 3.5 on.

    ``level``: the metadata.version of a new cluster in KRaft mode, as tools write it; None: the newest one.
    ``coordinates``: whether groups are waited for. ``data``: its log directory, in KRaft mode, which stays as the
    broker leaves it; an empty one is formatted.

    Errors: LookupError for an unknown release; ``Unavailable`` without a JDK or the jars; ``Broken`` if it does not
    start, with the end of its log.
    """
    known_release(release)
    _java(), class_path(release)
    begun = time.monotonic()
    with temporary_folder("broker") as folder, ExitStack() as processes:
        stops_s = STOPS_S if data is None else ENDS_S
        run = Programs(folder, java_command(folder, release), processes, data, stops_s)
        port, other, *more = processes.enter_context(reserved_ports(2 + len(secured.protocols)))
        ports = dict(zip(secured.protocols, more, strict=True))
        if Release.parse(release) in KRAFT:
            options = [] if level is None else ["--release-version", level]
            _start_kraft(run, port, other, settings or {}, ports, [*secured.format_options, *options])
        else:
            _start_with_zookeeper(run, port, other, settings or {})
        wait_until_ready(run, release, port, coordinates)
        yield Broker(release, port, run.log, run.pids, time.monotonic() - begun, ports, other, run)


def class_path(release: str) -> str:
    """The jars of the broker and what they need, resolved by Maven once. Errors: ``Unavailable``."""
    kept = maven.cache() / "brokers" / f"{release}.classpath"
    found = ""
    with suppress(OSError):
        found = kept.read_text("utf-8").strip()
    jars = [Path(each) for each in found.split(os.pathsep)]
    # A jar that kipcheck does not know is none that Maven found for a release whose jars it knows.
    locked = [jar_digests.is_locked(each) for each in jars]
    if not all(each.is_file() for each in jars) or (any(locked) and not all(locked)):
        found = _resolved(release)
        with maven.placing(kept) as staged:
            staged.write_text(found, "utf-8")
    for each in found.split(os.pathsep):
        jar_digests.verify(Path(each))
    return found


def _resolved(release: str) -> str:
    """The class path, by Maven. Errors: ``Unavailable``."""
    mvn = shutil.which("mvn")
    if mvn is None:
        raise Unavailable(f"kafka:{release}: mvn is not on the PATH: install Maven, which finds the jars of a broker")
    with temporary_folder("mvn") as place:
        pom, out = place / "pom.xml", place / "classpath"
        pom.write_text(_pom(release), "utf-8")
        command = [mvn, "-B", "-q", "-C", "-Dstyle.color=never", "-f", str(pom), PLUGIN, f"-Dmdep.outputFile={out}",
                   "-Dmdep.includeScope=runtime"]  # fmt: skip
        try:
            done = process_tree.run(command, RESOLVES_S)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"kafka:{release}: mvn did not finish within {RESOLVES_S:.0f} s") from None
        if done.returncode or not out.is_file():
            raise Unavailable(f"kafka:{release}: mvn: {maven.cause_of(done)}")
        return out.read_text("utf-8").strip()


def _pom(release: str) -> str:
    parsed = Release.parse(release)
    scala = next(version for version, span in SCALA if parsed in span)
    needed = [f"org.apache.kafka:kafka_{scala}:{release}", *_loggers(parsed)]
    if parsed in OLD_ZOOKEEPER:
        needed.append(f"org.apache.zookeeper:zookeeper:{ZOOKEEPER}")
    if parsed in USES_JAXB:
        needed.append(JAXB)
    parts = "".join(
        f"<dependency><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version)}</version></dependency>"
        for group, artifact, version in (each.split(":") for each in needed)
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>kipcheck</groupId><artifactId>broker</artifactId><version>1</version><dependencies>{parts}"
        "</dependencies></project>"
    )


def _loggers(release: Release) -> list[str]:
    return ["org.slf4j:slf4j-simple:1.7.36" if release in LOG4J_2 else "org.slf4j:slf4j-reload4j:1.7.36"]


def _logging(folder: Path, release: str) -> list[str]:
    """Warnings and errors only: INFO writes a thousand lines for each start."""
    if Release.parse(release) in LOG4J_2:
        return ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    file = folder / "log4j.properties"
    file.write_text(
        "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=%p %m%n\n",
        "utf-8",
    )
    return [f"-Dlog4j.configuration={file.as_uri()}"]


def java_command(folder: Path, release: str) -> list[str]:
    """Runs classes of a release. Errors: ``Unavailable``."""
    return [_java(), *_JAVA, *_logging(folder, release), "-cp", class_path(release)]


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        raise Unavailable("java was not found in JAVA_HOME or on the PATH: install a JDK from 17 on")
    return found


class _Watch:
    """Kills process groups and removes a folder when this process has ended, for whatever reason."""

    def __init__(self, groups: list[int], folder: Path) -> None:
        self._shell = subprocess.Popen(
            [process_tree.SHELL, "-c", _WATCHED, "watch", " ".join(map(str, groups)), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            cwd="/", env={"PATH": os.defpath},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        # First of all: the end of the pipe would kill groups that may have reused the numbers.
        self._shell.kill()
        self._shell.wait()
        assert self._shell.stdin is not None
        self._shell.stdin.close()


class Programs:
    """The Java programs of one broker, with one log."""

    def __init__(
        self,
        folder: Path,
        java: list[str],
        processes: ExitStack,
        data: Path | None = None,
        stops_s: float = STOPS_S,
    ) -> None:
        """``data``: the log directory; None: one in the folder. ``stops_s``: how long a program may take to end."""
        self.folder = folder
        self.data = data or folder / "data"
        self._stops_s = stops_s
        self.log = folder / "log"
        self.started: list[subprocess.Popen[bytes]] = []
        self._java = java
        self._processes = processes
        self._arguments: tuple[str, ...] = ()
        """Of the last program."""

    def start(self, *arguments: str) -> None:
        """Starts a program that runs until the end of the block; the last one started is stopped first."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*self._java, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                cwd=self.folder,
            )  # fmt: skip
        self._processes.callback(_stop, process, self._stops_s)
        self._processes.enter_context(_Watch([process.pid], self.folder))
        self.started.append(process)
        self._arguments = arguments

    def restart(self) -> float:
        """Stops the last program, and starts it again. Returns when it was started, by the monotonic clock."""
        _stop(self.started.pop(), ENDS_S)
        started = time.monotonic()
        self.start(*self._arguments)
        return started

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(each.pid for each in self.started)

    def run(self, *arguments: str) -> None:
        """Runs a program to its end. Errors: ``Broken``."""
        try:
            done = process_tree.run([*self._java, *arguments], STARTS_S, cwd=self.folder)
        except subprocess.TimeoutExpired:
            raise Broken(f"{arguments[0]} did not end within {STARTS_S:.0f} s") from None
        if done.returncode:
            raise Broken(f"{arguments[0]} ended with {done.returncode}: {_end(done.stdout + done.stderr)}")

    def write(self, name: str, settings: Mapping[str, object]) -> str:
        path = self.folder / name
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")
        return str(path)

    @property
    def ended(self) -> int | None:
        """The exit code of the first program that has ended."""
        return next((code for each in self.started if (code := each.poll()) is not None), None)

    @property
    def last_lines(self) -> str:
        return _end(self.log.read_text("utf-8", "replace")) if self.log.is_file() else ""


def _end(text: str) -> str:
    """The last lines of a log, without the frames of stack traces."""
    lines = [each.strip() for each in text.splitlines()]
    said = [each for each in lines if each and not each.startswith(("at ", "... "))]
    return " | ".join(said[-5:])[-800:] or "it wrote nothing"


def _start_kraft(
    run: Programs,
    port: int,
    controller: int,
    settings: Mapping[str, str],
    secured: Mapping[str, int],
    options: Sequence[str],
) -> None:
    more = "".join(f",{protocol}://{HOST}:{each}" for protocol, each in secured.items())
    advertised = "".join(f",{protocol}://localhost:{each}" for protocol, each in secured.items())
    written = run.write("server.properties", {
        **settings, **COMMON,
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}{more}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}{advertised}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map":
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT" + "".join(f",{each}:{each}" for each in secured),
        "log.dirs": run.data,
    })  # fmt: skip
    if not (run.data / "meta.properties").exists():
        run.run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", written, *options)
    run.start("kafka.Kafka", written)


def _start_with_zookeeper(run: Programs, port: int, client: int, settings: Mapping[str, str]) -> None:
    start_zookeeper(run, client)
    start_beside_zookeeper(run, port, client, settings)


def start_zookeeper(run: Programs, client: int) -> None:
    """``client``: its port. Errors: ``Broken``."""
    zookeeper = run.write("zookeeper.properties", {
        "dataDir": run.folder / "zookeeper", "clientPort": client, "clientPortAddress": HOST, "tickTime": 1000,
        "admin.enableServer": "false", "maxClientCnxns": 0, "maxSessionTimeout": LONGEST_SESSION_MS,
    })  # fmt: skip
    run.start("org.apache.zookeeper.server.quorum.QuorumPeerMain", zookeeper)
    await_ready(run, lambda: accepts(client), "ZooKeeper")


def start_beside_zookeeper(
    run: Programs, port: int, client: int, settings: Mapping[str, str], number: int = 1, root: str = ""
) -> None:
    """A broker. ``client``: the port of ZooKeeper; ``root``: the path of the cluster there."""
    broker = run.write("server.properties", {
        **settings, **COMMON,
        "broker.id": number,
        "zookeeper.connect": f"{HOST}:{client}{root}",
        "zookeeper.connection.timeout.ms": 30_000,
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "log.dirs": run.data,
    })  # fmt: skip
    run.start("kafka.Kafka", broker)


def wait_until_ready(run: Programs, release: str, port: int, coordinates: bool) -> None:
    """Until it answers as its release and, if wanted, coordinates groups: before the first FindCoordinator, which
    creates the topic of offsets, every request of a group gets NOT_COORDINATOR."""
    await_ready(run, lambda: accepts(port), "the broker")
    await_ready(run, lambda: is_release(port, release), "the broker")
    if coordinates:
        await_ready(run, lambda: _coordinates(port), "the coordinator of the broker")


def await_ready(run: Programs, holds: Callable[[], bool], who: str) -> None:
    until = time.monotonic() + STARTS_S
    while time.monotonic() < until:
        if (code := run.ended) is not None:
            raise Broken(f"a program of the broker ended with {code} while it started: {run.last_lines}")
        with suppress(OSError, struct.error):
            if holds():
                return
        time.sleep(0.1)
    raise Broken(f"{who} was not ready within {STARTS_S:.0f} s: {run.last_lines}")


def accepts(port: int) -> bool:
    socket.create_connection((HOST, port), 1).close()
    return True


def ranges(port: int) -> dict[int, tuple[int, int]]:
    """By API key the versions that a broker announces in ApiVersions v0. Errors: OSError; struct.error."""
    body = ask(port, 18, 0, b"")
    error, count = struct.unpack_from(">hi", body)
    if error:
        raise OSError(f"ApiVersions is answered with error {error}")
    return {key: (low, high) for key, low, high in struct.iter_unpack(">hhh", body[6 : 6 + 6 * count])}


def is_release(port: int, release: str) -> bool:
    """Errors: ``Broken`` if what answers has other versions than the release."""
    announced, exact = ranges(port), edition(f"apache@{release}")
    for api in GROUP_APIS:
        message = f"{api}Request"
        if message not in messages(exact):
            continue
        declared = spec(exact, message)
        assert declared.api_key is not None
        wanted, found = declared.versions, announced.get(declared.api_key)
        if found != (wanted.low, wanted.high):
            versions = "not at all" if found is None else f"in versions {found[0]} to {found[1]}"
            raise Broken(
                f"what answers on port {port} is not Kafka {release}: it has {api} {versions}, "
                f"and the release in versions {wanted.low} to {wanted.high}"
            )
    return True


def _coordinates(port: int) -> bool:
    """Whether a Heartbeat of an unknown member reaches the coordinator of its group, once it was found."""
    group = b"kipcheck-ready"
    (error,) = struct.unpack_from(">h", ask(port, 10, 0, _text(group)))
    if error:
        return False
    (error,) = struct.unpack_from(">h", ask(port, 12, 0, _text(group) + struct.pack(">i", 0) + _text(b"nobody")))
    return bool(error == KafkaError.UNKNOWN_MEMBER_ID)


def _text(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def ask(port: int, key: int, version: int, body: bytes) -> bytes:
    """The body of the response to a request with a header of version 1. Errors: OSError."""
    payload = struct.pack(">hhi", key, version, 1) + _text(b"kipcheck") + body
    with socket.create_connection((HOST, port), 5) as connection:
        connection.settimeout(10)
        connection.sendall(struct.pack(">i", len(payload)) + payload)
        with connection.makefile("rb") as stream:
            size = stream.read(4)
            if len(size) < 4:
                raise OSError("the broker closed the connection")
            return stream.read(struct.unpack(">i", size)[0])[4:]


@contextmanager
def reserved_ports(number: int) -> Iterator[list[int]]:
    """Ports that are given to no other program until the end of the block, whatever is started in it.

    A socket that listens to nothing keeps each: the system gives it to no other program, and a Java server, which
    sets SO_REUSEADDR, may bind it all the same. Only Linux allows that; elsewhere the ports are free, and not kept.
    """
    with ExitStack() as kept:
        sockets = [kept.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind((HOST, 0))
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after bind: no port is chosen that is kept
        ports = [each.getsockname()[1] for each in sockets]
        if sys.platform != "linux":
            kept.close()
        yield ports


def _stop(process: "subprocess.Popen[bytes]", within_s: float) -> None:
    """Ends a program, whatever interrupts this."""
    try:
        if process.poll() is None:
            process.terminate()
            process.wait(within_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
