"""The operations of the leader of one share partition (KIP-932), and its answers.

Clients remember the epoch of their share session: that of the next request is one above the last one that was accepted.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, hidden, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.reconciled.terms import Rejected, Says

LOCK_MS: Final = 30_000
"""``group.share.record.lock.duration.ms``: how long a member has an acquired record."""
LIMIT: Final = 3
"""``group.share.delivery.count.limit``: how often a record is delivered."""
MOST: Final = 500
"""``max.poll.records``: records that a fetch asks for, unless stated."""
CLIENTS: Final = ("a", "b", "c")
PASSES: Final = (LOCK_MS // 3, LOCK_MS)

Kind: TypeAlias = Literal["none", "accept", "release", "reject", "renew", "gap", "unknown"]
"""The type of an acknowledgement. ``gap``: there is no such record; ``unknown``: a type that no release has."""
Acquired: TypeAlias = tuple[tuple[int, int, int], ...]
"""First and last offset of records, and how often they have been delivered by now."""


@answer()
@dataclass(frozen=True, slots=True)
class Fetched:
    client: Annotated[str, hidden]
    acquired: Acquired
    refused: Annotated[str | None, optional] = None
    """The error of the acknowledgement in the request."""


@answer()
@dataclass(frozen=True, slots=True)
class Acknowledged:
    client: Annotated[str, hidden]
    refused: Annotated[str | None, optional] = None


Action: TypeAlias = Fetched | Acknowledged | Rejected
Client: TypeAlias = Annotated[str, about("its name"), typical(*CLIENTS)]
Session: TypeAlias = Annotated[
    Says,
    about("`join`: epoch 0, opens a share session; `leave`: -1, closes it; `stay`: the next epoch, minus `behind`"),
    typical("stay", "join", "leave"),
]
Behind: TypeAlias = Annotated[int, about("how far the epoch of `stay` is behind"), typical(range(-1, 2))]
Offset: TypeAlias = Annotated[int, about("offset"), typical(range(5))]


@operation("share-produce", "producer", "produce {count}", examples="produce 3")
@dataclass(frozen=True, slots=True)
class Produce:
    """Records are appended to the partition, each in a batch of its own."""

    count: Annotated[int, about("number of records"), typical(1, 2, 3)]


@operation("share-reset", "operator", "reset {to}", examples="reset earliest")
@dataclass(frozen=True, slots=True)
class Reset:
    """An operator sets share.auto.offset.reset of the group, which is `latest` at first."""

    to: Annotated[Literal["earliest", "latest"], about("where a new group begins"), typical("earliest", "latest")]


@operation(
    "share-fetch", "client",
    "{says:join=open,stay=fetch,leave=close} {client}{behind:-}[ most {most}][ {strict:strictly}]"
    "[ {kind} {first}-{last}]",
    examples="open a; fetch a most 2 strictly; fetch b-1; fetch a accept 0-2; close a",
    sender="{client}",
    accepted=Fetched,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Fetch:
    """A client sends a ShareFetch, and with it an acknowledgement, unless `kind` is `none`.

    Records are not fetched with `renew`, and not with the request that closes the session.
    """

    client: Client
    says: Session
    behind: Behind = 0
    most: Annotated[int, about("MaxRecords"), typical(MOST, 1, 2)] = MOST
    strict: Annotated[bool, about("ShareAcquireMode is record_limit (from 4.2 on)"), typical(False, True)] = False
    kind: Annotated[Kind, about("type of the acknowledgement"), typical("none", "accept", "release"), optional] = "none"
    first: Annotated[Offset, optional] = 0
    last: Annotated[Offset, optional] = 0

    @property
    def fetches(self) -> bool:
        return self.kind != "renew" and self.says is not Says.LEAVE


@operation(
    "share-acknowledge", "client",
    "{says:join=ack-opening,stay=ack,leave=ack-closing} {client}{behind:-} {kind} {first}-{last}",
    examples="ack a accept 0-2; ack a-1 release 1-1; ack-closing a reject 0-0",
    sender="{client}",
    accepted=Acknowledged,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Acknowledge:
    """A client sends a ShareAcknowledge of records with consecutive offsets."""

    client: Client
    says: Session
    kind: Annotated[Kind, about("type"), typical("accept", "release", "reject", "renew", "gap", "none", "unknown")]
    first: Offset
    last: Offset
    behind: Behind = 0


@operation("share-disconnect", "client", "disconnect {client}", examples="disconnect a", sender="{client}")
@dataclass(frozen=True, slots=True)
class Disconnect:
    """The connection of a client ends, and its share session with it."""

    client: Client


@operation("share-reload", "environment", "reload")
@dataclass(frozen=True, slots=True)
class Reload:
    """All connections of clients end, and the leader forgets the share partition.

    With the next fetch it reads the state of the partition from the log again.
    """


@operation("share-elapse", "time", "pass {ms}", examples="pass 10000")
@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    ms: Annotated[int, about("milliseconds"), typical(*PASSES)]


Request: TypeAlias = Fetch | Acknowledge
Event: TypeAlias = Produce | Reset | Fetch | Acknowledge | Disconnect | Reload | Pass
OPERATIONS: Operations[Event, Action] = Operations(
    "share-partition",
    Role.COORDINATOR,
    (Produce, Reset, Fetch, Acknowledge, Disconnect, Reload, Pass),
    sample="reset earliest; produce 3; open a; ack a accept 0-1",
)
