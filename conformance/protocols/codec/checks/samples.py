"""A sample of each message, with a value in every field, and how the answers of a testee differ from it.

``kipcheck doctor`` finds misspelt names of fields with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kipcheck.conformance.core.values.nearest import nearest
from kipcheck.conformance.protocols.codec.checks.example_values import TAGS
from kipcheck.conformance.protocols.codec.two_decoders import brief, difference
from kipcheck.conformance.protocols.declare.check import Operation
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import INTEGERS, Slot


@dataclass(frozen=True, slots=True)
class Sample:
    """A version of a message with a value in every field."""

    layout: Layout
    value: Mapping[str, Any]
    """As JSON."""
    data: bytes

    @classmethod
    def of(cls, layout: Layout) -> "Sample":
        value = filled(layout)
        if layout.message == "ApiVersionsResponse":
            value["errorCode"] = 0  # with an error, clients expect version 0 (KIP-511)
        return cls(layout, layout.codec.to_json(value), layout.encode(value))

    @property
    def encode(self) -> Operation:
        return {"op": "encode", **self._about, "value": self.value}

    @property
    def decode(self) -> Operation:
        return {"op": "decode", **self._about, "hex": self.data.hex()}

    @property
    def _about(self) -> dict[str, Any]:
        return {"message": self.layout.message, "version": self.layout.version}


def filled(layout: Layout) -> dict[str, Any]:
    """A value in every field, other than its default, so that a field that is left out shows. Texts are the names of
    their fields, so that two of them that change places show.
    """
    led = {layout.prefix.name: layout.version} if layout.prefix and layout.prefix.name else {}
    return {**led, **{slot.name: [_one(slot)] if slot.array else _one(slot) for slot in layout.slots}}


def _one(slot: Slot) -> Any:
    if slot.item is not None:
        return filled(slot.item)
    match slot.type:
        case "bool":
            return slot.array or not slot.default
        case "float64":
            return 1.0
        case "uuid":
            return UUID(int=1 << 96)
        case "bytes" | "records" | "rest":
            return slot.name.encode()
    if slot.type in INTEGERS:
        return 2 if slot.default == 1 else 1
    return slot.name


# ---- comparisons: None if there is nothing to compare, else what is wrong, or an empty text


def unlike_written(sample: Sample, result: Mapping[str, Any]) -> str | None:
    if result["status"] != "accepted":
        return _not_accepted(result)
    data = bytes.fromhex(result["hex"])
    if data == sample.data:
        return ""
    try:
        found = sample.layout.codec.to_json(sample.layout.decode(data))
    except Refused as why:
        return f"{data.hex()!s:.60} is not the message: {why}"
    if (unlike := difference(sample.value, found)) is not None:
        return (
            f"{unlike.path} is written as {brief(unlike.got)}, not {brief(unlike.wanted)}: does it read the key "
            f"{unlike.path.rpartition('.')[2]!r} of the value?"
        )
    return f"the same value, written as {data.hex()!s:.60} and not {sample.data.hex()!s:.60}"


def unlike_read(sample: Sample, result: Mapping[str, Any]) -> str | None:
    if result["status"] != "accepted":
        return _not_accepted(result)
    for fault in _misnamed(sample.value, result["value"], ""):
        return fault
    unlike = difference(sample.value, result["value"])
    return "" if unlike is None else f"{unlike.path} is {brief(unlike.got)}, not {brief(unlike.wanted)}"


def _not_accepted(result: Mapping[str, Any]) -> str | None:
    if result["status"] == "unsupported":
        return None  # the probe of claims judges it
    what = f"{result.get('class', '')}: {result.get('message', '')}".strip(": ")
    return f"a legal message with a value in each field is answered with {result['status']}, {what}"


def _misnamed(wanted: object, got: object, path: str) -> Iterator[str]:
    """Keys that are missing, or that the message does not have, with the one that is probably meant."""
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        missing = [key for key in wanted if key not in got]
        others = [key for key in got if key not in wanted and key != TAGS]
        for other in others:
            meant = nearest(other, missing, cutoff=0, most=1)
            yield f"{path}{other} is no field of it" + (f": did you mean {meant[0]}?" if meant else "")
        if missing and not others:
            yield f"{path}{missing[0]} is missing in the value"
        for key in wanted.keys() & got.keys():
            yield from _misnamed(wanted[key], got[key], f"{path}{key}.")
    elif isinstance(wanted, list) and isinstance(got, list):
        for number, (one, other) in enumerate(zip(wanted, got, strict=False)):
            yield from _misnamed(one, other, f"{path.removesuffix('.')}[{number}].")
