"""A clock that is moved by hand, and the timers of a machine that are armed on it."""

from dataclasses import dataclass
from typing import Generic, TypeVar, final

Timer = TypeVar("Timer")


@final
@dataclass(frozen=True, slots=True)
class Clock(Generic[Timer]):
    now_ms: int = 0
    timers: tuple[tuple[int, Timer], ...] = ()
    """Due when; of two at one time the one that was armed first goes first."""

    def armed(self, timer: Timer, ms: int) -> "Clock[Timer]":
        timers = [*self.disarmed(timer).timers, (self.now_ms + ms, timer)]
        return Clock(self.now_ms, tuple(sorted(timers, key=_deadline)))

    def disarmed(self, timer: Timer) -> "Clock[Timer]":
        return Clock(self.now_ms, tuple([each for each in self.timers if each[1] != timer]))

    def due(self, until: int) -> "tuple[Timer, Clock[Timer]] | None":
        """The timer that runs out next, and the clock at that moment; None: none does by then."""
        if not self.timers or self.timers[0][0] > until:
            return None
        at_ms, timer = self.timers[0]
        return timer, Clock(at_ms, self.timers[1:])


def _deadline(armed: tuple[int, object]) -> int:
    return armed[0]
