"""Operations about the log of a coordinator: to commit offsets, to fetch them, and to read the log again."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from kipcheck.conformance.core.operations.declaration import answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, optional, typical, wire
from kipcheck.conformance.core.operations.wire_form import message
from kipcheck.conformance.core.values.history import Observation, Refused, Replied
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.protocols.declare.compaction import COMPACTED, Compacted, Since, Tombstones
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest

TOPIC: Final = "t"
PARTITIONS: Final = range(2)
NOBODY: Final = "none"
"""In place of the client of a commit: it is a consumer without group membership."""
Offset: TypeAlias = tuple[str, int, int, int, str]
"""Topic, partition, offset, leader epoch, metadata."""
_IN_TOPICS = "topics[].partitions[]."
_IN_GROUPS = "groups[0].topics[].partitions[]."


@answer()
@dataclass(frozen=True, slots=True)
class Fetched:
    offsets: tuple[Offset, ...]
    """Sorted."""


@operation("consumer-reload", "broker", f"reload{COMPACTED}", examples="reload; reload compacted 100 gone; "
           "reload compacted 80 from 30")  # fmt: skip
@dataclass(frozen=True, slots=True)
class Reload:
    """The partition of the group moves to another broker, and comes back.

    The group is restored from its records.
    """

    compacted: Compacted = 0
    since: Since = 0
    tombstones: Tombstones = "kept"


@operation(
    "consumer-commit", "client", "commit {offset} for {partition}[ by {client}][ in {leader_epoch}][ with {metadata}]",
    examples="commit 5 for 0; commit 7 for 1 by a in 3 with m", sender="{client}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Commit:
    """A client sends an OffsetCommit with its member id and its last epoch, or one without group membership does.

    The partition is one of topic t.
    """

    offset: Annotated[int, about("committed offset"), typical(5, 6, 7)]
    partition: Annotated[int, about("number of the partition"), typical(*PARTITIONS)]
    client: Annotated[str, about("its name; `none`: it is no member of a group"), typical(NOBODY, "a", "b"),
                      optional] = NOBODY  # fmt: skip
    leader_epoch: Annotated[int, about("committed leader epoch; -1: none"), typical(-1, 3), optional] = -1
    metadata: Annotated[str, about("committed metadata"), typical("", "m"), optional] = ""

    @property
    def row(self) -> Offset:
        return TOPIC, self.partition, self.offset, self.leader_epoch, self.metadata


@operation("consumer-fetch", "client", "fetch", examples="fetch", accepted=Fetched)
@dataclass(frozen=True, slots=True)
class Fetch:
    """An operator sends an OffsetFetch for all offsets.

    `offsets` are sorted.
    """


Event: TypeAlias = Reload | Commit | Fetch
EVENTS: Final = (Reload, Commit, Fetch)


def merged(offsets: tuple[Offset, ...], row: Offset) -> tuple[Offset, ...]:
    """The committed offsets after one more commit."""
    return tuple(sorted((*(each for each in offsets if each[:2] != row[:2]), row)))


# As messages have them


@message("OffsetCommitRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class CommitRequest:
    member: Annotated[str, wire("memberId")]
    epoch: Annotated[int, wire("generationIdOrMemberEpoch")]
    offsets: Annotated[
        tuple[Offset, ...],
        wire("topics[].name as topic | topics[].topicId as topic_id", f"{_IN_TOPICS}partitionIndex",
             f"{_IN_TOPICS}committedOffset", f"{_IN_TOPICS}committedLeaderEpoch", f"{_IN_TOPICS}committedMetadata"),
    ]  # fmt: skip


@message("OffsetCommitResponse")
@dataclass(frozen=True, slots=True)
class CommitAnswer:
    error: Annotated[int, wire(f"{_IN_TOPICS}errorCode")]


@message("OffsetFetchRequest", "groups[0].groupId = group", "groups[0].topics = null")
@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Of all offsets."""


@message("OffsetFetchResponse", "groups[0].groupId = group")
@dataclass(frozen=True, slots=True)
class FetchAnswer:
    error: Annotated[int, wire("groups[0].errorCode")]
    offsets: Annotated[
        tuple[Offset, ...],
        wire("groups[0].topics[].name as topic | groups[0].topics[].topicId as topic_id",
             f"{_IN_GROUPS}partitionIndex", f"{_IN_GROUPS}committedOffset", f"{_IN_GROUPS}committedLeaderEpoch",
             f"{_IN_GROUPS}metadata", is_sorted=True),
    ] = ()  # fmt: skip


VERSIONS: Final = {CommitRequest: 9, FetchRequest: 9}
"""The first versions with member epochs."""


def sent(event: Commit | Fetch, member: str, epoch: int) -> SentRequest:
    """The request. ``member``, ``epoch``: what the client of a commit has; empty, -1: it is no member."""
    if isinstance(event, Fetch):
        return SentRequest("kipcheck", FetchRequest(), FetchAnswer)
    return SentRequest(event.client, CommitRequest(member, epoch, (event.row,)), CommitAnswer)


def observed(answer: CommitAnswer | FetchAnswer) -> Observation:
    if answer.error:
        return Refused(error_name(answer.error))
    return Replied((("offsets", [*map(list, answer.offsets)]),)) if isinstance(answer, FetchAnswer) else Replied(())
