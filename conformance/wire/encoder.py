"""Writes the encoder of a layout: pieces in one list, joined once; one ``pack`` per run of fields of fixed size.

The compiled code takes values that are plain and complete. It only notices that something is unusual, by raising:
then ``complete`` says what is wrong, or makes the value plain and complete, and it runs once more.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from conformance.wire.complete import is_default
from conformance.wire.primitives import (
    FORMATS,
    LONGEST_STRING,
    LONGEST_UTF,
    UNKNOWN,
    Rough,
    Table,
    modified_utf8,
    packers,
    uvarint,
)
from conformance.wire.schema import ZERO_UUID, Layout, Slot
from conformance.wire.source import Source, default_of

ROUGH = (struct.error, LookupError, ValueError, OverflowError, TypeError, AttributeError)
"""What compiled code raises on values that are not plain and complete."""

Again = Callable[[Any, Exception], bytes]


def encoder(layout: Layout, again: Again) -> tuple[str, Any]:
    """Source, and the function of a mapping. ``again`` gets a value that the code does not take as it is."""
    source = Source()
    writer = _Encoder(source)
    source.named |= {
        "Rough": Rough, "ROUGH": ROUGH, "again": again, "UUID": UUID, "merge": merge, "bytes_of_tags": tag_section,
        "S": Table(_int16, 1024), "I": Table(_int32, 1024), "C": Table(lambda size: uvarint(size + 1), 1024),
    }
    with source.block("def encode(value):"):
        with source.block("try:"):
            writer.struct(layout, "value", "")
            source.line(f"return {writer.joined()}")
        with source.block("except ROUGH as failure:"):
            source.line("return again(value, failure)")
    return source.text, source.function("encode", f"<encode {layout}>")


def _int16(size: int) -> bytes:
    if size > LONGEST_STRING:
        raise Rough("length")
    return size.to_bytes(2, "big")


def _int32(size: int) -> bytes:
    return size.to_bytes(4, "big")


def filler(layout: Layout) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """A function that adds the defaults and drops what the version lacks and can do without; nested structs stay."""
    absent = {each.name: each for each in layout.absent}
    names = frozenset(layout.names)

    def fill(value: Mapping[str, Any]) -> Mapping[str, Any]:
        full = layout.defaults()
        for key in value:
            if key in names or (key == UNKNOWN and layout.flexible):
                full[key] = value[key]
            elif key not in absent or not (absent[key].ignorable or is_default(absent[key], value[key])):
                raise Rough("unknown-field")
        return full

    return fill


def merge(known: list[tuple[int, bytes]], unknown: Any, tags: frozenset[int]) -> list[tuple[int, bytes]]:
    """Known and unknown tagged fields by tag. Errors: Rough."""
    if type(unknown) is not list:
        raise Rough("type")
    last = -1
    for each in unknown:
        tag, data = each["tag"], each["data"]
        if len(each) != 2 or type(tag) is not int or type(data) is not bytes or tag in tags or tag <= last:
            raise Rough("tag")
        if tag >= 2**31:
            raise Rough("range")
        last = tag
        known.append((tag, data))
    known.sort()
    return known


def tag_section(fields: list[tuple[int, bytes]]) -> bytes:
    return b"".join([uvarint(len(fields)), *(uvarint(tag) + uvarint(len(data)) + data for tag, data in fields)])


class _Encoder:
    def __init__(self, source: Source) -> None:
        self.s = source
        self._out = "out"
        self._fresh = True
        self._pieces: list[str] = []
        self._run: list[tuple[str, str]] = []

    # Pieces

    def open(self) -> tuple[str, bool, list[str], list[tuple[str, str]]]:
        """Begin a list of pieces; what was being written before goes on after ``close``."""
        before = (self._out, self._fresh, self._pieces, self._run)
        self._out, self._fresh, self._pieces, self._run = self.s.local("out"), True, [], []
        return before

    def put(self, expression: str) -> None:
        self._pack()
        self._pieces.append(expression)

    def number(self, code: str, expression: str) -> None:
        self._run.append((code, expression))

    def _pack(self) -> None:
        if self._run:
            codes = "".join(code for code, _ in self._run)
            pack = self.s.constant(f"pack_{codes.replace('?', 't')}", codes, lambda: struct.Struct(">" + codes).pack)
            self._pieces.append(f"{pack}({', '.join(expression for _, expression in self._run)})")
            self._run.clear()

    def spill(self) -> None:
        """Put the pieces on the list, since a loop or a branch follows."""
        self._pack()
        pieces, self._pieces = ", ".join(self._pieces), []
        if self._fresh:
            self.s.line(f"{self._out} = [{pieces}]")
            self._fresh = False
        elif pieces:
            self.s.line(f"{self._out} += ({pieces},)")

    def joined(self) -> str:
        """An expression for all the pieces in one."""
        if self._fresh:
            self._pack()
            if len(self._pieces) == 1:
                return self._pieces[0]
            return f"b''.join(({', '.join(self._pieces)}{',' * (len(self._pieces) == 1)}))" if self._pieces else "b''"
        self.spill()
        return f"b''.join({self._out})"

    def close(self, into: str, before: tuple[str, bool, list[str], list[tuple[str, str]]]) -> None:
        self.s.line(f"{into} = {self.joined()}")
        self._out, self._fresh, self._pieces, self._run = before

    def refuse(self, condition: str, kind: str, path: str) -> None:
        with self.s.block(f"if {condition}:"):
            self.s.line(f"raise Rough({kind!r}, {path!r})")

    # Structs

    def struct(self, layout: Layout, value: str, path: str) -> None:
        line, block = self.s.line, self.s.block
        fill = self.s.constant("fill", (id(layout), path), lambda: filler(layout))
        names = len(layout.names)
        with block(f"if len({value}) != {names}:"):
            line(f"{value} = {fill}({value})")
        if layout.flexible:
            unknown = self.s.local("unknown")
            line(f"{unknown} = {value}[{UNKNOWN!r}] if len({value}) != {names} else None")
        if layout.prefix is not None:
            if layout.prefix.name:
                said = f"{value}[{layout.prefix.name!r}]"
                self.refuse(f"{said} != {layout.version} or {said} is True", "version", layout.prefix.name)
            self.put(repr(struct.pack(">" + FORMATS[layout.prefix.type], layout.version)))
        for slot in layout.untagged:
            name = self.s.local(slot.name)
            line(f"{name} = {value}[{slot.name!r}]")
            self.slot(slot, name, f"{path}.{slot.name}".strip("."))
        if layout.flexible:
            self._tags(layout, value, unknown, path)

    def _tags(self, layout: Layout, value: str, unknown: str, path: str) -> None:
        line, block = self.s.line, self.s.block
        fields, tags = self.s.local("fields"), self.s.local("tags")
        known = self.s.constant("known_tags", id(layout), lambda: frozenset(slot.tag for slot in layout.tagged))
        if not layout.tagged:
            line(f"{tags} = b'\\0' if {unknown} is None else bytes_of_tags(merge([], {unknown}, {known}))")
            self.put(tags)
            return
        line(f"{fields} = []")
        for slot in layout.tagged:
            name = self.s.local(slot.name)
            line(f"{name} = {value}[{slot.name!r}]")
            self._tagged(slot, name, fields, f"{path}.{slot.name}".strip("."))
        with block(f"if {unknown} is not None:"):
            line(f"merge({fields}, {unknown}, {known})")
        line(f"{tags} = bytes_of_tags({fields}) if {fields} else b'\\0'")
        self.put(tags)

    def _tagged(self, slot: Slot, name: str, fields: str, path: str) -> None:
        """Append (tag, payload) unless the value is the default; null is one byte 0 where the default is not null."""
        line, block = self.s.line, self.s.block
        data = self.s.local("data")
        if slot.default is None:
            with block(f"if {name} is not None:"):
                self._payload(slot, name, data, path)
                line(f"{fields}.append(({slot.tag}, {data}))")
            return
        if slot.nullable:
            with block(f"if {name} is None:"):
                line(f"{fields}.append(({slot.tag}, b'\\0'))")
            with block("else:"):
                self._unless_default(slot, name, data, fields, path)
        else:
            self._unless_default(slot, name, data, fields, path)

    def _unless_default(self, slot: Slot, name: str, data: str, fields: str, path: str) -> None:
        line, block = self.s.line, self.s.block
        self._payload(slot, name, data, path)
        if slot.default == ():
            differs = name
        elif slot.default is ... or slot.default == ZERO_UUID:
            default = self.s.local("default")
            line(f"{default} = {default_of(self.s, slot)}")
            again = self.s.local("data")
            self._payload(slot, default, again, path)
            differs = f"{data} != {again}"
        else:
            differs = f"{name} != {slot.default!r}"
        with block(f"if {differs}:"):
            line(f"{fields}.append(({slot.tag}, {data}))")

    def _payload(self, slot: Slot, name: str, data: str, path: str) -> None:
        before = self.open()
        if slot.item is not None and not slot.array and slot.nullable:
            self.put("b'\\1'")
            self.struct(slot.item, name, path)
        else:
            self._present(slot, name, path)
        self.close(data, before)

    # Slots

    def slot(self, slot: Slot, name: str, path: str) -> None:
        if not slot.nullable:
            self._present(slot, name, path)
        elif slot.array or slot.item is not None:
            self.spill()
            with self.s.block(f"if {name} is None:"):
                self.s.line(f"{self._out}.append({self._null(slot)})")
            with self.s.block("else:"):
                if not slot.array:
                    self.put("b'\\1'")
                self._present(slot, name, path)
                self.spill()
        else:
            data = self.s.local("data")
            with self.s.block(f"if {name} is None:"):
                self.s.line(f"{data} = {self._null(slot)}")
            with self.s.block("else:"):
                before = self.open()
                self._present(slot, name, path)
                self.close(data, before)
            self.put(data)

    def _null(self, slot: Slot) -> str:
        if slot.item is not None and not slot.array:
            return "b'\\xff'"
        if slot.compact:
            return "b'\\0'"
        return "b'\\xff\\xff'" if slot.type == "string" and not slot.array else "b'\\xff\\xff\\xff\\xff'"

    def _present(self, slot: Slot, name: str, path: str) -> None:
        """A value that is not null."""
        if slot.array:
            self._array(slot, name, path)
        elif slot.item is not None:
            self.struct(slot.item, name, path)
        else:
            self._one(slot, name, path)

    def _one(self, slot: Slot, name: str, path: str) -> None:
        line = self.s.line
        match slot.type:
            case "bool":
                self.refuse(f"{name} is not True and {name} is not False", "type", path)
                self.number("?", name)
            case "float64":
                self.refuse(f"type({name}) is not float", "type", path)
                self.number("d", name)
            case "uuid":
                self.refuse(f"type({name}) is not UUID", "type", path)
                self.number("16s", f"{name}.bytes")
            case "string":
                text = self.s.local("text")
                line(f"{text} = {name}.encode()")
                if slot.compact:
                    self.refuse(f"len({text}) > {LONGEST_STRING}", "length", path)
                self.put(f"{'C' if slot.compact else 'S'}[len({text})]")
                self.put(text)
            case "utf":
                text = self.s.local("text")
                write = self.s.constant("modified_utf8", None, lambda: modified_utf8)
                line(f"{text} = {write}({name})")
                self.refuse(f"len({text}) > {LONGEST_UTF}", "length", path)
                self.number("H", f"len({text})")
                self.put(text)
            case "utf16":
                text = self.s.local("text")
                line(f"{text} = {name}.encode('utf-16-be')")
                self.put(f"I[len({text}) >> 1]")
                self.put(text)
            case "rest" | "bytes" | "records":
                self.refuse(f"type({name}) is not bytes", "type", path)
                if slot.type != "rest":
                    self.put(f"{'C' if slot.compact else 'I'}[len({name})]")
                self.put(name)
            case _:
                self.refuse(f"{name} is True or {name} is False", "type", path)
                self.number(FORMATS[slot.type], name)

    def _array(self, slot: Slot, name: str, path: str) -> None:
        self.refuse(f"type({name}) is not list", "type", path)
        self.put(f"{'C' if slot.compact else 'I'}[len({name})]")
        if slot.item is None and slot.type in FORMATS and slot.type != "float64":
            code = FORMATS[slot.type]
            many = self.s.constant(f"pack_many_{code}", code, lambda: packers(code))
            self.refuse(f"bool in map(type, {name})", "type", path)
            self.put(f"{many}[len({name})](*{name})")
            return
        self.spill()
        each = self.s.local("each")
        with self.s.block(f"for {each} in {name}:"):
            if slot.item is not None:
                self.struct(slot.item, each, path)
            else:
                self._one(slot, each, path)
            self.spill()


