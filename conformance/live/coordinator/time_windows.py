"""Moments in real time, as precisely as they are known."""

from dataclasses import dataclass
from typing import Final

NEAREST_S: Final = 0.03
"""Two timers that are nearer than that cannot be distinguished."""


@dataclass(frozen=True, slots=True)
class Span:
    """A moment in real time that is known as well as this, in seconds of one clock."""

    first: float
    last: float

    def plus(self, seconds: float) -> "Span":
        return Span(self.first + seconds, self.last + seconds)

    def with_(self, other: "Span") -> "Span":
        """The shortest span that has both."""
        return Span(min(self.first, other.first), max(self.last, other.last))
