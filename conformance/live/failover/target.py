"""``kafka:RELEASE?nodes=3``: a cluster of released brokers that coordinates groups, one conversation at a time."""

import asyncio
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, final

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Lost, Observation
from kipcheck.conformance.core.values.release import Release, known_release, releases
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.failover.brokers import Brokers
from kipcheck.conformance.live.failover.play import LIMITS, Conversation
from kipcheck.conformance.protocols.failover.ops import FAILOVER, NODES, PARTITIONS
from kipcheck.conformance.targets.protocol import Broken, Claims, NotPlayed, Session, TargetInfo
from kipcheck.conformance.targets.toolchains import kafka_broker

FORM: Final = f"kafka:RELEASE?nodes={len(NODES)}&from=RELEASE"
CLAIMS: Final = Claims(machines=(FAILOVER,), limits=LIMITS)
CONSUMER_GROUPS: Final = releases("4.0.0+")
"""With the protocol as it was released."""


@final
@dataclass(frozen=True, slots=True)
class StartedCluster:
    """``older``: the release that the nodes have at first."""

    name: str
    release: str
    older: str

    @classmethod
    def parse(cls, name: str, release: str, options: str) -> "StartedCluster":
        """Errors: LookupError with the valid forms."""
        given = dict(each.partition("=")[::2] for each in options.split("&"))
        if given.get("nodes") != str(len(NODES)) or given.keys() - {"nodes", "from"}:
            raise LookupError(f"invalid options {options!r} of {name}: use a form like {FORM}; from may be left out")
        older = given.get("from", release)
        for each in (release, older):
            known_release(each)
            if Release.parse(each) not in kafka_broker.KRAFT:
                raise LookupError(
                    f"{name}: clusters of several nodes run in KRaft mode, which releases from 3.3 on have"
                )
        return cls(name, release, older)

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        """Errors: ``NotPlayed`` for other roles."""
        info = TargetInfo(self.name, self.release, "", "", frozenset({Role.COORDINATOR}), CLAIMS)
        if role is not Role.COORDINATOR:
            raise NotPlayed(info, role)
        with asyncio.Runner() as runner:
            found = ClusterSession(info, Brokers(self.release, self.older), runner)
            try:
                yield found
            finally:
                runner.run(found.brokers.close())
                found.report()


@dataclass
class ClusterSession:
    info: TargetInfo
    brokers: Brokers
    runner: asyncio.Runner
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()
    played: int = 0
    started: int = 0
    _busy_s: float = 0.0
    _topic: str = field(default_factory=lambda: f"kipcheck-{uuid.uuid4().hex[:8]}-t")

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """One conversation after the other: they share the nodes of one cluster."""
        return [self.runner.run(self._run(each)) for each in cases]

    async def _run(self, case: Case) -> tuple[Observation, ...]:
        began = now()
        try:
            if not self.brokers.is_new:
                await self.brokers.start({self._topic: PARTITIONS})
                self.started += 1
            self.played += 1
            group = f"kipcheck-{uuid.uuid4().hex[:12]}"
            both = all(Release.parse(each) in CONSUMER_GROUPS for each in (self.brokers.newer, self.brokers.older))
            return await Conversation(self.brokers, group, self._topic, both).play(case.steps)
        except (Closed, Garbled, Broken) as why:
            if isinstance(why, Broken) and not self.started:
                raise  # nothing starts here
            await self.brokers.close()
            return (Lost(f"no cluster: {why}"),) * len(case.steps)
        finally:
            self._busy_s += now() - began

    def report(self) -> None:
        if self.played:
            print(
                f"{self.info.name}: {self.played} conversations in {self._busy_s:.0f} s, with {self.started} clusters",
                file=sys.stderr,
            )
