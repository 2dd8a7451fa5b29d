"""``broker:HOST:PORT`` and ``kafka:RELEASE``: running brokers as coordinators of groups, and as controllers.

The first is one that runs already, the second is started from released jars on loopback.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition as edition_of
from kipcheck.conformance.core.values.release import Release, known_release
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.controller import started_controllers, target as feature_target
from kipcheck.conformance.live.coordinator import broker_settings
from kipcheck.conformance.live.coordinator.address import Address
from kipcheck.conformance.live.coordinator.broker_settings import rules_of
from kipcheck.conformance.live.coordinator.restarts import Restarts
from kipcheck.conformance.live.coordinator.session import session
from kipcheck.conformance.live.coordinator.settings import LIMITS
from kipcheck.conformance.live.failover.target import StartedCluster
from kipcheck.conformance.protocols.damage.ops import DAMAGE
from kipcheck.conformance.protocols.group.model.answers import DEFAULT
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.ops import GROUP
from kipcheck.conformance.targets import protocol
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.toolchains import kafka_broker

TIMES: Final = 5
"""The time of brokers that kipcheck starts passes so much faster than stated: their timeouts are set accordingly."""
AT_ONCE: Final = 1500
"""Conversations of several checks that are played in one go with a broker that kipcheck starts, which ends at none of
them: each go lasts as long as its longest conversation, a minute."""
CLAIMS: Final = protocol.Claims(machines=(GROUP, DAMAGE), limits=LIMITS)
FIRST: Final = Release.parse("0.10.1.0")
"""The first release with CreateTopics."""


def target(name: str, rest: str, limits: Limits | None) -> protocol.Target:
    """Errors: LookupError with the valid forms."""
    if name.startswith("kafka:"):
        rest, _, options = rest.partition("?")
        if options:
            return StartedCluster.parse(name, rest, options)
        known_release(rest)
        if Release.parse(rest) < FIRST:
            raise LookupError(f"{name}: brokers are started from release {FIRST} on")
        return StartedBroker(name, rest)
    return RunningBroker(name, Address.parse(rest))


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any address and any release is a target."""
    return iter(())


@dataclass(frozen=True, slots=True)
class StartedBroker:
    name: str
    release: str

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[protocol.Session]:
        claims = started_controllers.claims(self.release)
        info = info_of(self.name, self.release, role, bool(claims.machines), claims)
        if role is Role.CONTROLLER:
            with started_controllers.session(info, self.release) as controller:
                yield controller
            return
        rules_of(edition)
        stated = broker_settings.of_started(TIMES)
        with kafka_broker.running(self.release, stated) as broker:
            address = Address(kafka_broker.HOST, broker.port)
            with session(info, address, Rules.of(self.release), TIMES, DEFAULT) as found:
                found.pids = lambda: broker.pids
                found.at_once = AT_ONCE
                found.restarts = Restarts(partial(found.restarted, broker.restart), TIMES)
                yield found


@dataclass(frozen=True, slots=True)
class RunningBroker:
    name: str
    address: Address

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[protocol.Session]:
        info = info_of(self.name, "0", role)
        if role is Role.CONTROLLER:
            given = self.address
            connections = Connections(given.host, given.port, given.security, given.timeout_s)
            others = info_of(self.name, "0", Role.COORDINATOR, controls=False)
            with feature_target.running_session(info, others, connections, given.allow_changes) as controller:
                yield controller
            return
        release = edition_of(edition).release
        with session(info, self.address, rules_of(edition), 1, None, release=release) as found:
            yield found


def info_of(
    name: str, release: str, role: Role, controls: bool = True, controller: protocol.Claims = feature_target.CLAIMS
) -> protocol.TargetInfo:
    """What a broker is in a role. ``controls``: whether it may be a controller of features, which has own claims.

    Errors: ``NotPlayed`` for other roles.
    """
    roles = CLAIMS.roles | (feature_target.CLAIMS.roles if controls else frozenset())
    claims = controller if role is Role.CONTROLLER and controls else CLAIMS
    info = protocol.TargetInfo(name, release, "", "", roles, claims)
    if role not in roles:
        raise protocol.NotPlayed(info, role)
    return info
