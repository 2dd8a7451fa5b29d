"""``consumers:NEW,OLD``: released consumers as the members of a group that an operator upgrades, on a real broker.

Each is a client with a release, as ``java@3.9.2``: kafka-clients, kafka-python or confluent-kafka. Members of the kind
``old`` run OLD with an eager assignor, others NEW with the assignors of their kind. The broker is of the release of the
edition. A member is a process, and each script has a group of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import KIP_429, edition as edition_of
from kipcheck.conformance.live.client import built_in, compiled
from kipcheck.conformance.live.members import session
from kipcheck.conformance.live.members.consumer_history import ConsumerHistory
from kipcheck.conformance.live.members.history import Observed
from kipcheck.conformance.protocols.cluster.kinds import KINDS, OLD, TOPICS
from kipcheck.conformance.protocols.upgrade import ops
from kipcheck.conformance.protocols.upgrade.model.upgrade import COOPERATES_SINCE, has_upgrade
from kipcheck.conformance.targets.protocol import Claims, Session, Target, Unavailable
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.toolchains import environments

DRAFT: Final = "draft"
LIMITS: Final = {**session.LIMITS, DRAFT: "the draft's brokers and its Streams groups were never released"}
CLAIMS: Final = Claims(machines=ops.OPERATIONS.machines, limits=LIMITS)
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
    if len(given) != 2 or not all(
        client.partition("@")[0] in PROGRAMS and client.partition("@")[2] for client in given
    ):
        raise LookupError(
            f"invalid target {name!r}: use a form like consumers:java@3.9.2,java@2.3.1, the new and the old client, "
            "each one of " + ", ".join(f"{name}@RELEASE" for name in PROGRAMS)
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
        info = session.info_of(self.name, self.new.partition("@")[2], CLAIMS, role)
        here = edition_of(edition)
        if here == KIP_429 or not has_upgrade(here):
            raise Unavailable(f"{self.name}: brokers are released: use --edition apache@{COOPERATES_SINCE} or later")
        commands = {client: _command(client) for client in {self.new, self.old}}
        script = lambda group: ConsumersScript(group, commands[self.new], commands[self.old])
        with session.opened(info, here.release, SIZES, script) as opened:
            yield opened


def _command(client: str) -> tuple[str, ...]:
    name, _, release = client.partition("@")
    return PROGRAMS[name](release)


@final
@dataclass(slots=True)
class ConsumersScript(session.Script):
    new: tuple[str, ...]
    old: tuple[str, ...]
    kinds: dict[str, ops.Roll] = field(default_factory=dict)
    """How each member was started last."""
    operations = ops.OPERATIONS
    limits = LIMITS

    def limit_of(self, event: ops.Event) -> str | None:
        return DRAFT if isinstance(event, ops.OldBrokers | ops.RollStreams) else session.Script.limit_of(self, event)

    def history(self, observed: Sequence[Observed]) -> ConsumerHistory:
        return ConsumerHistory(observed)

    async def take(self, event: ops.Event) -> None:
        match event:
            case ops.Roll(member):
                await self.group.stop(member)
                self.kinds[member] = event
                await self._start(event)
            case ops.Stop(member):
                await self.group.stop(member)
            case ops.Restart(member):
                if not self.group.runs(member) and member in self.kinds:
                    await self._start(self.kinds[member])

    async def _start(self, roll: ops.Roll) -> None:
        command = self.old if roll.kind == OLD else self.new
        environment = self.settings(roll.topics, ",".join(KINDS[roll.kind].assignors))
        await self.group.start(
            roll.member, lambda name: (command, {**environment, f"{built_in.PREFIX}CLIENT_ID": name})
        )
