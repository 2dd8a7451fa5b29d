"""What the heartbeats of a reconciled group and their answers say of its members.

A client owns what an answer assigns until the first accepted heartbeat whose list of owned partitions lacks it, until
the client leaves, or until the time after which it has to treat itself as fenced.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.declare.trace import AnsweredStep
from kipcheck.conformance.protocols.reconciled.terms import UNAVAILABLE, UNKNOWN_MEMBER_ID, Memory, Partitions

Request = TypeVar("Request")
Known = TypeVar("Known")


@dataclass(frozen=True, slots=True)
class KnownClient:
    """What is known of a client from its heartbeats and their responses."""

    name: str
    memory: Memory
    member: bool = False
    expired: bool = False
    """It may have been removed because it was silent, or did not revoke in time."""
    away: bool = False
    """It left for a while."""
    previous: int | None = None
    """The epoch before its current one."""
    unused: bool = False
    """Its current epoch is new: no heartbeat of it shows that it got the response with that epoch."""
    may_still_own: Mapping[Partition, int] = field(default_factory=dict)
    """What it may still read or run, each with the step that assigned it."""
    silent_ms: int = 0
    session_ms: int = 0
    """Its session timeout, if the group had one of its own at its last heartbeat."""
    revoking_ms: int = 0
    """The time for which it has owned what it was asked to revoke."""
    fenced: bool = False
    """Its last heartbeat was refused: the client gives up all, and the coordinator still has it as a member."""

    @property
    def unrevoked(self) -> frozenset[Partition]:
        """What it was asked to revoke, and may still own."""
        return frozenset(self.may_still_own) - {*self.memory.given}

    @property
    def is_certain_member(self) -> bool:
        return self.member and not self.expired and not self.away

    def older(self, ms: int, session_ms: int, rebalance_ms: int) -> Self:
        silent = self.silent_ms + ms
        revoking = self.revoking_ms + ms if self.expired or self.unrevoked else 0
        over = silent >= session_ms or revoking >= rebalance_ms
        owned = {} if over else self.may_still_own
        return replace(
            self, expired=self.expired or over, may_still_own=owned, silent_ms=silent, revoking_ms=revoking
        )  # fmt: skip

    def renewed(self) -> Self:
        """Its times begin again, with a coordinator that has read the log."""
        return replace(self, silent_ms=0, revoking_ms=0)

    def owning(self, owned: Partitions | None, given: Partitions | None, step: int) -> Mapping[Partition, int]:
        """What it may still own after a heartbeat with ``owned``, and an answer that assigns ``given``."""
        known = {**dict.fromkeys(self.memory.given, step), **self.may_still_own}
        kept = self.may_still_own if owned is None else {each: known[each] for each in owned if each in known}
        return {**dict.fromkeys(given or (), step), **kept}

    def since(self, before: "KnownClient") -> Self:
        """What it is asked to revoke next has a time of its own. ``before``: the client before the step."""
        return replace(self, revoking_ms=before.revoking_ms) if self.unrevoked & before.unrevoked else self


@dataclass(frozen=True, slots=True)
class HeartbeatStep(AnsweredStep[Request, Mapping[str, Any], Known]):
    """An answered heartbeat, or another step of the group."""

    @property
    @abstractmethod
    def beat(self) -> Any: ...
    @property
    @abstractmethod
    def client(self) -> KnownClient: ...

    @property
    def epoch(self) -> int:
        """The epoch in the request."""
        return self.client.memory.epoch_in(self.beat)

    @property
    def is_turned_away(self) -> bool:
        """Whether a member that was fenced joins again, as it has to, and is refused."""
        own = self.client
        refused = not self.accepted and self.error not in UNAVAILABLE
        return refused and self.epoch == 0 and own.fenced and own.is_certain_member

    @property
    def is_cut_short(self) -> bool:
        """Whether a member that has yet to revoke what it was asked for, and has time left, is unknown."""
        own = self.client
        stays = self.epoch == own.memory.epoch > 0 and own.is_certain_member and own.revoking_ms > 0
        return stays and self.error == UNKNOWN_MEMBER_ID

    def assigned(self, field: str) -> Partitions | None:
        """The partitions or tasks in a field of the answer; None: unchanged."""
        found = self.answer.get(field)
        return None if found is None else partitions(found)


def partitions(found: Any) -> Partitions:
    return tuple(sorted((name, number) for name, number in found))
