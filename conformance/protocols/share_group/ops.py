"""The operations of a coordinator of one KIP-932 share group, and its answers."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, operation, variant
from kipcheck.conformance.core.operations.field_annotations import about, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.consumer_group.ops import Answered
from kipcheck.conformance.protocols.reconciled.log_ops import Reload
from kipcheck.conformance.protocols.reconciled.terms import Rejected, Says

SESSION_MS: Final = 45_000
"""``group.share.session.timeout.ms``: a member without a heartbeat for this long is removed."""
INTERVAL_MS: Final = 1_000
"""``group.share.assignment.interval.ms``, from 4.3 on: the least time between two target assignments."""
CLIENTS: Final = ("a", "b", "c")
SUBSCRIPTIONS: Final = (("t",), ("t", "u"), ("u",))
PASSES: Final = (INTERVAL_MS, SESSION_MS // 3, SESSION_MS)

Flaw: TypeAlias = Literal["group", "member", "rack"] | None
"""A field of a heartbeat that is empty."""
Action: TypeAlias = Answered | Rejected


@operation(
    "share-group-heartbeat", "client", "{says:stay=beat} {client}{behind:-}[ on {topics}][ without {flaw}]",
    examples="join a on t,u; beat a-1; beat a on u; leave a; join b on t without rack",
    sender="{client}",
    accepted=Answered,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Beat:
    """A client sends a ShareGroupHeartbeat; its name is its member id.

    `assignment` is omitted or null where the response has none.
    """

    client: Annotated[str, about("its name"), typical(*CLIENTS)]
    says: Annotated[Says, about("`join`: epoch 0; `leave`: -1; `away`: -2, which no share group takes; `stay`: the "
                                "last epoch received, minus `behind`"),
                    typical("stay", "join", "leave")]  # fmt: skip
    behind: Annotated[int, about("how far the epoch of `stay` is behind"), typical(range(-1, 3))] = 0
    topics: Annotated[tuple[str, ...] | None, about("subscribed topics; null: unchanged"),
                      typical(None, *SUBSCRIPTIONS)] = None  # fmt: skip
    flaw: Annotated[
        Flaw,
        about("what makes it invalid: an empty id of the `group` or the `member`, or an empty `rack`"),
        typical(None, "group", "member", "rack"),
        optional,
    ] = None

    @property
    def owned(self) -> None:
        """Members of share groups own nothing that they would have to revoke."""

    @property
    def instance(self) -> None:
        """There are no static members."""


@operation("share-group-elapse", "time", "pass {ms}", examples="pass 1000")
@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    ms: Annotated[int, about("milliseconds"), typical(*PASSES)]


Event: TypeAlias = Beat | Pass | Reload
OPERATIONS: Operations[Event, Action] = Operations(
    "share-group",
    Role.COORDINATOR,
    (Beat, Pass, variant(Reload, "share-group-reload", kinds={})),
    sample="join a on t",
)
