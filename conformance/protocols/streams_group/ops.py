"""The operations of a coordinator of one KIP-1071 streams group, and its answers.

A task is a subtopology and a partition of the topic that it reads. ``topology.py`` has the subtopologies.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation, variant
from kipcheck.conformance.core.operations.field_annotations import about, hidden, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.ops import INSTANCES
from kipcheck.conformance.protocols.reconciled import log_ops
from kipcheck.conformance.protocols.reconciled.terms import Owns, Rejected, Says

SESSION_MS: Final = 45_000
"""``group.streams.session.timeout.ms``: a member without a heartbeat for this long is removed."""
REBALANCE_MS: Final = 30_000
"""Rebalance timeout of every member: how long it may take to revoke tasks."""
CLIENTS: Final = ("a", "b", "c")
TOPOLOGIES: Final = (("t",), ("t", "u"), ("v",), ("s",), ("s", "u"), ("r", "t"), ("w",))
"""By the names of their subtopologies."""
HOSTS: Final = ("h", "k")
PASSES: Final = (15_000, SESSION_MS)

Endpoints: TypeAlias = tuple[tuple[str, str, int], ...]
"""Host, and a partition whose active task the member at this host runs. Sorted."""
Tasks: TypeAlias = tuple[Partition, ...]
"""Subtopologies and partitions. Sorted."""
Flaw: TypeAlias = (
    Literal["group", "member", "instance", "rack", "timeout", "standby", "task", "regex", "changelog"] | None
)
"""What makes a heartbeat invalid."""


@answer()
@dataclass(frozen=True, slots=True)
class Answered:
    client: Annotated[str, hidden]
    epoch: int
    tasks: Tasks | None
    """The active tasks; None: unchanged."""
    standby: Tasks | None = None
    """The standby tasks; None: unchanged."""
    warmup: Tasks | None = None
    """The warm-up tasks; None: unchanged."""
    statuses: tuple[str, ...] = ()
    """The names of the status codes. Sorted."""
    created: tuple[tuple[str, int], ...] = ()
    """The internal topics that the broker creates now, with their numbers of partitions. Sorted."""
    endpoint_epoch: int = 0
    """Of the endpoint information of the group."""
    endpoints: Endpoints | None = None
    """None: unchanged."""


@dataclass(frozen=True, slots=True)
class DescribedMember:
    client: str
    epoch: int
    topology_epoch: int
    tasks: Tasks
    target: Tasks
    standby: Tasks = ()
    standby_target: Tasks = ()


@answer()
@dataclass(frozen=True, slots=True)
class Described:
    state: str
    epoch: int
    """Of the group."""
    assignment_epoch: int
    topology_epoch: int
    topology: tuple[str, ...]
    """The names of the subtopologies. Sorted."""
    members: tuple[DescribedMember, ...]
    """Sorted by client."""


Action: TypeAlias = Answered | Described | Rejected | log_ops.Fetched


@operation(
    "streams-group-heartbeat", "client",
    "{says:stay=beat} {client}{behind:-}[ runs {topology}][ at {topology_epoch}][ {owned}][ as {instance}]"
    "[ at-host {endpoint}][ flaw {flaw}]",
    examples="join a runs t,u at 0 none; beat a-1 told; leave a; join b runs t at 0 none flaw timeout; away a as i",
    sender="{client}",
    accepted=Answered,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Beat:
    """A client sends a StreamsGroupHeartbeat; its name is its member id and its process id.

    `tasks` is omitted or null where the response has no active tasks, and so are `standby` and `warmup`. `statuses`
    has the names of the status codes, and `created` the internal topics that the broker creates before the next step.
    `endpoints` is omitted or null where the response has none; else it has a host, a topic and a partition for each
    active task of the members with an endpoint. `endpoint_epoch` is the epoch of the endpoint information.
    """

    client: Annotated[str, about("its name"), typical(*CLIENTS)]
    says: Annotated[Says, about("`join`: epoch 0; `leave`: -1; `away`: -2; `stay`: the last epoch received, minus "
                                "`behind`"),
                    typical("stay", "join", "leave", "away")]  # fmt: skip
    behind: Annotated[int, about("how far the epoch of `stay` is behind"), typical(range(-1, 3))] = 0
    topology: Annotated[
        tuple[str, ...] | None,
        about(
            "subtopologies, each of which reads the topic of its name; `s` and `w` read topic t: `s` has a changelog, "
            "`w` takes topic u for one; `r` reads a repartition topic that the others write; null: no topology"
        ),
        typical(None, *TOPOLOGIES),
    ] = None
    topology_epoch: Annotated[int, about("epoch of the topology"), typical(range(3))] = 0
    owned: Annotated[
        Owns,
        about(
            "active and standby tasks that it owns: `none`; `told`: those of the last assignment that it received; "
            "`before`: those of the last two; null: omitted"
        ),
        typical("told", None, "none", "before"),
    ] = None
    instance: Annotated[str | None, about("group.instance.id"), typical(None, *INSTANCES),
                        optional] = None  # fmt: skip
    endpoint: Annotated[str | None, about("the host at which it answers queries of other members; null: unchanged"),
                        typical(None, *HOSTS), optional] = None  # fmt: skip
    flaw: Annotated[
        Flaw,
        about(
            "what makes it invalid: an empty id of the `group`, the `member` or the `instance`, an empty `rack`, no "
            "rebalance `timeout`, `standby` tasks omitted where active ones are listed, an owned `task` that does not "
            "exist, a source topic `regex` in the topology, or a `changelog` with a number of partitions in it"
        ),
        typical(None, "group", "member", "instance", "rack", "timeout", "standby", "task", "regex", "changelog"),
        optional,
    ] = None


@operation("streams-group-describe", "client", "describe", examples="describe", accepted=Described)
@dataclass(frozen=True, slots=True)
class Describe:
    """An operator sends a StreamsGroupDescribe.

    `members` are sorted by `client`.
    """


@operation("streams-group-consume", "client", "consume", examples="consume")
@dataclass(frozen=True, slots=True)
class Consume:
    """A consumer sends a ConsumerGroupHeartbeat with epoch 0 to the same group.

    It subscribes to topic t. A group that does not exist becomes a consumer group.
    """


@operation("streams-group-elapse", "time", "pass {ms}", examples="pass 15000")
@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    ms: Annotated[int, about("milliseconds"), typical(*PASSES)]


@operation("streams-group-configure", "operator", "configure standbys {standbys}", examples="configure standbys 0")
@dataclass(frozen=True, slots=True)
class Configure:
    """An operator sets `streams.num.standby.replicas` of the group."""

    standbys: Annotated[int, about("standby tasks of each task with a changelog"), typical(0, 1, 2)]


Event: TypeAlias = Beat | Describe | Consume | Pass | Configure | log_ops.Event
OPERATIONS: Operations[Event, Action] = Operations(
    "streams-group",
    Role.COORDINATOR,
    (
        Beat,
        Describe,
        Consume,
        Pass,
        Configure,
        variant(log_ops.Reload, "streams-group-reload", kinds={}),
        variant(log_ops.Commit, "streams-group-commit", kinds={}),
        variant(log_ops.Fetch, "streams-group-fetch", kinds={}),
    ),
    sample="join a runs t at 0 none; describe",
)
