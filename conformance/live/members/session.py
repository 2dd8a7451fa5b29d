"""Plays scripts of an operator with processes on a broker, several side by side, each in a group of its own."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Observation, Unsupported
from kipcheck.conformance.live.connections.connections import Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.members.consumer_history import Settled, StepBegun
from kipcheck.conformance.live.members.group import Cluster, Group, behind_proxy
from kipcheck.conformance.protocols.upgrade.ops import Crash, Settle
from kipcheck.conformance.targets.protocol import Broken, TargetInfo, observed
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
Played = Callable[[Group, Case], Awaitable[tuple[Observation, ...]]]


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
    if any(isinstance(each, Settled) and each.turns is not None for each in before):
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


class GroupHistory(Look, Protocol):
    """What was observed of a group, in the order of time."""

    @property
    def found(self) -> Sequence[Any]:
        """Events, each with the step during which it was observed."""
        ...


class Script(Protocol):
    """A script of an operator that is being played with the processes of a group."""

    group: Group
    marks: list[StepBegun | Settled]

    def limit_of(self, event: Any) -> str | None:
        """The limit that keeps a step from being played."""
        ...

    def history(self, observed: Sequence[Any]) -> GroupHistory: ...

    async def take(self, event: Any) -> None:
        """A step that starts or stops a process."""
        ...


async def play(
    script: Script, case: Case, operations: Operations[Any, Any], limits: Mapping[str, str]
) -> tuple[Observation, ...]:
    """What was observed during each step. A script with a step that processes cannot take is not played."""
    events = [operations.event_of(each) for each in case.steps]
    if limit := next(filter(None, map(script.limit_of, events)), ""):
        return (Unsupported(limits[limit], limit),) * len(events)
    look = lambda: script.history([*script.group.observed, *script.marks])
    for index, event in enumerate(events):
        script.marks.append(StepBegun(time.monotonic_ns(), index))
        match event:
            case Crash(member):
                await script.group.kill(member)
            case Settle():
                script.marks.append(await at_rest(look, script.marks))
            case _:
                await script.take(event)
    end_ns = time.monotonic_ns()
    await script.group.close()
    seen = [each for each in (*script.group.observed, *script.marks) if each.at_ns <= end_ns]
    found = script.history(seen).found
    return tuple(
        observed(operations.answer_of([each.event for each in found if each.step == at])) for at in range(len(events))
    )


@final
@dataclass(slots=True)
class ScriptSession:
    """``topics``: those that the broker has, with their numbers of partitions."""

    info: TargetInfo
    broker: kafka_broker.Broker
    topics: Mapping[str, int]
    played: Played
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
                    return await self.played(group, case)
                finally:
                    await group.close()

        async with behind_proxy(self.broker, self.topics) as cluster:
            return [*await asyncio.gather(*(one(each, cluster) for each in cases))]
