"""Reads the script of a test, and plays it step by step while clients come and go."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from kipcheck.conformance.live.client.directions import Directions
from kipcheck.conformance.live.client.scripted import HEARTBEAT_MS, SIGNS
from kipcheck.conformance.live.testing.shared_broker import SharedBroker
from kipcheck.conformance.protocols.client import log_ops, ops
from kipcheck.conformance.protocols.client.model import UNSENT
from kipcheck.conformance.protocols.client.playable import errors_of, unplayable_beside_a_test

LOOKS_S: Final = 0.005
"""The time between two looks at the group that a step waits for."""
AGAIN: Final = "waits until the client is a stable member again"
OF_MEMBERS: Final = (ops.Rebalance, ops.Move, ops.Down, ops.Disband, ops.Fence)
"""The steps that wait for a client that is a member, before and after."""


class Unplayable(ValueError):
    """A script that cannot be played: the step, and what to write in its place."""


@final
@dataclass(frozen=True, slots=True)
class Direction:
    """A step, as it was written."""

    text: str
    event: ops.Event


def read(text: str) -> tuple[Direction, ...]:
    """The steps of a script in the shorthand of ``kipcheck run --script``. Errors: ``Unplayable``."""
    texts = [" ".join(each.split()) for each in text.split(";") if each.strip()]
    if not texts:
        raise Unplayable("the script has no steps: write them with semicolons between them, such as: rebalance; move")
    return tuple(_read(at, each) for at, each in enumerate(texts, 1))


def _read(at: int, text: str) -> Direction:
    try:
        (step,) = ops.OPERATIONS.parse_shorthand(text)
    except (ValueError, LookupError, TypeError):
        way = errors_of(text) or ops.OPERATIONS.usage_of(text)
        raise Unplayable(f"step {at}, {text!r}, cannot be read: {way}") from None
    event: ops.Event = ops.OPERATIONS.event_of(step)
    if why := unplayable_beside_a_test(event):
        raise Unplayable(f"step {at}, {text!r}, cannot be played: {why}")
    return Direction(text, event)


class Script:
    """The steps that are played one after the other, each when the one before it is over."""

    def __init__(self, broker: SharedBroker, directions: Directions, note: Callable[[str], object]) -> None:
        """``note`` gets a line for each step."""
        self.broker = broker
        self.directions = directions
        self.note = note
        self.failure = ""
        """Why a step could not be played, after which none was."""
        self.waits = ""
        """What the step that is played waits for."""
        self._left: list[Direction] = []
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()

    @property
    def state(self) -> str:
        """Which step waits for what, and which follow; empty: the script is over."""
        if not self._left:
            return ""
        now, *later = (repr(each.text) for each in self._left)
        follow = f"; then {', '.join(later)}" if later else ""
        return f"{now} {self.waits}{follow}"

    async def play(self, steps: tuple[Direction, ...]) -> None:
        """Plays these steps after those before them. Returns as soon as one of all waits, or all are over. Errors:
        ``Unplayable``."""
        self.check()
        self._left += steps
        if self._task is None or self._task.done():
            self._begun = asyncio.Event()
            self._task = asyncio.create_task(self._play())
        begun = asyncio.create_task(self._begun.wait())
        await asyncio.wait([begun, self._task], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        self.check()

    async def end(self, within_s: float) -> bool:
        """Whether all steps are over, at the latest after that time. Errors: ``Unplayable``."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=within_s)
        self.check()
        return not self._left

    def check(self) -> None:
        """Errors: ``Unplayable``, for a step that could not be played."""
        if self.failure:
            raise Unplayable(self.failure)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _play(self) -> None:
        while self._left:
            step = self._left[0]
            try:
                await self._take(step)
            except LookupError as why:
                self._left.clear()
                self.failure = f"{step.text!r} cannot be played: {why.args[0]}"
                return
            self.note(f"script: {step.text}: over")
            self._left.pop(0)

    async def _take(self, step: Direction) -> None:
        event, broker = step.event, self.broker
        if isinstance(event, OF_MEMBERS):
            await self._until(lambda: broker.has_settled, "waits for a client that is a stable member of its group")
        self.note(f"script: {step.text}")
        match event:
            case ops.Older(release) | ops.Newer(release):
                self.directions.release = release
                self.directions.become(HEARTBEAT_MS)
            case ops.Offer(kind, low, high):
                self.directions.offered[kind] = range(low, high + 1)
                self.directions.become(HEARTBEAT_MS)
            case ops.Pass(ms):
                await self._wait(ms / 1000)
            case ops.Down():
                if lacked := self.directions.lacks(event):
                    raise LookupError(lacked)
                await self.directions.go_down(event, HEARTBEAT_MS, self._wait)
            case ops.Rebalance(at="now") | log_ops.Create() | log_ops.Delete():
                self.directions.take(event)
            case _ if isinstance(event, ops.TIMED):
                await self._change_answers(event)
            case _:
                self.directions.take(event)
        if isinstance(event, OF_MEMBERS) and not isinstance(event, ops.Fence):
            await self._until(lambda: broker.has_settled, AGAIN)

    async def _change_answers(self, event: ops.Timed) -> None:
        """A client that is a member is provoked to send such a request; one that is not sends it by itself."""
        broker, kind = self.broker, event.kind
        self.directions.change_answers(event)
        if event.at == "next":
            return
        is_of_a_member = kind in SIGNS or broker.members > 0
        if broker.members:
            if kind in UNSENT[broker.protocol]:
                raise LookupError(f"a member of a {broker.protocol} group sends no {kind}")
            broker.provoke(kind)
        if isinstance(event, ops.Refuse):
            return await self._until(lambda: broker.has_refused, f"waits for a {kind} that it refuses")
        await self._until(lambda: not broker.waiting([kind]), f"waits for a {kind} whose answer it changes")
        if is_of_a_member and kind != "LeaveGroup":
            await self._until(lambda: broker.has_settled, AGAIN)

    async def _wait(self, seconds: float) -> None:
        self.waits = f"lasts {seconds:g} s"
        self._begun.set()
        await asyncio.sleep(seconds)

    async def _until(self, is_over: Callable[[], bool], waits: str) -> None:
        self.waits = waits
        while not is_over():
            self._begun.set()
            await asyncio.sleep(LOOKS_S)
