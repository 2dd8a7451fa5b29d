"""A running broker that ended amid conversations: which of them ended it.

One process serves all conversations of a batch, so its end takes the answer of each that has a request under way. If
the user's own supervisor starts the broker again, each of them is played alone, and those that end it again are to
blame. Without a supervisor nothing can be found out, and what was observed stays.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Lost, Observation
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.coordinator.retries import lost_its_answer

RESTARTS_S: Final = 5.0
"""The time that a supervisor has to start a running broker again."""
ASKS_S: Final = 0.3
ONE_BY_ONE_S: Final = 300.0
"""The time after which no further conversation is played alone."""
OF_ANOTHER: Final = "the broker ended, perhaps by another conversation"


async def play_one_by_one(
    cases: Sequence[Case],
    found: list[tuple[Observation, ...]],
    play: Callable[[Case], Awaitable[tuple[Observation, ...]]],
    answers: Callable[[], Awaitable[bool]],
) -> None:
    """Replaces in ``found`` what conversations observed that lost an answer. ``answers``: whether the broker does."""
    began = now()
    for at, case in enumerate(cases):
        if not lost_its_answer(found[at]):
            continue
        if now() - began > ONE_BY_ONE_S:
            found[at] = (Lost(OF_ANOTHER),) * len(case.steps)
        elif await _is_back(answers):
            found[at] = await play(case)
        else:
            return


async def _is_back(answers: Callable[[], Awaitable[bool]]) -> bool:
    """Whether the broker answers within the time for a start."""
    until_s = now() + RESTARTS_S
    while not await answers():
        if now() > until_s:
            return False
        await asyncio.sleep(ASKS_S)
    return True
