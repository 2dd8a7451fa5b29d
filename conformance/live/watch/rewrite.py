"""What a proxy changes in answers: the addresses of brokers, and the versions that ApiVersions offers.

All other bytes pass as they are. An answer in a version without a layout here passes unchanged too.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.wire.framing import decode_response, encode_response, header_layout, header_version
from kipcheck.conformance.wire.schema import MessageSpec, spec

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, SASL_HANDSHAKE, API_VERSIONS = 0, 1, 3, 10, 17, 18
DESCRIBE_QUORUM, DESCRIBE_CLUSTER, SHARE_FETCH, SHARE_ACKNOWLEDGE = 55, 60, 78, 79
NAMES: Final[Mapping[int, str]] = {
    PRODUCE: "Produce", METADATA: "Metadata", FIND_COORDINATOR: "FindCoordinator", API_VERSIONS: "ApiVersions",
    DESCRIBE_QUORUM: "DescribeQuorum", DESCRIBE_CLUSTER: "DescribeCluster", SHARE_FETCH: "ShareFetch",
    SHARE_ACKNOWLEDGE: "ShareAcknowledge",
}  # fmt: skip
"""The requests whose answers are changed, by API key. All others that clients send are answered without addresses of
brokers: endpoints of members of streams groups are those of applications."""
LATER: Final[Mapping[int, str]] = {PRODUCE: "nodeEndpoints", DESCRIBE_QUORUM: "nodes"}
"""The fields with addresses that older versions lack."""
FETCH_BEFORE_ENDPOINTS: Final = 15
"""Fetch names brokers from version 16 on, after the records. A proxy that changed them would have to hold the whole of
what consumers read most. ShareFetch names them so in every version, and is held."""
SASL_IN_FRAMES: Final = 1
"""From this version of SaslHandshake on, what follows are requests with headers."""
Address: TypeAlias = tuple[str, int]


def ranges() -> dict[int, tuple[int, int]]:
    """The versions that a proxy lets through, by API key; keys that are not here are not narrowed."""
    found = {key: _known(_response(key)) for key in NAMES}
    return {**found, FETCH: (_known(spec(APACHE, "FetchResponse"))[0], FETCH_BEFORE_ENDPOINTS)}


def _response(key: int) -> MessageSpec:
    return spec(APACHE, f"{NAMES[key]}Response")


def _known(message: MessageSpec) -> tuple[int, int]:
    assert message.versions.high is not None
    return message.versions.low, message.versions.high


def is_rewritten(key: int, version: int) -> bool:
    """Whether answers of that version can hold an address or a range, and have a layout here."""
    if key not in NAMES or version not in _response(key).versions:
        return False
    return key not in LATER or LATER[key] in {slot.name for slot in _response(key).at(version).slots}


def decoded(payload: bytes, key: int, version: int) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Version, header and body of an answer: a broker answers an unknown version of ApiVersions in version 0.

    Errors: ``Refused``.
    """
    if key == API_VERSIONS and int.from_bytes(payload[4:6], "big", signed=True) == KafkaError.UNSUPPORTED_VERSION:
        version = 0
    found = decode_response(payload, APACHE, f"{NAMES[key]}Response", version, lenient=True)
    return version, found.header, found.body


def encoded(key: int, version: int, header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
    """An answer without its size, with the tags of its header. Errors: ``Refused``."""
    layout = _response(key).at(version)
    if len(header) == 1:
        return encode_response(APACHE, f"{NAMES[key]}Response", version, header["correlationId"], body)
    return header_layout("Response", header_version(layout)).encode(header) + layout.encode(body)


def nodes(key: int, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of an answer that have a host and a port."""
    match key:
        case 0 | 78 | 79:
            yield from body.get("nodeEndpoints") or ()
        case 3 | 60:
            yield from body.get("brokers") or ()
        case 10:
            yield from body.get("coordinators") or ([body] if "coordinators" not in body else [])
        case 55:
            for node in body.get("nodes") or ():
                yield from node["listeners"]


def addresses(key: int, body: Mapping[str, Any]) -> set[Address]:
    """The brokers that an answer names. Where there is none, the host is empty, or the port is not positive."""
    return {found for node in nodes(key, body) if (found := _address(node)) is not None}


def _address(node: Mapping[str, Any]) -> Address | None:
    host, port = node.get("host"), node.get("port")
    return (host, port) if host and port and 0 < port < 1 << 16 else None


def readdress(key: int, body: Mapping[str, Any], given: Callable[[Address], Address]) -> bool:
    """Puts other addresses in the place of those in an answer. Returns whether it had any."""
    changed = False
    for node in nodes(key, body):
        if (found := _address(node)) is not None:
            node["host"], node["port"] = given(found)
            changed = True
    return changed


def narrow(body: Mapping[str, Any], allowed: Mapping[int, tuple[int, int]]) -> list[str]:
    """Takes the versions that are not ``allowed`` out of an answer to ApiVersions. Returns what was taken, in words."""
    narrowed, kept = [], []
    rows: list[dict[str, int]] = body.get("apiKeys", [])
    for row in rows:
        key, low, high = row["apiKey"], row["minVersion"], row["maxVersion"]
        least, most = allowed.get(key, (low, high))
        if key == SASL_HANDSHAKE and high >= SASL_IN_FRAMES:
            least = SASL_IN_FRAMES
        least, most = max(low, least), min(high, most)
        if least > most:
            narrowed.append(f"{_name(key)} (none of {low} to {high})")
            continue
        kept.append({**row, "minVersion": least, "maxVersion": most})
        if (least, most) != (low, high):
            narrowed.append(f"{_name(key)} {least} to {most} (of {low} to {high})")
    rows[:] = kept
    return narrowed


def _name(key: int) -> str:
    return {**NAMES, FETCH: "Fetch", SASL_HANDSHAKE: "SaslHandshake"}.get(key, f"key {key}")
