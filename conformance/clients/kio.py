"""Adapts kio as a codec. No other module imports kio.

Names come from the declaration: tagged fields are matched by tag, all others by position. kio's types for error codes,
durations, dates and ids become the numbers on the wire. kio reads and writes consumer protocol data without its leading
version, so the version is added and removed here. What its types cannot represent is unsupported.
"""

import io
import uuid
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module, metadata
from typing import Any, get_args

from kipcheck.conformance.clients.structs import TAGS, TYPES, ZERO, Inexpressible, claimed, released
from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.targets.error_mapping import rejected
from kipcheck.conformance.targets.protocol import Claims, Unavailable
from kipcheck.conformance.wire.schema import Layout, Slot, messages, spec

KINDS = ("request", "response", "header", "data")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class Kio:
    name = "kio"
    issues = "https://github.com/Aiven-Open/kio/issues"

    def __init__(self) -> None:
        self.version = metadata.version("kio")
        self._paths = _paths()
        self._serial: Any = import_module("kio.serial")
        self._errors: Any = import_module("kio.schema.errors").ErrorCode
        self._edition: Edition = edition("apache")
        self._from_files = tuple(map(int, self.version.split(".")[:2])) < (0, 5)
        """Its first releases read from files."""
        self._probe()

    def configure(self, edition_name: str, /) -> str | None:
        try:
            self._edition = released(self.name, edition_name)
        except LookupError as unknown:
            return str(unknown)
        return None

    def claims(self) -> Claims:
        limits = {TYPES: "unknown error codes, dates and tagged fields; the version before a record"}
        return replace(claimed(self._paths), limits=limits)

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        path = self._paths.get((op["message"], op["version"]))
        if path is None:
            return {"status": "unsupported", "message": f"it has no class for {op['message']} v{op['version']}"}
        try:
            layout = spec(self._edition, op["message"]).at(op["version"])
            return self._answer(_class(path), layout, op)
        except (LookupError, Inexpressible) as unsupported:
            return {"status": "unsupported", "capability": TYPES, "message": str(unsupported)}

    def _answer(self, cls: Any, layout: Layout, op: Mapping[str, Any]) -> dict[str, Any]:
        if op["op"] not in ("encode", "decode", "recode"):
            raise Inexpressible(f"unknown operation {op['op']!r}")
        try:
            if op["op"] == "encode":
                made = cls(**self._built(cls, layout, op["value"]))
                return {"status": "accepted", "hex": self._write(layout, cls, made)}
            made = self._read(cls, _body(layout, bytes.fromhex(op["hex"])))
            if op["op"] == "recode":
                return {"status": "accepted", "hex": self._write(layout, cls, made)}
        except (MemoryError, Inexpressible):
            raise
        except Exception as refusal:  # noqa: BLE001 - the library may raise any exception
            return rejected(refusal)
        return {"status": "accepted", "value": _shown(made, layout)}

    def _read(self, cls: Any, body: bytes) -> Any:
        reader = self._serial.entity_reader(cls)
        return reader(io.BytesIO(body)) if self._from_files else reader(body, 0)[0]

    def _write(self, layout: Layout, cls: Any, made: Any) -> str:
        out = io.BytesIO()
        self._serial.entity_writer(cls)(out, made)
        return (_head(layout) + out.getvalue()).hex()

    def _built(self, cls: Any, layout: Layout, value: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for its class."""
        if TAGS in value:
            raise Inexpressible("it cannot keep unknown tagged fields")
        pairs = {slot.name: (slot, field) for slot, field in _pairs(cls, layout) if slot and field}
        built: dict[str, Any] = {}
        for key, each in value.items():
            if key in pairs:
                slot, field = pairs[key]
                built[field.name] = self._in(slot, field, each, slot.array)
            elif (tagged := _tagged(layout, key)) is None:
                built[key] = each  # the class refuses a name that it does not know
            elif each != layout.codec.to_json(layout.defaults())[key]:
                raise Inexpressible(f"it does not know {key}, which has tag {tagged}")
        return built

    def _in(self, slot: Slot, field: Any, value: Any, array: bool) -> Any:
        if value is None:
            return None
        if array:
            return tuple(self._in(slot, field, each, False) for each in value)
        if slot.item is not None:
            entity = _entity(field.type)
            return entity(**self._built(entity, slot.item, value))
        try:
            match field.metadata["kafka_type"]:
                case "error_code":
                    return self._errors(value)
                case "timedelta_i32" | "timedelta_i64":
                    return value * MILLISECOND
                case "datetime_i64":
                    return None if value == -1 and type(None) in get_args(field.type) else EPOCH + value * MILLISECOND
                case "bytes" | "records":
                    return bytes.fromhex(value)
                case "uuid":
                    return None if value == ZERO else uuid.UUID(value)
        except (ValueError, OverflowError) as unknown:
            raise Inexpressible(f"{slot.name}: {unknown}") from None
        return value

    def _probe(self) -> None:
        """Checks the interface. Errors: ``Unavailable``."""
        path = self._paths.get(("ResponseHeader", 0))
        try:
            assert path is not None
            self._read(_class(path), bytes(4))
        except Exception as other:  # noqa: BLE001 - another interface may fail in any way
            raise Unavailable(f"the adapter does not support the interface of kio {self.version} ({other!r})") from None


def _paths() -> dict[tuple[str, int], str]:
    """Message and version -> path of the class, for the messages that are declared here."""
    index = import_module("kio.schema.index").schema_name_map
    declared = set(messages(edition("apache")))
    found: dict[tuple[str, int], str] = {}
    for versions in index.values():
        for version, paths in versions.items():
            for kind, path in paths.items():
                message = path.rpartition(":")[2]
                if kind.name in KINDS and message in declared:
                    found[message, int(version)] = path
    return found


@cache
def _class(path: str) -> Any:
    module, _, name = path.rpartition(":")
    return getattr(import_module(module), name)


@cache
def _pairs(cls: Any, layout: Layout) -> tuple[tuple[Slot | None, Any], ...]:
    """Each field of the declaration with kio's; one of the two is None where it has no counterpart."""
    theirs = fields(cls)
    tagged = {field.metadata["tag"]: field for field in theirs if "tag" in field.metadata}
    placed = iter([field for field in theirs if "tag" not in field.metadata])
    pairs: list[tuple[Slot | None, Any]] = [
        (slot, next(placed, None) if slot.tag is None else tagged.pop(slot.tag, None)) for slot in layout.slots
    ]
    return (*pairs, *((None, field) for field in (*placed, *tagged.values())))


def _entity(kind: Any) -> Any:
    """The dataclass in a type annotation: the element's or the struct's; None if there is none."""
    if is_dataclass(kind):
        return kind
    return next((found for each in get_args(kind) if (found := _entity(each)) is not None), None)


def _tagged(layout: Layout, name: str) -> int | None:
    return next((slot.tag for slot in layout.slots if slot.name == name), None)


def _head(layout: Layout) -> bytes:
    if layout.prefix is None:
        return b""
    return layout.version.to_bytes(2 if layout.prefix.type == "int16" else 4, "big")


def _body(layout: Layout, data: bytes) -> bytes:
    """The bytes that kio reads. Errors: ``Inexpressible`` where the leading version is not the expected one."""
    head = _head(layout)
    if not data.startswith(head):
        raise Inexpressible("kio leaves reading the leading version to its caller")
    return data[len(head) :]


def _shown(made: Any, layout: Layout) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for slot, field in _pairs(made.__class__, layout):
        if slot is None:
            shown[field.name] = str(getattr(made, field.name))
        elif field is not None:
            shown[slot.name] = _out(slot, getattr(made, field.name))
        elif slot.tag is not None:  # kio has refused or dropped bytes with this tag
            shown[slot.name] = layout.codec.to_json(layout.defaults())[slot.name]
    return shown


def _out(slot: Slot, value: Any) -> Any:
    if isinstance(value, tuple):
        return [ZERO if each is None and slot.type == "uuid" else _out(slot, each) for each in value]
    if is_dataclass(value):
        assert slot.item is not None
        return _shown(value, slot.item)
    match value:
        case None if slot.type == "uuid" and not slot.array:
            return ZERO
        case None if slot.type == "int64" and not slot.array:
            return -1  # no date
        case timedelta():
            return value // MILLISECOND
        case datetime():
            return (value - EPOCH) // MILLISECOND
        case bytes():
            return value.hex()
        case uuid.UUID():
            return str(value)
    return getattr(value, "value", value)  # of an error code
