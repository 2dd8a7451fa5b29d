"""The operations of the coordinator of a classic group: requests of clients, other events, and answers.

Steps name members by references, answers by canonical ids: see ``kipcheck.conformance.protocols.group.model.names``.
Each request has a number, which its answer repeats. The answer may come at once, at a later event, or never.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeAlias, final

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.operations.declaration import operation
from kipcheck.conformance.core.operations.field_annotations import about, hidden, omissible, optional, wire
from kipcheck.conformance.core.operations.field_kinds import NOTHING, TextForm, kind_of, schema
from kipcheck.conformance.core.operations.request_words import ACTOR, WORD, listed, pair
from kipcheck.conformance.core.operations.requests import Requests, request, request_answer
from kipcheck.conformance.core.operations.wire_form import Value, message
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.compaction import COMPACTED, Compacted, Since, Tombstones
from kipcheck.conformance.protocols.group import request_texts
from kipcheck.conformance.protocols.group.errors import ERROR, KNOWN_ERROR, REPORTED_ERROR, Error

GROUP: Final = "group"
"""The machine of a coordinator of one classic group."""
Blob: TypeAlias = Annotated[Hashable, kind_of(str)]
"""Metadata of a protocol, or an assignment: opaque to the coordinator, which compares and forwards it."""
EMPTY: Blob = ""
"""Zero bytes."""
NO_GENERATION = -1
CLIENTS: Final = ("a", "b", "c", "d", "e")
TIME: Final = "time"
"""Actor of ``elapse``."""
BROKER: Final = "broker"
"""Actor of all other events that are not requests."""


Reported: TypeAlias = Annotated[Error, REPORTED_ERROR, wire("errorCode as error")]
Version: TypeAlias = Annotated[int, schema(minimum=0, maximum=32_767), about("version of the request")]
Member: TypeAlias = Annotated[
    str,
    about("reference: a is the id most recently given to client a, a-old the id before it, ? an unknown id"),
    wire("memberId"),
]
Instance: TypeAlias = Annotated[str | None, about("group instance id"), omissible, wire("groupInstanceId")]
Number: TypeAlias = Annotated[int, hidden]
Generation: TypeAlias = Annotated[int, hidden, wire("generationId")]
Offset: TypeAlias = tuple[str, int, int, int, str]
"""Topic, partition, offset, leader epoch (-1: none), metadata."""
NO_MORE: Final = (-1, "")
"""The leader epoch and the metadata of a commit that has neither."""


def _row_read(found: Any) -> Any:
    is_short = isinstance(found, list | tuple) and len(found) == 3
    return _ROW.read((*found, *NO_MORE) if is_short else found)


def _row_written(row: Sequence[Any]) -> list[Any]:
    more = (row[3], row[4] or "")
    return [*row[:3], *(() if more == NO_MORE else more)]


_ROW: Final = kind_of(tuple[str, int, int, int, str])
_OFFSET: Final = replace(
    _ROW, read=_row_read, write=_row_written,
    schema={**_ROW.schema, "minItems": 3},
)  # fmt: skip
"""In JSON without the last two parts, where there is nothing in them."""
Offsets: TypeAlias = Annotated[
    tuple[Annotated[Offset, _OFFSET], ...],
    wire("groups[0].topics[].name as topic | groups[0].topics[].topicId as topic_id | "
         "topics[].name as topic | topics[].topicId as topic_id",
         *(f"groups[0].topics[].partitions[].{name} | topics[].partitions[].{name}"
           for name in ("partitionIndex", "committedOffset", "committedLeaderEpoch")),
         " | ".join(f"{place}topics[].partitions[].{name}"
                    for place in ("groups[0].", "") for name in ("metadata", "committedMetadata")),
         is_sorted=True),
]  # fmt: skip
PLACED_OFFSETS: Final = "topic, partition, offset, and with it leader epoch and metadata"
Protocol: TypeAlias = Annotated[str | None, about("since version 5"), omissible]


@final
@dataclass(frozen=True, slots=True)
class By:
    """A request of a client. Members are named by references (``model.names``); the request's own generation, fresh id
    and number are ignored."""

    actor: str
    request: "Request"
    behind: Annotated[
        int | None,
        about("its generation: 0 the last one that its client received, 1 one older, null none"),
        omissible,
    ] = 0
    """Its generation: the last one that the actor received, minus ``behind``; None: -1."""
    nameless: Annotated[bool, about("the request has an empty group id"), optional] = False


def usual_version(verb: str) -> int:
    """Of a request in shorthand, without an instance."""
    version: int = OPERATIONS.requests[verb].words[0].default("version")
    return version


DRAFT_JOIN: Final = 5

_ID: Final = {"member": request_texts.id_text}
_DATED: Final = "{member}[, instance {instance}], generation {generation}"


# Requests


@final
@request(
    "join", By, CLIENTS,
    tuple(f"{word} {{actor}} {{member:id=}} {{instance:as}} {{protocols:lists=}} {{protocol_type:type=}} "
          "{session_ms:session=} {rebalance_ms:rebalance=} {protocol_version:pv=} {nameless} {version:v}"
          for word in ("join", "rejoin")),
    defaults={"protocol_type": "consumer", "protocols": (("p", "x"),), "version": request_texts.usual(3, static=5),
              "member": lambda context, given: context[ACTOR] if context[WORD] == "rejoin" else ""},
    forms={"protocols": listed(pair(":"))},
    carried=("nameless",),
    examples="join a; rejoin a; join b as i lists=p:x,q:y",
    sentence="JoinGroup v{version}, {member}[, instance {instance}], {protocol_type} {protocols}, "
             "session {session_ms} ms, rebalance {rebalance_ms} ms[, protocol version {protocol_version}]",
    prints={**_ID, "protocol_type": lambda value: value or "no type",
            "protocols": lambda value: ", ".join(f"{name}:{blob}" for name, blob in value) or "without protocols"},
)  # fmt: skip
@message("JoinGroupRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class Join:
    """JoinGroup."""

    version: Version
    member: Member
    """Empty if it has none yet."""
    instance: Instance
    protocol_type: Annotated[str, about("for example consumer"), wire("protocolType")]
    protocols: Annotated[tuple[tuple[str, Blob], ...], about("name and metadata, preferred first"),
                         wire("protocols[].name", "protocols[].metadata as blob")]  # fmt: skip
    session_ms: Annotated[
        int, about("session timeout, ms; default 10000"), omissible, wire("sessionTimeoutMs as session")
    ] = 10_000
    rebalance_ms: Annotated[
        int, about("rebalance timeout, ms; default 30000"), omissible, wire("rebalanceTimeoutMs as timeout")
    ] = 30_000
    fresh: Annotated[str, hidden] = ""
    """The member id that the coordinator gives out if this request needs one; an input: the model is pure."""
    protocol_version: Annotated[
        int | None, replace(kind_of(int | None), schema=kind_of(int).schema),
        about("only in KIP-429's draft"), omissible, optional, wire("protocolVersion"),
    ] = None  # fmt: skip
    """JoinGroup v5."""
    request: Number = 0

    @property
    def patience_ms(self) -> int:
        """The rebalance timeout; version 0 has none, and uses the session timeout."""
        return self.session_ms if self.version == 0 else self.rebalance_ms


@final
@request(
    "sync", By, CLIENTS,
    "sync {actor} {member:id=} {instance:as} {assignments*} {protocol_type:type=} {protocol:protocol=} "
    "{behind:behind=} {nameless} {version:v}",
    defaults={"member": request_texts.own, "version": request_texts.usual(3)},
    forms={"assignments": pair("=")},
    carried=("behind", "nameless"),
    lead=3,
    examples="sync a a=x b=y; sync b",
    sentence=f"SyncGroup v{{version}}, {_DATED}[, gives {{assignments}}]",
    prints={**_ID, "assignments": lambda value: ", ".join(f"{member} {blob!r}" for member, blob in value)},
)  # fmt: skip
@message("SyncGroupRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class Sync:
    """SyncGroup."""

    version: Version
    member: Member
    instance: Instance
    generation: Generation
    assignments: Annotated[
        tuple[tuple[str, Blob], ...], about("from the leader: member reference and assignment"), omissible,
        wire("assignments[].memberId", "assignments[].assignment as blob"),
    ] = ()  # fmt: skip
    """Empty from a follower."""
    protocol_type: Annotated[Protocol, wire("protocolType")] = None
    protocol: Annotated[Protocol, wire("protocolName")] = None
    request: Number = 0


@final
@request(
    "heartbeat", By, CLIENTS,
    "beat {actor} {member:id=} {instance:as} {behind:behind=} {nameless} {version:v}",
    defaults={"member": request_texts.own, "version": request_texts.usual(3)},
    carried=("behind", "nameless"),
    lead=3,
    examples="beat a; beat a behind=1",
    sentence=f"Heartbeat v{{version}}, {_DATED}",
    prints=_ID,
)  # fmt: skip
@message("HeartbeatRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat."""

    version: Version
    member: Member
    instance: Instance
    generation: Generation
    request: Number = 0


@final
@request(
    "leave", By, CLIENTS, "leave {actor} {members*} {nameless} {version:v}",
    defaults={"members": lambda context, given: ((context[ACTOR], None),), "version": request_texts.usual(3)},
    forms={"members": TextForm(NOTHING, request_texts.leaver_parsed, request_texts.leaver_text, prints_json=True)},
    prepared=request_texts.own_instance,
    carried=("nameless",),
    examples="leave a; leave a b/i",
    sentence="LeaveGroup v{version}, {members}",
    prints={"members": request_texts.members_text},
)  # fmt: skip
@message("LeaveGroupRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class Leave:
    """LeaveGroup.

    Up to version 2 one member without an instance; since version 3 a batch.
    """

    version: Version
    members: Annotated[
        tuple[tuple[str, str | None], ...], about("member references and group instance ids"),
        wire("members[].memberId | memberId", "members[].groupInstanceId | groupInstanceId"),
    ]  # fmt: skip
    """The id may be empty."""
    request: Number = 0


@final
@request(
    "commit", By, CLIENTS,
    "commit {actor} {member:id=} {instance:as} {offsets*} {behind:behind=} {nameless} {version:v}",
    defaults={"member": request_texts.own, "offsets": (), "version": request_texts.usual(7)},
    forms={"offsets": TextForm(NOTHING, request_texts.offset_parsed, request_texts.offset_text, prints_json=True)},
    carried=("behind", "nameless"),
    lead=3,
    examples="commit a 5",
    sentence=f"OffsetCommit v{{version}}, {_DATED}, {{offsets}}",
    prints={**_ID, "offsets": request_texts.offsets_text},
)  # fmt: skip
@message("OffsetCommitRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class Commit:
    """OffsetCommit.

    A row of `offsets` has three or five parts. An empty reference and behind null: of a consumer without group
    membership.
    """

    version: Version
    member: Member
    instance: Instance
    generation: Annotated[int, hidden, wire("generationIdOrMemberEpoch")]
    offsets: Annotated[Offsets, about(PLACED_OFFSETS)]
    request: Number = 0


def _of_group(verb: str, word: str, version: int, api: str) -> Any:
    return request(
        verb, By, CLIENTS, f"{word} {{actor=a}} {{nameless}} {{version:v}}",
        defaults={"version": request_texts.usual(version)}, carried=("nameless",), examples=word,
        sentence=f"{api} v{{version}}",
    )  # fmt: skip


@final
@_of_group("fetch", "fetch", 5, "OffsetFetch")
@message("OffsetFetchRequest", "groups[0].groupId = group | groupId = group", "groups[0].topics = null | topics = null")
@dataclass(frozen=True, slots=True)
class Fetch:
    """OffsetFetch, of all offsets."""

    version: Version
    request: Number = 0


@final
@_of_group("describe-group", "describe", 4, "DescribeGroups")
@message("DescribeGroupsRequest", "groups[0] = group")
@dataclass(frozen=True, slots=True)
class Describe:
    """DescribeGroups."""

    version: Version
    request: Number = 0


@final
@_of_group("list-groups", "list", 2, "ListGroups")
@message("ListGroupsRequest")
@dataclass(frozen=True, slots=True)
class ListGroups:
    """ListGroups."""

    version: Version
    request: Number = 0


@final
@_of_group("delete-group", "delete", 1, "DeleteGroups")
@message("DeleteGroupsRequest", "groupsNames[0] = group")
@dataclass(frozen=True, slots=True)
class Delete:
    """DeleteGroups."""

    version: Version
    request: Number = 0


LEADER_EPOCHS_SINCE: Final[Mapping[type, int]] = {Commit: 6, Fetch: 5}
"""The first versions with leader epochs (KIP-320)."""


def as_of(row: Offset, request: Commit | Fetch) -> Offset:
    """An offset in a request, or in the answer to it."""
    return row if request.version >= LEADER_EPOCHS_SINCE[type(request)] else (*row[:3], NO_MORE[0], row[4])


Request: TypeAlias = Join | Sync | Heartbeat | Leave | Commit | Fetch | Describe | ListGroups | Delete


# Other events


@final
@operation("elapse", TIME, "elapse {ms}", examples="elapse 3000", sentence="{ms} ms pass")
@dataclass(frozen=True, slots=True)
class Elapse:
    """Time passes.

    Timers that become due expire in the order of their deadlines.
    """

    ms: Annotated[int, schema(minimum=0), about("milliseconds")]


@final
@operation("fail-write", BROKER, "fail {error}", examples="fail NOT_ENOUGH_REPLICAS",
           sentence="the next append fails: {error}")  # fmt: skip
@dataclass(frozen=True, slots=True)
class FailWrite:
    """The next append to the log fails."""

    error: Annotated[Error, KNOWN_ERROR, about("error of the log")]


@final
@operation("unload", BROKER, "unload", sentence="the partition of the group moves to another broker")
@dataclass(frozen=True, slots=True)
class Unload:
    """The partition of the group moves to another broker."""


@final
@operation("load", BROKER, "load", sentence="the partition comes back")
@dataclass(frozen=True, slots=True)
class Load:
    """This broker takes over the partition of the group.

    It begins to read the log.
    """


@final
@operation("loaded", BROKER, f"loaded{COMPACTED}", examples="loaded; move is all three; loaded compacted 100 gone",
           sentence=f"its log is read{COMPACTED}")  # fmt: skip
@dataclass(frozen=True, slots=True)
class Loaded:
    """This broker has read the log of the group.

    The group is restored from its records.
    """

    compacted: Compacted = 0
    since: Since = 0
    tombstones: Tombstones = "kept"


Event: TypeAlias = By | Elapse | FailWrite | Unload | Load | Loaded


# Answers: ``to`` is the number of the request


def _joined_text(reply: "Joined") -> str:
    leads = "leads" if reply.leader == reply.member else f"led by {reply.leader}"
    over = f" over {', '.join(id for id, _, _ in reply.members)}" if reply.members else ""
    skips = ", skips the assignment" * reply.skip_assignment
    return f"generation {reply.generation}, protocol {reply.protocol}, member {reply.member}, {leads}{over}{skips}"


@final
@request_answer("joined", _joined_text, refused="{error}[, member {member}]")
@message("JoinGroupResponse")
@dataclass(frozen=True, slots=True)
class Joined:
    to: int
    error: Reported
    generation: Annotated[int, wire("generationId")] = NO_GENERATION
    protocol_type: Annotated[str | None, wire("protocolType")] = None
    protocol: Annotated[str | None, wire("protocolName", blank_is_null=True)] = None
    leader: Annotated[str, wire("leader")] = ""
    member: Annotated[str, wire("memberId")] = ""
    members: Annotated[
        tuple[tuple[str, str | None, Blob], ...],
        wire("members[].memberId", "members[].groupInstanceId", "members[].metadata as blob"),
    ] = ()
    """Only for the leader: id, instance and metadata of each member."""
    skip_assignment: Annotated[bool, wire("skipAssignment")] = False
    """Since version 9: the leader must not assign."""


@final
@request_answer("synced", "assigned {assignment}", {"assignment": repr})
@message("SyncGroupResponse")
@dataclass(frozen=True, slots=True)
class Synced:
    to: int
    error: Reported
    protocol_type: Annotated[str | None, wire("protocolType")] = None
    protocol: Annotated[str | None, wire("protocolName")] = None
    assignment: Annotated[Blob, wire("assignment as blob")] = EMPTY


@final
@request_answer("beat")
@message("HeartbeatResponse")
@dataclass(frozen=True, slots=True)
class Beat:
    to: int
    error: Reported


def _left_text(members: tuple[tuple[str, str | None, Error], ...]) -> str:
    texts = [f"{request_texts.member_text(id, instance)}: {error.name}" for id, instance, error in members]
    return ", ".join(texts) or "done"


@final
@request_answer("left", "{members}", {"members": _left_text})
@message("LeaveGroupResponse")
@dataclass(frozen=True, slots=True)
class Left:
    to: int
    error: Reported
    members: Annotated[
        tuple[tuple[str, str | None, Reported], ...],
        wire("members[].memberId", "members[].groupInstanceId", "members[].errorCode as error"),
    ] = ()
    """Since version 3, in the order of the request."""


@final
@request_answer("committed")
@message("OffsetCommitResponse")
@dataclass(frozen=True, slots=True)
class Committed:
    to: int
    error: Annotated[Reported, wire("topics[].partitions[].errorCode as error")]
    """The same for every partition: this model has no errors of single partitions."""


@final
@request_answer("fetched", "{offsets}", {"offsets": lambda value: request_texts.offsets_text(value) or "no offsets"})
@message("OffsetFetchResponse", "groups[0].groupId = group")
@dataclass(frozen=True, slots=True)
class Fetched:
    to: int
    error: Annotated[Reported, wire("groups[0].errorCode as error | errorCode as error")]
    offsets: Offsets = ()
    """Sorted."""


@final
@request_answer("described", "{state}, {members}", {"members": request_texts.members_text, "state": str})
@message("DescribeGroupsResponse", "groups[0].groupId = group")
@dataclass(frozen=True, slots=True)
class Described:
    to: int
    error: Annotated[Reported, wire("groups[0].errorCode as error")]
    state: Annotated[str, wire("groups[0].groupState")] = ""
    protocol_type: Annotated[str, wire("groups[0].protocolType")] = ""
    protocol: Annotated[str, wire("groups[0].protocolData")] = ""
    """Only of a stable group."""
    members: Annotated[
        tuple[tuple[str, str | None, Blob, Blob], ...],
        wire("groups[0].members[].memberId", "groups[0].members[].groupInstanceId",
             "groups[0].members[].memberMetadata as blob", "groups[0].members[].memberAssignment as blob"),
    ] = ()  # fmt: skip
    """Id, instance, metadata and assignment, the last two only of a stable group. Sorted."""


def _groups_text(groups: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(" ".join(filter(None, each)) for each in groups) or "no groups"


@final
@request_answer("listed", "{groups}", {"groups": _groups_text})
@message("ListGroupsResponse")
@dataclass(frozen=True, slots=True)
class Listed:
    to: int
    error: Reported
    groups: Annotated[
        tuple[tuple[str, str], ...],
        wire("groups[].groupId = group", "groups[].protocolType", "groups[].groupState"),
    ] = ()
    """Protocol type and state of the group, if it exists."""


@final
@request_answer("deleted")
@message("DeleteGroupsResponse", "results[0].groupId = group")
@dataclass(frozen=True, slots=True)
class Deleted:
    to: int
    error: Annotated[Reported, wire("results[0].errorCode as error")]


Reply: TypeAlias = Joined | Synced | Beat | Left | Committed | Fetched | Described | Listed | Deleted
ANSWERS: Final[Mapping[type[Request], type[Reply]]] = {
    Join: Joined, Sync: Synced, Heartbeat: Beat, Leave: Left, Commit: Committed, Fetch: Fetched, Describe: Described,
    ListGroups: Listed, Delete: Deleted,
}  # fmt: skip
"""The kind of answer that belongs to each kind of request."""
VALUES: Final = {
    "error": ERROR,
    "blob": Value(lambda blob: str(blob).encode(), lambda data: data.decode("utf-8", "replace")),
}
"""How messages have errors and blobs: see ``wire_form``."""
OPERATIONS: Final = Requests(
    GROUP,
    Role.COORDINATOR,
    tuple(ANSWERS),
    (Elapse, FailWrite, Unload, Load, Loaded),
    tuple(ANSWERS.values()),
    sample="join a; describe v3",
    short={"move": "unload; load; loaded"},
)


def check_answer(found: Any) -> str:
    """Of a coordinator, to this request or to an earlier one: what is wrong with it, as ``verb_registry`` wants it."""
    try:
        reply = OPERATIONS.answer_from_json(found)
    except TypeError as wrong:
        return f": {wrong}"
    return f".to: {reply.to} is no step" if reply.to < 0 else ""


verb_registry.register(OPERATIONS.verbs, "answers", check_answer, sent_by_clients=OPERATIONS.requests)
