"""Plays scripts with a consumer that runs in this process, step by step."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final, final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.live.client.defective_consumers import defective
from kipcheck.conformance.live.client.launch import Program, placeholders
from kipcheck.conformance.live.client.play import Play, in_json
from kipcheck.conformance.live.client.share_consumer import ShareConsumer
from kipcheck.conformance.live.client.target import served
from kipcheck.conformance.targets.protocol import Broken

EDITION: Final = "apache"
SETTLE_S: Final = 5.0
"""A session timeout and ten pauses of our consumers: one that is not back by then does not return."""


@final
@dataclass(frozen=True, slots=True)
class Consumers:
    """Starts consumers as tasks."""

    made: type[Consumer]
    ends_on_errors: bool = True

    def given(self, settings: Settings) -> Mapping[str, str]:
        return placeholders(settings)

    async def start(self, settings: Settings) -> Program:
        made = (ShareConsumer if settings.protocol == "share" and self.made is Consumer else self.made)(
            settings.bootstrap, settings.group, ",".join(settings.topics), settings.session_ms, settings.instance,
            settings.assignors, settings.protocol, settings.rebalance_ms,
        )  # fmt: skip
        made.commits, made.pause_ms, made.pattern = settings.commit, settings.pause_ms, settings.pattern
        made.max_poll_ms, made.heartbeat_s = settings.max_poll_ms, settings.heartbeat_ms / 2000
        made.offset_reset = settings.offset_reset or made.offset_reset
        return _Running(made)


@final
class _Running:
    def __init__(self, consumer: Consumer) -> None:
        self.output = ""
        self.on_call: Callable[[str], None] = lambda called: None
        self._consumer = consumer
        consumer.call = lambda what, partitions: self.on_call(" ".join((what, *partitions)))
        self.ended: asyncio.Future[int] = asyncio.ensure_future(self._run())

    async def _run(self) -> int:
        try:
            return await self._consumer.run()
        except (RuntimeError, OSError, EOFError) as why:
            self.output = f"{type(why).__name__}: {why}"
            return 1

    def freeze(self) -> None:
        self._consumer.running.clear()

    def thaw(self) -> None:
        self._consumer.running.set()

    def stop(self) -> None:
        self._consumer.stopping.set()

    async def kill(self) -> None:
        self.ended.cancel()
        await asyncio.wait([self.ended])


def consumer(name: str) -> type[Consumer]:
    return defective(name) if name else Consumer


class Played:
    """One script with a consumer in this process, in a thread of its own."""

    def __init__(self, name: str = "") -> None:
        """``name``: of an odd consumer; none: the one that keeps all rules."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._play = self._run(_played(consumer(name)))

    def step(self, step: Step) -> dict[str, Any]:
        """The answer to a step; a client that never joined has died."""
        try:
            answer: dict[str, Any] = self._run(self._play.step(step))
        except Broken as why:
            return {"status": "died", "cause": "crashed", "message": str(why)}
        return in_json(answer)

    def close(self) -> None:
        self._run(self._play.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _played(made: type[Consumer]) -> Play:
    return Play(served(EDITION), Consumers(made), SETTLE_S)
