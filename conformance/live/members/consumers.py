"""``consumers:NEW,OLD``: released consumers as the members of a group that an operator upgrades, on a real broker.

Each is a client with a release, as ``java@3.9.2``: kafka-clients, kafka-python or confluent-kafka. Members of the kind
``old`` run OLD with an eager assignor, others NEW with the assignors of their kind. The broker is of the release of the
edition. A member is a process, and each script has a group of its own.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, assert_never, final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import KIP_429, edition as edition_of
from kipcheck.conformance.live.client import built_in, compiled
from kipcheck.conformance.live.members import group as groups
from kipcheck.conformance.live.members.consumer_history import ConsumerHistory
from kipcheck.conformance.live.members.history import Observed
from kipcheck.conformance.live.members.session import Script, ScriptSession
from kipcheck.conformance.protocols.cluster.kinds import KINDS, OLD, TOPICS
from kipcheck.conformance.protocols.upgrade.model.upgrade import COOPERATES_SINCE, has_upgrade
from kipcheck.conformance.protocols.upgrade.ops import (
    OPERATIONS,
    Crash,
    Event,
    Expire,
    Lose,
    Move,
    OldBrokers,
    Restart,
    Roll,
    RollStreams,
    Settle,
    Stop,
)
from kipcheck.conformance.targets.protocol import Claims, NotPlayed, Session, Target, TargetInfo, Unavailable
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.toolchains import environments, kafka_broker

TURNS, TIMERS, CONNECTIONS, DRAFT = "turns", "timers", "connections", "draft"
LIMITS: Final = {
    TURNS: "processes run side by side: none can be made to wait for another",
    TIMERS: "the session of a live consumer cannot be made to expire",
    CONNECTIONS: "single connections of a consumer are not broken",
    DRAFT: "the draft's brokers and its Streams groups were never released",
}
CLAIMS: Final = Claims(machines=OPERATIONS.machines, limits=LIMITS)
SIZES: Final = dict(TOPICS)
PROGRAMS: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {
    "java": lambda release: compiled.java(release, built_in.program("Member.java")),
    "kafka-python": lambda release: _python("kafka-python", release),
    "confluent-kafka": lambda release: _python("confluent-kafka", release),
}


def _python(distribution: str, release: str) -> tuple[str, ...]:
    program = built_in.program(f"member_{distribution.replace('-', '_')}.py")
    return (str(environments.interpreter(distribution, release)), "-s", "-P", str(program))


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """Errors: LookupError with the valid forms."""
    given = rest.split(",")
    if len(given) != 2 or not all(each.partition("@")[0] in PROGRAMS and each.partition("@")[2] for each in given):
        raise LookupError(
            f"invalid target {name!r}: use a form like consumers:java@3.9.2,java@2.3.1, the new and the old client, "
            "each one of " + ", ".join(f"{each}@RELEASE" for each in PROGRAMS)
        )
    return Consumers(name, given[0], given[1])


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any two releases are a target."""
    return iter(())


@final
@dataclass(frozen=True, slots=True)
class Consumers:
    name: str
    new: str
    old: str

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        """Errors: ``NotPlayed``; ``Unavailable`` without a JDK, jars or packages, or in a draft."""
        info = TargetInfo(self.name, self.new.partition("@")[2], "", "", frozenset({Role.OPERATOR_TOOL}), CLAIMS)
        if role is not Role.OPERATOR_TOOL:
            raise NotPlayed(info, role)
        here = edition_of(edition)
        if here == KIP_429 or not has_upgrade(here):
            raise Unavailable(f"{self.name}: brokers are released: use --edition apache@{COOPERATES_SINCE} or later")
        commands = {each: _command(each) for each in {self.new, self.old}}
        with kafka_broker.running(here.release, groups.SETTINGS) as broker, asyncio.Runner() as runner:
            script = lambda group: ConsumersScript(group, commands[self.new], commands[self.old])
            yield ScriptSession(info, broker, SIZES, script, runner)


def _command(client: str) -> tuple[str, ...]:
    name, _, release = client.partition("@")
    return PROGRAMS[name](release)


@final
@dataclass(slots=True)
class ConsumersScript(Script):
    new: tuple[str, ...]
    old: tuple[str, ...]
    kinds: dict[str, Roll] = field(default_factory=dict)
    """How each member was started last."""
    operations = OPERATIONS
    limits = LIMITS

    def limit_of(self, event: Event) -> str | None:
        match event:
            case Move():
                return TURNS
            case Expire():
                return TIMERS
            case Lose():
                return CONNECTIONS
            case OldBrokers() | RollStreams():
                return DRAFT
            case Roll() | Stop() | Crash() | Restart() | Settle():
                return None
            case _:
                assert_never(event)

    def history(self, observed: Sequence[Observed]) -> ConsumerHistory:
        return ConsumerHistory(observed)

    async def take(self, event: Event) -> None:
        match event:
            case Roll(member):
                await self.group.stop(member)
                self.kinds[member] = event
                await self._start(event)
            case Stop(member):
                await self.group.stop(member)
            case Restart(member):
                if not self.group.runs(member) and member in self.kinds:
                    await self._start(self.kinds[member])

    async def _start(self, roll: Roll) -> None:
        command = self.old if roll.kind == OLD else self.new
        settings = built_in.Settings(
            self.group.cluster.bootstrap, self.group.id, roll.topics, assignors=",".join(KINDS[roll.kind].assignors),
            session_ms=groups.SESSION_MS, heartbeat_ms=groups.HEARTBEAT_MS, rebalance_ms=groups.REBALANCE_MS,
        )  # fmt: skip
        environment = settings.environment
        await self.group.start(
            roll.member, lambda name: (command, {**environment, f"{built_in.PREFIX}CLIENT_ID": name})
        )
