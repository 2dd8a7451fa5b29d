"""``kafka:RELEASE`` in the role controller: in KRaft mode from 3.3.0 on, and with ZooKeeper up to 3.9.2."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.live.controller import target as kraft
from kipcheck.conformance.live.controller.zookeeper_play import CLAIMS as ZOOKEEPER_CLAIMS, ZooKeeperSession
from kipcheck.conformance.protocols.features.ops.zookeeper import OPERATIONS
from kipcheck.conformance.targets.protocol import Claims, Session, TargetInfo
from kipcheck.conformance.targets.toolchains import kafka_broker


def has_zookeeper(release: str) -> bool:
    """Whether brokers of this release keep feature versions in ZooKeeper."""
    at = Release.parse(release)
    return at in releases(span("feature-znode")) and at in releases(span("zookeeper"))


def claims(release: str) -> Claims:
    """Of both modes, as far as the release has them."""
    found = [kraft.STARTED_CLAIMS] if Release.parse(release) in kafka_broker.KRAFT else []
    found += [ZOOKEEPER_CLAIMS] if has_zookeeper(release) else []
    return Claims(
        machines=tuple(machine for each in found for machine in each.machines),
        limits={name: why for each in found for name, why in each.limits.items()},
    )


@contextmanager
def session(info: TargetInfo, release: str) -> Iterator[Session]:
    with ExitStack() as stack:
        played: list[Session] = []
        if Release.parse(release) in kafka_broker.KRAFT:
            played.append(stack.enter_context(kraft.started_session(info, release)))
        if has_zookeeper(release):
            runner = stack.enter_context(asyncio.Runner())
            played.append(with_zookeeper := ZooKeeperSession(info, release, runner, stack))
            stack.callback(with_zookeeper.report)
        yield EitherSession(info, played[0], played[-1])


@dataclass
class EitherSession:
    info: TargetInfo
    kraft: Session
    zookeeper: Session
    """One of both plays everything where a release has one mode."""

    @property
    def troubles(self) -> Sequence[str]:
        return [*dict.fromkeys([*self.kraft.troubles, *self.zookeeper.troubles])]

    @property
    def breaches(self) -> Sequence[str]:
        return [*dict.fromkeys([*self.kraft.breaches, *self.zookeeper.breaches])]

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        kept = [any(each.verb in OPERATIONS.verbs for each in case.steps) for case in cases]
        found = {
            which: iter(player.run([case for case, each in zip(cases, kept, strict=True) if each is which]))
            for which, player in ((False, self.kraft), (True, self.zookeeper)) if which in kept
        }  # fmt: skip
        return [next(found[each]) for each in kept]
