"""A clock that events advance, with the armed timers of a machine."""

from dataclasses import dataclass
from typing import Generic, TypeVar, final

Timer = TypeVar("Timer")


@final
@dataclass(frozen=True, slots=True)
class Clock(Generic[Timer]):
    now_ms: int = 0
    timers: tuple[tuple[int, Timer], ...] = ()
    """Deadlines and timers, sorted by deadline; of equal deadlines, the timer armed first comes first."""

    def armed(self, timer: Timer, ms: int) -> "Clock[Timer]":
        timers = [*self.disarmed(timer).timers, (self.now_ms + ms, timer)]
        return Clock(self.now_ms, tuple(sorted(timers, key=_deadline)))

    def disarmed(self, timer: Timer) -> "Clock[Timer]":
        return Clock(self.now_ms, tuple([each for each in self.timers if each[1] != timer]))

    def due(self, until: int) -> "tuple[Timer, Clock[Timer]] | None":
        """The timer that expires next, and the clock at its deadline; None if no timer expires until then."""
        if not self.timers or self.timers[0][0] > until:
            return None
        at_ms, timer = self.timers[0]
        return timer, Clock(at_ms, self.timers[1:])


def _deadline(armed: tuple[int, object]) -> int:
    return armed[0]
