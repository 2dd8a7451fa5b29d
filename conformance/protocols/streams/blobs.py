"""Encodes and decodes the user data of Streams members as a given release does.

``release`` is an exact patch, an edition, the future of one (``future_of``), or None for a reader that knows the format
of every release, the simulated future included, and accepts all data that can be decoded.

Kafka's classes write sets and maps in an arbitrary order. Decoding sorts them.

The future version (one above the newest; in a draft, one above the draft's) begins with the two numbers that all
releases read. The fields of the newest layout follow, and then bytes that no release knows (268-06, 268-27).
"""

import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import judges, span
from kipcheck.conformance.core.values.edition import APACHE, EDITIONS, KIP_268, Edition, Standing, edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, Topic
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.streams.model import members as model_members
from kipcheck.conformance.protocols.streams.model.tasks import order
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.lenient import java_text
from kipcheck.conformance.wire.schema import Layout, spec

SUBSCRIPTION: Final = "SubscriptionInfo"
ASSIGNMENT: Final = "AssignmentInfo"
UNKNOWN_TAIL: Final = b"\x7fnobody knows this"
"""The bytes that a future member writes after the fields of the newest version."""

TASK_ASSIGNMENT: Final = "org.apache.kafka.streams.errors.TaskAssignmentException"
ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
UNDERFLOW: Final = "java.nio.BufferUnderflowException"
NEGATIVE_SIZE: Final = "java.lang.NegativeArraySizeException"
RUNTIME: Final = "java.lang.RuntimeException"
BEFORE_PROBING: Final = releases(span("before-kip-268"))
BY_HAND: Final = releases(span("hand-written-subscription-info"))
"""Releases whose subscription reader is not generated, and does not check the two version numbers."""
ZERO_IS_ONE: Final = releases(span("layout-1-is-long"))
"""Releases that read an assignment of version 0 with the layout of version 1 (268-54)."""
ONE_IS_TWO: Final = releases(span("without-fix-of-kafka-6054"))
"""Releases that treat an assignment of version 1 or 0 as version 2 (268-54)."""
UNGUARDED: Final = releases(span("unguarded-lengths"))
"""Releases whose generated reader does not check a length against the remaining bytes before reading."""
ONE_ERROR_CLASS: Final = releases(span("one-class-of-errors"))
"""Releases that throw one class for every malformed assignment."""


def future_of(edition: str) -> str:
    """The release of a future member: ``FUTURE``, or of a draft ``future@kip-268``."""
    draft = EDITIONS.get(edition, APACHE).standing is Standing.DRAFT
    return f"{model_members.FUTURE}@{edition}" if draft else model_members.FUTURE


def _release_from(data: bytes) -> str | None:
    """``future@kip-268`` for data of the draft's future, whose version number a release uses too; else None."""
    future = future_of(KIP_268.name)
    is_draft = data.endswith(UNKNOWN_TAIL) and data.startswith(latest(future).to_bytes(4, "big"))
    return future if is_draft else None


@cache
def latest(release: str | None) -> int:
    """The newest metadata version of a release. Errors: LookupError for an unknown release."""
    high = spec(_edition(release), SUBSCRIPTION).versions.high
    assert high is not None
    return high + _is_future(release)


def releases_with_latest(version: int) -> list[str]:
    """The releases whose latest metadata version this is, oldest first."""
    return [release for release in judges("streams") if latest(release) == version]


# Subscriptions


@lru_cache(maxsize=4096)
def write_subscription(info: model_members.SubscriptionInfo, release: str | None = None) -> bytes:
    """Encodes the fields that the version has. Errors: ``Fatal``, with the exception class of the release."""
    value = {
        "version": info.used,
        "latestSupportedVersion": info.latest,
        "processId": uuid.UUID(info.process),
        "prevTasks": [_task(each) for each in info.active],
        "standbyTasks": [_task(each) for each in info.standby],
        "userEndPoint": (info.end_point or "").encode(),
        "taskOffsetSums": _sums(info.sums, info.used),
        "uniqueField": info.unique,
        "errorCode": info.error,
        "clientTags": [{"key": key.encode(), "value": value.encode()} for key, value in info.tags],
    }
    named = [*info.active, *info.standby, *(task for task, _ in info.sums)]
    return _written(SUBSCRIPTION, value, named, release)


def read_subscription(data: bytes, release: str | None = None) -> model_members.SubscriptionInfo:
    """Decodes a subscription as a leader of the release: since 2.0, only two numbers of a version above its own.

    Errors: ``Fatal``.
    """
    return _subscription(bytes(data), release or _release_from(data))


@lru_cache(maxsize=4096)
def _subscription(data: bytes, release: str | None) -> model_members.SubscriptionInfo:
    form, exact = _edition(release), _exact(release)
    (used,) = _ints(data, 1, UNDERFLOW)
    if exact and exact in BEFORE_PROBING and not 1 <= used <= latest(release):
        raise model_members.Fatal(TASK_ASSIGNMENT, f"unable to decode subscription data: version={used}")
    known = 1 <= used <= latest(release)
    known = known or (release is None and used == latest(model_members.FUTURE) and data.endswith(UNKNOWN_TAIL))
    if used < 1 and not (exact and exact in BY_HAND):
        _value(SUBSCRIPTION, data, used, form, exact)  # is read first
        raise model_members.Fatal(ILLEGAL_ARGUMENT, f"a subscription of version {used}")
    if known:
        info = _subscription_info(_value(SUBSCRIPTION, data, used, form, exact))
    else:
        info = model_members.SubscriptionInfo(used, _ints(data, 2, UNDERFLOW)[1])
    if _checks_numbers(release, exact) and used >= 3 and info.latest < used:
        raise model_members.Fatal(
            ILLEGAL_ARGUMENT, f"a subscription of version {used} that supports {info.latest} at most"
        )
    return info


def _checks_numbers(release: str | None, exact: Release | None) -> bool:
    return _is_future(release) or (exact is not None and exact not in BY_HAND)


def _subscription_info(value: Mapping[str, Any]) -> model_members.SubscriptionInfo:
    return model_members.SubscriptionInfo(
        value["version"],
        value.get("latestSupportedVersion", model_members.NO_VERSION),
        str(value["processId"]),
        _sorted(value.get("prevTasks", ())),
        _sorted(value.get("standbyTasks", ())),
        java_text(value.get("userEndPoint", b"")) or None,
        tuple(sorted(_read_sums(value.get("taskOffsetSums", ())), key=lambda each: order(each[0]))),
        value.get("uniqueField", 0),
        value.get("errorCode", 0),
        tuple(sorted((java_text(each["key"]), java_text(each["value"])) for each in value.get("clientTags", ()))),
    )


def _sums(sums: Sequence[tuple[model_members.TaskId, int]], used: int) -> list[dict[str, Any]]:
    """A flat list; up to version 9, grouped by subtopology."""
    if used > 9:
        return [{**_task(task), "namedTopology": task.topology, "offsetSum": offsets} for task, offsets in sums]
    grouped: dict[int, list[dict[str, int]]] = {}
    for task, offsets in sums:
        grouped.setdefault(task.subtopology, []).append({"partition": task.partition, "offsetSum": offsets})
    return [{"topicGroupId": group, "partitionToOffsetSum": each} for group, each in grouped.items()]


def _read_sums(sums: Iterable[Mapping[str, Any]]) -> Iterator[tuple[model_members.TaskId, int]]:
    for each in sums:
        if "partitionToOffsetSum" not in each:
            yield (
                model_members.TaskId(each["topicGroupId"], each["partition"], each["namedTopology"] or None),
                each["offsetSum"],
            )
            continue
        for one in each["partitionToOffsetSum"]:
            yield model_members.TaskId(each["topicGroupId"], one["partition"]), one["offsetSum"]


# Assignments


@lru_cache(maxsize=4096)
def write_assignment(info: model_members.AssignmentInfo, release: str | None = None) -> bytes:
    """Encodes the fields that the version has. Errors: ``Fatal``, with the exception class of the release."""
    topics: dict[str, int] = {}
    by_index = info.used >= 5
    both = (info.hosts, info.standby_hosts if info.used >= 6 else ())
    value = {
        "version": info.used,
        "commonlySupportedVersion": info.supported,
        "activeTasks": [_named(each) for each in info.active],
        "standbyTasks": [{**_named(task), "partitions": _partitions(owned)} for task, owned in info.standby],
        "partitionsByHost": [_host(name, owned, topics if by_index else None) for name, owned in both[0]],
        "standbyPartitionsByHost": [_host(name, owned, topics) for name, owned in both[1]],
        "topics": [{"index": index, "topic": topic} for topic, index in topics.items()],
        "errCode": info.error,
        "nextRebalanceMs": info.next_ms,
    }
    named = [*info.active, *(task for task, _ in info.standby)]
    return _written(ASSIGNMENT, value, named, release)


def read_assignment(data: bytes, release: str | None = None) -> model_members.AssignmentInfo:
    """Decodes an assignment as a member of the release. A topic missing from the dictionary gets an empty name (null in
    the release).

    Errors: ``Fatal``, also for a version above the member's own: an assignment is never decoded in part.
    """
    return _assignment(bytes(data), release or _release_from(data))


@lru_cache(maxsize=4096)
def _assignment(data: bytes, release: str | None) -> model_members.AssignmentInfo:
    exact = _exact(release)
    (version,) = _ints(data, 1, TASK_ASSIGNMENT)
    highest = latest(model_members.FUTURE if release is None else release)
    lowest = 0 if exact and exact in ZERO_IS_ONE else 1
    if not lowest <= version <= highest:
        raise model_members.Fatal(
            TASK_ASSIGNMENT, f"Unknown metadata version: {version}, latest supported version: {highest}"
        )
    value = _value(ASSIGNMENT, data, version, _edition(release), exact)
    topics = {each["index"]: each["topic"] for each in value.get("topics", ())}
    info = model_members.AssignmentInfo(
        version,
        value.get("commonlySupportedVersion", model_members.NO_VERSION),
        tuple(map(_task_of, value["activeTasks"])),
        tuple(
            (_task_of(each), _partitions_of(each["partitions"]))
            for each in sorted(value["standbyTasks"], key=lambda each: order(_task_of(each)))
        ),
        _hosts_of(value.get("partitionsByHost", ()), topics),
        _hosts_of(value.get("standbyPartitionsByHost", ()), topics),
    )
    if "errCode" in value:
        info = replace(info, error=value["errCode"])
    if "nextRebalanceMs" in value:
        info = replace(info, next_ms=value["nextRebalanceMs"])
    return replace(info, used=2) if version <= 1 and exact and exact in ONE_IS_TWO else info


def _named(task: model_members.TaskId) -> dict[str, Any]:
    return {**_task(task), "namedTopology": task.topology or ""}


def _partitions(owned: Iterable[Partition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": number} for topic, number in owned]


def _host(name: str, owned: Partitions, topics: dict[str, int] | None) -> dict[str, Any]:
    """``topics``: the dictionary of topics so far, with their indexes; None if the version writes topic names."""
    host, _, port = name.rpartition(":")
    found = _partitions(owned)
    if topics is not None:
        found = [{"topicIndex": topics.setdefault(each, len(topics)), "partition": number} for each, number in owned]
    return {"host": host, "port": int(port), "partitions": found}


def _hosts_of(hosts: Iterable[Mapping[str, Any]], topics: Mapping[int, str]) -> model_members.Hosts:
    return tuple(
        sorted((f"{each['host']}:{each['port']}", _partitions_of(each["partitions"], topics)) for each in hosts)
    )


def _partitions_of(owned: Iterable[Mapping[str, Any]], topics: Mapping[int, str] | None = None) -> Partitions:
    found = []
    for each in owned:
        indexed = "topicIndex" in each and topics is not None
        found.append((topics.get(each["topicIndex"], "") if indexed else each["topic"], each["partition"]))  # type: ignore[union-attr]
    return model_members.by_topic(found)


# Tasks


def _task(task: model_members.TaskId) -> dict[str, Any]:
    return {"topicGroupId": task.subtopology, "partition": task.partition}


def _task_of(given: Mapping[str, Any]) -> model_members.TaskId:
    return model_members.TaskId(given["topicGroupId"], given["partition"], given.get("namedTopology") or None)


def _sorted(given: Iterable[Mapping[str, Any]]) -> model_members.Tasks:
    return tuple(sorted(map(_task_of, given), key=order))


# Layouts


@cache
def _edition(release: str | None) -> Edition:
    """Errors: LookupError."""
    if release is None or release == model_members.FUTURE:
        return APACHE
    name = release.removeprefix(f"{model_members.FUTURE}@")
    return edition(name if name.partition("@")[0] in EDITIONS else f"apache@{name}")


def _is_future(release: str | None) -> bool:
    return release is not None and release.partition("@")[0] == model_members.FUTURE


def _exact(release: str | None) -> Release | None:
    form = _edition(release)
    return Release.parse(form.release) if form.standing is Standing.RELEASED and form.exact else None


@cache
def _body(message: str, version: int, form: Edition) -> Layout:
    """The layout of a version; for the future version, the newest. Errors: LookupError for an unknown version."""
    high = latest(None if form is APACHE else str(form))
    ahead = version == high + 1 and (form is APACHE or form.standing is Standing.DRAFT)
    if not ahead and not 1 <= version <= high:
        raise LookupError(f"{message} has no version {version}")
    return spec(form, message).at(version - ahead)


def _written(message: str, value: dict[str, Any], named: Iterable[model_members.TaskId], release: str | None) -> bytes:
    version, form = value["version"], _edition(release)
    try:
        body = _body(message, version, form)
    except LookupError:
        raise model_members.Fatal(
            ILLEGAL_ARGUMENT, f"version must be between 1 and {latest(release)}; was: {version}"
        ) from None
    if body.version < 10 and any(each.topology is not None for each in named):
        raise model_members.Fatal(TASK_ASSIGNMENT, f"version {version} has no place for the name of a topology")
    data = body.encode(_fitting(body, value) | {"version": body.version})
    return data if body.version == version else struct.pack(">i", version) + data[4:] + UNKNOWN_TAIL


def _fitting(layout: Layout, value: Mapping[str, Any]) -> dict[str, Any]:
    """The value, reduced to the fields of the layout."""
    return {
        slot.name: value[slot.name] if slot.item is None else [_fitting(slot.item, each) for each in value[slot.name]]
        for slot in layout.slots
    }


def _value(message: str, data: bytes, version: int, form: Edition, exact: Release | None) -> dict[str, Any]:
    body = _body(message, max(version, 1), form)
    led = data if body.version == version else struct.pack(">i", body.version) + data[4:]
    try:
        return body.decode(led, lenient=True) | {"version": version}
    except Refused as refused:
        thrown = _by_assignment if message == ASSIGNMENT else _by_subscription
        raise model_members.Fatal(thrown(refused.kind, exact), str(refused)) from None


def _by_subscription(refused: str, exact: Release | None) -> str:
    if exact and exact in BY_HAND and refused == "null":
        return NEGATIVE_SIZE
    shorter = refused == "truncated" or (exact and (exact in BY_HAND or (exact in UNGUARDED and refused == "length")))
    return UNDERFLOW if shorter else RUNTIME


def _by_assignment(refused: str, exact: Release | None) -> str:
    corrupt = refused != "null" or exact is None or exact in ONE_ERROR_CLASS
    return TASK_ASSIGNMENT if corrupt else ILLEGAL_ARGUMENT


def _ints(data: bytes, count: int, kind: str) -> tuple[int, ...]:
    """The first ``count`` ints. Errors: ``Fatal`` of this kind if there are too few bytes."""
    if len(data) < 4 * count:
        raise model_members.Fatal(kind, f"user data has {len(data)} bytes, and must have at least {4 * count}")
    return struct.unpack_from(f">{count}i", data)


# Binaries


class EncodedBinary:
    """Wraps a binary that exchanges values, and encodes and decodes them as its release does.

    Errors: those of its methods, and ``Fatal``.
    """

    def __init__(self, binary: model_members.Binary, release: str | None = None) -> None:
        """``release``: if it differs from that of the settings; for a future member of a draft, the draft's edition."""
        self._binary = binary
        self._release = release or binary.settings.release

    @property
    def settings(self) -> model_members.Settings:
        return self._binary.settings

    @property
    def latest(self) -> int:
        return self._binary.latest

    @property
    def supports(self) -> Sequence[str]:
        return self._binary.supports

    def initial(self) -> model_members.Memory:
        return self._binary.initial()

    def subscribe(
        self, memory: model_members.Memory, topics: tuple[str, ...], /
    ) -> tuple[model_members.Memory, model_members.Blob]:
        after, written_info = self._binary.subscribe(memory, topics)
        assert isinstance(written_info, model_members.SubscriptionInfo)
        return after, write_subscription(written_info, self._release)

    def lead(
        self, memory: model_members.Memory, topics: tuple[Topic, ...], members: tuple[model_members.Joining, ...], /
    ) -> tuple[model_members.Memory, Mapping[str, model_members.Share]]:
        read = tuple(replace(each, data=read_subscription(_given(each.data), self._release)) for each in members)
        after, shares = self._binary.lead(memory, topics, read)
        return after, {id: replace(each, data=self._wrote(each.data)) for id, each in shares.items()}

    def _wrote(self, written_info: model_members.Blob) -> bytes:
        assert isinstance(written_info, model_members.AssignmentInfo)
        return write_assignment(written_info, self._release)

    def assigned(self, memory: model_members.Memory, share: model_members.Share, /) -> model_members.AssignmentResult:
        decoded = read_assignment(_given(share.data), self._release)
        return self._binary.assigned(memory, replace(share, data=decoded))


def _given(data: model_members.Blob) -> bytes:
    assert isinstance(data, bytes)
    return data
