"""The operations of the coordinator of a classic group: requests of clients, other events, and answers.

Steps name members by references, answers by canonical ids: see ``kipcheck.conformance.protocols.group.model.names``.
Each request has a number, which its answer repeats. The answer may come at once, at a later event, or never.
"""

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeAlias, final

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.operations.declaration import operation
from kipcheck.conformance.core.operations.field_annotations import about, hidden, omissible, optional
from kipcheck.conformance.core.operations.field_kinds import NOTHING, TextForm, kind_of, limited
from kipcheck.conformance.core.operations.request_words import ACTOR, NEWEST, WORD, Default, Fields, listed, pair
from kipcheck.conformance.core.operations.requests import Requests, request, request_answer
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.group.errors import KNOWN_ERROR, REPORTED_ERROR, Error

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


Reported: TypeAlias = Annotated[Error, REPORTED_ERROR]
Version: TypeAlias = Annotated[int, limited(minimum=0, maximum=32_767), about("version of the request")]
Member: TypeAlias = Annotated[
    str, about("reference: a is the id most recently given to client a, a-old the id before it, ? an unknown id")
]
Instance: TypeAlias = Annotated[str | None, about("group instance id"), omissible]
Number: TypeAlias = Annotated[int, hidden]
Generation: TypeAlias = Annotated[int, hidden]
Offsets: TypeAlias = tuple[tuple[str, int, int], ...]
"""Topic, partition, offset."""
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


def usual(version: int, static: int = 0) -> Default:
    """The version of a request in shorthand. ``static``: with an instance, or a version of KIP-429's draft."""

    def default(context: Fields, given: Mapping[str, Any]) -> int:
        newest: int | None = context[NEWEST]
        return version if newest is None or newest > version else newest

    def by_fields(context: Fields, given: Mapping[str, Any]) -> int:
        later = given.get("instance") is not None or given.get("protocol_version") is not None
        wanted = static if later else version
        return wanted if context[NEWEST] is None else min(wanted, context[NEWEST])

    return by_fields if static else default


def usual_version(verb: str) -> int:
    """Of a request in shorthand, without an instance."""
    version: int = OPERATIONS.requests[verb].words[0].default("version")
    return version


DRAFT_JOIN: Final = 5


def _own(context: Fields, given: Mapping[str, Any]) -> str:
    name: str = context[ACTOR]
    return name


def _offset_parsed(text: str) -> tuple[str, int, int]:
    topic, partition, offset = text.split(":") if ":" in text else ("t", "0", text)
    return topic, int(partition), int(offset)


def _offset_text(value: tuple[str, int, int]) -> str:
    topic, partition, offset = value
    return str(offset) if topic == "t" and partition == 0 else f"{topic}:{partition}:{offset}"


def _leaver_parsed(text: str) -> tuple[str, str | None]:
    member, _, instance = text.partition("/")
    return member, instance or None


def _leaver_text(value: tuple[str, str | None]) -> str:
    member, instance = value
    return f"{member}/{instance or ''}" if instance or not member else member


def _own_instance(words: list[str]) -> list[str]:
    """``leave a as i``: itself, with an instance. Errors: ValueError if it names others too."""
    if "as" not in words[1:]:
        return words
    at = words.index("as", 1)
    options = [*words[1:at], *words[at + 2 :]]
    if any(each != "nameless" and not re.fullmatch(r"v\d+", each) for each in options):
        raise ValueError("unexpected as")
    return [words[0], f"{words[0]}/{''.join(words[at + 1 : at + 2])}", *options]


# Parts of sentences


def _id_text(member: str) -> str:
    return f"member {member}" if member else "no member id"


def _member_text(id: str, instance: str | None, *others: object) -> str:
    return " as ".join(filter(None, (id, instance))) or "no member"


def _offsets_text(offsets: Offsets) -> str:
    return ", ".join(f"{topic}-{partition} at {offset}" for topic, partition, offset in offsets)


def _members_text(members: Iterable[tuple[Any, ...]]) -> str:
    return ", ".join(_member_text(*each) for each in members) or "no members"


_ID: Final = {"member": _id_text}
_DATED: Final = "{member}[, instance {instance}], generation {generation}"


# Requests


@final
@request(
    "join", By, CLIENTS,
    tuple(f"{word} {{actor}} {{member:id=}} {{instance:as}} {{protocols:lists=}} {{protocol_type:type=}} "
          "{session_ms:session=} {rebalance_ms:rebalance=} {protocol_version:pv=} {nameless} {version:v}"
          for word in ("join", "rejoin")),
    defaults={"protocol_type": "consumer", "protocols": (("p", "x"),), "version": usual(3, static=5),
              "member": lambda context, given: context[ACTOR] if context[WORD] == "rejoin" else ""},
    forms={"protocols": listed(pair(":"))},
    carried=("nameless",),
    examples="join a; rejoin a; join b as i lists=p:x,q:y",
    sentence="JoinGroup v{version}, {member}[, instance {instance}], {protocol_type} {protocols}, "
             "session {session_ms} ms, rebalance {rebalance_ms} ms[, protocol version {protocol_version}]",
    prints={**_ID, "protocol_type": lambda value: value or "no type",
            "protocols": lambda value: ", ".join(f"{name}:{blob}" for name, blob in value) or "without protocols"},
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Join:
    """JoinGroup."""

    version: Version
    member: Member
    """Empty if it has none yet."""
    instance: Instance
    protocol_type: Annotated[str, about("for example consumer")]
    protocols: Annotated[tuple[tuple[str, Blob], ...], about("name and metadata, preferred first")]
    session_ms: Annotated[int, about("session timeout, ms; default 10000"), omissible] = 10_000
    rebalance_ms: Annotated[int, about("rebalance timeout, ms; default 30000"), omissible] = 30_000
    fresh: Annotated[str, hidden] = ""
    """The member id that the coordinator gives out if this request needs one; an input: the model is pure."""
    protocol_version: Annotated[
        int | None, replace(kind_of(int | None), schema=kind_of(int).schema),
        about("only in KIP-429's draft"), omissible, optional,
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
    defaults={"member": _own, "version": usual(3)},
    forms={"assignments": pair("=")},
    carried=("behind", "nameless"),
    lead=3,
    examples="sync a a=x b=y; sync b",
    sentence=f"SyncGroup v{{version}}, {_DATED}[, gives {{assignments}}]",
    prints={**_ID, "assignments": lambda value: ", ".join(f"{member} {blob!r}" for member, blob in value)},
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Sync:
    """SyncGroup."""

    version: Version
    member: Member
    instance: Instance
    generation: Generation
    assignments: Annotated[
        tuple[tuple[str, Blob], ...], about("from the leader: member reference and assignment"), omissible
    ] = ()
    """Empty from a follower."""
    protocol_type: Protocol = None
    protocol: Protocol = None
    request: Number = 0


@final
@request(
    "heartbeat", By, CLIENTS,
    "beat {actor} {member:id=} {instance:as} {behind:behind=} {nameless} {version:v}",
    defaults={"member": _own, "version": usual(3)},
    carried=("behind", "nameless"),
    lead=3,
    examples="beat a; beat a behind=1",
    sentence=f"Heartbeat v{{version}}, {_DATED}",
    prints=_ID,
)  # fmt: skip
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
    defaults={"members": lambda context, given: ((context[ACTOR], None),), "version": usual(3)},
    forms={"members": TextForm(NOTHING, _leaver_parsed, _leaver_text, prints_json=True)},
    prepared=_own_instance,
    carried=("nameless",),
    examples="leave a; leave a b/i",
    sentence="LeaveGroup v{version}, {members}",
    prints={"members": _members_text},
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Leave:
    """LeaveGroup.

    Up to version 2 one member without an instance; since version 3 a batch.
    """

    version: Version
    members: Annotated[tuple[tuple[str, str | None], ...], about("member references and group instance ids")]
    """The id may be empty."""
    request: Number = 0


@final
@request(
    "commit", By, CLIENTS,
    "commit {actor} {member:id=} {instance:as} {offsets*} {behind:behind=} {nameless} {version:v}",
    defaults={"member": _own, "offsets": (), "version": usual(7)},
    forms={"offsets": TextForm(NOTHING, _offset_parsed, _offset_text, prints_json=True)},
    carried=("behind", "nameless"),
    lead=3,
    examples="commit a 5",
    sentence=f"OffsetCommit v{{version}}, {_DATED}, {{offsets}}",
    prints={**_ID, "offsets": _offsets_text},
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Commit:
    """OffsetCommit.

    Without metadata and leader epochs. An empty reference and behind null: of a consumer without group membership.
    """

    version: Version
    member: Member
    instance: Instance
    generation: Generation
    offsets: Annotated[Offsets, about("topic, partition, offset")]
    request: Number = 0


def _of_group(verb: str, word: str, version: int, api: str) -> Any:
    return request(
        verb, By, CLIENTS, f"{word} {{actor=a}} {{nameless}} {{version:v}}", defaults={"version": usual(version)},
        carried=("nameless",), examples=word, sentence=f"{api} v{{version}}",
    )  # fmt: skip


@final
@_of_group("fetch", "fetch", 5, "OffsetFetch")
@dataclass(frozen=True, slots=True)
class Fetch:
    """OffsetFetch, of all offsets."""

    version: Version
    request: Number = 0


@final
@_of_group("describe-group", "describe", 4, "DescribeGroups")
@dataclass(frozen=True, slots=True)
class Describe:
    """DescribeGroups."""

    version: Version
    request: Number = 0


@final
@_of_group("list-groups", "list", 2, "ListGroups")
@dataclass(frozen=True, slots=True)
class ListGroups:
    """ListGroups."""

    version: Version
    request: Number = 0


@final
@_of_group("delete-group", "delete", 1, "DeleteGroups")
@dataclass(frozen=True, slots=True)
class Delete:
    """DeleteGroups."""

    version: Version
    request: Number = 0


Request: TypeAlias = Join | Sync | Heartbeat | Leave | Commit | Fetch | Describe | ListGroups | Delete


# Other events


@final
@operation("elapse", TIME, "elapse {ms}", examples="elapse 3000", sentence="{ms} ms pass")
@dataclass(frozen=True, slots=True)
class Elapse:
    """Time passes.

    Timers that become due expire in the order of their deadlines.
    """

    ms: Annotated[int, limited(minimum=0), about("milliseconds")]


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
@operation("loaded", BROKER, "loaded", examples="loaded; move is all three", sentence="its log is read")
@dataclass(frozen=True, slots=True)
class Loaded:
    """This broker has read the log of the group.

    The group is restored from its records.
    """


Event: TypeAlias = By | Elapse | FailWrite | Unload | Load | Loaded


# Answers: ``to`` is the number of the request


def _joined_text(reply: "Joined") -> str:
    leads = "leads" if reply.leader == reply.member else f"led by {reply.leader}"
    over = f" over {', '.join(id for id, _, _ in reply.members)}" if reply.members else ""
    skips = ", skips the assignment" * reply.skip_assignment
    return f"generation {reply.generation}, protocol {reply.protocol}, member {reply.member}, {leads}{over}{skips}"


@final
@request_answer("joined", _joined_text, refused="{error}[, member {member}]")
@dataclass(frozen=True, slots=True)
class Joined:
    to: int
    error: Reported
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member: str = ""
    members: tuple[tuple[str, str | None, Blob], ...] = ()
    """Only for the leader: id, instance and metadata of each member."""
    skip_assignment: bool = False
    """Since version 9: the leader must not assign."""


@final
@request_answer("synced", "assigned {assignment}", {"assignment": repr})
@dataclass(frozen=True, slots=True)
class Synced:
    to: int
    error: Reported
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: Blob = EMPTY


@final
@request_answer("beat")
@dataclass(frozen=True, slots=True)
class Beat:
    to: int
    error: Reported


def _left_text(members: tuple[tuple[str, str | None, Error], ...]) -> str:
    return ", ".join(f"{_member_text(id, instance)}: {error.name}" for id, instance, error in members) or "done"


@final
@request_answer("left", "{members}", {"members": _left_text})
@dataclass(frozen=True, slots=True)
class Left:
    to: int
    error: Reported
    members: tuple[tuple[str, str | None, Reported], ...] = ()
    """Since version 3, in the order of the request."""


@final
@request_answer("committed")
@dataclass(frozen=True, slots=True)
class Committed:
    to: int
    error: Reported
    """The same for every partition: this model has no errors of single partitions."""


@final
@request_answer("fetched", "{offsets}", {"offsets": lambda value: _offsets_text(value) or "no offsets"})
@dataclass(frozen=True, slots=True)
class Fetched:
    to: int
    error: Reported
    offsets: Offsets = ()
    """Sorted."""


@final
@request_answer("described", "{state}, {members}", {"members": _members_text, "state": str})
@dataclass(frozen=True, slots=True)
class Described:
    to: int
    error: Reported
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    """Only of a stable group."""
    members: tuple[tuple[str, str | None, Blob, Blob], ...] = ()
    """Id, instance, metadata and assignment, the last two only of a stable group. Sorted."""


def _groups_text(groups: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(" ".join(filter(None, each)) for each in groups) or "no groups"


@final
@request_answer("listed", "{groups}", {"groups": _groups_text})
@dataclass(frozen=True, slots=True)
class Listed:
    to: int
    error: Reported
    groups: tuple[tuple[str, str], ...] = ()
    """Protocol type and state of the group, if it exists."""


@final
@request_answer("deleted")
@dataclass(frozen=True, slots=True)
class Deleted:
    to: int
    error: Reported


Reply: TypeAlias = Joined | Synced | Beat | Left | Committed | Fetched | Described | Listed | Deleted
OPERATIONS: Final = Requests(
    GROUP,
    Role.COORDINATOR,
    (Join, Sync, Heartbeat, Leave, Commit, Fetch, Describe, ListGroups, Delete),
    (Elapse, FailWrite, Unload, Load, Loaded),
    (Joined, Synced, Beat, Left, Committed, Fetched, Described, Listed, Deleted),
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
