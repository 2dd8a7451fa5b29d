"""Waits in conversations with the coordinator of a classic group: to a deadline, or not quite."""

from random import Random

from kipcheck.conformance.core.values.case import Step, step
from kipcheck.conformance.protocols.group.model.answers import DEFAULT
from kipcheck.conformance.protocols.group.model.messages import Phase
from kipcheck.conformance.protocols.group.ops import TIME
from kipcheck.conformance.protocols.group.strategies.events import LONGEST_MS
from kipcheck.conformance.protocols.group.strategies.participants import QUIET, GroupView


def stay_silent(left_ms: int, random: Random) -> Step:
    """For more than half of what is left of a session, which does not end."""
    return step(TIME, "elapse", ms=random.choice((left_ms - 1, left_ms * 2 // 3, left_ms * 3 // 4)))


def wait(scene: GroupView, random: Random) -> Step:
    """To the next deadline, just before it, past all deadlines, or a little."""
    clock = scene.served.clock
    first, last = (due - clock.now_ms for due in (clock.timers[0][0], clock.timers[-1][0]))
    ms = random.choice((first, first, first, first - 1, first // 2, last, random.randint(1, 5_000)))
    if scene.participants.profile is QUIET and scene.group.phase is Phase.STABLE and random.random() < 0.8:
        ms = random.choice((first // 2, first * 2 // 3, first - 1))  # no session has expired
    return step(TIME, "elapse", ms=min(max(ms, 1), LONGEST_MS))


def expire(scene: GroupView, random: Random) -> Step:
    """To the next deadline."""
    clock = scene.served.clock
    return step(TIME, "elapse", ms=min(max(clock.timers[0][0] - clock.now_ms, 1), LONGEST_MS))


def nearly_expire(scene: GroupView, random: Random) -> Step:
    """To a moment shortly before the next deadline."""
    clock = scene.served.clock
    ms = clock.timers[0][0] - clock.now_ms - random.randint(1, DEFAULT.initial_delay_ms - 1)
    return step(TIME, "elapse", ms=min(max(ms, 1), LONGEST_MS))


def outwait(scene: GroupView, random: Random) -> Step:
    """For the rebalance timeout of the members."""
    return step(TIME, "elapse", ms=scene.participants.rebalance_ms)
