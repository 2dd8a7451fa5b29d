"""Codecs with one planted defect each: values, bytes, damage, tags and state."""

import os
import signal
from collections.abc import Callable
from typing import Any, TypeAlias

from kipcheck.conformance.protocols.codec.target import ReferenceCodec
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.primitives import uvarint

PLACE = 10

TAGS = "_unknownTaggedFields"
Value: TypeAlias = dict[str, Any]


def everywhere(value: Any, change: Callable[[Any], Any]) -> Any:
    """Applies ``change`` to every leaf."""
    if isinstance(value, dict):
        return {key: everywhere(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [everywhere(each, change) for each in value]
    return change(value)


def bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items() if key != TAGS}
    return [bare(each) for each in value] if isinstance(value, list) else value


def has_tags(value: Any) -> bool:
    if isinstance(value, dict):
        return TAGS in value or any(map(has_tags, value.values()))
    return isinstance(value, list) and any(map(has_tags, value))


# Values and bytes


@mutant("wire/two-readings", "wire/decodes", "JoinGroupRequest", 1, "000000000000000000010000000000000000")
class SwapsFields(ReferenceCodec):
    """Two timeouts are swapped when they are read."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        if "rebalanceTimeoutMs" in value:
            first, second = value["sessionTimeoutMs"], value["rebalanceTimeoutMs"]
            value |= {"sessionTimeoutMs": second, "rebalanceTimeoutMs": first}
        return value


@mutant("wire/vectors", "wire/decodes", "JoinGroupRequest", 0, ...)
class TurnsNamesAround(ReferenceCodec):
    """Strings are read in reverse."""

    def read(self, layout: Layout, data: bytes) -> Value:
        def reverse(leaf: Any) -> Any:
            return leaf[::-1] if isinstance(leaf, str) else leaf

        value: Value = everywhere(super().read(layout, data), reverse)
        return value


@mutant("wire/round-trip", "wire/encodes", "HeartbeatRequest", 0, {"groupId": "", "generationId": 1, "memberId": ""})
class WritesLittleEndian(ReferenceCodec):
    """A generation is written in little-endian order."""

    def write(self, layout: Layout, value: Value) -> bytes:
        if isinstance(value.get("generationId"), int):
            swapped = value["generationId"].to_bytes(4, "big", signed=True)[::-1]
            value = {**value, "generationId": int.from_bytes(swapped, "big", signed=True)}
        return super().write(layout, value)


@mutant("wire/two-readings", "wire/decodes", "HeartbeatResponse", 0, "ffff")
class ForgetsTheSign(ReferenceCodec):
    """Error codes are read as unsigned numbers."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        if value.get("errorCode", 0) < 0:
            value["errorCode"] += 1 << 16
        return value


@mutant("wire/two-readings", "wire/decodes", "HeartbeatRequest", 3, "0000000000000000ffff")
class IgnoresNullability(ReferenceCodec):
    """Null is read as an empty string."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value: Value = everywhere(super().read(layout, data), lambda leaf: "" if leaf is None else leaf)
        return value


@mutant("wire/round-trip", "wire/encodes", "ConsumerProtocolSubscription", 0, {"topics": [], "userData": ""})
class WritesEmptyAsNull(ReferenceCodec):
    """Empty bytes are written as null."""

    def write(self, layout: Layout, value: Value) -> bytes:
        return super().write(layout, everywhere(value, lambda leaf: None if leaf == b"" else leaf))


@mutant("wire/two-readings", "wire/decodes", "DescribeGroupsRequest", 0, "000000010000")
class LosesTheLast(ReferenceCodec):
    """Lists are read without their last element."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        return {key: each[:-1] if isinstance(each, list) else each for key, each in value.items()}


@mutant("wire/round-trip", "wire/encodes", "LeaveGroupRequest", 0, {"groupId": "", "memberId": "0" * 128})
class CutsLongTexts(ReferenceCodec):
    """Strings are cut after 127 characters when they are written."""

    def write(self, layout: Layout, value: Value) -> bytes:
        return super().write(layout, everywhere(value, lambda leaf: leaf[:127] if isinstance(leaf, str) else leaf))


@mutant("wire/round-trip", "wire/encodes", "ApiVersionsResponse", 3, {
    "errorCode": 0, "apiKeys": [], "throttleTimeMs": 0,
    "supportedFeatures": [], "finalizedFeaturesEpoch": 0, "finalizedFeatures": [], "zkMigrationReady": False,
})  # fmt: skip
class WritesDefaults(ReferenceCodec):
    """A tagged field is written although it has its default."""

    def write(self, layout: Layout, value: Value) -> bytes:
        data = super().write(layout, value)
        return data[:-1] + EPOCH if layout.tagged and data.endswith(b"\0") else data


EPOCH = bytes.fromhex("010108ffffffffffffffff")
"""One tagged field: tag 1, eight bytes, -1."""


@mutant("wire/round-trip", "wire/recodes", "LeaveGroupRequest", 4, "010201000000")
class ForgetsOnTheWay(ReferenceCodec):
    """A message that is decoded and encoded again has other instance ids."""

    def answer(self, op: Any, /) -> dict[str, Any]:
        self._again = op["op"] == "recode"
        return super().answer(op)

    def write(self, layout: Layout, value: Value) -> bytes:
        if self._again:
            value = {**value, "members": [{**each, "groupInstanceId": "0"} for each in value.get("members", ())]}
        return super().write(layout, value)


# Damage


@mutant("wire/prefixes", "wire/refuses", "HeartbeatResponse", 0, "")
class AcceptsTruncation(ReferenceCodec):
    """Missing bytes at the end are read as zeros."""

    def read(self, layout: Layout, data: bytes) -> Value:
        try:
            return super().read(layout, data)
        except Refused as refusal:
            if refusal.kind != "truncated":
                raise
        return layout.decode(data + bytes(4096), lenient=True)


@mutant("wire/damage", "wire/refuses", "SyncGroupResponse", 0, "000000000001")
class BelievesLengths(ReferenceCodec):
    """A length past the end of the message is accepted."""

    def read(self, layout: Layout, data: bytes) -> Value:
        try:
            return super().read(layout, data)
        except Refused as refusal:
            if refusal.kind != "length":
                raise
        return layout.defaults()


@mutant("wire/damage", "wire/refuses", "ListGroupsRequest", 3, "808080808000")
class ReadsLongVarints(ReferenceCodec):
    """A varint of any length is accepted."""

    def read(self, layout: Layout, data: bytes) -> Value:
        try:
            return super().read(layout, data)
        except Refused as refusal:
            if refusal.kind != "varint":
                raise
        return layout.defaults()


@mutant("wire/damage", "wire/reads-alike", "MetadataRequest", 4, "ffffffff02")
class ReadsTwoAsFalse(ReferenceCodec):
    """A boolean is read as true only if its byte is 1."""

    def read(self, layout: Layout, data: bytes) -> Value:
        try:
            return super().read(layout, data)
        except Refused as refusal:
            if refusal.kind != "boolean":
                raise
        value: Value = everywhere(layout.decode(data, lenient=True), lambda leaf: False if leaf is True else leaf)
        return value


# Tags and versions


@mutant("wire/unknown-tags", "wire/keeps-unknown-tags", "HeartbeatResponse", 4, ...)
class DropsUnknownTags(ReferenceCodec):
    """Unknown tagged fields are skipped and lost."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value: Value = bare(super().read(layout, data))
        return value


@mutant("wire/unknown-tags", "wire/writes-readable-tags", "HeartbeatResponse", 4, ...)
class ForgetsTheSizeOfTags(ReferenceCodec):
    """Unknown tagged fields are written again without their sizes."""

    def write(self, layout: Layout, value: Value) -> bytes:
        tags = value.get(TAGS, ())
        data = super().write(layout, {key: each for key, each in value.items() if key != TAGS})
        if not tags:
            return data
        return data[:-1] + uvarint(len(tags)) + b"".join(uvarint(tag["tag"]) + tag["data"] for tag in tags)


@mutant("wire/unknown-tags", "wire/skips-unknown-tags", "HeartbeatResponse", 4, ...)
class RefusesUnknownTags(ReferenceCodec):
    """A message with an unknown tagged field is refused."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        if has_tags(value):
            raise Refused("tag", "an unknown tag", message=layout.message, version=layout.version)
        return value


@mutant("wire/unknown-tags", "wire/skips-unknown-tags", "LeaveGroupRequest", 4, ...)
class StumblesOverTags(ReferenceCodec):
    """After a struct with an unknown tagged field the rest of its list is lost."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        for key, each in value.items():
            if isinstance(each, list) and each and any(map(has_tags, each)) and isinstance(each[0], dict):
                value[key] = []
        return value


@mutant("wire/later-versions", "wire/reads-later-versions", "ConsumerProtocolAssignment", 3, ...)
class RefusesLaterVersions(ReferenceCodec):
    """Consumer protocol data of a later version is refused."""

    def read(self, layout: Layout, data: bytes) -> Value:
        return layout.decode(data)


# State


@mutant("wire/repeat", "wire/same-answer", "DescribeGroupsRequest", 0, "00000000")
class LeaksDefaults(ReferenceCodec):
    """All decoded messages share one list."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: list[str] = []

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        if isinstance(value.get("groups"), list):
            self._groups += value["groups"]
            value["groups"] = self._groups
        return value


@mutant("wire/repeat", "wire/same-answer", "HeartbeatRequest", 0, ...)
class KeepsState(ReferenceCodec):
    """An empty member id is replaced by that of the previous message."""

    def __init__(self) -> None:
        super().__init__()
        self._member = ""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        if isinstance(value.get("memberId"), str):
            self._member = value["memberId"] or self._member
            value["memberId"] = self._member
        return value


# Defects that end the process


@mutant("wire/unknown-tags", "survives", "HeartbeatResponse", 4, ..., deadly=True)
class CrashesOnTags(ReferenceCodec):
    """An unknown tagged field crashes the process."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        if has_tags(value):
            os.kill(os.getpid(), signal.SIGSEGV)
        return value


@mutant("wire/prefixes", "survives", "HeartbeatResponse", 0, "", deadly=True)
class HangsOnTruncation(ReferenceCodec):
    """Truncated input makes it loop for ever."""

    def read(self, layout: Layout, data: bytes) -> Value:
        try:
            return super().read(layout, data)
        except Refused as refusal:
            while refusal.kind == "truncated":
                pass
            raise


@mutant("wire/damage", "survives", "DescribeGroupsRequest", 0, "7fffffff", deadly=True)
class AllocatesByLength(ReferenceCodec):
    """Memory for a list is allocated by its length, before its elements are read."""

    def read(self, layout: Layout, data: bytes) -> Value:
        try:
            return super().read(layout, data)
        except Refused as refusal:
            if refusal.kind == "length" and refusal.offset is not None and not layout.flexible:
                bytearray(8 * max(0, int.from_bytes(data[refusal.offset : refusal.offset + 4], "big", signed=True)))
            raise


@mutant("wire/proportion", "survives", "HeartbeatResponse", 4, ..., deadly=True)
class GrowsQuadratically(ReferenceCodec):
    """A long input is copied at every byte."""

    def read(self, layout: Layout, data: bytes) -> Value:
        for end in range(len(data) if len(data) > 100_000 else 0):
            data[:end]
        return super().read(layout, data)


@mutant("wire/damage", "survives", "HeartbeatRequest", 0, "0000000000000001ff", deadly=True)
class LeavesQuietly(ReferenceCodec):
    """Invalid UTF-8 ends the process with exit code 0."""

    def read(self, layout: Layout, data: bytes) -> Value:
        try:
            return super().read(layout, data)
        except Refused as refusal:
            if refusal.kind == "text":
                os._exit(0)
            raise
