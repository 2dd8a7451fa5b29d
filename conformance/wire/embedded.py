"""Finds and reads the records that members of a group write into fields of bytes: subscriptions, assignments, and user
data of Kafka Streams.

Each record is read strictly, by the version in front of it. Three things are allowed beside that, because the protocol
says that they happen:

* bytes after the last field. New versions add fields at the end (KIP-429, ``ConsumerProtocolSubscription.json``), and
  Streams of 0.10.1 to 1.1 wrote version 1 with the end point of version 2;
* a subscription or an assignment of a later version: it begins like the newest one, and is read so far;
* user data of Streams of a later version (KIP-268): a subscription begins with two numbers, an assignment with one, and
  no more is read of them.

User data of other assignors has no version in front, and leaders ignore it where they cannot read it: it is not judged.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.edition import APACHE, Edition
from kipcheck.conformance.wire.errors import Entries, Refused
from kipcheck.conformance.wire.schema import is_changed_by, spec

SUBSCRIPTION: Final = "ConsumerProtocolSubscription"
ASSIGNMENT: Final = "ConsumerProtocolAssignment"
CONSUMER: Final = "consumer"
"""The protocol type of consumers, Streams among them."""
STREAM: Final = "stream"
"""The name of the assignor of Kafka Streams."""
OF_STREAMS: Final[Mapping[str, str]] = {SUBSCRIPTION: "SubscriptionInfo", ASSIGNMENT: "AssignmentInfo"}
"""Record -> the record in its user data, in a group of Kafka Streams."""
NUMBERS: Final[Mapping[str, int]] = {"SubscriptionInfo": 2, "AssignmentInfo": 1}
"""How many int32 every version begins with: the version, and in a subscription the latest supported one."""
NULL: Final = b"\xff\xff\xff\xff"
Partitions: TypeAlias = tuple[tuple[str, int], ...]
"""Topics and numbers, sorted."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member writes for an assignor in JoinGroup, as Kafka's readers take it."""

    version: int
    """The one in front of the record, which may be later than the newest that is known."""
    topics: tuple[str, ...]
    owned: Partitions = ()
    """Since version 1."""
    generation: int = -1
    """That of the owned partitions, since version 2."""
    rack: str | None = None
    """Since version 3."""
    user_data: bytes = b""

    @property
    def written(self) -> bytes:
        """In its version. No user data is null."""
        return _written(SUBSCRIPTION, self.version, {
            "topics": [*self.topics], "userData": self.user_data or None, "ownedPartitions": _by_topic(self.owned),
            "generationId": self.generation, "rackId": self.rack,
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a leader writes for a member in SyncGroup, as Kafka's readers take it."""

    version: int
    partitions: Partitions
    user_data: bytes = b""

    @property
    def written(self) -> bytes:
        """As of a subscription."""
        body = {"assignedPartitions": _by_topic(self.partitions), "userData": self.user_data or None}
        return _written(ASSIGNMENT, self.version, body)


@dataclass(frozen=True, slots=True)
class Place:
    """A record in a field of a message."""

    path: str
    """Of the field: ``protocols[0].metadata``."""
    record: str
    data: bytes
    assignor: str = ""
    """Empty where it is not known."""
    member: str = ""
    """The id of the member that it is about; empty where the message names none beside it."""
    group: str = ""
    """Empty where the message is about one group."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A record that its version does not allow."""

    place: Place
    record: str
    """That of the place, or the one in its user data."""
    data: bytes
    """Of the record."""
    refused: Refused
    """Offsets count from the first byte of the record."""

    @property
    def path(self) -> str:
        """Of the field with the record, in the message: ``protocols[0].metadata.userData``."""
        return self.place.path if self.record == self.place.record else f"{self.place.path}.userData"


def read_subscription(data: bytes, of: Edition = APACHE, entries: Entries | None = None) -> Subscription:
    """Errors: ``Refused``; ``TooManyEntries``, where ``entries`` are those that are accepted."""
    version, value = _read(SUBSCRIPTION, data, of, entries)
    return Subscription(
        version, tuple(value["topics"]), _pairs(value.get("ownedPartitions") or ()), value.get("generationId", -1),
        value.get("rackId"), bytes(value["userData"] or b""),
    )  # fmt: skip


def read_assignment(data: bytes, of: Edition = APACHE, entries: Entries | None = None) -> Assignment:
    """No bytes: no partitions. Errors: as of ``read_subscription``."""
    if not data:
        return Assignment(0, ())
    version, value = _read(ASSIGNMENT, data, of, entries)
    return Assignment(version, _pairs(value["assignedPartitions"]), bytes(value["userData"] or b""))


def assigned(data: bytes, of: Edition = APACHE, entries: Entries | None = None) -> Partitions | None:
    """The partitions of an assignment, also of one whose user data is missing, as pykafka writes it, or cut off; None:
    they cannot be read. Errors: ``TooManyEntries``."""
    for end in (b"", NULL):
        with suppress(Refused):
            return read_assignment(data + end, of, entries).partitions
    return None


def _read(record: str, data: bytes, of: Edition, entries: Entries | None = None) -> tuple[int, Mapping[str, Any]]:
    """The version in front of a record, and its fields as Kafka's readers take them."""
    version, high = _version(record, data, 2), _newest(record, of)
    layout = spec(_edition(record, of), record).at(min(version, high))
    if entries is None:
        return version, layout.decode(data, lenient=True)
    return version, layout.codec.decode_bounded(data, entries, lenient=True)


def _written(record: str, version: int, body: Mapping[str, Any]) -> bytes:
    layout = spec(APACHE, record).at(version)
    return layout.encode({name: value for name, value in body.items() if name in layout.names})


def _by_topic(partitions: Partitions) -> list[dict[str, Any]]:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return [{"topic": topic, "partitions": listed} for topic, listed in numbers.items()]


def _pairs(rows: Iterable[Mapping[str, Any]]) -> Partitions:
    return tuple(sorted((row["topic"], number) for row in rows for number in row["partitions"]))


def damage(place: Place, of: Edition = APACHE) -> Damage | None:
    """What is wrong with a record, or with the user data of Streams in it."""
    data = place.data
    try:
        version, high = _version(place.record, data, 2), _newest(place.record, of)
        value = _strictly(place.record, min(version, high), data, version.to_bytes(2, "big"), of)
    except Refused as refused:
        return Damage(place, place.record, data, refused)
    if place.assignor != STREAM:
        return None
    record, inner = OF_STREAMS[place.record], bytes(value["userData"] or b"")
    try:
        version = _version(record, inner, 4)
        if version <= _newest(record, of):
            _strictly(record, version, inner, b"", of)
        elif len(inner) < 4 * NUMBERS[record]:
            why = f"every version begins with {NUMBERS[record]} int32"
            raise Refused("truncated", why, message=record, version=version, offset=len(inner))
    except Refused as refused:
        return Damage(place, record, inner, refused)
    return None


def unread(place: Place, of: Edition = APACHE) -> str:
    """Which bytes of an undamaged record are not read, because their version is not known; empty: none."""
    version, value = _read(place.record, place.data, of)
    if version > (high := _newest(place.record, of)):
        return f"{place.record} v{version}: only the fields of v{high} are known, and judged"
    record, inner = OF_STREAMS[place.record], bytes(value["userData"] or b"")
    if place.assignor == STREAM and (version := _version(record, inner, 4)) > (high := _newest(record, of)):
        return f"{record} v{version}: v{high} is the newest that is known; its fields are not judged"
    return ""


def _version(record: str, data: bytes, size: int) -> int:
    version = int.from_bytes(data[:size], "big", signed=True)
    if len(data) < size:
        why = f"int{8 * size} takes {size} bytes, {len(data) or 'none'} left"
        raise Refused("truncated", why, message=record, version=0, offset=len(data))
    if version < (size == 4):
        raise Refused("version", f"the version in front is {version}", message=record, version=version, offset=0)
    return version


def _strictly(record: str, version: int, data: bytes, front: bytes, of: Edition) -> Mapping[str, Any]:
    """``front``: the version in front, if it may be a later one. Errors: ``Refused``, but for bytes after the end."""
    layout = spec(_edition(record, of), record).at(version)
    led = version.to_bytes(len(front), "big") + data[len(front) :] if front else data
    try:
        return layout.decode(led)
    except Refused as refused:
        if refused.kind != "trailing":
            raise
    return layout.decode(led, lenient=True)


def _newest(record: str, of: Edition) -> int:
    high = spec(_edition(record, of), record).versions.high
    assert high is not None
    return high


def _edition(record: str, of: Edition) -> Edition:
    """Members of any release may be in a group: the newest declaration counts, but for that of a draft."""
    return of if is_changed_by(of, record) else APACHE
