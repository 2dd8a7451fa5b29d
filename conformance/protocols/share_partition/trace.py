"""What requests to the leader of a share partition and its answers show of records and sessions, step by step."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.protocols.declare.real_time import stated_settings
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.share_partition import ops
from kipcheck.conformance.protocols.share_partition.model import INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND
from kipcheck.conformance.protocols.share_partition.rules import DEFAULT, Config

Fate: TypeAlias = Literal["held", "free", "done", "open"]
"""Of a record: a member has it, it is to be delivered again, it is not, or either."""
REFUSALS: Final = (SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, terms.INVALID_REQUEST)
"""The errors of a request that changes nothing."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was delivered."""

    counts: tuple[int, ...]
    """What its last delivery may have as its count."""
    fate: Fate
    holder: str = ""
    left_ms: int = 0
    since: int = 0
    """The step that delivered it, or ended it."""

    @property
    def uncounted(self) -> "Record":
        """The record, whose last delivery may count or not."""
        return replace(self, counts=tuple(sorted({each for count in self.counts for each in (count - 1, count)})))

    def released(self, limit: int) -> "Record":
        """``limit``: of deliveries."""
        used = [count >= limit for count in self.counts]
        return replace(self, fate="done" if all(used) else "open" if any(used) else "free", holder="")


@dataclass(frozen=True, slots=True)
class Known:
    """What is known from the answers so far."""

    end: int = 0
    """The next offset of the log."""
    reset: str = "latest"
    start: int | None = None
    """Where the group begins; None: nothing was fetched, or the leader may choose again."""
    first: int | None = None
    """Where it began at first."""
    saved: bool = False
    """Whether an acquisition has ended."""
    loaded: bool = False
    """Whether records were delivered since the leader forgot the partition: before that it may still be loading it."""
    records: Mapping[int, Record] = field(default_factory=dict)
    """By offset."""
    clients: Mapping[str, terms.Memory] = field(default_factory=dict)
    sessions: Mapping[str, int] = field(default_factory=dict)
    """Client and the epoch of its next request."""
    failed: frozenset[str] = frozenset()
    """The clients whose last request failed, so that the epoch of their session may have risen or not."""
    config: Config = DEFAULT

    def memory(self, client: str) -> terms.Memory:
        return self.clients.get(client, terms.Memory(client))

    @property
    def chosen(self) -> int:
        """Where a partition without state begins."""
        return 0 if self.reset == "earliest" else self.end

    def unloaded(self) -> Self:
        """The leader has forgotten the partition. It may choose its start again if no acquisition has ended yet."""
        return replace(self, start=self.start if self.saved else None, loaded=False)

    def having(self, records: Mapping[int, Record]) -> Self:
        saved = self.saved or any(each.fate in ("free", "done") for each in records.values())
        return replace(self, records={**self.records, **records}, saved=saved)

    def with_epoch(self, client: str, epoch: int) -> Self:
        """The epoch of its next request; 0: it has no session."""
        sessions = {name: each for name, each in {**self.sessions, client: epoch}.items() if each}
        clients = {**self.clients, client: terms.Memory(client, epoch)}
        return replace(self, sessions=sessions, clients=clients, failed=self.failed - {client})

    def closed(self, client: str) -> Self:
        """A session has ended. Whether what it releases counts as delivered is left open."""
        held = {offset: each.uncounted for offset, each in self.records.items() if each.holder == client}
        return self.having({offset: each.released(self.config.limit) for offset, each in held.items()})

    def reopened(self, client: str) -> Self:
        """A session is replaced by a new one. By KIP-932 that releases what the client has; in Kafka it does not."""
        held = {offset: each.uncounted for offset, each in self.records.items() if each.holder == client}
        return self.having({offset: replace(each, fate="open", holder="") for offset, each in held.items()})


@dataclass(frozen=True, slots=True)
class ShareStep(AnsweredStep[ops.Event, Mapping[str, Any], Known]):
    @property
    def asked(self) -> ops.Request:
        assert isinstance(self.request, ops.Fetch | ops.Acknowledge)
        return self.request

    @property
    def epoch(self) -> int:
        """The epoch in the request."""
        return self.before.memory(self.asked.client).epoch_in(self.asked)

    @property
    def due(self) -> int | None:
        """The epoch that the session of the client requires; None: it has none."""
        return self.before.sessions.get(self.asked.client)

    @property
    def refused(self) -> str:
        """The error of the acknowledgement; empty: there is none."""
        return self.error or self.answer.get("refused") or ""

    @property
    def has_failed(self) -> bool:
        """Whether the request was refused with an error that says nothing of it."""
        return bool(self.error) and self.error not in REFUSALS

    @property
    def acquired(self) -> dict[int, int]:
        """Offset and count, of what was delivered."""
        return {offset: count for first, last, count in self.answer.get("acquired", ())
                for offset in range(first, last + 1)}  # fmt: skip

    @property
    def start(self) -> int:
        """Where the group begins, as a fetch shows: if the leader may have chosen again, at the first new record."""
        known = self.before
        if known.start is not None:
            return known.start
        if known.first is None:
            return known.chosen
        if known.records.keys() & self.acquired.keys():
            return known.first
        return min(self.acquired, default=known.first if known.first >= known.end else known.chosen)

    @property
    def offsets(self) -> range:
        """Those of the acknowledgement."""
        return range(self.asked.first, self.asked.last + 1)

    @property
    def is_valid(self) -> bool:
        """Whether there is an acknowledgement, as some leader may accept it."""
        return self.asked.kind not in ("none", "unknown") and self.asked.first <= self.asked.last

    @property
    def acknowledged(self) -> Known:
        """What is known when the acknowledgement has been processed, before anything is delivered."""
        known = self.before
        if not self.accepted or not self.is_valid or self.refused:
            return known
        held = {each: known.records[each] for each in self.offsets if each in known.records}
        if self.asked.kind == "renew":
            return known.having({at: replace(each, left_ms=known.config.lock_ms) for at, each in held.items()})
        if self.asked.kind == "release":
            released = {at: each.released(known.config.limit) for at, each in held.items() if each.fate == "held"}
            return known.having(released)
        return known.having(
            {at: replace(each, fate="done", holder="", since=self.op.index) for at, each in held.items()}
        )

    def known_after(self) -> Known:
        known = self.before
        match self.request:
            case ops.Produce(count):
                return replace(known, end=known.end + count)
            case ops.Reset(to):
                return replace(known, reset=to)
            case ops.Disconnect(client):
                known = known.closed(client).with_epoch(client, 0)
                return known if known.sessions else known.unloaded()
            case ops.Pass(ms):
                return _older(known, ms)
            case ops.Reload():
                return _reloaded(known)
        if not self.accepted:
            return replace(known, failed=known.failed | {self.asked.client}) if self.has_failed else known
        return self._delivered(self.acknowledged)

    def _delivered(self, known: Known) -> Known:
        client = self.asked.client
        if isinstance(self.asked, ops.Fetch) and self.asked.fetches:
            first = self.start if known.first is None else known.first
            known = replace(known, start=self.start, first=first, loaded=known.loaded or bool(self.acquired))
        if self.epoch == 0 and self.due is not None:
            known = known.reopened(client)
        known = known.with_epoch(client, max(self.epoch + 1, 0))
        taken = {
            offset: Record((count,), "held", client, known.config.lock_ms, self.op.index)
            for offset, count in self.acquired.items()
        }
        known = known.having(taken)
        return known.closed(client) if self.epoch == terms.LEAVING else known


def _older(known: Known, ms: int) -> Known:
    held = {at: replace(each, left_ms=each.left_ms - ms) for at, each in known.records.items() if each.holder}
    return known.having(
        {at: each if each.left_ms > 0 else each.released(known.config.limit) for at, each in held.items()}
    )  # fmt: skip


def _reloaded(known: Known) -> Known:
    """What was acquired is free, and how often it was delivered may be lost."""
    held = {at: each for at, each in known.records.items() if each.fate == "held"}
    lost = {at: replace(each, counts=tuple(range(max(each.counts) + 1))).released(known.config.limit)
            for at, each in held.items()}  # fmt: skip
    known = known.having(lost)
    for client in known.sessions:
        known = known.with_epoch(client, 0)
    return known.unloaded()


@cached_on_history
def share_steps(history: History) -> tuple[ShareStep, ...]:
    """The requests up to the first step without an answer: after that the state of the partition is not known."""

    def read(op: Op, known: Known) -> ShareStep:
        return ShareStep(op, ops.OPERATIONS.event_of(op.step), payload(op), known)

    begun = Known(config=replace(DEFAULT, **stated_settings(history)))
    steps = answered_steps(history, begun, read)
    return tuple(step for step in steps if isinstance(step.request, ops.Fetch | ops.Acknowledge))
