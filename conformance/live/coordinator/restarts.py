"""Restarts a broker that kipcheck started, amid conversations: its coordinators read their logs, which the broker has
compacted in part.

A restart takes seconds, so one serves all conversations of a batch that reach their ``reload``, and they begin so that
they reach it at about the same time. Others are not under way meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.coordinator import concurrency
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.live.coordinator.waits import STARTED_MOST_MS, waits_ms
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER
from kipcheck.conformance.protocols.reconciled.log_laws import RELOAD
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS as SHARES
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS as STREAMS
from kipcheck.conformance.targets.protocol import Broken, Unavailable

MOST: Final = 12
"""Restarts in a session, with those of searches for least cases."""
COMPACTED: Final[Mapping[str, object]] = {
    "log.roll.ms": 1_000,
    "log.cleaner.backoff.ms": 200,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.cleaner.delete.retention.ms": 0,
}
"""With these settings a broker compacts all but the last second of its logs, and drops tombstones."""
TOGETHER: Final = 100
"""Conversations of one restart: those that reach it first wait for the others, within the sessions of their members."""
CLEANS_S: Final = 1.5
"""How long it takes to do so, about."""


@dataclass(frozen=True, slots=True)
class Restarted:
    gone_s: float
    """From when on there was no coordinator."""
    read: Span
    """When the next one read the log."""


Reload: TypeAlias = Callable[[], Awaitable[Restarted]]
"""Waits for the restart."""
Play: TypeAlias = Callable[[Case, Reload], Awaitable[tuple[Observation, ...]]]


def reloads(case: Case) -> bool:
    """Whether a conversation has the log read, and no more than once: further times would be further restarts.

    And without regular expressions, which may be resolved again while the broker restarts, and topics that come later,
    with which time passes as slowly as stated.
    """
    verbs = [step.verb for step in case.steps if step.verb.endswith(RELOAD)]
    resolves = any(step.body.get("regex") or step.verb.endswith("-create") for step in case.steps)
    return len(verbs) == 1 and not resolves and any(verbs[0] in each.by_verb for each in (CONSUMER, SHARES, STREAMS))


@dataclass(slots=True)
class Restarts:
    """``restart``: ends the broker, starts it, and waits until it coordinates groups; returns when it was started.
    ``times``: how much faster than stated the time of the broker passes."""

    restart: Callable[[], Awaitable[float]]
    times: int
    made: int = 0
    took_s: float = 0.0
    _others: int = 0
    _free: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def cost(self) -> str:
        return f"; {self.made} restarts took {self.took_s:.0f} s" if self.made else ""

    def chosen(self, cases: Sequence[Case]) -> list[int]:
        """The numbers of the cases that can be played with a restart."""
        room = max(MOST - self.made, 0) * TOGETHER
        return [at for at, case in enumerate(cases) if reloads(case)][:room]

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Conversations without a restart."""
        async with self._free:
            self._others += 1
        try:
            yield
        finally:
            async with self._free:
                self._others -= 1
                self._free.notify_all()

    async def play(self, cases: Sequence[Case], play: Play) -> list[tuple[Observation, ...]]:
        """Errors: those of ``restart``."""
        async with self._free:
            await self._free.wait_for(lambda: not self._others)
            parts = [cases[at : at + TOGETHER] for at in range(0, len(cases), TOGETHER)]
            return [found for part in parts for found in await self._play_part(part, play)]

    async def _play_part(self, cases: Sequence[Case], play: Play) -> list[tuple[Observation, ...]]:
        self.made += 1
        meeting = Meeting(len(cases), self._restarted)
        before = [self._before_s(case) for case in cases]

        async def one(number: int) -> tuple[Observation, ...]:
            await asyncio.sleep(max(before) - before[number] + number * concurrency.BEGINS_S)
            return await meeting.joined(cases[number], play)

        return await concurrency.gathered([one(number) for number in range(len(cases))])

    def _before_s(self, case: Case) -> float:
        at = next(at for at, step in enumerate(case.steps) if step.verb.endswith(RELOAD))
        return waits_ms(replace(case, steps=case.steps[:at]), STARTED_MOST_MS) / 1000 / self.times

    async def _restarted(self) -> Restarted:
        await asyncio.sleep(CLEANS_S)
        began = now()
        started = await self.restart()
        ended = now()
        self.took_s += ended - began
        return Restarted(began, Span(started, ended))


class Meeting:
    """Restarts the broker once each of so many conversations waits for it, or has ended."""

    def __init__(self, count: int, restarted: Callable[[], Awaitable[Restarted]]) -> None:
        self._missing = count
        self._restarted = restarted
        self._done: asyncio.Future[Restarted] = asyncio.get_running_loop().create_future()
        self._waiting = 0

    async def joined(self, case: Case, play: Play) -> tuple[Observation, ...]:
        """Plays one of them."""
        has_come = False

        async def reload() -> Restarted:
            nonlocal has_come
            has_come = True
            self._waiting += 1
            await self._counted()
            return await self._done

        try:
            return await play(case, reload)
        finally:
            if not has_come:
                await self._counted()

    async def _counted(self) -> None:
        self._missing -= 1
        if self._missing or not self._waiting:
            return
        try:
            self._done.set_result(await self._restarted())
        except (Broken, Unavailable) as why:
            self._done.set_exception(why)
