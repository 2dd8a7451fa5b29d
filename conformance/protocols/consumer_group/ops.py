"""The operations of a coordinator of one KIP-848 consumer group, and its answers."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, hidden, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.reconciled import log_ops
from kipcheck.conformance.protocols.reconciled.terms import Owns, Partitions, Rejected, Says

SESSION_MS: Final = 45_000
"""``group.consumer.session.timeout.ms``: a member without a heartbeat for this long is fenced."""
LONGER_SESSION_MS: Final = 60_000
"""``group.consumer.max.session.timeout.ms``"""
REBALANCE_MS: Final = 30_000
"""Rebalance timeout of every member: how long it may take to revoke partitions."""
INTERVAL_MS: Final = 1_000
"""``group.consumer.assignment.interval.ms``, from 4.3 on: the least time between two target assignments."""
LATER: Final = {"v": 2}
"""Topics that can be created, with their numbers of partitions."""
CLIENTS: Final = ("a", "b", "c")
INSTANCES: Final = ("i", "j")
REGEXES: Final = ("t|u", "u", "[")
"""The last one is invalid."""
ASSIGNORS: Final = ("uniform", "range", "custom")
SUBSCRIPTIONS: Final = (("t",), ("t", "u"), ("u",))
PASSES: Final = (INTERVAL_MS, REBALANCE_MS, SESSION_MS)

Lacks: TypeAlias = Literal["group", "member", "instance", "rack", "timeout"] | None
"""A field of a heartbeat that is empty, or for ``timeout`` omitted."""


@answer()
@dataclass(frozen=True, slots=True)
class Answered:
    client: Annotated[str, hidden]
    epoch: int
    assignment: Partitions | None
    """None: unchanged."""


Answer: TypeAlias = Answered | Rejected
"""To a heartbeat."""
Action: TypeAlias = Answer | log_ops.Fetched


@operation(
    "consumer-heartbeat", "client",
    "{says:stay=beat} {client}{behind:-}[ on {topics}][ {owned}][ as {instance}][ like {regex:\\S+}][ by {assignor}]"
    "[ without {lacks}]",
    examples="join a on t,u none; beat a-1 told; leave a; join a none like t|u by range; away b as i",
    sender="{client}",
    accepted=Answered,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Beat:
    """A client sends a ConsumerGroupHeartbeat; its name is its member id.

    `assignment` is omitted or null where the response has none.
    """

    client: Annotated[str, about("its name"), typical(*CLIENTS)]
    says: Annotated[Says, about("`join`: epoch 0; `leave`: -1; `away`: -2; `stay`: the last epoch received, minus "
                                "`behind`"),
                    typical("stay", "join", "leave", "away")]  # fmt: skip
    behind: Annotated[int, about("how far the epoch of `stay` is behind"), typical(range(-1, 3))] = 0
    topics: Annotated[tuple[str, ...] | None, about("subscribed topics; null: unchanged"),
                      typical(None, *SUBSCRIPTIONS)] = None  # fmt: skip
    owned: Annotated[
        Owns,
        about(
            "owned partitions: `none`; `told`: those of the last assignment that it received; `before`: those of the "
            "last two; null: omitted"
        ),
        typical("told", None, "none", "before"),
    ] = None
    instance: Annotated[str | None, about("group.instance.id"), typical(None, *INSTANCES), optional] = None
    regex: Annotated[str | None, about("subscribed regular expression; null: unchanged"), typical(None, *REGEXES),
                     optional] = None  # fmt: skip
    assignor: Annotated[str | None, about("assignor of the server; null: unchanged"), typical(None, *ASSIGNORS),
                        optional] = None  # fmt: skip
    lacks: Annotated[
        Lacks,
        about(
            "what makes it invalid: an empty id of the `group`, the `member` or the `instance`, an empty `rack`, or no "
            "rebalance `timeout`"
        ),
        typical(None, "group", "member", "instance", "rack", "timeout"),
        optional,
    ] = None


@operation("consumer-elapse", "time", "pass {ms}", examples="pass 1000")
@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    ms: Annotated[int, about("milliseconds"), typical(*PASSES)]


@operation("consumer-create", "operator", "create {topic}", examples="create v")
@dataclass(frozen=True, slots=True)
class Create:
    """An operator creates a topic, and the coordinator learns of it at once. Topic v has 2 partitions."""

    topic: Annotated[str, about("its name"), typical(*LATER)]


@operation("consumer-configure", "operator", "configure session {session_ms}", examples="configure session 60000")
@dataclass(frozen=True, slots=True)
class Configure:
    """An operator sets `consumer.session.timeout.ms` of the group."""

    session_ms: Annotated[int, about("milliseconds"), typical(LONGER_SESSION_MS, SESSION_MS)]


Event: TypeAlias = Beat | Pass | Create | Configure | log_ops.Event
OPERATIONS: Operations[Event, Action] = Operations(
    "consumer-group", Role.COORDINATOR, (Beat, Pass, Create, Configure, *log_ops.EVENTS), sample="join a on t none"
)
