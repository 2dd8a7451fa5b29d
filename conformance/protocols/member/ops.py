"""The operations of a consumer of a classic group: calls of its user, answers of its coordinator, time; its actions.

Requests and answers are those of ``group.ops``, without numbers: at most one request of each kind is pending, which
identifies the request of an answer. The transport fills in the number of a request and the fresh id of a join.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeAlias, final

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.operations.client_operations import ReceivedAnswer, Requester, received, receives
from kipcheck.conformance.core.operations.declaration import answer, operation, variant
from kipcheck.conformance.core.operations.field_annotations import about, omissible
from kipcheck.conformance.core.operations.field_kinds import NOTHING, Kind, TextForm, kind_of, one_of, record
from kipcheck.conformance.core.operations.observed_events import ObservedEvents, observed, sent
from kipcheck.conformance.core.operations.request_words import WordsForm, listed, words
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.assignment.model.assignment import (
    ASSIGNORS,
    NO_GENERATION,
    RANGE,
    Partition,
    Topic,
    partition_names,
)
from kipcheck.conformance.protocols.assignment.model.membership import Assigned, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import INCOMPATIBLE
from kipcheck.conformance.protocols.group.errors import REPORTED_ERROR, Error
from kipcheck.conformance.protocols.group.ops import (
    EMPTY,
    Beat,
    Blob,
    Commit,
    Committed,
    Elapse,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Offsets,
    Sync,
    Synced,
)

MEMBER: Final = "member"
"""The machine of a consumer that is a member of a classic group."""
USER: Final = "user"
COORDINATOR: Final = "coordinator"
CONSUMER: Final = "consumer"
"""The protocol type of consumers, and their name in diagrams."""
INCREMENTAL: Final = "incremental"
"""A custom assignor that supports only the cooperative protocol, and assigns like round robin."""
OFFERED: Final = (*ASSIGNORS, INCREMENTAL)
INVALID_CONFIG: Final = "ILLEGAL_ARGUMENT"
"""Error class of the answer if the consumer's configuration is invalid."""
ANSWER_VERB: Final = "member-told"
# In shorthand
KNOWN: Final = (("t", 2),)
ME, LEADER = "m1", "m2"
SUBSCRIBED: Final = Subscription(("t",))


# Kinds of fields


def _checked(kind: Kind, why: str, fits: Callable[[Any], bool]) -> Kind:
    """The kind of those values for which ``fits`` is true."""

    def read(found: Any) -> Any:
        value = kind.read(found)
        if not fits(value):
            raise TypeError(f": {why}")
        return value

    return replace(kind, read=read)


def _assignment(found: Any) -> Blob:
    return EMPTY if found == EMPTY else ASSIGNED.read(found)


def _partition(text: str) -> Partition:
    topic, _, number = text.partition(":")
    return topic, int(number)


def _offset(text: str) -> tuple[str, int, int]:
    partition, _, offset = text.partition("=")
    return (*_partition(partition), int(offset))


def _member(text: str) -> tuple[str, str | None, Blob]:
    member, _, instance = text.partition("/")
    return member, instance or None, SUBSCRIBED


def _shares(text: str) -> Blob:
    if text in ("nothing", "error"):
        return EMPTY if text == "nothing" else Assigned(error=INCOMPATIBLE)
    return Assigned(tuple(sorted(map(_partition, text.split()))))


def _shares_text(assignment: Blob) -> str:
    if not isinstance(assignment, Assigned):
        return "nothing"
    return "error" if assignment.error else " ".join(map(NUMBERED.print, assignment.partitions))


NUMBERED: Final = TextForm(NOTHING, _partition, lambda value: f"{value[0]}:{value[1]}")
SIZED: Final = TextForm(
    NOTHING, lambda text: Topic(*_partition(text)), lambda topic: f"{topic.name}:{topic.partitions}"
)
PLACED: Final = TextForm(NOTHING, _offset, lambda value: f"{value[0]}:{value[1]}={value[2]}")
JOINED_MEMBER: Final = TextForm(NOTHING, _member, lambda member: "/".join(filter(None, member[:2])))
NAMES: Final = listed(TextForm(NOTHING, str, str))
PAIRS: Final = kind_of(tuple[Partition, ...])
TOPICS: Final = replace(
    PAIRS,
    read=lambda found: tuple(Topic(*each) for each in PAIRS.read(found)),
    write=lambda topics: [[each.name, each.partitions] for each in topics],
)
TOPIC_NAMES: Final = kind_of(tuple[str, ...])
NEEDED_NAMES: Final = replace(
    _checked(TOPIC_NAMES, "must not be empty: use unsubscribe", bool), schema={**TOPIC_NAMES.schema, "minItems": 1}
)
ASSIGNOR_NAMES: Final = replace(
    _checked(
        kind_of(tuple[Annotated[str, one_of(*OFFERED)], ...]),
        "must be at least one assignor, each once",
        lambda names: 0 < len(names) == len({*names}),
    ),
    words=TOPIC_NAMES.words,
)
PROTOCOL: Final = replace(
    kind_of(Literal["eager", "cooperative"] | None), words="text, or null", text=kind_of(str).text
)  # fmt: skip
SUBSCRIPTION: Final = replace(
    record(Subscription, without=("user_data",), lenient=True), schema={"$ref": "#/$defs/subscription"}
)
ASSIGNED: Final = record(Assigned, without=("user_data",), lenient=True)
ASSIGNMENT: Final = replace(
    ASSIGNED,
    words="object, or the empty string",
    schema={"$ref": "#/$defs/share"},
    read=_assignment,
    write=lambda value: EMPTY if value == EMPTY else ASSIGNED.plain(value),
)
PARTITIONS: Final = PAIRS.printed_by(partition_names)

Partitions: TypeAlias = Annotated[tuple[Partition, ...], PARTITIONS]
MemberMetadata: TypeAlias = Annotated[Blob, SUBSCRIPTION]


# Calls of the user


@final
@operation(
    "member-open", USER,
    words("open {assignors!} {instance:as=} {rack:rack=} {protocol:protocol=} {topics:knows=}",
          defaults={"assignors": (RANGE,), "topics": KNOWN}, forms={"assignors": NAMES, "topics": listed(NUMBERED)}),
    examples="open range; open cooperative-sticky as=i knows=t:3; open range protocol=cooperative",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Open:
    """A process starts with a new consumer.

    A former process ends without closing its consumer. The assignor incremental is one of the user's own: it supports
    only the cooperative protocol, and assigns like round robin. Rejected if the configuration is invalid.
    """

    assignors: Annotated[
        tuple[str, ...], ASSIGNOR_NAMES, about("preferred first; default range"), omissible
    ] = (RANGE,)  # fmt: skip
    """Ignored by the draft's members, which have a single assignor."""
    topics: Annotated[tuple[tuple[str, int], ...], about("name and number of partitions"), omissible] = ()
    """Topics of the cluster."""
    instance: Annotated[str | None, about("group instance id"), omissible] = None
    rack: Annotated[str | None, about("client.rack"), omissible] = None
    protocol: Annotated[str | None, PROTOCOL, about("rebalance.protocol, only in kip-429"), omissible] = None
    """None: not configured."""


@final
@operation("member-subscribe", USER, words("subscribe {topics!}", forms={"topics": NAMES}), examples="subscribe t,u")
@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribes."""

    topics: Annotated[tuple[str, ...], NEEDED_NAMES, about("names")]
    """Not empty; for no topics use ``Unsubscribe``."""


@final
@operation("member-unsubscribe", USER, words("unsubscribe"))
@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Unsubscribes."""


@final
@operation("member-poll", USER, words("poll"))
@dataclass(frozen=True, slots=True)
class Poll:
    """Polls with a timeout of zero.

    Callbacks run and joins are sent only in polls.
    """


@final
@operation(
    "member-commit", USER, words("commit {offsets*}", defaults={"offsets": ()}, forms={"offsets": PLACED}),
    examples="commit t:0=5",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Commits offsets.

    The consumer retries until the result is known.
    """

    offsets: Annotated[tuple[tuple[str, int, int], ...], about("topic, partition, offset")]


@final
@operation("member-close", USER, words("close"))
@dataclass(frozen=True, slots=True)
class Close:
    """Closes the consumer."""


# Answers of the coordinator, and other events


def _answer(made: type, *forms: WordsForm, **others: Any) -> ReceivedAnswer:
    return received(
        made, *forms,
        **{"unnamed": {"to": 0}, **others},
        defaults={"error": Error.NONE},
        kinds={
            "error": replace(REPORTED_ERROR, words="text"),
            "members": kind_of(tuple[tuple[str, str | None, MemberMetadata], ...]),
            "assignment": ASSIGNMENT,
        },
        meanings={"error": "name of the error; default NONE", "members": "id, instance, metadata"},
    )  # fmt: skip


def _plain_answer(made: type, word: str, **others: Any) -> ReceivedAnswer:
    return _answer(made, words(word), words(f"{word} {{error!}}"), **others)


Answer: TypeAlias = Joined | Synced | Beat | Left | Committed


def _received_text(event: "AnswerReceived") -> str:
    """The subscriptions of members follow the shorthand of a JoinGroup response in brackets."""
    found = event.answer
    if not isinstance(found, Joined):
        return ""
    kind = f" type={found.protocol_type}" if found.protocol_type != CONSUMER else ""
    members = "; ".join(f"{id}: {_metadata_text(blob)}" for id, _, blob in found.members)
    return f"{OPERATIONS.inexact(found, bool(found.error))}{kind}{f' ({members})' if members else ''}"


_SYNCED: Final[Mapping[str, Any]] = {
    "defaults": {"assignment": Assigned()},
    "forms": {"assignment": TextForm(NOTHING, _shares, _shares_text)},
}


@final
@receives(
    ANSWER_VERB, COORDINATOR,
    _answer(
        Joined,
        words("joined {generation!} {member:me=} {leader:leader=} {protocol:by=} {members:members=} "
              "{skip_assignment:skip}",
              defaults={"member": ME, "leader": LEADER, "protocol": RANGE}, forms={"members": listed(JOINED_MEMBER)},
              fixed={"protocol_type": CONSUMER}),
        words("joined {error!} {member:me=}"),
    ),
    _answer(
        Synced,
        words("synced {assignment**}", **_SYNCED),
        words("synced {assignment**} {protocol:by=}", fixed={"protocol_type": CONSUMER}, **_SYNCED),
        words("synced {error!}"),
    ),
    _plain_answer(Beat, "beat"),
    _plain_answer(Left, "left", unnamed={"to": 0, "members": ()}),
    _plain_answer(Committed, "committed"),
    examples="joined 1 leader=m1 members=m1,n1; synced t:0; beat ILLEGAL_GENERATION",
    text=_received_text,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class AnswerReceived:
    """Answers the pending request of the matching kind.

    The coordinator's answer has no effect if no such request is pending.
    """

    answer: Answer


@final
@operation("member-metadata", COORDINATOR,
           words("metadata {topics*}", defaults={"topics": ()}, forms={"topics": SIZED}), examples="metadata t:3",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Metadata:
    """Reports the topics of the cluster."""

    topics: Annotated[tuple[Topic, ...], TOPICS, about("name and number of partitions")]


@final
@operation("member-disconnected", COORDINATOR, words("disconnected"))
@dataclass(frozen=True, slots=True)
class Disconnected:
    """Cannot be reached: requests and responses in flight are lost.

    Requests that the coordinator does not answer may have taken effect.
    """


Event: TypeAlias = (
    Open | Subscribe | Unsubscribe | Poll | CommitOffsets | Close | Metadata | Disconnected | AnswerReceived | Elapse
)

# Actions: requests


def _metadata_text(blob: Blob) -> str:
    """What a subscription or an assignment contains."""
    match blob:
        case Subscription():
            return ", ".join(_subscription_text(blob))
        case Assigned(partitions, error=wrong):
            return f"error {wrong}" if wrong else partition_names(partitions)
    return str(blob) if blob else "no bytes"


def _subscription_text(found: Subscription) -> Iterator[str]:
    yield " ".join(found.topics) or "no topics"
    if found.owned:
        yield f"owns {partition_names(found.owned)}"
    if found.generation != NO_GENERATION:
        yield f"of generation {found.generation}"
    if found.data:
        since = f" of generation {found.data_generation}" if found.data_generation != NO_GENERATION else ""
        yield f"had {partition_names(found.data)}{since}"
    if found.rack is not None:
        yield f"rack {found.rack}"


def _id_text(member: str) -> str:
    return f"member {member}" if member else "no member id"


def _protocols_text(protocols: tuple[tuple[str, Blob], ...]) -> str:
    different = dict.fromkeys(_metadata_text(blob) for _, blob in protocols)
    return f"{', '.join(name for name, _ in protocols) or 'no protocol'}: {' | '.join(different)}"


def _offsets_text(offsets: Offsets) -> str:
    return "".join(f", {topic}-{number} at {offset}" for topic, number, offset, *_ in offsets)


Request: TypeAlias = Join | Sync | Heartbeat | Leave | Commit
_ID: Final = {"member": _id_text}
_SENDER: Final = "{member}[, instance {instance}]"
REQUESTS: Final = (
    sent(
        Join, "join", f"JoinGroup, {_SENDER}, {{protocols}}",
        without=("fresh", "request"),
        kinds={"protocols": kind_of(tuple[tuple[str, MemberMetadata], ...])},
        prints={**_ID, "protocols": _protocols_text},
    ),
    sent(
        Sync, "sync", f"SyncGroup, {_SENDER}, generation {{generation}}[, assigns {{assignments}}]",
        without=("request",),
        kinds={"assignments": kind_of(tuple[tuple[str, Annotated[Blob, ASSIGNMENT]], ...])},
        prints={**_ID, "assignments": lambda given: "; ".join(f"{id}: {_metadata_text(blob)}" for id, blob in given)},
    ),
    sent(Heartbeat, "heartbeat", f"Heartbeat, {_SENDER}, generation {{generation}}", without=("request",), prints=_ID),
    sent(
        Leave, "leave", "LeaveGroup, {members}", without=("request",),
        prints={"members": lambda members: ", ".join(_id_text(id) for id, _ in members)},
    ),
    sent(
        Commit, "commit", f"OffsetCommit, {_SENDER}, generation {{generation}}{{offsets}}", without=("request",),
        prints={**_ID, "offsets": _offsets_text},
    ),
)  # fmt: skip

# Actions: events visible to the user


@final
@observed("revoked", "revoked {partitions}", lenient=True)
@dataclass(frozen=True, slots=True)
class Revoked:
    """The revoked callback: the partitions may still be read and committed."""

    partitions: Partitions


@final
@observed("lost", "lost {partitions}", lenient=True)
@dataclass(frozen=True, slots=True)
class Lost:
    """The lost callback: the partitions may have other owners already."""

    partitions: Partitions


@final
@observed("assigned", "given {partitions}", lenient=True)
@dataclass(frozen=True, slots=True)
class Given:
    """The assigned callback, for newly assigned partitions."""

    partitions: Partitions


@final
@observed("reads", "reads {partitions}", lenient=True)
@dataclass(frozen=True, slots=True)
class Reads:
    """The end of a poll without an error, with the partitions whose records it may return."""

    partitions: Partitions


@final
@observed("raised", "raised {error}[ ({exception})]", omitted=("exception",), lenient=True)
@dataclass(frozen=True, slots=True)
class Raised:
    """An error that a poll raises: the name of a protocol error, or ``ILLEGAL_STATE``."""

    error: str
    exception: str = ""
    """The class of the exception, if a testee names it."""


@final
@observed("commit-ended", "commit ended {error}[ ({exception})]", omitted=("exception",), lenient=True)
@dataclass(frozen=True, slots=True)
class CommitEnded:
    """The known result of a commit: ``NONE`` or an error."""

    error: str
    exception: str = ""
    """The class of the exception, if a testee names it."""


@final
@observed("metric", "metric {value}", lenient=True)
@dataclass(frozen=True, slots=True)
class Metric:
    """num.incompatible.rebalance has risen to this (KIP-429's draft)."""

    value: int


@final
@answer("rejected", message="{why}", class_=INVALID_CONFIG)
@dataclass(frozen=True, slots=True)
class Unfit:
    """The configuration of the consumer is invalid."""

    why: str


ObservedEvent: TypeAlias = Revoked | Lost | Given | Reads | Raised | CommitEnded | Metric
ACTIONS: Final = ObservedEvents[Any](*REQUESTS, Revoked, Lost, Given, Reads, Raised, CommitEnded, Metric, key="action")
OPERATIONS: Final = Requester[Event, Any](
    MEMBER,
    Role.MEMBER,
    (
        Open, Subscribe, Unsubscribe, Poll, CommitOffsets, Close, AnswerReceived, Metadata, Disconnected,
        variant(Elapse, "member-elapse", kinds={}, shorthand=words("elapse {ms!}"), sentence=""),
    ),
    ACTIONS,
    rejections=(Unfit,),
)  # fmt: skip
verb_registry.register(OPERATIONS.verbs, "actions", ACTIONS.check)
