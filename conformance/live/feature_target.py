"""``kafka:RELEASE`` and ``broker:HOST:PORT`` in the role controller: feature versions over the wire.

A cluster that kipcheck starts has one node, number 0, which is broker and controller. Conversations begin with the
levels that a model begins with; other brokers and controllers are registrations of nodes that do not exist. A cluster
that runs already is sent updates to be validated, and others only where that is allowed.
"""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import Lost, Observation
from kipcheck.conformance.core.releases_table import table
from kipcheck.conformance.live import feature_requests as requests
from kipcheck.conformance.live.coordinator_admin import versions_of
from kipcheck.conformance.live.coordinator_connections import Connections, Garbled
from kipcheck.conformance.live.feature_play import LIMITS, OWN, Cluster, Conversation, levels_of
from kipcheck.conformance.live.features import Picture
from kipcheck.conformance.live.secure_connection import Closed
from kipcheck.conformance.protocols.features.model.kraft import NONE
from kipcheck.conformance.protocols.features.model.kraft_rules import KRAFT, METADATA, Rules
from kipcheck.conformance.protocols.features.ops.kraft import OPERATIONS, UNSAFE_DOWNGRADE, UPGRADE, Format, TypedUpdate
from kipcheck.conformance.targets.protocol import Broken, Claims, NotPlayed, Session, TargetInfo, Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker

CLAIMS: Final = Claims(machines=(OPERATIONS.machine,), limits=LIMITS)
STARTS: Final = {"broker.session.timeout.ms": "60000"}
"""Brokers that do not exist stay registered, and the one that runs is not fenced on a busy machine."""


TAKEN: Final = "Address already in use"


def form_of(rules: Rules, level: int, levels: Mapping[str, int]) -> kafka_broker.Format:
    """A new cluster with these levels; a feature that is not named has level 0."""
    names = table()["feature-levels"]["metadata-names"]
    options = ["--release-version", names[level - 1]]
    for name in rules.supported if rules.all_or_nothing else ():
        if name not in (METADATA, KRAFT):
            options += ["--feature", f"{name}={levels.get(name, 0)}"]
    dynamic = levels.get(KRAFT, 0) > 0
    return kafka_broker.Format(OWN, (*options, *(["--feature", f"{KRAFT}=1"] if dynamic else [])), dynamic)


@contextmanager
def started_session(info: TargetInfo, release: str) -> Iterator[Session]:
    """A cluster of kipcheck's own, which starts with the first conversation."""
    with asyncio.Runner() as runner, ExitStack() as stack:
        nodes = Nodes(Rules.of(release), runner)
        stack.callback(nodes.stop)
        found = StartedSession(info, nodes, runner)
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
    """Clusters of one node, one at a time."""

    def __init__(self, rules: Rules, runner: asyncio.Runner) -> None:
        self.rules = rules
        self.started = 0
        self._runner = runner
        self._stack = ExitStack()
        self._open: list[Connections] = []

    async def formatted(self, event: Format) -> Cluster:
        """Errors: ``Unavailable``, ``NotFormatted``, ``Broken``, ``Closed``, ``Garbled``."""
        await self.leave()
        form = form_of(self.rules, event.level, {each.feature: each.level for each in event.levels})
        broker = self._start(form)
        self.started += 1
        ports = (Connections(kafka_broker.HOST, broker.port), Connections(kafka_broker.HOST, broker.other))
        self._open += ports
        versions, others = [await versions_of(each) for each in ports]
        return Cluster(ports[0], versions, ports[1], others, id=kafka_broker.CLUSTER_ID)

    def _start(self, form: kafka_broker.Format) -> kafka_broker.Broker:
        """Once more where another program took a port meanwhile."""

        def begin() -> kafka_broker.Broker:
            running = kafka_broker.running(self.rules.release, STARTS, form=form, coordinates=False)
            return self._stack.enter_context(running)

        try:
            return begin()
        except Broken as why:
            if TAKEN not in str(why):
                raise
            return begin()

    async def leave(self) -> None:
        """Stops the cluster, if one runs."""
        for each in self._open:
            await each.close()
        self._open.clear()
        self._stack.close()

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
    _cluster: Cluster | None = None
    _last: Conversation | None = None
    _busy_s: float = 0.0

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """One conversation after the other: they share the levels of one cluster."""
        return self.runner.run(self._run(cases))

    async def _run(self, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
        began = asyncio.get_running_loop().time()
        found: dict[int, tuple[Observation, ...]] = {}
        # A conversation that formats a cluster has one of its own; the others share one as long as possible.
        for at in sorted(range(len(cases)), key=lambda at: _formats(cases[at])):
            self.played += 1
            try:
                found[at] = await self._play(cases[at])
            except (Closed, Garbled) as why:
                self._last = self._cluster = None
                found[at] = (Lost(f"no controller: {why}"),) * len(cases[at].steps)
        self._busy_s += asyncio.get_running_loop().time() - began
        return [found[at] for at in range(len(cases))]

    async def _play(self, case: Case) -> tuple[Observation, ...]:
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

    def report(self) -> None:
        if self.played:
            print(
                f"{self.info.name}: {self.played} conversations in {self._busy_s:.0f} s, "
                f"with {self.nodes.started} clusters",
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
        if not self.before:
            self.before = await self._levels()
        return [await Conversation(self.cluster).play(each.steps) for each in cases]

    async def _levels(self) -> dict[str, int]:
        found = await requests.settled(self.cluster.broker, self.cluster.versions)
        return {each.feature: each.level for each in levels_of(found).levels}

    async def restore(self) -> None:
        """Takes back what conversations changed, feature by feature, and reports what stays changed."""
        if not self.cluster.may_change or not self.before:
            return
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
