"""The state of a classic group coordinator: flat, hashable, without a clock. Which timers run follows from it."""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.models.group.messages import (
    EMPTY,
    Arm,
    Blob,
    Disarm,
    GroupRecord,
    Left,
    OffsetBatch,
    OffsetRecord,
    Phase,
    Record,
    Timer,
    Tombstone,
)

NOT_INITIAL: Final = -1


class Standing(IntEnum):
    """Of this broker to the partition that holds the group."""

    OURS = 0
    LOADING = 1
    AWAY = 2


class Parked(NamedTuple):
    """A request that waits for its answer."""

    to: int
    """Its number."""
    version: int


class Member(NamedTuple):
    id: str
    instance: str | None
    session_ms: int
    rebalance_ms: int
    protocols: tuple[tuple[str, Blob], ...]
    assignment: Blob = EMPTY
    join: Parked | None = None
    sync: Parked | None = None
    new: bool = False
    """It joined without an id, or with one just given out, and waits for its first answer."""
    protocol_version: int | None = None
    """KIP-429's draft alone."""

    @property
    def waits(self) -> bool:
        """Alive without a heartbeat."""
        return not self.new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol: str | None) -> Blob:
        for name, blob in self.protocols:
            if name == protocol:
                return blob
        return EMPTY


# Appends that are under way, and what they are for


@final
@dataclass(frozen=True, slots=True)
class Assigning:
    """The leader's assignment."""

    record: GroupRecord


@final
@dataclass(frozen=True, slots=True)
class Replacing:
    """The new id of a static member."""

    record: GroupRecord
    before: Member
    after: str
    """Its new id."""
    leader: str | None
    """Before it came."""


@final
@dataclass(frozen=True, slots=True)
class Emptying:
    """Nobody is left."""

    record: GroupRecord
    reply: Left | None = None
    """In Java whoever left last is answered when that is written."""


@final
@dataclass(frozen=True, slots=True)
class Founding:
    """A group that did not exist (the coordinator in Java)."""

    record: GroupRecord


@final
@dataclass(frozen=True, slots=True)
class Committing:
    record: OffsetBatch
    to: int
    counts: bool = True
    """The group is still the one that it was committed to."""


@final
@dataclass(frozen=True, slots=True)
class Deleting:
    record: Tombstone
    to: int
    generation: int = 0
    """This and the next: of the group that there was."""
    protocol_type: str | None = None


Write: TypeAlias = Assigning | Replacing | Emptying | Founding | Committing | Deleting
Offsets: TypeAlias = tuple[tuple[str, int, int], ...]
"""Topic, partition, offset, sorted."""


class Log(NamedTuple):
    """What is left of the committed records once the log is compacted."""

    group: GroupRecord | None = None
    offsets: Offsets = ()

    def with_(self, record: Record) -> "Log":
        match record:
            case GroupRecord():
                return Log(record, self.offsets)
            case OffsetBatch(records):
                return Log(self.group, merged(self.offsets, records))
            case Tombstone():
                return Log()


class State(NamedTuple):
    standing: Standing = Standing.OURS
    phase: Phase = Phase.DEAD
    """``DEAD``: there is no such group here."""
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Member, ...] = ()
    """In the order in which they joined."""
    pending: tuple[str, ...] = ()
    """Ids that were given out; nobody has joined with them yet."""
    owing: tuple[str, ...] = ()
    """Ids that have not asked for the assignment of this generation. A static member that was replaced since leaves its
    former id here: brokers forget to cross it out."""
    delay_ms: int = NOT_INITIAL
    """Of the round of an initial rebalance that runs."""
    remaining_ms: int = 0
    """What the next rounds of it may take."""
    grown: bool = False
    """Somebody joined in this round of it."""
    offsets: Offsets = ()
    writes: tuple[Write, ...] = ()
    log: Log = Log()

    @property
    def initial(self) -> bool:
        return self.delay_ms != NOT_INITIAL

    @property
    def rebalance_ms(self) -> int:
        """The most that a member takes to join again."""
        return max([each.rebalance_ms for each in self.members], default=0)

    def member(self, id: str) -> Member | None:
        for each in self.members:
            if each.id == id:
                return each
        return None

    def known(self, id: str) -> Member:
        """Of a member that is there. Errors: LookupError where there is none."""
        found = self.member(id)
        if found is None:
            raise LookupError(f"no member {id!r}")
        return found

    def static(self, instance: str) -> Member | None:
        for each in self.members:
            if each.instance == instance:
                return each
        return None

    def placed(self, member: Member, id: str | None = None) -> "State":
        """With ``member`` in the place of the one that has its id, or ``id``."""
        id = id or member.id
        return self._replace(members=tuple([member if each.id == id else each for each in self.members]))


def _quick(made: type[Member] | type[State]) -> None:
    """Give it a ``_replace`` that costs a third: most of what a coordinator does is to change one field.

    The one of the library sees to it that no name is wrong, which mypy has done by then.
    """
    places = {name: place for place, name in enumerate(made._fields)}
    create = tuple.__new__

    def replaced(self: tuple[Any, ...], /, **changes: Any) -> Any:
        values = list(self)
        for name, value in changes.items():
            values[places[name]] = value
        return create(made, values)

    setattr(made, "_replace", replaced)  # noqa: B010


_quick(Member)
_quick(State)


def armed(state: State, sync_deadline: bool) -> tuple[Timer, ...]:
    """The timers that run."""
    timers = [session(each.id) for each in state.members if not each.waits]
    timers += [pending(each) for each in state.pending]
    if state.phase is Phase.PREPARING:
        timers.append(REBALANCE)
    if sync_deadline and state.owing:
        timers.append(SYNC)
    return tuple(timers)


REBALANCE: Final = Timer("rebalance")
SYNC: Final = Timer("sync")


@lru_cache(1024)
def session(member: str) -> Timer:
    return Timer("session", member)


@lru_cache(1024)
def pending(member: str) -> Timer:
    return Timer("pending", member)


@lru_cache(1024)
def disarm_session(member: str) -> Disarm:
    return Disarm(session(member))


@lru_cache(1024)
def arm_session(member: str, ms: int) -> Arm:
    return Arm(session(member), ms)


def merged(offsets: Offsets, records: tuple[OffsetRecord, ...]) -> Offsets:
    after = {(topic, partition): offset for topic, partition, offset in offsets}
    after.update({(each.topic, each.partition): each.offset for each in records})
    return tuple(sorted((*key, offset) for key, offset in after.items()))
