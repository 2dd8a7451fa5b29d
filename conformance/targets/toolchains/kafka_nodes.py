"""Starts a cluster in KRaft mode whose nodes have different releases of Kafka, on loopback.

Nodes are started, stopped and upgraded one by one: a node keeps its data when it comes back with another release.
Everything is gone when the block ends, as with ``kafka_broker``.
"""

import os
import signal
import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.toolchains.kafka_broker import CLUSTER_ID, COMMON, HOST, Programs
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder

BROKER, CONTROLLER, BOTH = "broker", "controller", "broker,controller"
REGISTERS_MS: Final = 60_000
"""How long a broker tries to register before it gives up, by default."""


class NotFormatted(Broken):
    """StorageTool refuses to format a cluster like this."""


@dataclass(frozen=True, slots=True)
class Node:
    number: int
    roles: str
    port: int
    """Of the listener of brokers; a node that is none has no such listener."""
    controller: int
    """The port of the listener of controllers."""
    folder: Path


@dataclass(slots=True)
class Nodes:
    level: str
    """The metadata.version of the new cluster, as tools write it: 3.7-IV4."""
    nodes: dict[int, Node]
    options: tuple[str, ...] = ()
    """Further ones of the command format of StorageTool."""
    dynamic: bool = False
    """Whether the voters of the quorum can change, which kraft.version 1 needs (from 3.9.0 on)."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of every node."""
    java: tuple[str, ...] = ()
    """Further options of its JVM."""
    _running: dict[int, tuple[ExitStack, Programs, str]] = field(default_factory=dict)
    _formatted: set[int] = field(default_factory=set)

    def start(self, number: int, release: str, registers_ms: int = REGISTERS_MS, plain: bool = False) -> None:
        """Starts a node; one that has no data yet is formatted by the tool of the release.

        ``registers_ms``: how long a broker tries to register; ``plain``: it is formatted without the further options,
        which its release may not know: it reads levels from the log.

        Errors: ``NotFormatted``, ``Broken``, ``Unavailable``.
        """
        node, stack = self.nodes[number], ExitStack()
        java = [*kafka_broker.java_command(node.folder, release), *self.java]
        programs = Programs(node.folder, java, stack)
        written = programs.write("server.properties", self._settings(node, registers_ms))
        if number not in self._formatted:
            more = (
                *(["--standalone"] if self.dynamic else []),
                "--release-version",
                self.level,
                *(() if plain else self.options),
            )
            try:
                programs.run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", written, *more)
            except Broken as why:
                raise NotFormatted(str(why)) from None
            self._formatted.add(number)
        programs.start("kafka.Kafka", written)
        self._running[number] = stack, programs, release

    def wait(self, number: int) -> None:
        """Until the node answers. Errors: ``Broken`` if it ends, or does not answer in time."""
        node, (_, programs, release) = self.nodes[number], self._running[number]
        if node.roles == CONTROLLER:
            kafka_broker.await_ready(programs, lambda: bool(kafka_broker.ranges(node.controller)), f"node {number}")
        else:  # another program may have taken the port
            kafka_broker.await_ready(programs, lambda: kafka_broker.is_release(node.port, release), f"node {number}")

    def ended(self, number: int, within_s: float) -> tuple[int | None, str]:
        """The exit code of a node, if it ends in time, and the end of its log."""
        _, programs, _ = self._running[number]
        until = monotonic() + within_s
        while programs.ended is None and monotonic() < until:
            sleep(0.1)
        return programs.ended, programs.log.read_text("utf-8", "replace")

    def log_of(self, number: int) -> bytes:
        """What the node has in the last segment of the log of metadata."""
        segments = sorted((self.nodes[number].folder / "data" / "__cluster_metadata-0").glob("*.log"))
        return segments[-1].read_bytes() if segments else b""

    @property
    def running(self) -> frozenset[int]:
        """The nodes that were started and not stopped."""
        return frozenset(self._running)

    def stop(self, number: int) -> None:
        """Does nothing if the node does not run."""
        if number in self._running:
            self._running.pop(number)[0].close()

    def pause(self, number: int) -> None:
        """Stops a node in the middle of what it does; it keeps its connections."""
        os.killpg(self._pid(number), signal.SIGSTOP)

    def resume(self, number: int) -> None:
        os.killpg(self._pid(number), signal.SIGCONT)

    def kill(self, number: int) -> None:
        """As kill -9: the node keeps what it wrote."""
        os.killpg(self._pid(number), signal.SIGKILL)
        self.stop(number)

    def _pid(self, number: int) -> int:
        return self._running[number][1].started[-1].pid

    def _settings(self, node: Node, registers_ms: int) -> dict[str, object]:
        voters = [each for each in self.nodes.values() if CONTROLLER in each.roles]
        listeners = []
        if BROKER in node.roles:
            listeners.append(f"PLAINTEXT://{HOST}:{node.port}")
        if CONTROLLER in node.roles:
            listeners.append(f"CONTROLLER://{HOST}:{node.controller}")
        quorum = (
            {"controller.quorum.bootstrap.servers": f"{HOST}:{voters[0].controller}"}
            if self.dynamic
            else {"controller.quorum.voters": ",".join(f"{each.number}@{HOST}:{each.controller}" for each in voters)}
        )
        found: dict[str, object] = {
            **COMMON,
            **self.settings,
            **quorum,
            "process.roles": node.roles,
            "node.id": node.number,
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": node.folder / "data",
        }
        if BROKER in node.roles:
            found |= {
                "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
                "inter.broker.listener.name": "PLAINTEXT",
                "initial.broker.registration.timeout.ms": registers_ms,
            }
        return found


@contextmanager
def cluster(
    level: str,
    roles: Mapping[int, str],
    options: tuple[str, ...] = (),
    dynamic: bool = False,
    settings: Mapping[str, str] | None = None,
    java: tuple[str, ...] = (),
) -> Iterator[Nodes]:
    """Nodes of these numbers with their roles, none of which runs yet. Arguments: as the fields of ``Nodes``."""
    with ExitStack() as stack:
        ports = iter(stack.enter_context(kafka_broker.reserved_ports(2 * len(roles))))
        nodes = {}
        for number, each in roles.items():
            folder = stack.enter_context(temporary_folder("broker"))
            nodes[number] = Node(number, each, next(ports), next(ports), folder)
        found = Nodes(level, nodes, options, dynamic, settings or {}, java)
        try:
            yield found
        finally:
            for number in [*nodes]:
                with suppress(OSError, struct.error, Broken):
                    found.stop(number)
