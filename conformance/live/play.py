"""Plays one script: starts a client against a scripted broker, takes each step, and returns what passed meanwhile."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, assert_never

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.edition import Edition
from kipcheck.conformance.live.built_in import Settings
from kipcheck.conformance.live.disturbances import InPieces, LateAnswer, ResetConnection
from kipcheck.conformance.live.front import Front
from kipcheck.conformance.live.launch import Launcher, Program
from kipcheck.conformance.live.observed import Idle, Recorder
from kipcheck.conformance.live.scripted import GROUP, TOPIC, ScriptedBroker
from kipcheck.conformance.live.traffic import Traffic
from kipcheck.conformance.protocols.client.model import is_possible
from kipcheck.conformance.protocols.client.ops import (
    OPERATIONS,
    Answer,
    Assign,
    Event,
    Late,
    Others,
    Pass,
    Pieces,
    Rebalance,
    Reset,
    Stop,
)
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.targets.protocol import Broken

SESSION_MS, HEARTBEAT_MS, REBALANCE_MS = 3000, 300, 6000
CONNECT_S: Final = 30.0
SETTLE_S: Final = 10.0
"""The longest time until a client is a stable member again; its own longest pause is much shorter."""
COMMIT_S: Final = 1.0
"""The longest wait for a commit: a client without a new position sends none."""
STOP_S: Final = 10.0
AFTER_S: Final = 0.15
"""A step lasts so much longer, so that an answer to its last message belongs to it."""


class Play:
    """One script. ``close`` has to be called, and leaves no process and no connection."""

    def __init__(self, edition: Edition, launcher: Launcher, settle_s: float = SETTLE_S) -> None:
        self.settle_s = settle_s
        self.broker = ScriptedBroker(edition)
        self.recorder = Recorder(edition, self.broker.topics)
        self.front = Front(self.broker, edition, traffic=Traffic((self.recorder,)))
        self.launcher = launcher
        self.program: Program | None = None
        self.idle = Idle()
        self._over = False

    async def step(self, step: Step) -> dict[str, Any]:
        """The answer to a step. Errors: ``Broken`` where the program is no consumer; LookupError, TypeError."""
        event: Event = OPERATIONS.event_of(step)
        if not is_possible(event):
            return {"status": "unsupported", "message": "a broker does not answer that"}
        if self._over:
            return {"status": "accepted", "actions": []}
        if not isinstance(event, Others | Assign) and self.program is None:
            await self._start()
        await self._take(event)
        self.recorder.add("idle", self.front.now(), late_ms=self.idle.late_ms())
        return {"status": "accepted", "actions": self.recorder.take()}

    async def close(self) -> None:
        self.idle.close()
        if self.program is not None:
            await self.program.kill()
        await self.front.close()
        self.broker.close()

    async def _take(self, event: Event) -> None:
        match event:
            case Others(number, place):
                self.broker.others = tuple(f"other-{each}" for each in range(number))
                self.broker.leads = place == "lead"
            case Assign(partitions):
                self.broker.given = partitions
            case Rebalance():
                self.broker.rebalance()
                await self._settle()
            case Answer(kind, error):
                self.broker.fail_next(kind, Error[error])
                await self._settle(kind)
            case Late(kind, ms):
                self.broker.disturb(kind, LateAnswer(ms))
                await self._settle(kind)
            case Pieces(kind):
                self.broker.disturb(kind, InPieces())
                await self._settle(kind)
            case Reset(kind):
                self.broker.disturb(kind, ResetConnection())
                await self._settle(kind)
            case Pass(ms):
                await self._wait(ms / 1000)
            case Stop():
                await self._stop()
            case _:
                assert_never(event)

    async def _start(self) -> None:
        host, port = await self.front.listen("127.0.0.1", 0)
        settings = Settings(
            f"{host}:{port}", GROUP, (TOPIC,), session_ms=SESSION_MS, heartbeat_ms=HEARTBEAT_MS,
            rebalance_ms=REBALANCE_MS,
        )  # fmt: skip
        try:
            self.program = await self.launcher.start(settings)
        except OSError as wrong:
            raise Broken(f"the program cannot be started: {wrong}") from None
        ended = self.program.ended
        begun = self.front.now()
        while not (self.broker.has_joined and self.broker.stable):
            if ended.done() or self.front.now() - begun > CONNECT_S:
                raise Broken(self._never_joined())
            await asyncio.wait([ended], timeout=0.02)
        self.recorder.add("joined", self.front.now())
        await self._wait(AFTER_S)
        self.idle.late_ms()  # no law about time looks at the start, in which much is loaded

    def _never_joined(self) -> str:
        assert self.program is not None
        ended = self.program.ended
        how = f"ended with code {ended.result()}" if ended.done() else f"ran for {CONNECT_S:.0f} s"
        seen = [f"{each['api']} v{each['version']}" for each in self.recorder.events if each["what"] == "request"]
        requests = f"its last requests: {', '.join(seen[-8:])}" if seen else "it sent no request"
        return f"the program {how} before it was a member of the group; {requests}\n{self.program.output}".rstrip()

    async def _settle(self, kind: str = "") -> None:
        """Waits until the client is a stable member, and the error was sent."""
        unsent_s = COMMIT_S if kind == "OffsetCommit" else self.settle_s
        begun = self.front.now()
        while (self.broker.pending or not self.broker.stable) and not self._has_ended():
            if self.front.now() - begun > (unsent_s if self.broker.pending else self.settle_s):
                break
            await asyncio.sleep(0.01)
        unsent = self.broker.drop_pending()
        if self._over:
            return  # which is recorded
        if unsent and not self.broker.rebalancing and self.broker.member:
            self.broker.stable = True  # nothing was sent that could disturb the client
        what = "settled" if self.broker.stable else "unsettled"
        now = self.front.now()
        self.recorder.add(what, now, waited_ms=round((now - begun) * 1000), unsent=unsent)
        await self._wait(AFTER_S)

    async def _wait(self, seconds: float) -> None:
        assert self.program is not None
        await asyncio.wait([self.program.ended], timeout=seconds)
        self._has_ended()

    def _has_ended(self) -> bool:
        assert self.program is not None
        if self.program.ended.done() and not self._over:
            self._over = True
            more = {"code": self.program.ended.result(), "stderr": self.program.output[-2000:]}
            self.recorder.add("ended", self.front.now(), **more)
        return self._over

    async def _stop(self) -> None:
        assert self.program is not None
        self.recorder.add("signalled", self.front.now())
        self.program.stop()
        await self._wait(STOP_S)
        if not self._over:
            self.recorder.add("killed", self.front.now(), stderr=self.program.output[-2000:])
        self._over = True
        await self.program.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while self.front.connections:
                    await asyncio.sleep(0.005)


async def play(
    edition: Edition, launcher: Launcher, steps: Sequence[Step], settle_s: float = SETTLE_S
) -> list[dict[str, Any]]:
    """The answers to the steps of a whole script. Errors as ``Play.step``."""
    script = Play(edition, launcher, settle_s)
    try:
        return [await script.step(each) for each in steps]
    finally:
        await script.close()
