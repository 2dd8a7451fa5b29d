"""Plays ``zookeeper-features`` with brokers of a release in ZooKeeper mode, and a ZooKeeper, on loopback.

A conversation has a cluster of its own, below a path of its own in one ZooKeeper. The controller is a broker that is
started again with each inter-broker version; two others start when they first read /feature, and are stopped by a
signal whenever they do not read or answer, so that they are notified when the conversation says so. A node in the
place of a controller keeps them from being elected. What an operator does is done by a client of ZooKeeper.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Refused, Unsupported
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.connections.zookeeper import ZooKeeper
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.coordinator.admin import METADATA, versions_of
from kipcheck.conformance.protocols.features.model.zookeeper import BELOW_MIGRATION, NONE, SECOND_FORM
from kipcheck.conformance.protocols.features.ops import zookeeper as ops_zookeeper
from kipcheck.conformance.protocols.features.ops.cluster import Finalized, Outcome, Supported
from kipcheck.conformance.targets.protocol import Broken, Claims, TargetInfo, observed
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.toolchains.kafka_broker import HOST, Programs
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder
from kipcheck.conformance.wire.errors import Refused as Unreadable
from kipcheck.conformance.wire.znodes import znode

DECLARES, RUNS, VERSIONS = "declares", "runs", "versions"
LIMITS: Final = {
    DECLARES: "no release declares a feature in ZooKeeper mode",
    RUNS: "the broker does not run",
    VERSIONS: "the broker does not announce the version, or does not know the inter-broker version",
}
CLAIMS: Final = Claims(machines=(ops_zookeeper.OPERATIONS.machine,), limits=LIMITS)
CONTROLLER: Final = 2
"""The number of the broker that is the controller; 0 and 1 read."""
ANOTHER_CONTROLLER: Final = 99
"""No broker has this number."""
FEATURE, ELECTED = "/feature", "/controller"
STOPS: Final = "FEATURE_CACHE_UPDATE"
"""How an exit with a non-zero code is shown."""
NOTIFIED_S: Final = 30.0
"""How long a broker may take to read /feature after it was written, on a busy machine."""
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(kafka_broker.LONGEST_SESSION_MS),
    "controlled.shutdown.enable": "false",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "1",
    "log.cleaner.enable": "false",
}
LOST: Final = Lost("the cluster did not answer an earlier step")


class Unplayable(Exception):
    """The step cannot be played; what follows it would mean something else."""

    def __init__(self, limit: str, why: str = "") -> None:
        super().__init__(why or LIMITS[limit])
        self.limit = limit


class Ended(Exception):
    """A broker ended."""

    def __init__(self, code: int, log: str) -> None:
        super().__init__(f"a broker ended with exit code {code}: {log}")
        self.code = code


class TopLevelError(Exception):
    """A response has a top-level error."""

    def __init__(self, error: str, why: str) -> None:
        super().__init__(error)
        self.error, self.why = error, why


@dataclass(slots=True)
class Process:
    """A broker."""

    number: int
    port: int
    programs: Programs
    stack: ExitStack
    inter_broker: str
    connections: Connections
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def code(self) -> int | None:
        """Its exit code; None: it runs."""
        return self.programs.ended

    def check(self) -> None:
        """Errors: ``Ended``."""
        if (code := self.code) is not None:
            raise Ended(code, self.programs.last_lines)

    def signal(self, what: signal.Signals) -> None:
        for each in self.programs.started:
            if each.poll() is None:
                with suppress(ProcessLookupError):
                    os.kill(each.pid, what)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.connections.close()
        self.stack.close()


@dataclass(slots=True)
class Conversation:
    """A cluster below ``root``."""

    release: str
    zookeeper: ZooKeeper
    root: str
    processes: dict[int, Process] = field(default_factory=dict)
    started: int = 0

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step. After one that cannot be played, none is."""
        found: list[Observation] = []
        self.zookeeper.create(self.root)
        for step in steps:
            if found and isinstance(found[-1], Unsupported | Died | Lost):
                found.append(found[-1] if isinstance(found[-1], Unsupported) else LOST)
                continue
            try:
                found.append(await self._observed(step))
            except Unplayable as limit:
                found.append(Unsupported(str(limit), limit.limit))
            except (Closed, Garbled, Broken, OSError) as why:
                found.append(Died("crashed", str(why)))
        return tuple(found)

    async def _observed(self, step: Step) -> Observation:
        try:
            answer = await self._step(step)
        except Ended as why:
            for each in [*self.processes.values()]:
                if each.code is not None:
                    await self._forget(each.number)
            return Refused(STOPS, str(why)) if why.code > 0 else Died("crashed", str(why))
        except TopLevelError as why:
            return Refused(why.error, why.why)
        return observed(ops_zookeeper.OPERATIONS.answer_of([] if answer is None else [answer]))

    async def _step(self, step: Step) -> ops_zookeeper.Action | None:
        event = ops_zookeeper.OPERATIONS.event_of(step)
        match event:
            case ops_zookeeper.StartController(inter_broker):
                await self._start_controller(inter_broker)
            case ops_zookeeper.ZkUpdate():
                return await self._update(event)
            case ops_zookeeper.DeleteNode():
                self.zookeeper.delete(self.root + FEATURE)
                await self._notified(self.processes.get(CONTROLLER))
            case ops_zookeeper.WriteNode():
                self.zookeeper.put(self.root + FEATURE, _json(event))
                await self._notified(self.processes.get(CONTROLLER))
            case ops_zookeeper.ReadFeature(broker):
                await self._read(broker)
            case ops_zookeeper.AskZkFeatures(broker):
                return await self._features(broker)
            case ops_zookeeper.ReadZkNode():
                return self._node()
            case ops_zookeeper.ReadRegistration(broker):
                return self._registration(broker)
            case ops_zookeeper.DeclareFeatures():
                raise Unplayable(DECLARES)
            case _:
                assert_never(event)
        return None

    # Brokers

    async def _start(self, number: int, inter_broker: str) -> Process:
        """Errors: ``Ended``; ``Broken``."""
        await self._forget(number)
        stack = ExitStack()
        folder = stack.enter_context(temporary_folder("broker"))
        (port,) = stack.enter_context(kafka_broker.reserved_ports(1))
        programs = Programs(folder, kafka_broker.java_command(folder, self.release), stack)
        process = Process(number, port, programs, stack, inter_broker, Connections(HOST, port))
        self.processes[number] = process
        settings = {**SETTINGS, "inter.broker.protocol.version": inter_broker}
        kafka_broker.start_beside_zookeeper(programs, port, self.zookeeper.port, settings, number, self.root)
        self.started += 1

        async def answers() -> bool | None:
            process.check()
            with suppress(Closed, OSError):
                process.versions = await versions_of(process.connections)
                return True
            return None

        await _awaited(answers, f"broker {number} does not answer", kafka_broker.STARTS_S)
        return process

    async def _forget(self, number: int) -> None:
        """Kills a broker, and deletes what is ephemeral: its session would go on for minutes."""
        if number in self.processes:
            await self.processes.pop(number).kill()
            self.zookeeper.delete(f"{self.root}/brokers/ids/{number}")
            if number == CONTROLLER:
                self.zookeeper.delete(self.root + ELECTED)

    async def close(self) -> None:
        for number in [*self.processes]:
            await self.processes.pop(number).kill()

    async def _start_controller(self, inter_broker: str) -> None:
        if inter_broker == SECOND_FORM and Release.parse(self.release) not in releases(span("feature-znode-2")):
            raise Unplayable(VERSIONS)
        self.zookeeper.delete(self.root + ELECTED)
        process = await self._start(CONTROLLER, inter_broker)
        asked = {"topics": [], "allowAutoTopicCreation": False}

        async def leads() -> bool | None:
            process.check()
            with suppress(Closed, OSError):
                found = await process.connections.ask("Metadata", min(5, process.versions[METADATA][1]), "k", asked)
                return True if found["controllerId"] == CONTROLLER else None
            return None

        await _awaited(leads, "the controller is not elected", kafka_broker.STARTS_S)

    async def _notified(self, process: Process | None) -> None:
        """Until a running broker has read /feature as it is, or has ended. One that does neither shows it later.

        Errors: ``Ended``.
        """
        if process is None or process.inter_broker == BELOW_MIGRATION:
            return
        until = now() + NOTIFIED_S
        while now() < until:
            node = self._node()
            process.check()
            with suppress(Closed, OSError):
                found = await requests.picture_of(process.connections, process.versions)
                if found.epoch == (node.epoch if node.enabled else -1):
                    return
            await asyncio.sleep(0.02)

    async def _read(self, broker: int) -> None:
        """A broker on the other side of the migration version than the controller is started again, as in a roll."""
        controller = self.processes.get(CONTROLLER)
        wanted = "2.7" if controller is None else controller.inter_broker
        if controller is None:
            data = {"version": 1, "brokerid": ANOTHER_CONTROLLER, "timestamp": "0"}
            self.zookeeper.put(self.root + ELECTED, json.dumps(data).encode())
        process = self.processes.get(broker)
        try:
            if process is None or (process.inter_broker == BELOW_MIGRATION) is not (wanted == BELOW_MIGRATION):
                process = await self._start(broker, wanted)
            process.signal(signal.SIGCONT)
            await self._notified(process)
        finally:
            if process is not None:
                process.signal(signal.SIGSTOP)

    # Requests

    async def _features(self, broker: int) -> ops_zookeeper.ZkFeatures:
        process = self.processes.get(broker)
        if process is None:
            raise Unplayable(RUNS)
        process.signal(signal.SIGCONT)
        try:
            found = await requests.picture_of(process.connections, process.versions)
        except (Closed, OSError):
            await asyncio.sleep(0.5)
            process.check()  # it was notified meanwhile
            raise
        finally:
            process.signal(signal.SIGSTOP)
        finalized = tuple(Finalized(name, *span) for name, span in sorted(found.finalized.items()))
        return ops_zookeeper.ZkFeatures(found.epoch, finalized)

    async def _update(self, event: ops_zookeeper.ZkUpdate) -> ops_zookeeper.ZkResults:
        process = self.processes.get(CONTROLLER)
        if process is None:
            raise Unplayable(RUNS, "no controller runs")
        low, high = process.versions.get(requests.UPDATE_FEATURES, (0, -1))
        if not low <= event.version <= high:
            raise Unplayable(VERSIONS, f"the broker announces versions {low} to {high} of UpdateFeatures")
        found = await requests.update(process.connections, event.version, event.updates, event.validate_only)
        if found.error != NONE:
            raise TopLevelError(found.error, found.why)
        rows = sorted(found.results, key=lambda each: each.feature)
        return ops_zookeeper.ZkResults(tuple(Outcome(each.feature, each.error) for each in rows))

    # ZooKeeper

    def _node(self) -> ops_zookeeper.ZkNode:
        found = self.zookeeper.get(self.root + FEATURE)
        if found is None:
            return ops_zookeeper.ZkNode(False, 0, False, -1, ())
        version = json.loads(found.data)["version"]
        try:
            value = znode(f"apache@{self.release}", "FeatureZNode", version).decode(found.data)
        except (Unreadable, LookupError) as why:
            raise Broken(f"/feature cannot be read: {why}") from None
        spans = tuple(
            Finalized(name, each.get("min_version_level", each["max_version_level"]), each["max_version_level"])
            for name, each in sorted(value["features"].items())
        )
        return ops_zookeeper.ZkNode(True, version, bool(value["status"]), found.version, spans)

    def _registration(self, broker: int) -> ops_zookeeper.ZkRegistration:
        found = self.zookeeper.get(f"{self.root}/brokers/ids/{broker}")
        if found is None:
            return ops_zookeeper.ZkRegistration(False, 0, ())
        version = json.loads(found.data)["version"]
        value: dict[str, Any] = znode(f"apache@{self.release}", "BrokerIdZNode", version).decode(found.data)
        spans = (Supported(name, *each.values()) for name, each in sorted(value.get("features", {}).items()))
        return ops_zookeeper.ZkRegistration(True, version, tuple(spans))


def _json(event: ops_zookeeper.WriteNode) -> bytes:
    levels = {each.feature: {"min_version_level": each.low, "max_version_level": each.high} for each in event.features}
    return json.dumps({"version": 1, "status": int(not event.disabled), "features": levels}).encode()


async def _awaited(ask: Callable[[], Awaitable[bool | None]], why: str, within_s: float) -> None:
    """Errors: ``Broken`` if it does not hold in time; those of ``ask``."""
    until = now() + within_s
    while not await ask():
        if now() > until:
            raise Broken(f"{why} after {within_s:.0f} s")
        await asyncio.sleep(0.05)


@dataclass
class ZooKeeperSession:
    """Conversations with clusters of a release, one after the other; ZooKeeper starts with the first one."""

    info: TargetInfo
    release: str
    runner: asyncio.Runner
    stack: ExitStack
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()
    played: int = 0
    started: int = 0
    _zookeeper: ZooKeeper | None = None
    _busy_s: float = 0.0

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """Errors: ``Broken`` if ZooKeeper does not start; ``Unavailable``."""
        self._zookeeper = self._zookeeper or self._start()
        return self.runner.run(self._run(cases, self._zookeeper))

    async def _run(self, cases: Sequence[Case], zookeeper: ZooKeeper) -> list[tuple[Observation, ...]]:
        began = now()
        found = [await self._played(each, zookeeper) for each in cases]
        self._busy_s += now() - began
        return found

    async def _played(self, case: Case, zookeeper: ZooKeeper) -> tuple[Observation, ...]:
        self.played += 1
        conversation = Conversation(self.release, zookeeper, f"/c{self.played}")
        try:
            return await conversation.play(case.steps)
        finally:
            self.started += conversation.started
            await conversation.close()

    def _start(self) -> ZooKeeper:
        (port,) = self.stack.enter_context(kafka_broker.reserved_ports(1))
        folder = self.stack.enter_context(temporary_folder("zookeeper"))
        programs = Programs(folder, kafka_broker.java_command(folder, self.release), self.stack)
        kafka_broker.start_zookeeper(programs, port)
        found = ZooKeeper(HOST, port)
        kafka_broker.await_ready(programs, lambda: found.get("/") is not None, "ZooKeeper")
        return found

    def report(self) -> None:
        if self.played:
            print(
                f"{self.info.name}: {self.played} conversations with ZooKeeper in {self._busy_s:.0f} s, "
                f"with {self.started} starts of brokers",
                file=sys.stderr,
            )
