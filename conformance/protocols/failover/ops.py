"""What happens to a cluster of three brokers, each of which is a controller too, while the members of a group beat and
commit, and what these members observe.

All times are milliseconds since the conversation began, of one clock: a request was handled between ``sent_ms`` and
``at_ms``. Each commit has an offset of its own, larger than those before.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, final

from kipcheck.conformance.core.operations.declaration import Operations, operation
from kipcheck.conformance.core.operations.field_annotations import about, omissible, typical
from kipcheck.conformance.core.operations.field_kinds import kind_of, one_of
from kipcheck.conformance.core.operations.observed_events import ObservedEvents, observed
from kipcheck.conformance.core.values.case import Role

FAILOVER: Final = "failover"
"""The machine: three brokers, and one group."""
OPERATOR: Final = "operator"
MEMBERS: Final = ("a", "b", "c")
NODES: Final = (1, 2, 3)
PARTITIONS: Final = 4
"""Of the topic that all members subscribe to."""
STABLE_MS: Final = 90_000
"""In this time after the last fault a group of members that go on is stable again, also on a busy machine. Nodes are
missed after 6 s, members after 6 s, and a rebalance takes 6 s at most, or the 11 s in which a client gives up a
JoinGroup."""

Member: TypeAlias = Annotated[str, about("name of the member"), one_of(*MEMBERS)]
Protocol: TypeAlias = Literal["classic", "consumer"]
Which: TypeAlias = Annotated[
    Literal["coordinator", "other"], about("the node that coordinates the group, or one that does not")
]

# Members


@final
@operation("failover-join", OPERATOR, "join {member} {protocol}", examples="join a classic")
@dataclass(frozen=True, slots=True)
class Join:
    """A member starts, unless it runs.

    It beats and commits all its partitions twice a second, and looks for the coordinator where it loses it.
    """

    member: Member
    protocol: Annotated[Protocol, about("of the group: classic, or that of KIP-848"), typical("classic", "consumer")]


@final
@operation("failover-leave", OPERATOR, "leave {member}", examples="leave a")
@dataclass(frozen=True, slots=True)
class Leave:
    """A member leaves the group and ends."""

    member: Member


@final
@operation("failover-crash", OPERATOR, "crash {member}", examples="crash a")
@dataclass(frozen=True, slots=True)
class Crash:
    """A member ends without a request: its session has to expire."""

    member: Member


# Nodes


@final
@operation("failover-kill", OPERATOR, "kill {which}", examples="kill coordinator")
@dataclass(frozen=True, slots=True)
class Kill:
    """A node gets SIGKILL."""

    which: Which


@final
@operation("failover-stop", OPERATOR, "stop {which}", examples="stop coordinator")
@dataclass(frozen=True, slots=True)
class Stop:
    """A node shuts down: it gives up what it leads before it ends."""

    which: Which


@final
@operation("failover-pause", OPERATOR, "pause {which}", examples="pause coordinator; pass 12000; resume")
@dataclass(frozen=True, slots=True)
class Pause:
    """A node gets SIGSTOP.

    It is silent to clients, brokers and controllers, and keeps its connections. After its session with the controller
    another node takes over.
    """

    which: Which


@final
@operation("failover-resume", OPERATOR, "resume")
@dataclass(frozen=True, slots=True)
class Resume:
    """A paused node goes on, and does not know yet what it has missed."""


@final
@operation("failover-start", OPERATOR, "start")
@dataclass(frozen=True, slots=True)
class Start:
    """A node that was killed or stopped starts again, with its data."""


@final
@operation("failover-elect", OPERATOR, "elect")
@dataclass(frozen=True, slots=True)
class Elect:
    """Another node is elected leader of the group's partition of the offsets, and so coordinates it."""


@final
@operation("failover-roll", OPERATOR, "roll")
@dataclass(frozen=True, slots=True)
class Roll:
    """The next node that runs the older release shuts down and starts as the newer one.

    On a cluster of one release the node restarts.
    """


@final
@operation("failover-raise", OPERATOR, "raise")
@dataclass(frozen=True, slots=True)
class Raise:
    """The metadata.version is raised to the newest one of the newer release.

    The controller refuses it while a node runs the older release.
    """


# Time


@final
@operation("failover-pass", OPERATOR, "pass {ms}", examples="pass 3000")
@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    ms: Annotated[int, about("milliseconds"), typical(1000, 3000, 12_000)]


@final
@operation("failover-settle", OPERATOR, "settle")
@dataclass(frozen=True, slots=True)
class Settle:
    """Waits until the group is stable, and reads its offsets from its coordinator."""


NodeFault: TypeAlias = Kill | Stop | Pause
Event: TypeAlias = Join | Leave | Crash | NodeFault | Resume | Start | Elect | Roll | Raise | Pass | Settle

# What members observe


def _partitions_text(partitions: tuple[int, ...]) -> str:
    return ", ".join(f"t-{each}" for each in partitions) or "no partition"


Partitions: TypeAlias = Annotated[tuple[int, ...], kind_of(tuple[int, ...]).printed_by(_partitions_text)]
"""Numbers of partitions, sorted."""


@final
@observed("accepted", "{at_ms} ms: {member}'s {request} of epoch {epoch} is accepted by node {node}, with {partitions}"
          "[, offset {offset}]")  # fmt: skip
@dataclass(frozen=True, slots=True)
class Accepted:
    """A request was answered without an error."""

    member: str
    protocol: str
    request: str
    """The API, such as ``Heartbeat``."""
    node: int
    epoch: int
    """The generation, or the epoch of the member: of an answer that has one, else of the request."""
    partitions: Partitions
    """Those that the member had when it sent the request."""
    sent_ms: int
    at_ms: int
    offset: Annotated[int | None, omissible] = None
    """That a commit had for all these partitions."""
    joins: Annotated[bool, omissible] = False
    """Whether it asked to become a member: JoinGroup, or a heartbeat with epoch 0."""


@final
@observed("refused", "{at_ms} ms: {member}'s {request} of epoch {epoch} gets {error} from node {node}")
@dataclass(frozen=True, slots=True)
class Refused:
    """A request was refused, or not answered: then it may have had an effect."""

    member: str
    request: str
    node: int
    epoch: int
    partitions: Partitions
    error: str
    """The name of the error; ``no answer``."""
    sent_ms: int
    at_ms: int
    offset: Annotated[int | None, omissible] = None


@final
@observed("assigned", "{at_ms} ms: {member} receives {partitions} from node {node}, in epoch {epoch}")
@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment reached its member: all that it may read now."""

    member: str
    node: int
    epoch: int
    partitions: Partitions
    at_ms: int


@final
@observed("gave", "{at_ms} ms: {member} stops reading {partitions}")
@dataclass(frozen=True, slots=True)
class Gave:
    """A member gave partitions up."""

    member: str
    partitions: Partitions
    at_ms: int


def _offsets_text(offsets: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"t-{partition} at {offset}" for partition, offset in offsets) or "nothing"


@final
@observed("fetched", "{at_ms} ms: {member} reads from node {node} that {offsets} is committed")
@dataclass(frozen=True, slots=True)
class Fetched:
    """OffsetFetch was answered. A partition without an offset is left out."""

    member: str
    node: int
    offsets: Annotated[
        tuple[tuple[int, int], ...], kind_of(tuple[tuple[int, int], ...]).printed_by(_offsets_text)
    ]  # fmt: skip
    sent_ms: int
    at_ms: int


@final
@observed("hit", "{at_ms} ms: node {node} ({release}): {did}")
@dataclass(frozen=True, slots=True)
class Hit:
    """What was done to a node."""

    did: str
    """``killed``, ``stopped``, ``paused``, ``resumes``, ``starts``, ``elected``, ``metadata.version N``, or why not."""
    node: int
    release: str
    at_ms: int


@final
@observed("rests", "{at_ms} ms: the group is stable after {took_ms} ms, with {members} members")
@dataclass(frozen=True, slots=True)
class Rests:
    """Every member has an assignment of one epoch, every partition one owner, and the coordinator answers."""

    members: int
    took_ms: int
    at_ms: int


@final
@observed("restless", "{at_ms} ms: the group is not stable after {took_ms} ms: {why}")
@dataclass(frozen=True, slots=True)
class Restless:
    """The group did not become stable in the time that ``settle`` waits."""

    why: str
    took_ms: int
    late_ms: int
    """How late kipcheck's own timer was at most: a busy machine runs neither nodes nor members in time."""
    at_ms: int


Action: TypeAlias = Accepted | Refused | Assigned | Gave | Fetched | Hit | Rests | Restless
OPERATIONS: Final[Operations[Event, Action]] = Operations(
    FAILOVER,
    Role.COORDINATOR,
    (Join, Leave, Crash, Kill, Stop, Pause, Resume, Start, Elect, Roll, Raise, Pass, Settle),
    observed=ObservedEvents(Accepted, Refused, Assigned, Gave, Fetched, Hit, Rests, Restless),
    sample="join a classic; settle",
)
