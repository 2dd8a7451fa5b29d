"""The operations of an operator who upgrades a Streams group, faults of its members, and observed events.

Members are named threads. A thread that is stopped or killed sends no LeaveGroup, because Streams does not leave
(``internal.leave.group.on.close``). So a bounce is a ``Start`` of a running member. User data stay encoded, as hex.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.core.operations.declaration import Operations, operation, variant
from kipcheck.conformance.core.operations.field_annotations import about, omissible, typical
from kipcheck.conformance.core.operations.field_kinds import Kind, kind_of, one_of, record
from kipcheck.conformance.core.operations.observed_events import ObservedEvents, observed
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, Topic
from kipcheck.conformance.protocols.streams import user_data_text as texts
from kipcheck.conformance.protocols.streams.model.members import NEVER, NONE, OWN, Rejoin, Subtopology, TaskId, Topology
from kipcheck.conformance.protocols.upgrade.ops import (
    OPERATOR,
    PARTITIONS,
    Crash,
    Ended,
    Expire,
    Fault,
    Gave,
    Lose,
    Move,
    NeedsProcess,
    Partitions,
    PutOut,
    Restart,
    Restless,
    Settle,
    StartsProcess,
    Took,
)

STREAMS: Final = "streams"
"""The machine of an operator of a Kafka Streams group: members of one release and of its future."""
STREAMS_MIXED: Final = "streams-mixed"
"""The same with members of any release."""
MEMBERS: Final = ("a", "b", "c", "d")
MEMBER: Final = one_of(*MEMBERS)
TOPICS: Final = (Topic("t", 3),)
STATELESS: Final = Topology((Subtopology(0, ("t",)),))

Member: TypeAlias = Annotated[str, about("name of the member"), MEMBER]

# Kinds of fields


def _sizes(found: Any) -> tuple[Topic, ...]:
    if not isinstance(found, Mapping):
        raise TypeError(f": must be an object, got {found!r}")
    for name, partitions in found.items():
        if type(partitions) is not int:
            raise TypeError(f".{name}: must be an integer, got {partitions!r}")
    return tuple(Topic(name, partitions) for name, partitions in found.items())


def _task(found: Any) -> TaskId:
    try:
        return TaskId.parse(found)
    except (AttributeError, ValueError):
        raise TypeError(f": must be a task id, as 0_1 or name__0_1, got {found!r}") from None


def _bytes(found: Any) -> bytes | None:
    try:
        return None if found is None else bytes.fromhex(found)
    except (TypeError, ValueError):
        raise TypeError(f": must be hex, got {found!r}") from None


WORD: Final = kind_of(str)
TOPOLOGY: Final = replace(record(Topology), schema={"$ref": "#/$defs/topology"})
SIZES: Final = Kind(
    "object",
    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
    _sizes,
    lambda topics: {each.name: each.partitions for each in topics},
    WORD.text,
)
"""Topics with their numbers of partitions."""
PAIRS: Final = replace(kind_of(tuple[tuple[str, str], ...]), words="list")
TASKS: Final = kind_of(tuple[Annotated[TaskId, replace(WORD, read=_task, write=str, exact=frozenset())], ...])
HEX: Final = replace(
    WORD, read=_bytes, write=lambda data: data.hex() if isinstance(data, bytes) else data, exact=frozenset()
)
_WHEN: Final = kind_of(tuple[str, int])
REJOIN: Final = replace(_WHEN, read=lambda found: Rejoin(*_WHEN.read(found)))

Tasks: TypeAlias = Annotated[tuple[TaskId, ...], TASKS]
Blob: TypeAlias = Annotated[Hashable, HEX]

# Steps of the operator


def _deploy_text(event: Any) -> str:
    sizes = " ".join(f"{each.name}:{each.partitions}" for each in event.topics)
    standbys = f", {event.topology.standbys} standbys" if event.topology.standbys else ""
    leads = ", newest leads" if event.newest_leads else ""
    return f"deploy {sizes or 'no topics'} ({len(event.topology.subtopologies)} subtopologies{standbys}{leads})"


@final
@operation("stream-deploy", OPERATOR, (), text=_deploy_text, required=("topology", "topics"))
@dataclass(frozen=True, slots=True)
class Deploy:
    """Deploys the application that all members run; must be the first event.

    Default: one subtopology without state, and the topic t with 3 partitions.
    """

    topology: Annotated[Topology, about("subtopologies, and the number of standbys"), TOPOLOGY] = STATELESS
    topics: Annotated[
        tuple[Topic, ...], about("existing topics, with their numbers of partitions"), SIZES
    ] = TOPICS  # fmt: skip
    end_points: Annotated[bool, about("true: each member has an application.server"), omissible] = False
    """``MEMBER:9092``."""
    tags: Annotated[
        tuple[tuple[str, str], ...],
        about("client tags as [key, value], given to the members in turn"),
        PAIRS,
        omissible,
    ] = ()
    """All keys are in ``rack.aware.assignment.tags``, so every member needs them (since 3.2)."""
    newest_leads: Annotated[
        bool,
        about("true: when the leader is gone, the member that joined last leads, not the first"),
        omissible,
    ] = False
    """A coordinator may choose any member: in Kafka it depends on the order of a hash map."""


@final
@operation(
    "stream-start", OPERATOR, "start {member} {release:[^ <]+}[<{upgrade_from:[^ ]+}][ of {instance:[^ ]+}]",
    abbreviations="start {member}",
    examples="start a 2.4.1<2.3",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Start(StartsProcess):
    """A member starts; if it runs, it first ends without a LeaveGroup."""

    member: Member
    release: Annotated[
        str, about("own, future, or an exact patch release; default own"), omissible, typical(OWN)
    ] = OWN  # fmt: skip
    upgrade_from: Annotated[str | None, about("upgrade.from"), omissible, typical(None)] = None
    instance: Annotated[
        str | None,
        about("instance that the thread belongs to; default its own"),
        omissible,
        typical(None, *MEMBERS),
    ] = None
    """None: an instance of its own, with the member's name."""


@final
@operation("stream-shut-down", OPERATOR, "shut-down {member}", examples="shut-down a")
@dataclass(frozen=True, slots=True)
class ShutDown(NeedsProcess):
    """A member requests the shutdown of the whole application (since 2.8).

    The request is in its next subscription.
    """

    member: Member


OwnEvent: TypeAlias = Deploy | Start | ShutDown
Event: TypeAlias = OwnEvent | Fault

# Observed events


@final
@observed(
    "began",
    "{member} runs {release}[ with upgrade.from {upgrade_from}]; its latest version is {latest}, it starts with "
    "version {used}",
)
@dataclass(frozen=True, slots=True)
class Began:
    """A process started."""

    member: str
    release: str
    """An exact patch release, a draft's edition, or the future of either (``future``, ``future@kip-268``)."""
    upgrade_from: str | None
    latest: int
    used: int
    """The version of its first subscription."""


@final
@observed("refused", "{member} does not start as {release}[ with upgrade.from {upgrade_from}]: {why}")
@dataclass(frozen=True, slots=True)
class Refused:
    """A process did not start, because its configuration is invalid."""

    member: str
    release: str
    upgrade_from: str | None
    why: str


class JoinMetadata(NamedTuple):
    """A member's metadata in a completed join phase."""

    member: str
    data: Blob
    owned: Partitions
    cooperative: bool


def _joined(members: tuple[JoinMetadata, ...]) -> str:
    return ", ".join(f"{each.member} {texts.subscription(each.data)}" for each in members)


@final
@observed("formed", "generation {generation}: {members}; {leader} leads")
@dataclass(frozen=True, slots=True)
class Formed:
    """A join phase completed. Each join phase is a rebalance."""

    generation: int
    leader: str
    members: Annotated[tuple[JoinMetadata, ...], kind_of(tuple[JoinMetadata, ...]).printed_by(_joined)]


@final
@observed("sent", "{leader} sends {member} {partitions}{data}")
@dataclass(frozen=True, slots=True)
class Sent:
    """The leader of a generation sent this assignment for a member. Its assignments are consecutive events."""

    generation: int
    leader: str
    member: str
    partitions: Annotated[tuple[Partition, ...], PARTITIONS.printed_by(texts.partitions)]
    data: Annotated[Hashable, HEX.printed_by(texts.assignment)]


def _applied(event: Any) -> str:
    what = f"runs {texts.tasks(event.active)}" if event.applied else f"keeps its tasks {texts.tasks(event.active)}"
    if event.standby:
        what += f", with standby {texts.tasks(event.standby)}"
    if event.error:
        what = f"receives error {event.error}"
    if event.before != event.used:
        what += f"; changes from version {event.before} to {event.used}"
    return f"{event.member} {what}{texts.rejoins(event.rejoin)}"


@final
@observed("applied", _applied)
@dataclass(frozen=True, slots=True)
class Applied:
    """The effect of an assignment on its member."""

    member: str
    generation: int
    partitions: Partitions
    before: int
    """The version it used before."""
    used: int
    """The version it uses from now on."""
    active: Tasks
    """Active tasks of its task manager."""
    standby: Tasks
    """Standby tasks of its task manager."""
    applied: bool = True
    rejoin: Annotated[Rejoin, REJOIN] = NEVER
    error: int = NONE


_DURING: Final = {
    "subscribe": "subscribing", "lead": "leading", "assigned": "applying its assignment", "error": "error code",
}  # fmt: skip


@final
@observed("died", "{member} dies ({during}) of {kind}: {why}")
@dataclass(frozen=True, slots=True)
class Died:
    """A thread ended with an exception."""

    member: str
    during: Annotated[str, WORD.printed_by(lambda during: _DURING.get(during, during))]
    """``subscribe``, ``lead`` or ``assigned``; ``error`` for an error code in the assignment."""
    kind: Annotated[str, WORD.printed_by(lambda kind: str(kind).rpartition(".")[2])]
    """Class of the exception, or a model's name for it; ``ENDLESS`` for a call that did not return."""
    why: str


class Present(NamedTuple):
    member: str
    used: int
    active: Tasks
    standby: Tasks
    partitions: Partitions


def _present(members: tuple[Present, ...]) -> str:
    return "; ".join(map(_one_present, members)) or "no members"


def _one_present(member: Present) -> str:
    standby = f" (standby {texts.tasks(member.standby)})" if member.standby else ""
    return f"{member.member} uses version {member.used} and runs {texts.tasks(member.active)}{standby}"


@final
@observed("rests", "the group is at rest in generation {generation}: {members}")
@dataclass(frozen=True, slots=True)
class Rests:
    """The group is at rest. ``members`` are those of the stable group, none if it is empty."""

    generation: int
    members: Annotated[tuple[Present, ...], kind_of(tuple[Present, ...]).printed_by(_present)]


ObservedEvent: TypeAlias = (
    Began | Refused | Formed | Sent | Applied | Took | Gave | Ended | PutOut | Died | Rests | Restless
)
OBSERVED: Final = ObservedEvents[ObservedEvent](
    Began, Refused, Formed, Sent, Applied, Took, Gave, Ended, PutOut, Died, Rests, Restless
)
ENDS: Final = "a member ends without a LeaveGroup, and does not restart"
STARTS_AGAIN: Final = "a member that ended starts with the same binary"
OF_A_MEMBER: Final = {"member": MEMBER}
OPERATIONS: Final[Operations[Event, ObservedEvent]] = Operations(
    STREAMS,
    Role.OPERATOR_TOOL,
    (
        Deploy,
        Start,
        variant(Crash, "stream-stop", kinds=OF_A_MEMBER, shorthand="stop {member}", examples="stop a", meaning=ENDS),
        variant(
            Restart, "stream-restart",
            kinds=OF_A_MEMBER, shorthand="restart {member}", examples="restart a", meaning=STARTS_AGAIN,
        ),
        variant(Lose, "stream-lose", kinds=OF_A_MEMBER),
        variant(Expire, "stream-expire", kinds=OF_A_MEMBER),
        ShutDown,
        variant(Move, "stream-move", kinds=OF_A_MEMBER),
        variant(Settle, "stream-settle", kinds={}),
    ),
    observed=OBSERVED,
    alike=(STREAMS_MIXED,),
)  # fmt: skip
