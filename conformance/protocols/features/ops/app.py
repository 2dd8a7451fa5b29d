"""The operations of a Kafka Streams group that follows group_coordinator (KIP-584, Use case), and its answers."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, typical
from kipcheck.conformance.core.values.case import Role

PLACE = 60

MemberName: TypeAlias = Annotated[str, about("name of the member"), typical("a", "b")]
BrokerNumber: TypeAlias = Annotated[int, about("number of the broker"), typical(range(2))]


@answer()
@dataclass(frozen=True, slots=True)
class Polled:
    """What the leader does about once a minute."""

    asks: bool
    """Whether it asks the broker; not if a member is upgraded already."""
    rebalances: bool
    """Whether it triggers a rebalance because of the answer."""


@answer()
@dataclass(frozen=True, slots=True)
class Instructed:
    """The level that the leader sends to all members in a rebalance."""

    asks: bool
    level: int


@answer()
@dataclass(frozen=True, slots=True)
class Wrote:
    crashed: bool
    """Whether the member ends, because the cluster is below its level."""


@dataclass(frozen=True, slots=True)
class AppMember:
    name: str
    level: int
    """In its metadata."""
    per_thread: bool
    """Whether it has a producer for each thread (level 2), or for each task."""


@answer()
@dataclass(frozen=True, slots=True)
class AppState:
    members: tuple[AppMember, ...]


Action: TypeAlias = Polled | Instructed | Wrote | AppState


@operation("app-finalized", "operator", "finalize {level}", examples="finalize 2", sentence="finalizes level {level}")
@dataclass(frozen=True, slots=True)
class Finalize:
    """A level of group_coordinator is finalized; the controller knows no clients, and lowers it, too (584-51)."""

    level: Annotated[int, about("the level"), typical(1, 2)]


@operation(
    "app-notified", "broker", "notify {broker}", examples="notify 0", sender="broker {broker}",
    sentence="reads what is finalized",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Notify:
    """A broker is notified, and reads what is finalized. All brokers support level 2."""

    broker: BrokerNumber


@operation("app-join", "member", "begin {member}", examples="begin a", sender="member {member}", sentence="starts")
@dataclass(frozen=True, slots=True)
class Begin:
    """A member starts, without metadata of an earlier rebalance. The member that started first leads."""

    member: MemberName


@operation("app-leave", "member", "end {member}", examples="end a", sender="member {member}", sentence="ends")
@dataclass(frozen=True, slots=True)
class End:
    """A member leaves or dies."""

    member: MemberName


@operation(
    "app-poll", "member", "ask {broker}", examples="ask 0", sender="leader",
    sentence="asks broker {broker}, if it asks", accepted=Polled,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Poll:
    """A minute passes: the leader asks this broker, unless it does not have to."""

    broker: BrokerNumber


@operation(
    "app-rebalance", "member", "rebalance {broker}", examples="rebalance 0", sender="leader",
    sentence="sends the level to all members; it asks broker {broker}, if it asks", accepted=Instructed,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Rebalance:
    """A rebalance completes: the metadata of each member have the level, and its instruction is under way."""

    broker: BrokerNumber


@operation(
    "app-instruct", "member", "instruct {member}", examples="instruct a", sender="leader", sentence="instructs {member}"
)
@dataclass(frozen=True, slots=True)
class Tell:
    """The instruction of the last rebalance reaches a member."""

    member: MemberName


@operation(
    "app-write", "member", "commit {member}", examples="commit a", sender="member {member}",
    sentence="commits a transaction", accepted=Wrote,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Commit:
    """A member commits a transaction, exactly once."""

    member: MemberName


@operation(
    "app-reset", "operator", "wipe", sentence="stops all members, wipes their state and starts them from scratch"
)
@dataclass(frozen=True, slots=True)
class Wipe:
    """An operator downgrades the application: all members start from scratch, at level 1."""


@operation("app-state", "operator", "app", sentence="looks at the members", accepted=AppState)
@dataclass(frozen=True, slots=True)
class Look:
    """The members are read."""


Event: TypeAlias = Finalize | Notify | Begin | End | Poll | Rebalance | Tell | Commit | Wipe | Look
OPERATIONS: Operations[Event, Action] = Operations(
    "feature-app",
    Role.CONTROLLER,
    (Finalize, Notify, Begin, End, Poll, Rebalance, Tell, Commit, Wipe, Look),
    sample="begin a; app",
)
