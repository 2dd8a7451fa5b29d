"""Plays a conversation with a coordinator or leader of a running broker in real time: each request is answered at once,
and time passes in steps of its own."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator.consumer_group_time import Deadlines
from kipcheck.conformance.live.coordinator.settings import LIMITS, LOST, TIME, Setting, noted


@dataclass(slots=True)
class TimedConversation(ABC):
    setting: Setting
    group: str
    connections: Connections
    clients: Any
    """What its clients know, such as ``HeartbeatClients``."""
    waited_s: float = 0.0
    _deadlines: Deadlines = field(init=False)
    _doubt: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """Those that ``leave`` has not removed."""
        return ()

    async def played(self, steps: Sequence[Step], usual: Any) -> tuple[Observation, ...]:
        """What was observed at each step. ``usual``: the settings of a broker that need no mention."""
        found: list[Observation] = []
        for index, step in enumerate(steps):
            if found and isinstance(found[-1], Died):
                found += [LOST] * (len(steps) - index)
                break
            found.append(await self.step(index, step, steps[index + 1 :]))
        return noted(found, self._doubt, self.clients.known.config, usual)

    @abstractmethod
    async def step(self, index: int, step: Step, after: Sequence[Step] = ()) -> Observation:
        """What was observed at one step. ``after``: the steps that follow."""

    async def elapsed(
        self, index: int, step: Step, after: Sequence[Step], request_s: float, members: bool = True
    ) -> Observation:
        """Waits as a step says. ``request_s``: the time of a request; ``members``: whether deadlines are of members."""
        ms: int = step.body.get("ms", 0)
        if self.setting.is_too_long(ms, self._deadlines.now_ms):
            return Unsupported(LIMITS[TIME], TIME)
        began = now()
        requests = len([*takewhile(lambda later: later.verb != step.verb, after)])
        until, doubt = self._deadlines.wait(ms, began, requests * request_s)
        await asyncio.sleep(until - began)
        self._doubt = self._doubt or doubt
        self.waited_s += now() - began
        self.clients.learn(index, step, Replied(()))
        self._deadlines.passed(ms, self.clients.known.clients if members else {})
        return Replied(())
