"""Adapts codecs made of classes with a ``SCHEMA``, one per version: aiokafka's, and kafka-python's before 3.

Fields are in wire order and have names of the library's own, so names of the declaration are matched by position.
Nothing else is changed, and the adapter does not decide whether a result is right.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from inspect import signature
from itertools import islice
from types import SimpleNamespace
from typing import Any

from kipcheck.conformance.clients.assignor_adapter import LEADING, Library, answer
from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.targets.error_mapping import rejected
from kipcheck.conformance.targets.protocol import OPERATIONS, Claims
from kipcheck.conformance.wire.schema import Layout, Slot, messages, spec

TAGS = "_unknownTaggedFields"
ZERO = str(uuid.UUID(int=0))
Classes = Mapping[tuple[str, int], Any]
"""Message and version -> the class."""


def released(name: str, edition_name: str) -> Edition:
    """The edition; clients implement only what Apache Kafka released. Errors: LookupError."""
    if edition_name.partition("@")[0] != "apache":
        raise LookupError(f"{name} does not implement edition {edition_name}")
    return edition(edition_name)


def claimed(known: Iterable[tuple[str, int]]) -> Claims:
    """Claims for messages and versions: the range of each message, and the versions missing within it."""
    found: dict[str, set[int]] = {}
    for message, version in known:
        found.setdefault(message, set()).add(version)
    spans = {message: (min(versions), max(versions)) for message, versions in found.items()}
    gaps = {message: tuple(sorted({*range(low, high)} - found[message])) for message, (low, high) in spans.items()}
    return Claims(spans, {message: missing for message, missing in gaps.items() if missing})


TYPES = "types"
"""The limit that covers ``Inexpressible``."""
WRITTEN_ONLY: Mapping[str, tuple[str, ...]] = {"RequestHeader": ("encode",)}
"""Both libraries make a header of a request, which no bytes contain."""


class Inexpressible(Exception):
    """A value or an operation that the library cannot represent."""


class Structs:
    """Shared by the adapters of both libraries."""

    name = ""
    issues = ""

    def __init__(
        self, version: str, classes: Classes, assignors: Library, builders: Mapping[str, Any] | None = None
    ) -> None:
        """``builders``: message -> the class with which users build requests of any version."""
        self.version = version
        self._classes = classes
        self._assignors = assignors
        self._builders = builders or {}
        self._edition: Edition = edition("apache")

    def configure(self, edition_name: str, /) -> str | None:
        try:
            self._edition = released(self.name, edition_name)
        except LookupError as unknown:
            return str(unknown)
        return None

    def claims(self) -> Claims:
        found = claimed(self._classes)
        limits = {TYPES: "it cannot represent unknown tagged fields"}
        operations = {name: each for name, each in WRITTEN_ONLY.items() if name in found.messages}
        return replace(found, assignors=tuple(self._assignors.names()), limits=limits, operations=operations)

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["op"] in LEADING:
            return answer(self._assignors, op)
        message, version = op["message"], op["version"]
        cls = self._classes.get((message, version))
        if cls is None:
            return {"status": "unsupported", "message": f"it has no class {message}_v{version}"}
        if op["op"] not in WRITTEN_ONLY.get(message, OPERATIONS):
            return {"status": "unsupported", "message": f"it has no code to {op['op']} {message}"}
        try:
            layout = spec(self._edition, message).at(version)
            return self._answer(cls, layout, op)
        except (LookupError, Inexpressible) as unsupported:
            return {"status": "unsupported", "capability": TYPES, "message": str(unsupported)}

    def _answer(self, cls: Any, layout: Layout, op: Mapping[str, Any]) -> dict[str, Any]:
        arguments = _arguments(cls.SCHEMA, layout, op["value"]) if op["op"] == "encode" else []
        try:
            if op["op"] == "encode":
                made = self._made(cls, layout, arguments, op["value"])
                return {"status": "accepted", "hex": bytes(made.encode()).hex()}
            made = cls.decode(bytes.fromhex(op["hex"]))
            if op["op"] == "recode":
                return {"status": "accepted", "hex": bytes(made.encode()).hex()}
        except (MemoryError, Inexpressible):
            raise
        except Exception as refusal:  # noqa: BLE001 - the library may raise any exception
            return rejected(refusal)
        read_as = getattr(made, "API_VERSION", layout.version)
        if made.__class__ is not cls and read_as != layout.version:  # a response to a version that the broker lacks
            layout = spec(self._edition, layout.message).at(read_as)
        values = [getattr(made, name) for name in made.SCHEMA.names]
        return {"status": "accepted", "value": _shown(made.SCHEMA, layout, values)}

    def _made(self, cls: Any, layout: Layout, arguments: list[Any], value: Mapping[str, Any]) -> Any:
        if strangers := {key: each for key, each in value.items() if key not in {*layout.names, TAGS}}:
            builder = self._builders.get(layout.message)
            if builder is None:
                return cls(**strangers)  # the class refuses names that it does not know
            return self._built(builder, layout, value).prepare({builder.API_KEY: (layout.version,) * 2})
        if cls.__name__.startswith("RequestHeader"):
            key, version, *others = arguments
            return cls(SimpleNamespace(API_KEY=key, API_VERSION=version), *others)
        return cls(*arguments)

    def _built(self, builder: Any, layout: Layout, value: Mapping[str, Any]) -> Any:
        """A request with fields of any version. The builder's arguments are named as the fields of its newest class."""
        newest = builder._CLASSES[-1]
        whole = spec(self._edition, layout.message).at(newest.API_VERSION)
        full = {**whole.codec.to_json(whole.defaults()), **value}
        fields = dict(zip(newest.SCHEMA.names, zip(newest.SCHEMA.fields, _places(whole), strict=False), strict=False))
        named = {name: fields[name] for name in signature(builder).parameters if name in fields}
        taken = {slot.name for _, slot in named.values()}
        if beyond := [key for key in value if key not in {*layout.names, *taken, TAGS}]:
            raise Inexpressible(f"its request builder has no argument for {beyond[0]}")
        return builder(**{name: _in(kind, slot, full[slot.name]) for name, (kind, slot) in named.items()})


def by_api(modules: Iterable[Any], is_request: Callable[[Any], bool], is_response: Callable[[Any], bool]) -> Classes:
    """The classes in ``modules``, by the message that has their API key."""
    named = {
        (found.api_key, name.endswith("Request")): name
        for name in messages(edition("apache"))
        if name.endswith(("Request", "Response"))
        for found in (spec(edition("apache"), name),)
    }
    classes: dict[tuple[str, int], Any] = {}
    for module in modules:
        for each in vars(module).values():
            if isinstance(each, type) and isinstance(key := getattr(each, "API_KEY", None), int):
                request, response = is_request(each), is_response(each)
                message = named.get((key, request)) if request or response else None
                if message is not None:
                    classes.setdefault((message, getattr(each, "API_VERSION", 0)), each)
    return classes


def present(found: Mapping[tuple[str, int], tuple[Any, tuple[str, ...]]]) -> Classes:
    """For each key, the first of the names that the module has; keys without one are left out."""
    classes = {
        key: next((each for name in names if (each := getattr(module, name, None)) is not None), None)
        for key, (module, names) in found.items()
    }
    return {key: each for key, each in classes.items() if each is not None}


def _arguments(schema: Any, layout: Layout, value: Mapping[str, Any]) -> list[Any]:
    for slot in layout.slots:
        if slot.tag is not None and value.get(slot.name, slot.fresh()) != slot.fresh():
            raise Inexpressible(f"{slot.name} has tag {slot.tag}, of which it keeps only the bytes")
    tags = {each["tag"]: bytes.fromhex(each["data"]) for each in value.get(TAGS, ())}
    places = _places(layout)
    arguments: list[Any] = [layout.version] if _leads(layout) else []
    for kind in schema.fields[len(arguments) :]:
        if _is_tags(kind):
            arguments.append(tags)
        elif (place := next(places, None)) is not None:
            if place.name not in value:
                raise Inexpressible(f"its structs are tuples of all fields, {place.name} among them")
            arguments.append(_in(kind, place, value[place.name]))
    if not any(map(_is_tags, schema.fields)) and tags:
        raise Inexpressible("it cannot keep tagged fields")
    return arguments


def _in(kind: Any, slot: Slot, value: Any, array: bool | None = None) -> Any:
    if value is None:
        return None
    if slot.array if array is None else array:
        inner = getattr(kind, "array_of", kind)
        return [_in(inner, slot, each, array=False) for each in value]
    if slot.item is not None:
        if beyond := [key for key in value if key not in {*slot.item.names, TAGS}]:
            raise Inexpressible(f"its structs are tuples without a place for {beyond[0]}")
        if hasattr(kind, "fields"):
            return tuple(_arguments(kind, slot.item, value))
        (only,) = _places(slot.item)  # an element with one field, for which it has no struct
        return _in(kind, only, value[only.name])
    match slot.type:
        case "bytes" | "records":
            return bytes.fromhex(value)
        case "uuid":
            return uuid.UUID(value)
    if hasattr(kind, "from_32_bit_field"):
        return kind.from_32_bit_field(value & 0xFFFFFFFF)
    return value


def _shown(schema: Any, layout: Layout, values: Iterable[Any]) -> dict[str, Any]:
    places = _places(layout)
    shown: dict[str, Any] = {}
    rows = zip(schema.names, schema.fields, values, strict=True)
    for name, kind, value in islice(rows, _leads(layout), None):
        if _is_tags(kind):
            known = {slot.tag: slot.name for slot in layout.slots if slot.tag is not None}
            if read := [known[tag] for tag in value if tag in known]:
                raise Inexpressible(f"it keeps only the bytes of {read[0]}")
            if value:
                shown[TAGS] = [{"tag": tag, "data": bytes(data).hex()} for tag, data in sorted(value.items())]
            continue
        slot = next(places, None)
        shown[slot.name if slot else name] = _out(kind, slot, value)
    for slot in layout.slots:
        if slot.tag is not None:
            shown[slot.name] = layout.codec.to_json(layout.defaults())[slot.name]
    tags = shown.pop(TAGS, None)
    ordered = {name: shown.pop(name) for name in layout.names if name in shown} | shown
    return ordered if tags is None else {**ordered, TAGS: tags}


def _out(kind: Any, slot: Slot | None, value: Any) -> Any:
    if value is None:
        return ZERO if slot is not None and slot.type == "uuid" and not slot.array else None
    if hasattr(kind, "array_of"):
        return [_element(kind.array_of, slot, each) for each in value]
    return _element(kind, slot, value)


def _element(kind: Any, slot: Slot | None, value: Any) -> Any:
    if slot is not None and slot.item is not None:
        if hasattr(kind, "fields"):
            return _shown(kind, slot.item, value)
        (only,) = _places(slot.item)
        return {only.name: _out(kind, only, value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, set | frozenset):
        number = kind.to_32_bit_field(value)
        return number - (1 << 32) if number >= 1 << 31 else number
    return value


def _places(layout: Layout) -> Iterator[Slot]:
    """The fields without a tag, in wire order."""
    return (slot for slot in layout.slots if slot.tag is None)


def _leads(layout: Layout) -> bool:
    """Whether its first field is the leading version, which values here do not contain."""
    return layout.prefix is not None and layout.prefix.name is None


def _is_tags(kind: Any) -> bool:
    return getattr(kind, "__name__", "") == "TaggedFields"
