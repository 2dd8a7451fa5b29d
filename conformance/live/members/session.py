"""Plays scripts of an operator with processes on a broker, several side by side, each in a group of its own."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol, final

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation, Unsupported
from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.live.connections.connections import Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.members import group as groups
from kipcheck.conformance.live.members.group import Cluster, Group, behind_proxy
from kipcheck.conformance.live.members.history import GroupHistory, Observed, Settled, StepBegun
from kipcheck.conformance.protocols.upgrade.ops import Crash, Expire, Lose, Move, Settle
from kipcheck.conformance.targets.protocol import Broken, Claims, NotPlayed, Session, TargetInfo, observed
from kipcheck.conformance.targets.toolchains import kafka_broker

AT_ONCE: Final = 3
"""Scripts that are played side by side: each waits most of the time."""
POLL_S: Final = 0.1
QUIET_S: Final = 1.0
"""A group is at rest if it is complete, and no member joined, was assigned or gave up anything for so long."""
INCOMPLETE_S: Final = 15.0
"""So long a stable group has time for the rest of its partitions: a cooperative one needs another generation."""
RESTS_S: Final = 150.0
"""The time limit for a group to come to rest: sessions of killed members expire, and machines are busy."""


TURNS, TIMERS, CONNECTIONS = "turns", "timers", "connections"
LIMITS: Final = {
    TURNS: "processes run side by side: none can be made to wait for another",
    TIMERS: "the session of a live member cannot be made to expire",
    CONNECTIONS: "single connections of a member are not broken",
}
UNPLAYED: Final[Mapping[type[Any], str]] = {Move: TURNS, Expire: TIMERS, Lose: CONNECTIONS}


class Look(Protocol):
    """A group at a moment."""

    def is_stable(self) -> bool: ...
    def is_complete(self) -> bool:
        """Whether all partitions have an owner."""
        ...

    def quiet_since_ns(self) -> int: ...


async def at_rest(look: Callable[[], Look], before: Sequence[object]) -> Settled:
    """Waits until a group is at rest. One that is stable and stays incomplete is at rest too, which is a violation.

    ``before``: what was noted so far; after a group that did not come to rest there is no further wait.
    """
    if any(isinstance(mark, Settled) and mark.turns is not None for mark in before):
        return Settled(time.monotonic_ns(), 0)
    until, turns = time.monotonic() + RESTS_S, 0
    while time.monotonic() < until:
        await asyncio.sleep(POLL_S)
        turns += 1
        found = look()
        if found.is_stable():
            quiet_s = (time.monotonic_ns() - found.quiet_since_ns()) / 1e9
            if quiet_s >= (QUIET_S if found.is_complete() else INCOMPLETE_S):
                return Settled(time.monotonic_ns(), None)
    return Settled(time.monotonic_ns(), turns)


@dataclass(slots=True)
class Script(ABC):
    """A script of an operator, played with the processes of a group."""

    group: Group
    marks: list[StepBegun | Settled] = field(default_factory=list, kw_only=True)
    operations: ClassVar[Operations[Any, Any]]
    limits: ClassVar[Mapping[str, str]]

    def limit_of(self, event: Any) -> str | None:
        """The limit that keeps a step from being played."""
        return UNPLAYED.get(type(event))

    def limit_of_script(self, check: str, events: list[Any]) -> str | None:
        """The limit that keeps a script of a check from being played, whose steps can be."""
        return None

    @abstractmethod
    def history(self, observed: Sequence[Observed]) -> GroupHistory[Any]: ...

    @abstractmethod
    async def take(self, event: Any) -> None:
        """A step that starts or stops a process."""

    def settings(self, topics: tuple[str, ...], assignors: str = "") -> Mapping[str, str]:
        """The environment of a program that is a member."""
        return built_in.Settings(
            self.group.cluster.bootstrap, self.group.id, topics, assignors=assignors, session_ms=groups.SESSION_MS,
            heartbeat_ms=groups.HEARTBEAT_MS, rebalance_ms=groups.REBALANCE_MS,
        ).environment  # fmt: skip

    async def played(self, case: Case) -> tuple[Observation, ...]:
        """What was observed during each step. A script with a step that processes cannot take is not played."""
        events = [self.operations.event_of(step) for step in case.steps]
        if limit := next(filter(None, map(self.limit_of, events)), "") or self.limit_of_script(case.check, events):
            return (Unsupported(self.limits[limit], limit),) * len(events)
        for index, event in enumerate(events):
            self.marks.append(StepBegun(time.monotonic_ns(), index))
            match event:
                case Crash(member):
                    await self.group.kill(member)
                case Settle():
                    look = lambda: self.history([*self.group.observed, *self.marks])
                    self.marks.append(await at_rest(look, self.marks))
                case _:
                    await self.take(event)
        end_ns = time.monotonic_ns()
        await self.group.close()
        seen = [moment for moment in (*self.group.observed, *self.marks) if moment.at_ns <= end_ns]
        found = self.history(seen).events
        answers = ([event for step, event in found if step == index] for index in range(len(events)))
        return tuple(observed(self.operations.answer_of(answer)) for answer in answers)


def info_of(name: str, release: str, claims: Claims, role: Role) -> TargetInfo:
    """Of a target that plays scripts of operators. Errors: ``NotPlayed``."""
    info = TargetInfo(name, release, "", "", frozenset({Role.OPERATOR_TOOL}), claims)
    if role is not Role.OPERATOR_TOOL:
        raise NotPlayed(info, role)
    return info


@contextmanager
def opened(
    info: TargetInfo, release: str, topics: Mapping[str, int], script: Callable[[Group], Script],
    settings: Mapping[str, str] = groups.SETTINGS,
) -> Iterator[Session]:  # fmt: skip
    """On a broker of a release with these topics, and their numbers of partitions."""
    with kafka_broker.running(release, settings) as broker, asyncio.Runner() as runner:
        yield ScriptSession(info, lambda: behind_proxy(broker, topics), script, runner)


@final
@dataclass(slots=True)
class ScriptSession:
    """``cluster``: a broker with its topics, for one run. Each script gets a group of its own."""

    info: TargetInfo
    cluster: Callable[[], AbstractAsyncContextManager[Cluster]]
    script: Callable[[Group], Script]
    runner: asyncio.Runner
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """Errors: ``Broken`` if the broker does not answer any more."""
        try:
            return self.runner.run(self._run(cases))
        except (Closed, Garbled) as why:
            raise Broken(f"the broker of {self.info.name}: {why}") from None

    async def _run(self, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(case: Case, cluster: Cluster) -> tuple[Observation, ...]:
            async with slots:
                group = Group(cluster)
                try:
                    return await self.script(group).played(case)
                finally:
                    await group.close()

        async with self.cluster() as cluster:
            return [*await asyncio.gather(*(one(case, cluster) for case in cases))]
