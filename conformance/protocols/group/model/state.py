"""The state of a classic group coordinator: flat and hashable, without a clock. It determines the armed timers."""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.ops import Offset

NOT_INITIAL: Final = -1


class Standing(IntEnum):
    """Relation of this broker to the partition of the group."""

    OURS = 0
    LOADING = 1
    AWAY = 2


class Parked(NamedTuple):
    """A parked request."""

    to: int
    """Number of the request."""
    version: int


class Member(NamedTuple):
    id: str
    instance: str | None
    session_ms: int
    rebalance_ms: int
    protocols: tuple[tuple[str, messages.Blob], ...]
    assignment: messages.Blob = messages.EMPTY
    join: Parked | None = None
    sync: Parked | None = None
    new: bool = False
    """It joined without an id, or with a pending one, and waits for its first answer."""
    protocol_version: int | None = None
    """Only in KIP-429's draft."""

    @property
    def waits(self) -> bool:
        """Whether a parked request keeps the member alive without heartbeats."""
        return not self.new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol: str | None) -> messages.Blob:
        for name, blob in self.protocols:
            if name == protocol:
                return blob
        return messages.EMPTY


# Pending appends, by purpose


@final
@dataclass(frozen=True, slots=True)
class Assigning:
    """The leader's assignment."""

    record: messages.GroupRecord


@final
@dataclass(frozen=True, slots=True)
class Replacing:
    """The new id of a static member."""

    record: messages.GroupRecord
    before: Member
    after: str
    """Its new id."""
    leader: str | None
    """The leader before the replacement."""


@final
@dataclass(frozen=True, slots=True)
class Emptying:
    """The group has no members any more."""

    record: messages.GroupRecord
    reply: messages.Left | None = None
    """In Java, the answer to the last LeaveGroup, which is sent after the write."""


@final
@dataclass(frozen=True, slots=True)
class Founding:
    """A new group (only in Java)."""

    record: messages.GroupRecord


@final
@dataclass(frozen=True, slots=True)
class Committing:
    record: messages.OffsetBatch
    to: int
    counts: bool = True
    """False if the group was removed since: the offsets are for the former group."""


@final
@dataclass(frozen=True, slots=True)
class Deleting:
    record: messages.Tombstone
    to: int
    generation: int = 0
    """``generation`` and ``protocol_type`` of the deleted group."""
    protocol_type: str | None = None


Write: TypeAlias = Assigning | Replacing | Emptying | Founding | Committing | Deleting
Offsets: TypeAlias = tuple[Offset, ...]
"""Sorted."""


class Log(NamedTuple):
    """The committed records after compaction of the log."""

    group: messages.GroupRecord | None = None
    offsets: Offsets = ()

    def with_(self, record: messages.Record) -> "Log":
        match record:
            case messages.GroupRecord():
                return Log(record, self.offsets)
            case messages.OffsetBatch(records):
                return Log(self.group, merged(self.offsets, records))
            case messages.Tombstone():
                return Log()


class State(NamedTuple):
    standing: Standing = Standing.OURS
    phase: messages.Phase = messages.Phase.DEAD
    """``DEAD``: the group does not exist here."""
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Member, ...] = ()
    """In the order in which they joined."""
    pending: tuple[str, ...] = ()
    """Ids that were given out, and that no member has joined with yet."""
    owing: tuple[str, ...] = ()
    """Ids that have sent no SyncGroup in this generation. The former id of a replaced static member remains here, as
    brokers do not remove it."""
    lapsing: tuple[str, ...] = ()
    """Ids of former members whose session still runs, as brokers up to 2.0.0 do not end it."""
    failed: bool = False
    """The coordinator failed half-way, or has contradictory members: what follows is not modelled."""
    delay_ms: int = NOT_INITIAL
    """Length of the current round of the initial rebalance."""
    remaining_ms: int = 0
    """Time left for further rounds of it."""
    grown: bool = False
    """A member joined in the current round of it, or in the last round of the one before."""
    offsets: Offsets = ()
    writes: tuple[Write, ...] = ()
    log: Log = Log()
    unnamed: "State | None" = None
    """The group with the empty name, once a client has committed to it. It never has members, and does not move."""

    @property
    def initial(self) -> bool:
        return self.delay_ms != NOT_INITIAL

    @property
    def rebalance_ms(self) -> int:
        """The largest rebalance timeout of the members."""
        return max([each.rebalance_ms for each in self.members], default=0)

    def member(self, id: str) -> Member | None:
        for each in self.members:
            if each.id == id:
                return each
        return None

    def known(self, id: str) -> Member:
        """The member with this id, which must exist. Errors: LookupError."""
        found = self.member(id)
        if found is None:
            raise LookupError(f"unknown member {id!r}")
        return found

    def static(self, instance: str) -> Member | None:
        for each in self.members:
            if each.instance == instance:
                return each
        return None

    def placed(self, member: Member, id: str | None = None) -> "State":
        """The state with ``member`` in place of the member with the same id, or with ``id``."""
        id = id or member.id
        return self._replace(members=tuple([member if each.id == id else each for each in self.members]))


def lacks_protocol(state: State) -> bool:
    """Whether a member does not have the protocol of the group: the successor of a static member, up to 2.6.0."""
    return any(state.protocol not in [name for name, _ in each.protocols] for each in state.members)


def _use_fast_replace(made: type[Member] | type[State]) -> None:
    """Replaces ``_replace`` by one that takes a third of the time; most of a coordinator's steps change one field.

    The standard one also validates field names, which mypy does here.
    """
    places = {name: place for place, name in enumerate(made._fields)}
    create = tuple.__new__

    def replaced(self: tuple[Any, ...], /, **changes: Any) -> Any:
        values = list(self)
        for name, value in changes.items():
            values[places[name]] = value
        return create(made, values)

    setattr(made, "_replace", replaced)  # noqa: B010


_use_fast_replace(Member)
_use_fast_replace(State)


def armed(state: State, sync_deadline: bool) -> tuple[messages.Timer, ...]:
    """The armed timers."""
    timers = [session(each.id) for each in state.members if not each.waits]
    timers += [session(each) for each in state.lapsing]
    timers += [pending(each) for each in state.pending]
    if state.phase is messages.Phase.PREPARING:
        timers.append(REBALANCE)
    if sync_deadline and state.owing:
        timers.append(SYNC)
    return tuple(timers)


REBALANCE: Final = messages.Timer("rebalance")
SYNC: Final = messages.Timer("sync")


@lru_cache(1024)
def session(member: str) -> messages.Timer:
    return messages.Timer("session", member)


@lru_cache(1024)
def pending(member: str) -> messages.Timer:
    return messages.Timer("pending", member)


@lru_cache(1024)
def disarm_session(member: str) -> messages.Disarm:
    return messages.Disarm(session(member))


@lru_cache(1024)
def arm_session(member: str, ms: int) -> messages.Arm:
    return messages.Arm(session(member), ms)


def merged(offsets: Offsets, records: tuple[messages.OffsetRecord, ...]) -> Offsets:
    after = {each[:2]: each for each in offsets}
    for each in records:
        after[each.topic, each.partition] = each.topic, each.partition, each.offset, each.leader_epoch, each.metadata
    return tuple(sorted(after.values()))
