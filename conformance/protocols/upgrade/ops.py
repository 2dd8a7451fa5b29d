"""The operations of an operator who upgrades a group of consumers, faults of its members, and observed events.

A partition belongs to a member from the end of its assigned callback to the end of its revoked or lost callback
(429-05), or to the end of its process or membership: a member that the coordinator removed is fenced.
"""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, final

from kipcheck.conformance.core.operations.declaration import Operations, operation
from kipcheck.conformance.core.operations.field_annotations import about, omissible, size, typical
from kipcheck.conformance.core.operations.field_kinds import Kind, kind_of, one_of
from kipcheck.conformance.core.operations.observed_events import ObservedEvents, observed
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_names
from kipcheck.conformance.protocols.cluster.kinds import DEFAULT_TOPICS, KINDS, TOPICS

OPERATOR: Final = "operator"
MEMBERS: Final = ("a", "b", "c")
METADATA: Final = range(1, 12)
"""Versions of the metadata of Streams instances."""

Member: TypeAlias = Annotated[str, about("name of the member"), one_of(*MEMBERS)]
TopicName: TypeAlias = Annotated[str, one_of(*dict(TOPICS))]

# Steps of the operator, and faults


@dataclass(frozen=True, slots=True)
class StartsProcess:
    """A step after which the process of a member runs."""

    member: Member


@dataclass(frozen=True, slots=True)
class NeedsProcess:
    """A step that happens to a running process of a member."""

    member: Member


@final
@operation("old-brokers", OPERATOR, "old-brokers")
@dataclass(frozen=True, slots=True)
class OldBrokers:
    """The coordinator behaves as before the draft; must be the first event.

    The first member leads. Only in edition kip-429.
    """


@final
@operation("roll", OPERATOR, "roll {member} {kind}[ {topics}]", examples="roll a old")
@dataclass(frozen=True, slots=True)
class Roll(StartsProcess):
    """A member shuts down cleanly, if it runs, and starts as another kind."""

    kind: Annotated[str, about("kind of its binary and configuration"), one_of(*KINDS)]
    topics: Annotated[tuple[TopicName, ...], about("topics it subscribes to"), omissible, size(1, 2)] = DEFAULT_TOPICS


@final
@operation("stop", OPERATOR, "stop {member}", examples="stop a")
@dataclass(frozen=True, slots=True)
class Stop:
    """A member shuts down cleanly and leaves the group."""

    member: Member


@final
@operation("crash", OPERATOR, "crash {member}", examples="crash a")
@dataclass(frozen=True, slots=True)
class Crash(NeedsProcess):
    """A member's process ends."""


@final
@operation("revive", OPERATOR, "revive {member}", examples="revive a")
@dataclass(frozen=True, slots=True)
class Restart(StartsProcess):
    """A member that stopped or crashed starts as the same kind."""


@final
@operation("lose", OPERATOR, "lose {member}", examples="lose a")
@dataclass(frozen=True, slots=True)
class Lose(NeedsProcess):
    """A member's connection breaks: requests and responses in flight are lost."""


@final
@operation("expire", OPERATOR, "expire {member}", examples="expire a")
@dataclass(frozen=True, slots=True)
class Expire(NeedsProcess):
    """The session of a live member expires."""


@final
@operation("move", OPERATOR, "move {member} {moves}", abbreviations="move {member}", examples="move a 3")
@dataclass(frozen=True, slots=True)
class Move(NeedsProcess):
    """A member makes moves while all others wait.

    The delivery of its requests and responses is a move too.
    """

    moves: Annotated[int, about("number of moves; default 1"), omissible, typical(range(1, 7))] = 1


@final
@operation("settle", OPERATOR, "settle")
@dataclass(frozen=True, slots=True)
class Settle:
    """Time passes until no member and no timer changes the group any more.

    Members whose join was rejected retry once.
    """


@final
@operation("roll-streams", OPERATOR, "streams {member} {version}", examples="streams a 6")
@dataclass(frozen=True, slots=True)
class RollStreams:
    """An instance of a Streams group starts with this metadata version.

    It stops before, if it runs. The group is another one.
    """

    member: Member
    version: Annotated[int, about("version of the metadata"), typical(METADATA)]


Fault: TypeAlias = Crash | Restart | Lose | Expire | Move | Settle
"""What happens to members of any kind."""
OwnEvent: TypeAlias = OldBrokers | Roll | Stop | RollStreams
Event: TypeAlias = OwnEvent | Fault

# Observed events

PARTITIONS: Final = kind_of(tuple[Partition, ...]).printed_by(partition_names)
Partitions: TypeAlias = Annotated[tuple[Partition, ...], PARTITIONS]


@final
@observed("took", "{member} takes over {partitions} (generation {generation})")
@dataclass(frozen=True, slots=True)
class Took:
    """An assigned callback returned."""

    member: str
    generation: int
    partitions: Partitions
    """The newly assigned partitions."""


@final
@observed("gave", "{member} {lost:loses|revokes} {partitions}")
@dataclass(frozen=True, slots=True)
class Gave:
    """A revoked or lost callback returned."""

    member: str
    partitions: Partitions
    lost: bool = False


@final
@observed("ended", "the process of {member} ends")
@dataclass(frozen=True, slots=True)
class Ended:
    """A process ended: its member owns nothing any more."""

    member: str


@final
@observed("putout", "the coordinator removes {member} from the group")
@dataclass(frozen=True, slots=True)
class PutOut:
    """The coordinator removed a member that had not left."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Joining:
    """A member of the group at the end of a join phase."""

    member: str
    version: int
    """Version of its protocol: 0 if it revokes all partitions before it joins, above 0 if not."""
    knows: int
    """The newest version that it can read from others."""
    topics: tuple[str, ...]


def _versions(members: tuple[Joining, ...]) -> str:
    return ", ".join(f"{each.member} uses version {each.version}" for each in members)


def _number(members: tuple[Joining, ...]) -> str:
    return f"{len(members)} members"


JOINING: Final[Kind] = kind_of(tuple[Joining, ...])


@final
@observed("formed", "generation {generation}: {members}; {leader} leads, with assignor {protocol}")
@dataclass(frozen=True, slots=True)
class Formed:
    """A join phase ended."""

    generation: int
    leader: str
    protocol: str
    """The assignor that the group chose."""
    members: Annotated[tuple[Joining, ...], JOINING.printed_by(_versions)]


@final
@observed("assigned", "{member} receives the assignment {partitions}[, error {error}]")
@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment reached its member."""

    member: str
    generation: int
    partitions: Partitions
    error: int = 0


@final
@observed("counted", "num.incompatible.rebalance of {member} is {total}")
@dataclass(frozen=True, slots=True)
class Counted:
    """A member raised its num.incompatible.rebalance."""

    member: str
    total: int


@final
@observed("streamsled", "generation {generation}: {leader} leads, and supports versions up to {version}")
@dataclass(frozen=True, slots=True)
class StreamsLed:
    """A rebalance of the Streams group, with its leader and the leader's latest metadata version."""

    generation: int
    leader: str
    version: int


@final
@observed("steppeddown", "the leader makes {member} downgrade to version {version}")
@dataclass(frozen=True, slots=True)
class SteppedDown:
    """A member has to downgrade its metadata version: version probing (KIP-268)."""

    member: str
    version: int


@final
@observed("failed", "{member} fails with {error}")
@dataclass(frozen=True, slots=True)
class Failed:
    """A member raised an error to its user."""

    member: str
    error: str


@final
@observed("rests", "the group with {members} is at rest in generation {generation}")
@dataclass(frozen=True, slots=True)
class Rests:
    """The group is at rest: no member moves and no timer is due, except that rejected members retry."""

    generation: int
    members: Annotated[tuple[Joining, ...], JOINING.printed_by(_number)]
    """Members of the stable group; empty if the group is empty."""


@final
@observed("restless", "the group does not come to rest")
@dataclass(frozen=True, slots=True)
class Restless:
    """After this many turns of all members the group has not come to rest, or is stuck in a rebalance."""

    turns: int


EventOfAnyGroup: TypeAlias = Took | Gave | Ended | PutOut | Restless
ObservedEvent: TypeAlias = (
    Took | Gave | Ended | PutOut | Formed | Assigned | Counted | StreamsLed | SteppedDown | Failed | Rests | Restless
)
OBSERVED: Final = ObservedEvents[ObservedEvent](
    Took, Gave, Ended, PutOut, Formed, Assigned, Counted, StreamsLed, SteppedDown, Failed, Rests, Restless
)
BOUNCE: Final = "bounce"
"""The machine of an operator who upgrades the members of a group one after another."""
OPERATIONS: Final[Operations[Event, ObservedEvent]] = Operations(
    BOUNCE,
    Role.OPERATOR_TOOL,
    (OldBrokers, Roll, Stop, Crash, Restart, Lose, Expire, Move, Settle, RollStreams),
    observed=OBSERVED,
)
