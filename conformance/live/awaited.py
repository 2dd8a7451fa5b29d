"""Waits for what a cluster comes to by itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kipcheck.conformance.live.clock import now
from kipcheck.conformance.targets.protocol import Broken

POLLS_S: Final = 0.2
T = TypeVar("T")


async def awaited(ask: Callable[[], Awaitable[T | None]], why: str, within_s: float) -> T:
    """The first answer that is not None. Errors: ``Broken`` if none comes in time."""
    until = now() + within_s
    while (found := await ask()) is None:
        if now() > until:
            raise Broken(f"{why} after {within_s:.0f} s")
        await asyncio.sleep(POLLS_S)
    return found
