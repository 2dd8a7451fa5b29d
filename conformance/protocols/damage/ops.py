"""What a client with damaged or outdated requests does to a broker, and how its other clients fare."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, typical
from kipcheck.conformance.core.values.case import Role

DAMAGE: Final = "damage"
"""The machine: a broker with one client that damages its requests, or is old, and others that are neither."""
Api: TypeAlias = Literal[
    "ApiVersions", "Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "DescribeGroups",
    "ListGroups", "OffsetCommit", "OffsetFetch",
]  # fmt: skip
MemberApi: TypeAlias = Literal[
    "ApiVersions", "Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit",
    "OffsetFetch",
]  # fmt: skip
"""Those that members of groups send."""
Kind: TypeAlias = Literal[
    "prefix", "length", "long-varint", "flood", "trailing", "boolean", "presence", "text", "null", "wide-varint",
    "padded-varint", "tag-order", "tag-size", "tag-default", "version", "many-tags", "unknown-tag",
    "size-negative", "size-zero", "size-tiny", "size-huge", "size-above", "size-below", "size-cut", "noise", "tls",
    "http", "key-unknown", "key-negative", "version-above", "version-negative",
]  # fmt: skip
"""Those of ``strategies.corruption``, which have places in header and body; then those of frames and of the header."""
FRAMES: Final[tuple[Kind, ...]] = (
    "size-negative", "size-zero", "size-tiny", "size-huge", "size-above", "size-below", "size-cut", "noise", "tls",
    "http",
)  # fmt: skip
HEADERS: Final[tuple[Kind, ...]] = ("key-unknown", "key-negative", "version-above", "version-negative")
UNFINISHED: Final[frozenset[Kind]] = frozenset({"size-huge", "size-above", "size-cut"})
"""The broker waits for the rest: without an end it may do so for ever."""
PLACES_OF_A_KIND: Final = 40
"""Hardly a message that is drawn has more places for one kind of damage."""
OLDEST: Final[Mapping[MemberApi, int]] = {
    "ApiVersions": 0, "Metadata": 0, "FindCoordinator": 0, "JoinGroup": 0, "SyncGroup": 0, "Heartbeat": 0,
    "LeaveGroup": 0, "OffsetCommit": 2, "OffsetFetch": 1,
}  # fmt: skip
"""The oldest versions that 4.0 keeps of what members of groups send (KIP-896, Public Interfaces)."""
End: TypeAlias = Literal["waits", "half-closes", "closes"]


@answer()
@dataclass(frozen=True, slots=True)
class Served:
    """How the other clients fared."""

    old: Annotated[str, about("the connection from before the damage: served, or what became of it")]
    new: Annotated[str, about("the same of a new connection")]
    descriptors: Annotated[int, about("open files more than before; the least of several times, 0 if unknown")]
    threads: Annotated[int, about("the same of threads")]
    memory_mib: Annotated[int, about("the same of memory")]
    processor_ms: Annotated[int, about("the same of processor time")]


@answer()
@dataclass(frozen=True, slots=True)
class Treated:
    """What became of the connection."""

    end: Annotated[str, about("answered, closed, or silent: neither")]
    responses: Annotated[int, about("how many came")]
    sent: Annotated[str, about("the first bytes that were sent, hex, without the sound requests")]


@operation(
    "damage-send", "client", "send {api} {version} {place} {kind} {number} {before} {end}",
    examples="send JoinGroup 9 body length 3 1 half-closes",
    sentence="sends {before} sound requests, then {api} v{version} with {kind} in its {place} ({number}), and {end}",
    accepted=Treated,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Send:
    """A client opens a connection and sends a damaged request.

    Its connection is gone when the step ends. The group and the member that it names do not exist.
    """

    api: Annotated[Api, about("the request")]
    version: Annotated[int, about("its version, or the nearest one that the broker announces"), typical(range(10))]
    place: Annotated[Literal["frame", "header", "body"], about("what is damaged")]
    kind: Annotated[Kind, about("how; a kind that has no place there is replaced by trailing")]
    number: Annotated[int, about("which of the places, modulo their number"), typical(range(PLACES_OF_A_KIND))] = 0
    before: Annotated[int, about("sound ApiVersions requests in front of it"), typical(0, 1, 5)] = 0
    end: Annotated[End, about("what the client does then")] = "waits"


@operation("damage-others", "others", "others", sentence="send a commit, and read it over another connection",
           accepted=Served)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Others:
    """Other clients of the broker commit an offset and read it."""


@operation("damage-old", "client", "old {api} {version}",
           sentence="sends a sound {api} v{version}, and has asked for no versions", accepted=Treated)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Old:
    """A client that knows one version sends a sound request, over a connection of its own."""

    api: Annotated[MemberApi, about("the request")]
    version: Annotated[int, about("its version, whether the broker announces it or not"), typical(range(3))]


Event: TypeAlias = Send | Others | Old
Action: TypeAlias = Treated | Served
OPERATIONS: Operations[Event, Action] = Operations(
    DAMAGE, Role.COORDINATOR, (Send, Others, Old), sample="send Heartbeat 0 body trailing 0 0 waits; others"
)
