"""The operations of a quorum of three KRaft controllers: updates while some are paused, killed, or start again."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, named, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.features.ops.cluster import kind_with_text
from kipcheck.conformance.protocols.features.ops.kraft import LEVEL, UPDATE, Declared, Level, TypedUpdate

PLACE = 100

NODES: Final = (0, 1, 2)
APPLIED, PENDING, LOST = "applied", "pending", "lost"
RELEASE: Final = kind_with_text(str, r"\d+(?:\.\d+)+", str, str, "RELEASE")


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a node shows."""

    node: int
    epoch: int
    levels: tuple[Level, ...] | None
    """null: it is a controller and no broker, which shows none."""
    supported: tuple[Declared, ...]


@answer()
@dataclass(frozen=True, slots=True)
class QuorumViews:
    leader: int
    """-1: none leads."""
    settled: bool
    """Whether the nodes show all that is committed, which takes a majority."""
    nodes: tuple[NodeView, ...]
    """Of those that run."""


@answer()
@dataclass(frozen=True, slots=True)
class QuorumHit:
    """The nodes that were paused or killed."""

    hit: tuple[int, ...]


@answer()
@dataclass(frozen=True, slots=True)
class QuorumSent:
    outcome: str
    """applied; pending: there is no answer so far; lost: the connection ended without one."""
    accepted: bool
    """Whether it was applied, or the leader has it in its log."""


@answer("rejected")
@dataclass(frozen=True, slots=True)
class QuorumRefused:
    """The controller answered with an error."""

    error: Annotated[str, named("class")]


Action: TypeAlias = QuorumViews | QuorumHit | QuorumSent | QuorumRefused
Which: TypeAlias = Literal["leader", "follower", "followers", "all"]


@operation(
    "quorum-format", "operator", "quorum {level}[ {levels}][ beside {beside}]",
    examples="quorum 25; quorum 25 group.version:1; quorum 7 beside 3.3.2",
    sentence="formats and starts three controllers at metadata.version {level}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class QuorumFormat:
    """Three nodes form a new cluster; each is a broker, too, but one of another release."""

    level: Annotated[int, about("metadata.version")]
    levels: Annotated[tuple[Annotated[Level, LEVEL], ...], about("levels of other features")] = ()
    beside: Annotated[
        Annotated[str, RELEASE] | None, about("the release of the last node, which follows; null: the same")
    ] = None


@operation(
    "quorum-pause", "operator", "pause {which}", examples="pause followers", sentence="pauses {which}",
    accepted=QuorumHit,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class QuorumPause:
    """Nodes stop in the middle of what they do (SIGSTOP), and keep their connections."""

    which: Annotated[Which, about("the leader, one follower, both, or all"), typical("followers", "follower", "leader")]


@operation("quorum-resume", "operator", "resume", sentence="resumes the paused nodes")
@dataclass(frozen=True, slots=True)
class QuorumResume:
    """Paused nodes go on."""


@operation(
    "quorum-kill", "operator", "kill {which}", examples="kill leader", sentence="kills {which}", accepted=QuorumHit
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class QuorumKill:
    """Nodes are killed with kill -9."""

    which: Annotated[Which, about("the leader, one follower, both, or all"), typical("leader", "follower", "all")]


@operation("quorum-start", "operator", "start", sentence="starts the killed nodes")
@dataclass(frozen=True, slots=True)
class QuorumStart:
    """Killed nodes start on what they wrote."""


@operation(
    "quorum-send", "operator", "send {updates}", examples="send group.version:1; send metadata.version:5",
    sentence="UpdateFeatures to the leader: {updates}", accepted=QuorumSent,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class QuorumSend:
    """The leader is sent a request for updates."""

    updates: Annotated[tuple[Annotated[TypedUpdate, UPDATE], ...], about("the updates")]


@operation("quorum-await", "operator", "await", sentence="waits for the answer", accepted=QuorumSent)
@dataclass(frozen=True, slots=True)
class QuorumAwait:
    """What became of the pending request."""


@operation("quorum-views", "client", "views", sentence="reads the levels from each node", accepted=QuorumViews)
@dataclass(frozen=True, slots=True)
class QuorumRead:
    """A client reads the levels from each node that runs, once they show what is committed."""


@operation("quorum-snapshot", "operator", "snapshot", sentence="waits for snapshots")
@dataclass(frozen=True, slots=True)
class QuorumSnapshot:
    """Each node that runs has written a snapshot of all that is committed."""


Event: TypeAlias = (
    QuorumFormat | QuorumPause | QuorumResume | QuorumKill | QuorumStart | QuorumSend | QuorumAwait | QuorumRead
    | QuorumSnapshot
)  # fmt: skip
OPERATIONS: Operations[Event, Action] = Operations(
    "kraft-quorum",
    Role.CONTROLLER,
    (
        QuorumFormat, QuorumPause, QuorumResume, QuorumKill, QuorumStart, QuorumSend, QuorumAwait, QuorumRead,
        QuorumSnapshot,
    ),
    sample="views",
)  # fmt: skip
