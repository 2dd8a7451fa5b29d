"""Plays conversations side by side, and starts the process of a broker that has ended again."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from kipcheck.conformance.core.values.history import Died, Observation, Replied

TOGETHER: Final = 100
"""Conversations side by side: they mostly wait."""
REMOTE_TOGETHER: Final = 300
"""The same with a broker of its own settings, where they wait longer."""
ALONE: Final = 16
"""The same for those that are played again."""
BEGINS_S: Final = 0.02
"""Between the beginnings of two conversations: those that begin together delay each other's first requests."""
PROCESSES: Final = 10
"""Brokers side by side, each for one conversation, after one in which all of them were has ended."""
STARTS: Final = 3
"""The most starts of a process that has ended, until it can be used."""

T = TypeVar("T")


class Restartable(Protocol):
    """The process of a broker."""

    @property
    def pids(self) -> Sequence[int]: ...

    @property
    def why_ended(self) -> str:
        """Empty while it runs."""
        ...

    def start(self) -> tuple[str, int]:
        """Host and port. Errors: ``Unavailable``."""
        ...

    def stop(self) -> None: ...

    def another(self) -> "Restartable":
        """A process of the same broker, not started."""
        ...


class Stage:
    """Where so many conversations are played side by side; they begin one after the other."""

    def __init__(self, most: int) -> None:
        self.room, self.turn = asyncio.Semaphore(most), asyncio.Lock()


async def gathered(tasks: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results, in this order. Errors: that of the first that fails, and the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            begun = [group.create_task(each) for each in tasks]
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    return [each.result() for each in begun]


def with_end(found: Observation, why: str) -> Observation:
    """An observation with how the process of the broker ended."""
    match found:
        case Died():
            return replace(found, evidence=why)
        case Replied(payload) if "old" in dict(payload):
            return Replied(tuple((key, f"closed: {why}" if key in ("old", "new") else value) for key, value in payload))
    return found
