"""Codecs of values with timestamps with one planted defect each."""

from typing import Any, Final

from kipcheck.conformance.protocols.codec.target import ReferenceCodec
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused

PLACE = 40
STORED: Final = "ValueAndTimestamp"
STAMP: Final = 8

Value = dict[str, Any]


@mutant("wire/round-trip", "wire/encodes", STORED, 0, ...)
class WritesZeroForNoTimestamp(ReferenceCodec):
    """A value without a timestamp, -1, is stored with timestamp 0."""

    def write(self, layout: Layout, value: Value) -> bytes:
        if layout.message == STORED and value["timestamp"] == -1:
            value = {**value, "timestamp": 0}
        return super().write(layout, value)


@mutant("wire/two-readings", "wire/decodes", STORED, 0, ...)
class RefusesEmptyValues(ReferenceCodec):
    """A timestamp without bytes behind it is refused, as if the empty value did not exist."""

    def read(self, layout: Layout, data: bytes) -> Value:
        if layout.message == STORED and len(data) == STAMP:
            raise Refused("EOF", "there is no value", message=STORED, version=layout.version, offset=STAMP)
        return super().read(layout, data)


@mutant("wire/prefixes", "wire/refuses", STORED, 0, ...)
class PadsShortTimestamps(ReferenceCodec):
    """Fewer than 8 bytes are read as a timestamp with zeros in front, and an empty value."""

    def read(self, layout: Layout, data: bytes) -> Value:
        return super().read(layout, data.rjust(STAMP, b"\0") if layout.message == STORED else data)
