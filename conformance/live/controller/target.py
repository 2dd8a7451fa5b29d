"""``kafka:RELEASE`` and ``broker:HOST:PORT`` in the role controller: feature versions over the wire.

A cluster that kipcheck starts has a node 0, which is broker and controller; in a quorum of several, further controllers
of the release run beside it, and such of other releases as a conversation wants. Conversations begin with the levels
that a model begins with; other brokers and controllers are registrations of nodes that do not exist. A cluster that
runs already is sent updates to be validated, and others only where that is allowed.
"""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from kipcheck.conformance.core.files.releases_table import listed
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Lost, Observation
from kipcheck.conformance.live.awaited import awaited
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.controller.forms import Form, form_of
from kipcheck.conformance.live.controller.play import (
    LIMITS,
    NODES,
    OWN,
    QUORUM,
    Cluster,
    Conversation,
    Unplayable,
    levels_of,
)
from kipcheck.conformance.live.controller.quorum import Quorum
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.model.kraft import NONE
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops.kraft import (
    OPERATIONS,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    Declared,
    DeclareNode,
    Format,
    TypedUpdate,
)
from kipcheck.conformance.protocols.features.ops.quorum import OPERATIONS as QUORUM_OPERATIONS
from kipcheck.conformance.targets.protocol import Broken, Claims, NotPlayed, Session, TargetInfo, Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker, kafka_nodes

CLAIMS: Final = Claims(machines=(OPERATIONS.machine,), limits=LIMITS)
"""Of a cluster that runs already."""
STARTED_CLAIMS: Final = replace(CLAIMS, machines=(*CLAIMS.machines, QUORUM_OPERATIONS.machine))
"""Of kipcheck's own clusters."""
STARTS: Final = {"broker.session.timeout.ms": "60000"}
"""Brokers that do not exist stay registered, and the one that runs is not fenced on a busy machine."""


TAKEN: Final = "Address already in use"
FOREIGN: Final = "controller {} leads, whose release has rules of its own"


HELPERS: Final = ((), (9,), (8, 9))
"""By how many other controllers a conversation wants: so many of the release run beside controller 0, and with it are
most of the quorum, whether or not the others run. They support what it supports, and add nothing to what it asks.
"""
WAITS_S: Final = 60.0
"""How long a quorum may take to have a leader, or a controller to register."""


def release_of(supported: Sequence[Declared], level: int, registers: bool) -> str | None:
    """A release whose controllers support exactly these levels, and can be in a quorum at this metadata.version."""
    wanted = {each.feature: (each.low, each.high) for each in supported}
    for release in listed("controllers"):
        rules = Rules.of(release)
        fits = rules.newest >= level and (rules.registered_controllers or not registers)
        if fits and rules.declares_only(wanted):
            return release
    return None


@contextmanager
def started_session(info: TargetInfo, release: str) -> Iterator[Session]:
    """A cluster of kipcheck's own, which starts with the first conversation."""
    with asyncio.Runner() as runner, ExitStack() as stack:
        nodes = Nodes(Rules.of(release), runner)
        stack.callback(nodes.stop)
        quorum = Quorum(nodes.rules)
        stack.callback(lambda: runner.run(quorum.close()))
        found = StartedSession(replace(info, claims=STARTED_CLAIMS), nodes, runner, quorum=quorum)
        yield found
        found.report()


@contextmanager
def running_session(
    info: TargetInfo, others: TargetInfo, connections: Connections, may_change: bool
) -> Iterator[Session]:
    """``others``: the target in its other roles.

    Errors: ``Unavailable`` if nothing answers; ``NotPlayed`` if what answers does not run in KRaft mode.
    """
    with asyncio.Runner() as runner:
        try:
            try:
                versions = runner.run(versions_of(connections))
            except (Closed, Garbled) as why:
                raise Unavailable(f"{info.name}: {why}") from None
            if not {requests.UPDATE_FEATURES, requests.DESCRIBE_QUORUM} <= {*versions}:
                raise NotPlayed(others, Role.CONTROLLER)
            session = RunningSession(info, Cluster(connections, versions, may_change=may_change), runner)
            yield session
            runner.run(session.restore())
        finally:
            runner.run(connections.close())


class Nodes:
    """Clusters that kipcheck starts, one at a time."""

    def __init__(self, rules: Rules, runner: asyncio.Runner) -> None:
        self.rules = rules
        self.started_clusters = 0
        self._runner = runner
        self._stack = ExitStack()
        self._open: list[Connections] = []
        self._nodes: kafka_nodes.Nodes | None = None
        self._own: tuple[int, ...] = (OWN,)
        """The controllers of the release, which may lead."""
        self._level = 0
        """The last known one of metadata.version."""
        self._registering: set[int] = set()
        """Controllers of other releases that run, and register where controllers do."""
        self._cluster: Cluster | None = None

    async def formatted(self, event: Format) -> Cluster:
        """Errors: ``Unplayable``, ``Unavailable``, ``NotFormatted``, ``Broken``, ``Closed``, ``Garbled``."""
        await self.leave()
        form = form_of(self.rules, event.level, {each.feature: each.level for each in event.levels})
        others = tuple(sorted({*event.controllers} - {OWN}))
        if others and form.dynamic:
            raise Unplayable(QUORUM, "the quorum of kraft.version 1 has no voter that was never started")
        if len(others) >= len(HELPERS) or {*others} & {*HELPERS[-1]}:
            raise Unplayable(QUORUM, f"kipcheck starts at most two more controllers, 1 to {min(HELPERS[-1]) - 1}")
        self._own, self._level = (OWN, *HELPERS[len(others)]), event.level
        try:
            self._start(form, others)
        except Broken as why:
            if TAKEN not in str(why):
                raise
            await self.leave()
            self._start(form, others)  # another program took a port meanwhile
        self.started_clusters += 1
        return await self._reached()

    def _start(self, form: Form, others: Sequence[int]) -> None:
        roles = {OWN: kafka_nodes.BOTH, **dict.fromkeys((*others, *self._own[1:]), kafka_nodes.CONTROLLER)}
        made = kafka_nodes.cluster(form.level, roles, form.options, form.dynamic, STARTS)
        self._nodes = self._stack.enter_context(made)
        for number in self._own:
            self._nodes.start(number, self.rules.release)
        for number in self._own:
            self._nodes.wait(number)

    async def _reached(self) -> Cluster:
        """Once one of the release leads and, where controllers register, those have that run."""
        for each in self._open:
            await each.close()
        self._open.clear()
        nodes = self._running()
        broker = self._connected(nodes.nodes[OWN].port)
        versions = await versions_of(broker)
        leader = await self._leader(broker)
        if leader not in self._own:
            raise Unplayable(NODES, FOREIGN.format(leader))
        controller = self._connected(nodes.nodes[leader].controller)
        found = Cluster(broker, versions, controller, await versions_of(controller), id=kafka_broker.CLUSTER_ID)
        await self._registered(found, {*self._own, *self._registering})
        self._cluster = found
        return found

    def _connected(self, port: int) -> Connections:
        found = Connections(kafka_broker.HOST, port)
        self._open.append(found)
        return found

    async def _leader(self, broker: Connections) -> int:
        async def leads() -> int | None:
            try:
                found = (await requests.quorum_of(broker)).leader
            except Garbled:  # the broker knows no leader
                return None
            return found if found >= 0 else None

        return await awaited(leads, "no controller leads", WAITS_S)

    async def _registered(self, cluster: Cluster, numbers: set[int]) -> None:
        """By DescribeCluster, once these controllers have registered, where they do. One that leads says so itself."""
        low, high = cluster.controller_versions.get(requests.DESCRIBE_CLUSTER, (0, 0))
        if high < 1 or not self.rules.registers_controllers(self._level) or cluster.controller is None:
            return
        asked = cluster.controller

        async def have() -> bool | None:
            leader, found = await requests.controllers_of(asked, max(low, 1))
            if leader >= 0 and leader not in self._own:
                raise Unplayable(NODES, FOREIGN.format(leader))
            return True if leader >= 0 and found >= numbers else None

        await awaited(have, f"controllers {sorted(numbers)} have not registered", WAITS_S)

    async def started(self, event: DeclareNode) -> bool:
        """Errors: ``Unplayable``, ``Unavailable``, ``Broken``, ``Closed``, ``Garbled``."""
        nodes = self._running()
        if event.node in nodes.running:
            raise Unplayable(NODES, f"controller {event.node} runs, and supports what its release does")
        wanted = event.supported
        if event.node not in nodes.nodes or wanted is None or not self.rules.registered_controllers:
            return False
        registers = self.rules.registers_controllers(self._level)
        release = release_of(wanted, self._level, registers)
        if release is None:
            return False
        nodes.start(event.node, release, plain=True)
        nodes.wait(event.node)
        if Rules.of(release).registered_controllers:
            self._registering.add(event.node)
        if self._cluster is not None:
            await self._registered(self._cluster, {*self._own, *self._registering})
        return True

    async def failed_over(self) -> tuple[Cluster, int]:
        """Errors: ``Unplayable``, ``Broken``, ``Closed``, ``Garbled``."""
        nodes = self._running()
        leader = await self._leader(self._open[0])
        nodes.stop(leader)
        nodes.start(leader, self.rules.release)
        nodes.wait(leader)
        found = await self._reached()
        now = await self._leader(found.broker)
        return found, OWN if now in self._own else now

    async def updated(self) -> None:
        """Errors: ``Unplayable``, ``Broken``, ``Closed``, ``Garbled``."""
        if len(self._own) == 1 or self._cluster is None:
            return
        nodes, cluster = self._running(), self._cluster
        if nodes.running - {*self._own} and (leader := await self._leader(cluster.broker)) not in self._own:
            raise Unplayable(NODES, FOREIGN.format(leader))
        if not self.rules.registers_controllers(self._level):
            found = await requests.settled(cluster.broker, cluster.versions)
            self._level = found.finalized.get(METADATA, (0, self._level))[1]
            await self._registered(cluster, {*self._own, *self._registering})

    def _running(self) -> kafka_nodes.Nodes:
        assert self._nodes is not None, "no cluster was formatted"
        return self._nodes

    async def leave(self) -> None:
        """Stops the cluster, if one runs."""
        for each in self._open:
            await each.close()
        self._open.clear()
        self._stack.close()
        self._nodes = self._cluster = None
        self._registering.clear()

    def stop(self) -> None:
        self._runner.run(self.leave())


@dataclass
class StartedSession:
    info: TargetInfo
    nodes: Nodes
    runner: asyncio.Runner
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()
    played: int = 0
    quorum: Quorum | None = None
    """Three nodes, for each conversation that pauses and kills them."""
    _cluster: Cluster | None = None
    _last: Conversation | None = None
    _busy_s: float = 0.0

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """One conversation after the other: they share the levels of one cluster."""
        return self.runner.run(self._run(cases))

    async def _run(self, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
        began = now()
        found: dict[int, tuple[Observation, ...]] = {}
        # A conversation that formats a cluster has one of its own; the others share one as long as possible.
        for at in sorted(range(len(cases)), key=lambda at: _formats(cases[at])):
            self.played += 1
            try:
                found[at] = await self._play(cases[at])
            except (Closed, Garbled, Broken) as why:
                if isinstance(why, Broken) and not self.started_clusters:
                    raise  # nothing starts here
                self._last = self._cluster = None
                found[at] = (Lost(f"no controller: {why}"),) * len(cases[at].steps)
        self._busy_s += now() - began
        return [found[at] for at in range(len(cases))]

    async def _play(self, case: Case) -> tuple[Observation, ...]:
        if self.quorum is not None and case.steps[0].verb in QUORUM_OPERATIONS.verbs:
            await self.nodes.leave()
            self._cluster = None
            return await self.quorum.played(case.steps)
        if self.quorum is not None:
            await self.quorum.close()
        if case.steps[0].verb == "kraft-format":
            self._cluster = None
        elif self._cluster is None or not await self._is_new():
            self._cluster = await self.nodes.formatted(Format(self.nodes.rules.newest))
        self._last = Conversation(self._cluster, self.nodes)
        found = await self._last.play(case.steps)
        self._cluster = self._last.cluster
        return found

    async def _is_new(self) -> bool:
        """Takes back what the last conversation changed. False: something stays."""
        cluster, last = self._cluster, self._last
        if cluster is None or last is None or last.tainted:
            return False
        for number in last.registered:
            await requests.unregister_broker(cluster.broker, number)
        wanted = {METADATA: self.nodes.rules.newest}
        found = {each.feature: each.level for each in levels_of(await self._settled(cluster)).levels}
        updates = [
            TypedUpdate(name, wanted.get(name, 0), UPGRADE if level < wanted.get(name, 0) else UNSAFE_DOWNGRADE)
            for name, level in found.items() if level != wanted.get(name, 0)
        ]  # fmt: skip
        if not updates:
            return True
        done = await requests.update(cluster.broker, cluster.versions[requests.UPDATE_FEATURES][1], updates, False)
        if done.error != NONE:
            return False
        now = {each.feature: each.level for each in levels_of(await self._settled(cluster)).levels}
        return now == wanted

    async def _settled(self, cluster: Cluster) -> Picture:
        return await requests.settled(cluster.broker, cluster.versions)

    @property
    def started_clusters(self) -> int:
        return self.nodes.started_clusters + (0 if self.quorum is None else self.quorum.started_clusters)

    def report(self) -> None:
        if self.played:
            print(
                f"{self.info.name}: {self.played} conversations in {self._busy_s:.0f} s, "
                f"with {self.started_clusters} clusters",
                file=sys.stderr,
            )


def _formats(case: Case) -> bool:
    return any(each.verb == "kraft-format" for each in case.steps)


@dataclass
class RunningSession:
    info: TargetInfo
    cluster: Cluster
    runner: asyncio.Runner
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()
    before: Mapping[str, int] = field(default_factory=dict)

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        return self.runner.run(self._run(cases))

    async def _run(self, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
        try:
            self.before = self.before or await self._levels()
        except (Closed, Garbled) as why:
            return [(Lost(f"no controller: {why}"),) * len(each.steps) for each in cases]
        return [await Conversation(self.cluster).play(each.steps) for each in cases]

    async def _levels(self) -> dict[str, int]:
        found = await requests.settled(self.cluster.broker, self.cluster.versions)
        return {each.feature: each.level for each in levels_of(found).levels}

    async def restore(self) -> None:
        """Takes back what conversations changed, feature by feature, and reports what stays changed."""
        if not self.cluster.may_change or not self.before:
            return
        try:
            await self._restored()
        except (Closed, Garbled) as why:
            print(f"{self.info.name}: what was changed could not be taken back: {why}", file=sys.stderr)

    async def _restored(self) -> None:
        """Errors: ``Closed``, ``Garbled``."""
        after = await self._levels()
        version = self.cluster.versions[requests.UPDATE_FEATURES][1]
        for name in sorted({*after, *self.before}):
            level, now = self.before.get(name, 0), after.get(name, 0)
            if level != now:
                kind = UPGRADE if level > now else UNSAFE_DOWNGRADE
                await requests.update(self.cluster.broker, version, [TypedUpdate(name, level, kind)], False)
        kept = await self._levels()
        for name in sorted(name for name in {*kept, *self.before} if kept.get(name, 0) != self.before.get(name, 0)):
            was, now = self.before.get(name, 0), kept.get(name, 0)
            print(f"{self.info.name}: {name} was {was} and stays {now}: it cannot be taken back", file=sys.stderr)
