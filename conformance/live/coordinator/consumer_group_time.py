"""When the steps of a conversation with a consumer group or a streams group happen in real time, so that members are
removed at the steps where they should.

What is known of the group from its answers says which members may be removed, and when. Each ``consumer-elapse`` ends
when those that are late have been removed, and well before the next ones are. What no moment suits is in doubt: then
violations in the history prove nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from kipcheck.conformance.live.coordinator.time_windows import NEAREST_S, Span
from kipcheck.conformance.protocols.consumer_group.ops import REBALANCE_MS

EARLY: Final = "the session of a member may have ended before its time"
CLOSE: Final = "the sessions of members end too close together"
Timer: TypeAlias = tuple[str, str]
"""A client, and the kind of its timer."""
_SESSION, _REVOCATION = "session", "revocation"


class Client(Protocol):
    """What is known of a client, of a consumer group or a streams group."""

    @property
    def name(self) -> str: ...
    @property
    def member(self) -> bool: ...
    @property
    def expired(self) -> bool:
        """It may have been removed."""
        ...

    @property
    def unrevoked(self) -> Collection[object]:
        """What it was asked to revoke, and may still use."""
        ...

    @property
    def revoking_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Deadline:
    ms: int
    """How long it was armed for."""
    stated_ms: int
    """By the clock of the conversation, which only ``consumer-elapse`` advances."""
    real: Span


@dataclass
class Deadlines:
    """Those of the members of one group."""

    session_ms: int
    """The session timeout, from the next heartbeat of each member on."""
    times: int
    """How much faster than stated the time of the broker passes."""
    margin_s: float
    now_ms: int = 0
    _armed: dict[Timer, Deadline] = field(default_factory=dict)

    def sent(self, now_s: float) -> str:
        """A heartbeat is answered. Returns the doubt, if a member may have been removed before it."""
        early = any(each.real.first <= now_s + NEAREST_S / 2 for each in self._armed.values())
        return EARLY if early else ""

    def answered(self, client: Client, accepted: bool, at: Span) -> None:
        """``client``: what is known of it after the answer."""
        session, revocation = (client.name, _SESSION), (client.name, _REVOCATION)
        if not client.member:
            self._armed.pop(session, None)
        elif accepted:
            self._armed[session] = self._after(self.session_ms, at)
        if not client.member or not client.unrevoked:
            self._armed.pop(revocation, None)
        elif revocation not in self._armed or not client.revoking_ms:
            self._armed[revocation] = self._after(REBALANCE_MS, at)

    def renewed(self, at: Span) -> None:
        """All begin again, with a coordinator that has read its log."""
        self._armed = {
            timer: self._after(self.session_ms if timer[1] == _SESSION else each.ms, at)
            for timer, each in self._armed.items()
        }

    def _after(self, ms: int, at: Span) -> Deadline:
        return Deadline(ms, self.now_ms + ms, at.plus(ms / 1000 / self.times))

    def wait(self, ms: int, now_s: float, requests_s: float) -> tuple[float, str]:
        """Time passes: the moment at which the wait ends, and the doubt. The interval between target assignments, which
        is not known from answers, is surely over if the wait is as long.

        ``requests_s``: what the requests up to the next wait may take.
        """
        until = self.now_ms + ms
        over = [each.real for each in self._armed.values() if each.stated_ms <= until]
        left = [each.real for each in self._armed.values() if each.stated_ms > until]
        least = max((each.last + self.margin_s for each in over), default=now_s)
        most = min((each.first for each in left), default=float("inf")) - self.margin_s - requests_s
        usual = now_s + ms / 1000 / self.times + NEAREST_S
        if least <= most:
            return min(max(usual, least), most), ""
        return max(least, now_s), CLOSE

    def passed(self, ms: int, clients: Mapping[str, Client]) -> None:
        self.now_ms += ms
        gone = {name for name, each in clients.items() if each.expired}
        self._drop(timer for timer, each in self._armed.items() if each.stated_ms <= self.now_ms or timer[0] in gone)

    def _drop(self, timers: Iterable[Timer]) -> None:
        for each in [*timers]:
            del self._armed[each]
