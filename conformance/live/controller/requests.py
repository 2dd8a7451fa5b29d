"""Requests about feature versions to a running cluster: its levels, updates, and registrations of nodes."""

import asyncio
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.ops.kraft import TYPES, UPGRADE, Declared, TypedUpdate
from kipcheck.conformance.wire.bodies import Places, values_in

API_VERSIONS, DESCRIBE_QUORUM, UPDATE_FEATURES, BROKER_REGISTRATION, UNREGISTER_BROKER = 18, 55, 57, 62, 64
CONTROLLER_REGISTRATION, DESCRIBE_CLUSTER = 70, 60
CONTROLLERS: Final = 2
"""The type of endpoints in DescribeCluster, from version 1 on."""
_CODES: Final = frozenset(KafkaError)
TIMEOUT_MS: Final = 15_000
FEATURES_SINCE, LARGEST_USED = 3, 4
"""Versions of ApiVersions."""
SHOWS_S: Final = 5.0
"""How long a broker may take to show what its controller has written."""
POLLS_S: Final = 0.02
PLAINTEXT: Final = 0
METADATA_TOPIC: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class Result:
    """Of one feature, or of a request."""

    feature: str
    error: str
    why: str


@dataclass(frozen=True, slots=True)
class Updated:
    """The response to UpdateFeatures."""

    error: str
    """At top level; NONE where it has none."""
    why: str
    results: tuple[Result, ...]


def name_of(code: int) -> str:
    """Of an error; one that kipcheck does not know is shown by its number."""
    return KafkaError(code).name if code in _CODES else f"ERROR_{code}"


async def _values(
    connections: Connections, api: str, version: int, asked: Mapping[str, Any], *places: Places
) -> tuple[Any, ...]:
    """What the response has at these places. Errors: ``Closed``, ``Garbled``, and ``Refused``, if the request has no
    bytes."""
    return values_in(f"{api}Response", version, await connections.ask(api, version, "kipcheck", asked), *places)


def _rows(array: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{array}[].{name}" for name in names)


async def picture_of(connections: Connections, versions: Mapping[int, tuple[int, int]]) -> Picture:
    """What a broker shows. Errors: ``Closed``, ``Garbled``."""
    version = min(versions.get(API_VERSIONS, (0, 0))[1], LARGEST_USED)
    if version < FEATURES_SINCE:
        return Picture(-1, {}, {})
    software = {"clientSoftwareName": "kipcheck", "clientSoftwareVersion": "1"}
    error, epoch, *levels = await _values(
        connections, "ApiVersions", version, software, "errorCode", "finalizedFeaturesEpoch",
        _rows("supportedFeatures", "name", "minVersion", "maxVersion"),
        _rows("finalizedFeatures", "name", "minVersionLevel", "maxVersionLevel"),
    )  # fmt: skip
    if error:
        raise Garbled(f"ApiVersions v{version} is answered with error {name_of(error)}")
    return Picture(epoch, *({name: (low, high) for name, low, high in rows} for rows in levels))


async def update(
    connections: Connections, version: int, updates: Sequence[TypedUpdate], validate_only: bool
) -> Updated:
    """Errors: ``Closed``, ``Garbled``."""
    rows = [
        {"feature": update.feature, "maxVersionLevel": update.level, **_kind(update, version)} for update in updates
    ]
    asked = {"timeoutMs": TIMEOUT_MS, "featureUpdates": rows}
    if version > 0:
        asked["validateOnly"] = validate_only
    error, why, results = await _values(
        connections, "UpdateFeatures", version, asked, "errorCode", "errorMessage",
        _rows("results", "feature", "errorCode", "errorMessage"),
    )  # fmt: skip
    found = (Result(feature, name_of(code), text or "") for feature, code, text in results)
    return Updated(name_of(error), why or "", tuple(found))


def _kind(update: TypedUpdate, version: int) -> dict[str, Any]:
    """Version 0 has a flag in place of the type."""
    if version > 0:
        return {"upgradeType": update.upgrade_type}
    return {"allowDowngrade": update.upgrade_type != UPGRADE and update.upgrade_type in TYPES}


async def settled(connections: Connections, versions: Mapping[int, tuple[int, int]]) -> Picture:
    """What a broker shows once it has read all that its controller has committed so far.

    The epoch is the offset of the last record that the broker has read; the controller reports where its log ends. A
    controller without this request, which has ZooKeeper, has no such delay. Errors: ``Closed``, ``Garbled``.
    """
    if DESCRIBE_QUORUM not in versions:
        return await picture_of(connections, versions)
    end = (await quorum_of(connections)).end
    loop = asyncio.get_running_loop()
    until = loop.time() + SHOWS_S
    while (found := await picture_of(connections, versions)).epoch < end - 1:
        if loop.time() > until:
            raise Garbled(f"the broker shows epoch {found.epoch} and the metadata end at {end} for {SHOWS_S:.0f} s")
        await asyncio.sleep(POLLS_S)
    return found


@dataclass(frozen=True, slots=True)
class Quorum:
    leader: int
    """-1 while there is none."""
    end: int
    """The offset after the last committed record."""
    log_end: int = -1
    """The offset after the last record that the leader has, committed or not; -1: it is not reported."""


async def quorum_of(connections: Connections) -> Quorum:
    """What a broker's controller says of the log of metadata. Errors: ``Closed``, ``Garbled``."""
    asked = {"topics": [{"topicName": METADATA_TOPIC, "partitions": [{"partitionIndex": 0}]}]}
    part = "topics[].partitions"
    error, rows, voters = await _values(
        connections, "DescribeQuorum", 0, asked, "errorCode", _rows(part, "errorCode", "leaderId", "highWatermark"),
        _rows(f"{part}[].currentVoters", "replicaId", "logEndOffset"),
    )  # fmt: skip
    if len(rows) != 1 or error or rows[0][0]:
        raise Garbled(f"DescribeQuorum is answered with error {name_of(error or (rows[0][0] if rows else -1))}")
    ((_, leader, end),) = rows
    return Quorum(leader, end, dict(voters).get(leader, -1))


async def controllers_of(connections: Connections, version: int) -> tuple[int, frozenset[int]]:
    """Which controller leads, and which have registered, by DescribeCluster.

    ``connections``: to the listener of a controller; ``version``: at least 1. Errors: ``Closed``, ``Garbled``.
    """
    asked = {"includeClusterAuthorizedOperations": False, "endpointType": CONTROLLERS, "includeFencedBrokers": False}
    places = "errorCode", "controllerId", ("brokers[].brokerId",)
    error, leader, numbers = await _values(connections, "DescribeCluster", version, asked, *places)
    if error:
        raise Garbled(f"DescribeCluster v{version} is answered with error {name_of(error)}")
    return leader, frozenset(number for (number,) in numbers)


async def register_broker(
    connections: Connections, version: int, cluster: str, number: int, supported: Sequence[Declared]
) -> Result:
    """A broker that does not exist registers with a controller, which then minds its levels.

    ``connections``: to the listener of controllers. Errors: ``Closed``, ``Garbled``; ``Refused`` for levels that the
    version cannot express.
    """
    listener = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 1, "securityProtocol": PLAINTEXT}
    features = [
        {"name": declared.feature, "minSupportedVersion": declared.low, "maxSupportedVersion": declared.high}
        for declared in supported
    ]
    asked = {
        "brokerId": number, "clusterId": cluster, "incarnationId": uuid.uuid4(), "listeners": [listener],
        "features": features, "rack": None, **({"logDirs": [uuid.uuid4()]} if version >= 2 else {}),
    }  # fmt: skip
    (error,) = await _values(connections, "BrokerRegistration", version, asked, "errorCode")
    return Result("", name_of(error), "")


async def unregister_broker(connections: Connections, number: int) -> Result:
    """Errors: ``Closed``, ``Garbled``."""
    data = await connections.ask_flexible(UNREGISTER_BROKER, 0, struct.pack(">i", number) + b"\0")
    return _result(data)


async def register_controller(connections: Connections, number: int, supported: Sequence[Declared]) -> Result:
    """Another controller registers with the leading one. Errors: ``Closed``, ``Garbled``."""
    listener = _compact("CONTROLLER") + _compact("127.0.0.1") + struct.pack(">Hh", 1, PLAINTEXT) + b"\0"
    rows = b"".join(
        _compact(declared.feature) + struct.pack(">hh", declared.low, declared.high) + b"\0" for declared in supported
    )
    body = struct.pack(">i", number) + uuid.uuid4().bytes + b"\0" + b"\x02" + listener
    data = await connections.ask_flexible(CONTROLLER_REGISTRATION, 0, body + bytes([len(supported) + 1]) + rows + b"\0")
    return _result(data)


def _result(data: bytes) -> Result:
    """Of a response that begins with the time of a quota, and an error."""
    if len(data) < 6:
        raise Garbled("a response is too short")
    return Result("", name_of(struct.unpack_from(">ih", data)[1]), "")


def _compact(name: str) -> bytes:
    """A string of a flexible version, shorter than 127 bytes."""
    return bytes([len(name.encode()) + 1]) + name.encode()
