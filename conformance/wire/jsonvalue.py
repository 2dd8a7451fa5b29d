"""Converts values to JSON and back: bytes are hex, uuids 8-4-4-4-12 text, everything else is unchanged.

Both directions are generated and compiled for a layout: code that knows where bytes and uuids are is faster than code
that checks every value.
"""

from collections.abc import Mapping
from typing import Any, NoReturn
from uuid import UUID

from kipcheck.conformance.wire.complete import complete
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.primitives import UNKNOWN, Rough
from kipcheck.conformance.wire.schema import Layout, Slot
from kipcheck.conformance.wire.source import Source

ROUGH = (Rough, LookupError, ValueError, TypeError, AttributeError)
BYTES = ("bytes", "records", "rest")


def hex_bytes(text: Any) -> bytes:
    """Parses pairs of hex digits without separators. Errors: ValueError, TypeError."""
    data = bytes.fromhex(text)
    if len(data) * 2 != len(text):
        raise ValueError("hex digits come in pairs, with nothing between them")
    return data


def text_uuid(text: Any) -> UUID:
    """Parses 32 hex digits in five groups. Errors: ValueError, TypeError, AttributeError."""
    found = UUID(text)
    if str(found) != text.lower():
        raise ValueError("hex digits in groups of 8-4-4-4-12")
    return found


def tags_to_json(tags: Any) -> list[dict[str, Any]]:
    return [{"tag": each["tag"], "data": each["data"].hex()} for each in tags]


def tags_from_json(tags: Any) -> list[dict[str, Any]]:
    if type(tags) is not list:
        raise Rough("type")
    return [{**each, "data": hex_bytes(each["data"])} for each in tags]


def to_json(layout: Layout) -> tuple[str, Any]:
    """Source code, and the function of a value of ``decode``."""
    source = Source()
    source.named |= {"ROUGH": ROUGH, "tags_to_json": tags_to_json, "again": lambda value: _to_json_again(layout, value)}
    with source.block("def to_json(value):"):
        with source.block("try:"):
            source.line(f"return {_Out(source).struct(layout, 'value')}")
        with source.block("except ROUGH:"):
            source.line("return again(value)")
    return source.text, source.function("to_json", f"<to_json {layout}>")


def from_json(layout: Layout) -> tuple[str, Any]:
    """Source code, and the function of a JSON object."""
    source = Source()
    source.named |= {
        "ROUGH": ROUGH,
        "tags_from_json": tags_from_json,
        "hex_bytes": hex_bytes,
        "text_uuid": text_uuid,
        "refuse": lambda value: _refuse(layout, value),
    }
    with source.block("def from_json(value):"):
        with source.block("try:"):
            _In(source).struct(layout, "value", "made")
            source.line("return made")
        with source.block("except ROUGH:"):
            source.line("refuse(value)")
    return source.text, source.function("from_json", f"<from_json {layout}>")


def _changes(layout: Layout) -> bool:
    """Whether the struct contains a field whose JSON form differs."""
    return layout.flexible or any(
        slot.type in (*BYTES, "uuid") or (slot.item is not None and _changes(slot.item)) for slot in layout.slots
    )


class _Out:
    def __init__(self, source: Source) -> None:
        self.s = source

    def struct(self, layout: Layout, value: str) -> str:
        """The name of the object that is built."""
        entries = [f"{slot.name!r}: {self.slot(slot, f'{value}[{slot.name!r}]')}" for slot in layout.slots]
        if layout.prefix and layout.prefix.name:
            entries.insert(0, f"{layout.prefix.name!r}: {value}[{layout.prefix.name!r}]")
        made = self.s.local("made")
        self.s.line(f"{made} = {{{', '.join(entries)}}}")
        with self.s.block(f"if len({value}) != {len(layout.names)}:"):
            if layout.flexible:
                self.s.line(f"{made}[{UNKNOWN!r}] = tags_to_json({value}[{UNKNOWN!r}])")
            else:
                self.s.line(f"raise KeyError({value})")
        return made

    def slot(self, slot: Slot, value: str) -> str:
        if slot.item is not None and _changes(slot.item):
            return self._structs(slot, slot.item, value)
        convert = "{}.hex()" if slot.type in BYTES else "str({})" if slot.type == "uuid" else ""
        if not convert:
            return value
        if slot.array:
            name = self.s.local(slot.name)
            self.s.line(f"{name} = {value}")
            made = f"[{convert.format('each')} for each in {name}]"
            return f"None if {name} is None else {made}" if slot.nullable else made
        if slot.nullable:
            name = self.s.local(slot.name)
            self.s.line(f"{name} = {value}")
            return f"None if {name} is None else {convert.format(name)}"
        return convert.format(value)

    def _structs(self, slot: Slot, item: Layout, value: str) -> str:
        name, out, each = self.s.local(slot.name), self.s.local(slot.name), self.s.local("each")
        self.s.line(f"{name} = {value}")
        self.s.line(f"{out} = None")
        with self.s.block(f"if {name} is not None:"):
            if slot.array:
                self.s.line(f"{out} = []")
                with self.s.block(f"for {each} in {name}:"):
                    self.s.line(f"{out}.append({self.struct(item, each)})")
            else:
                self.s.line(f"{out} = {self.struct(item, name)}")
        return out


class _In:
    def __init__(self, source: Source) -> None:
        self.s = source

    def struct(self, layout: Layout, value: str, made: str) -> None:
        self.s.line(f"{made} = {{**{value}}}")
        for slot in layout.slots:
            self._slot(slot, made)
        for absent in layout.absent:
            convert = "hex_bytes" if absent.default == b"" else "text_uuid" if isinstance(absent.default, UUID) else ""
            if convert:
                with self.s.block(f"if {made}.get({absent.name!r}) is not None:"):
                    self.s.line(f"{made}[{absent.name!r}] = {convert}({made}[{absent.name!r}])")
        if layout.flexible:
            with self.s.block(f"if {UNKNOWN!r} in {made}:"):
                self.s.line(f"{made}[{UNKNOWN!r}] = tags_from_json({made}[{UNKNOWN!r}])")

    def _slot(self, slot: Slot, made: str) -> None:
        convert = "hex_bytes" if slot.type in BYTES else "text_uuid" if slot.type == "uuid" else ""
        item = slot.item if slot.item is not None and _changes(slot.item) else None
        if not convert and item is None:
            return
        name = self.s.local(slot.name)
        self.s.line(f"{name} = {made}.get({slot.name!r})")
        with self.s.block(f"if {name} is not None:"):
            if slot.array:
                with self.s.block(f"if type({name}) is not list:"):
                    self.s.line("raise TypeError")
                if item is None:
                    self.s.line(f"{made}[{slot.name!r}] = [{convert}(each) for each in {name}]")
                    return
                out, each, one = self.s.local(slot.name), self.s.local("each"), self.s.local("one")
                self.s.line(f"{made}[{slot.name!r}] = {out} = []")
                with self.s.block(f"for {each} in {name}:"):
                    self.struct(item, each, one)
                    self.s.line(f"{out}.append({one})")
            elif item is not None:
                one = self.s.local("one")
                self.struct(item, name, one)
                self.s.line(f"{made}[{slot.name!r}] = {one}")
            else:
                self.s.line(f"{made}[{slot.name!r}] = {convert}({name})")


def _to_json_again(layout: Layout, value: Any) -> Any:
    """Converts a value that is not plain or complete. Errors: Refused."""
    plain = complete(layout, value)
    return layout.codec.to_json(plain)


def _refuse(layout: Layout, value: Any) -> NoReturn:
    """Finds the value that could not be converted. Errors: Refused, always."""
    _Search(layout).struct(layout, value, "")
    raise Refused("type", "no JSON form of this message", message=layout.message, version=layout.version)


class _Search:
    def __init__(self, layout: Layout) -> None:
        self.whole = layout

    def refuse(self, why: str, path: str) -> NoReturn:
        raise Refused("type", why, message=self.whole.message, version=self.whole.version, path=path)

    def struct(self, layout: Layout, value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            self.refuse(f"{_kind(value)} where an object belongs", path)
        led = f"{path}." if path else ""
        for slot in layout.slots:
            if value.get(slot.name) is not None:
                self.slot(slot, value[slot.name], led + slot.name)
        for absent in layout.absent:
            if absent.default == b"" and value.get(absent.name) is not None:
                self.bytes(value[absent.name], led + absent.name)
            if isinstance(absent.default, UUID) and value.get(absent.name) is not None:
                self.uuid(value[absent.name], led + absent.name)
        if layout.flexible and UNKNOWN in value:
            self.tags(value[UNKNOWN], led + UNKNOWN)

    def tags(self, tags: Any, path: str) -> None:
        if not isinstance(tags, list):
            self.refuse(f"{_kind(tags)} where a list of tagged fields belongs", path)
        for at, each in enumerate(tags):
            if not isinstance(each, Mapping) or set(each) != {"tag", "data"}:
                self.refuse("a tagged field has the keys tag and data, and no others", f"{path}[{at}]")
            self.bytes(each["data"], f"{path}[{at}].data")

    def slot(self, slot: Slot, value: Any, path: str) -> None:
        if not slot.array:
            self.one(slot, value, path)
            return
        if not isinstance(value, list):
            self.refuse(f"{_kind(value)} where a list belongs", path)
        for at, each in enumerate(value):
            self.one(slot, each, f"{path}[{at}]")

    def one(self, slot: Slot, value: Any, path: str) -> None:
        if slot.item is not None:
            self.struct(slot.item, value, path)
        elif slot.type in BYTES:
            self.bytes(value, path)
        elif slot.type == "uuid":
            self.uuid(value, path)

    def bytes(self, value: Any, path: str) -> None:
        try:
            hex_bytes(value)
        except (TypeError, ValueError):
            self.refuse(f"{_shown(value)} where bytes belong, as pairs of hex digits", path)

    def uuid(self, value: Any, path: str) -> None:
        try:
            text_uuid(value)
        except (TypeError, ValueError, AttributeError):
            self.refuse(f"{_shown(value)} where a uuid belongs, as hex digits in groups of 8-4-4-4-12", path)


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _shown(value: Any) -> str:
    return f"{value!r:.40}" if isinstance(value, str) else _kind(value)
