"""The traffic of a script in order, with what the client was a member of at each event."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.history import History

UNKNOWN_MEMBER_ID: Final = 25
ILLEGAL_GENERATION: Final = 22
FENCED_INSTANCE_ID: Final = 82
FENCING: Final = frozenset({UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID})
GRACE_MS: Final = 1000
"""What the client does so long after an answer may precede it."""
LATE_MS: Final = 50
"""A script says nothing of bounds in time if an idle loop of ours was late by so much."""
GROUP_REQUESTS: Final = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit"})


@dataclass(slots=True)
class Membership:
    """A member id and a generation."""

    member: str
    generation: int
    since_ms: int
    until_ms: int | None = None
    """When the client was sent that it is over; None: it is not."""
    synced_ms: int | None = None
    partitions: frozenset[str] = frozenset()

    def is_current(self, ms: int) -> bool:
        """Whether it is over for at most the grace."""
        return self.until_ms is None or ms <= self.until_ms + GRACE_MS


@dataclass(slots=True)
class Happened:
    """An event, its step, and the memberships so far, the newest last."""

    step: int
    event: Mapping[str, Any]
    memberships: tuple[Membership, ...]

    @property
    def ms(self) -> int:
        ms: int = self.event["ms"]
        return ms

    def is_request(self, *apis: str) -> bool:
        return self.event["what"] == "request" and (not apis or self.event["api"] in apis)

    def is_answer(self, *apis: str) -> bool:
        return self.event["what"] == "answer" and (not apis or self.event["api"] in apis)


@dataclass(slots=True)
class _Reader:
    memberships: list[Membership] = field(default_factory=list)

    def read(self, event: Mapping[str, Any]) -> None:
        if event["what"] != "answer" or event["api"] not in (*GROUP_REQUESTS, "JoinGroup", "LeaveGroup"):
            return
        error, ms = event.get("error", 0), event["ms"]
        if error in FENCING:
            newest = self.memberships[-1:]
            given = event.get("to") or [event.get("member"), *(each.generation for each in newest)]
            if given in [[each.member, each.generation] for each in newest]:
                self._end(ms)  # an answer to an older request says nothing of the newest membership
        elif event["api"] == "LeaveGroup":
            self._end(ms)
        elif event["api"] == "JoinGroup" and not error:
            before = self.memberships[-1] if self.memberships else None
            self._end(ms)
            # What it had is taken away by the answer to SyncGroup.
            kept = before.partitions if before is not None and before.until_ms == ms else frozenset()
            self.memberships.append(Membership(event["member"], event["generation"], ms, partitions=kept))
        elif event["api"] == "SyncGroup" and not error and self.memberships:
            now = self.memberships[-1]
            now.until_ms = ms
            self.memberships.append(
                Membership(now.member, now.generation, ms, synced_ms=ms, partitions=frozenset(event["partitions"]))
            )

    def _end(self, ms: int) -> None:
        if self.memberships and self.memberships[-1].until_ms is None:
            self.memberships[-1].until_ms = ms


def trace(history: History) -> Iterator[Happened]:
    """All events up to the first step without an answer. Memberships change after the event that changes them."""
    reader = _Reader()
    for step, event in history.actions():
        yield Happened(step, event, tuple(reader.memberships))
        reader.read(event)


def was_late(history: History) -> bool:
    """Whether an idle loop of ours was late in a step, so that the script says nothing of bounds in time."""
    return any(event["what"] == "idle" and event["late_ms"] >= LATE_MS for _, event in history.actions())
