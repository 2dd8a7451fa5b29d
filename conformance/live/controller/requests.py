"""Requests about feature versions to a running cluster: its levels, updates, and registrations of nodes."""

import asyncio
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.ops.kraft import TYPES, UPGRADE, Declared, TypedUpdate

API_VERSIONS, DESCRIBE_QUORUM, UPDATE_FEATURES, BROKER_REGISTRATION, UNREGISTER_BROKER = 18, 55, 57, 62, 64
CONTROLLER_REGISTRATION, DESCRIBE_CLUSTER = 70, 60
CONTROLLERS: Final = 2
"""The type of endpoints in DescribeCluster, from version 1 on."""
NAMES: Final[Mapping[int, str]] = {
    -1: "UNKNOWN_SERVER_ERROR", 0: "NONE", 7: "REQUEST_TIMED_OUT", 31: "CLUSTER_AUTHORIZATION_FAILED",
    35: "UNSUPPORTED_VERSION", 41: "NOT_CONTROLLER", 42: "INVALID_REQUEST", 95: "INVALID_UPDATE_VERSION",
    96: "FEATURE_UPDATE_FAILED", 101: "DUPLICATE_BROKER_REGISTRATION", 102: "BROKER_ID_NOT_REGISTERED",
    116: "UNKNOWN_CONTROLLER_ID", 119: "INVALID_REGISTRATION",
}  # fmt: skip
"""``org.apache.kafka.common.protocol.Errors``; another error is shown by its number."""
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
    return NAMES.get(code, f"ERROR_{code}")


async def picture_of(connections: Connections, versions: Mapping[int, tuple[int, int]]) -> Picture:
    """What a broker shows. Errors: ``Closed``, ``Garbled``."""
    version = min(versions.get(API_VERSIONS, (0, 0))[1], LARGEST_USED)
    if version < FEATURES_SINCE:
        return Picture(-1, {}, {})
    software = {"clientSoftwareName": "kipcheck", "clientSoftwareVersion": "1"}
    body = await connections.ask("ApiVersions", version, "kipcheck", software)
    if error := body["errorCode"]:
        raise Garbled(f"ApiVersions v{version} is answered with error {name_of(error)}")
    return Picture(
        body.get("finalizedFeaturesEpoch", -1),
        {each["name"]: (each["minVersion"], each["maxVersion"]) for each in body.get("supportedFeatures", ())},
        {
            each["name"]: (each["minVersionLevel"], each["maxVersionLevel"])
            for each in body.get("finalizedFeatures", ())
        },
    )


async def update(
    connections: Connections, version: int, updates: Sequence[TypedUpdate], validate_only: bool
) -> Updated:
    """Errors: ``Closed``, ``Garbled``."""
    rows = [{"feature": each.feature, "maxVersionLevel": each.level, **_kind(each, version)} for each in updates]
    asked = {"timeoutMs": TIMEOUT_MS, "featureUpdates": rows}
    if version > 0:
        asked["validateOnly"] = validate_only
    body = await connections.ask("UpdateFeatures", version, "kipcheck", asked)
    results = tuple(
        Result(each["feature"], name_of(each["errorCode"]), each["errorMessage"] or "")
        for each in body.get("results", ())
    )
    return Updated(name_of(body["errorCode"]), body["errorMessage"] or "", results)


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
    topic = _compact(METADATA_TOPIC)
    body = b"\x02" + topic + b"\x02" + struct.pack(">i", 0) + b"\0" + b"\0" + b"\0"
    data = await connections.ask_flexible(DESCRIBE_QUORUM, 0, body)
    head = 2 + 1 + len(topic) + 1  # the error, and the sizes of two arrays around the name
    form = ">ihiiq"
    if data[:2] != b"\0\0" or len(data) < head + struct.calcsize(form):
        raise Garbled(f"DescribeQuorum is answered with error {name_of(int.from_bytes(data[:2], 'big', signed=True))}")
    _, error, leader, _, end = struct.unpack_from(form, data, head)
    if error:
        raise Garbled(f"DescribeQuorum is answered with error {name_of(error)}")
    return Quorum(leader, end, _log_end(data[head + struct.calcsize(form) :], leader))


def _log_end(voters: bytes, leader: int) -> int:
    """Of the leader, from the voters of DescribeQuorum v0, of which there are fewer than 127."""
    row = ">iqB"
    count = max(0, voters[0] - 1) if voters else 0
    if len(voters) < 1 + count * struct.calcsize(row):
        return -1
    ends: dict[int, int] = {
        number: end for number, end, _ in struct.iter_unpack(row, voters[1 : 1 + count * struct.calcsize(row)])
    }
    return ends.get(leader, -1)


async def controllers_of(connections: Connections, version: int) -> tuple[int, frozenset[int]]:
    """Which controller leads, and which have registered, by DescribeCluster.

    ``connections``: to the listener of a controller; ``version``: at least 1. Errors: ``Closed``, ``Garbled``.
    """
    asked = {"includeClusterAuthorizedOperations": False, "endpointType": CONTROLLERS, "includeFencedBrokers": False}
    body = await connections.ask("DescribeCluster", version, "kipcheck", asked)
    if error := body["errorCode"]:
        raise Garbled(f"DescribeCluster v{version} is answered with error {name_of(error)}")
    return body["controllerId"], frozenset(each["brokerId"] for each in body["brokers"])


async def register_broker(
    connections: Connections, version: int, cluster: str, number: int, supported: Sequence[Declared]
) -> Result:
    """A broker that does not exist registers with a controller, which then minds its levels.

    ``connections``: to the listener of controllers. Errors: ``Closed``, ``Garbled``; ``Refused`` for levels that the
    version cannot express.
    """
    listener = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 1, "securityProtocol": PLAINTEXT}
    features = [
        {"name": each.feature, "minSupportedVersion": each.low, "maxSupportedVersion": each.high} for each in supported
    ]
    body: dict[str, Any] = {
        "brokerId": number, "clusterId": cluster, "incarnationId": uuid.uuid4(), "listeners": [listener],
        "features": features, "rack": None,
    }  # fmt: skip
    if version >= 2:
        body["logDirs"] = [uuid.uuid4()]
    found = await connections.ask("BrokerRegistration", version, "kipcheck", body)
    return Result("", name_of(found["errorCode"]), "")


async def unregister_broker(connections: Connections, number: int) -> Result:
    """Errors: ``Closed``, ``Garbled``."""
    data = await connections.ask_flexible(UNREGISTER_BROKER, 0, struct.pack(">i", number) + b"\0")
    return _result(data)


async def register_controller(connections: Connections, number: int, supported: Sequence[Declared]) -> Result:
    """Another controller registers with the leading one. Errors: ``Closed``, ``Garbled``."""
    listener = _compact("CONTROLLER") + _compact("127.0.0.1") + struct.pack(">Hh", 1, PLAINTEXT) + b"\0"
    rows = b"".join(_compact(each.feature) + struct.pack(">hh", each.low, each.high) + b"\0" for each in supported)
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
