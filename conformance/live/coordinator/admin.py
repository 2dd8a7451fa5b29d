"""What conversations with a running broker need of it: its versions and settings, coordinators, and topics."""

import asyncio
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kipcheck.conformance.core.files.broker_settings import Value, configured, defaults
from kipcheck.conformance.core.values.java_hash import string_hash
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.protocols.consumer_group import rules as consumer_groups
from kipcheck.conformance.protocols.group.model.answers import SETTINGS, Config
from kipcheck.conformance.protocols.share_group import rules as share_groups
from kipcheck.conformance.protocols.share_partition import rules as share_partitions
from kipcheck.conformance.protocols.streams_group import model as streams_groups
from kipcheck.conformance.targets.protocol import Unavailable

METADATA, FIND_COORDINATOR, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 3, 10, 18, 19, 20
DESCRIBE_CONFIGS, ALTER_CONFIGS = 32, 44
IDS_SINCE: Final = 10
"""Metadata with the ids of topics."""
NO_ID: Final = uuid.UUID(int=0)
WAITS_MS: Final = 15_000
BROKER_RESOURCE, GROUP_RESOURCE = 4, 32
APPLIES_S: Final = 1.0
"""How long a broker may take to apply a setting of a group that it has answered."""
LARGEST: Final = 2**31 - 1


class Reader:
    """Reads the fields of a response's body in turn. ``of``: the request, for errors. Errors: ``Garbled``."""

    def __init__(self, data: bytes, of: str) -> None:
        self._data = data
        self._of = of
        self._at = 0

    def number(self, form: str) -> int:
        try:
            (found,) = struct.unpack_from(f">{form}", self._data, self._at)
        except struct.error:
            raise Garbled(
                f"the response to {self._of} has {len(self._data)} bytes and is to go on after them: it is cut off, "
                "or in the layout of another version"
            ) from None
        self._at += struct.calcsize(f">{form}")
        return int(found)

    def text(self) -> str:
        size = self.number("h")
        if size < 0:
            return ""
        self._at += size
        return self._data[self._at - size : self._at].decode("utf-8", "replace")


def text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value.encode())) + value.encode()


async def versions_of(connections: Connections) -> dict[int, tuple[int, int]]:
    """By API key. Errors: ``Closed``, ``Garbled``."""
    body = Reader(await connections.ask_plain(API_VERSIONS, 0, b""), "ApiVersions v0")
    if error := body.number("h"):
        raise Garbled(f"ApiVersions v0 is answered with error {error}")
    return {body.number("h"): (body.number("h"), body.number("h")) for _ in range(body.number("i"))}


async def coordinator_of(group: str, connections: Connections) -> tuple[str, int]:
    """Host and port of the coordinator. Errors: ``Closed``, ``Garbled`` if there is none."""
    body = Reader(await connections.ask_plain(FIND_COORDINATOR, 0, text(group)), "FindCoordinator v0")
    error = body.number("h")
    body.number("i")
    host, port = body.text(), body.number("i")
    if error:
        raise Garbled(f"FindCoordinator is answered with error {error}")
    return host, port


async def partitions_of(
    topic: str, connections: Connections, versions: Mapping[int, tuple[int, int]], creates: bool = False
) -> int:
    """The number of partitions; 0 if the broker has no such topic, or ``creates`` none that it is asked for.

    Errors: ``Closed``, ``Garbled``.
    """
    low, high = versions.get(METADATA, (0, 0))
    asked = {"topics": [{"name": topic}], "allowAutoTopicCreation": creates}
    found = await connections.ask("Metadata", max(low, min(high, 5)), "kipcheck", asked)
    return sum(len(each["partitions"]) for each in found["topics"] if each["name"] == topic and not each["errorCode"])


async def id_of(topic: str, connections: Connections, versions: Mapping[int, tuple[int, int]]) -> uuid.UUID | None:
    """None: the broker has no ids, or no such topic. Errors: ``Closed``, ``Garbled``."""
    low, high = versions.get(METADATA, (0, 0))
    if not low <= IDS_SINCE <= high:
        return None
    asked = {"topics": [{"topicId": NO_ID, "name": topic}], "allowAutoTopicCreation": False}
    found = await connections.ask("Metadata", IDS_SINCE, "kipcheck", asked)
    known = (each["topicId"] for each in found["topics"] if each["name"] == topic and not each["errorCode"])
    return next((each for each in known if each != NO_ID), None)


def partition_of(group: str, partitions: int) -> int:
    """The partition of the internal topic with the records of a group (``GroupMetadataManager.partitionFor``)."""
    found = string_hash(group)
    hashed = found - (1 << 32) if found >> 31 else found
    return 0 if hashed == -(1 << 31) else abs(hashed) % partitions


async def create(topics: Mapping[str, int], connections: Connections) -> None:
    """``topics``: name -> partitions. Errors: ``Unavailable`` with the answer; ``Closed``, ``Garbled``."""
    rows = b"".join(text(name) + struct.pack(">ihii", count, 1, 0, 0) for name, count in topics.items())
    body = struct.pack(">i", len(topics)) + rows + struct.pack(">ib", WAITS_MS, 0)
    found = Reader(await connections.ask_plain(CREATE_TOPICS, 2, body), "CreateTopics v2")
    found.number("i")
    for _ in range(found.number("i")):
        name, error, message = found.text(), found.number("h"), found.text()
        if error:
            raise Unavailable(
                f"CreateTopics of {name} is answered with error {error} {message}".rstrip()
                + "; name an existing topic: "
                "--topic NAME"
            )


async def delete(topics: Iterable[str], connections: Connections) -> dict[str, int]:
    """By topic that is still there: the error. Errors: ``Closed``, ``Garbled``."""
    names = [*topics]
    body = struct.pack(">i", len(names)) + b"".join(map(text, names)) + struct.pack(">i", WAITS_MS)
    found = Reader(await connections.ask_plain(DELETE_TOPICS, 1, body), "DeleteTopics v1")
    found.number("i")
    answered = {found.text(): found.number("h") for _ in range(found.number("i"))}
    return {name: error for name, error in answered.items() if error}


async def configure(group: str, settings: Mapping[str, str], connections: Connections) -> None:
    """Sets configurations of a group, and waits until they apply. Errors: ``Closed``, ``Garbled`` if it is refused."""
    rows = b"".join(text(name) + b"\0" + text(value) for name, value in settings.items())
    body = struct.pack(">ib", 1, GROUP_RESOURCE) + text(group) + struct.pack(">i", len(settings)) + rows + b"\0"
    found = Reader(await connections.ask_plain(ALTER_CONFIGS, 0, body), "IncrementalAlterConfigs v0")
    found.number("i"), found.number("i")
    if error := found.number("h"):
        raise Garbled(f"IncrementalAlterConfigs is answered with error {error} {found.text()}".rstrip())
    await asyncio.sleep(APPLIES_S)


def settings_of(
    described: Mapping[str, str], release: str
) -> tuple[Config, consumer_groups.Config, streams_groups.Config, share_partitions.Config, share_groups.Config]:
    """The settings of classic, consumer and streams groups, share partitions and share groups; the defaults of the
    release for what is not ``described``."""
    values: dict[str, Value] = dict(defaults(release))
    values |= {name: int(value) for name, value in described.items() if value.isdigit()}
    if policy := described.get(consumer_groups.POLICY):
        values[consumer_groups.POLICY] = policy.lower()
    return (
        configured(Config(max_size=LARGEST), SETTINGS, values),
        configured(consumer_groups.Config(max_size=LARGEST), consumer_groups.SETTINGS, values),
        configured(streams_groups.Config(standbys=0), streams_groups.SETTINGS, values),
        configured(share_partitions.DEFAULT, share_partitions.SETTINGS, values),
        configured(share_groups.Config(max_size=LARGEST), share_groups.SETTINGS, values),
    )


async def described_settings(connections: Connections, versions: Mapping[int, tuple[int, int]]) -> dict[str, str]:
    """Those of all types of groups that the broker describes, by name."""
    names = [*SETTINGS, *consumer_groups.SETTINGS, *streams_groups.SETTINGS, *share_partitions.SETTINGS]
    names += share_groups.SETTINGS
    try:
        node = await _node(connections, versions)
        asked = struct.pack(">ib", 1, BROKER_RESOURCE) + text(str(node)) + struct.pack(">i", len(names))
        asked += b"".join(map(text, names)) + b"\x00"
        body = Reader(await connections.ask_plain(DESCRIBE_CONFIGS, 1, asked), "DescribeConfigs v1")
        return {name: value for name, value in _described(body) if name in names}
    except (Closed, Garbled, KeyError, IndexError):
        return {}


def _described(body: Reader) -> Iterator[tuple[str, str]]:
    """Names and values of DescribeConfigs v1. Errors: ``Garbled``."""
    body.number("i")
    for _ in range(body.number("i")):
        body.number("h"), body.text(), body.number("b"), body.text()
        for _ in range(body.number("i")):
            yield body.text(), body.text()
            body.number("b"), body.number("b"), body.number("b")
            for _ in range(body.number("i")):
                body.text(), body.text(), body.number("b")


async def _node(connections: Connections, versions: Mapping[int, tuple[int, int]]) -> int:
    low, high = versions.get(METADATA, (0, 0))
    found = await connections.ask("Metadata", max(low, min(high, 5)), "kipcheck", {"topics": []})
    here = [each for each in found["brokers"] if each["port"] == connections.port]
    return int((here or found["brokers"])[0]["nodeId"])
