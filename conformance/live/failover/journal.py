"""What members and the operator of a cluster observe in one conversation, with the time of each event."""

import time
from dataclasses import dataclass, field

from kipcheck.conformance.protocols.failover import ops


@dataclass(slots=True)
class Journal:
    begun_s: float = field(default_factory=time.monotonic)
    events: list[ops.Action] = field(default_factory=list)
    """Of the step that is played."""
    _offset: int = 0

    def ms(self) -> int:
        """Since the conversation began."""
        return round((time.monotonic() - self.begun_s) * 1000)

    def offset(self) -> int:
        """That of the next commit: larger than those before."""
        self._offset += 1
        return self._offset

    def taken(self) -> list[ops.Action]:
        """What was observed since this was asked last."""
        found, self.events = self.events, []
        return found
