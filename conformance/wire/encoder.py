"""Generates the encoder of a layout: pieces in one list, joined once; one ``pack`` per run of fixed-size fields.

The compiled code takes plain and complete values. For any other value it only raises; then ``complete`` reports the
error, or makes the value plain and complete, and the code runs again.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from kipcheck.conformance.wire import primitives
from kipcheck.conformance.wire.complete import is_default
from kipcheck.conformance.wire.schema import ZERO_UUID, Layout, Slot
from kipcheck.conformance.wire.source import Source, default_of
from kipcheck.conformance.wire.tags import merge, own_tags, tag_section

ROUGH = (struct.error, LookupError, ValueError, OverflowError, TypeError, AttributeError)
"""The exceptions that compiled code raises on values that are not plain and complete."""

NO_TAGS = r"b'\0'"

CELLS = 30
"""The most numbers in a call of ``pack``: for more arguments Python builds a list first."""

SEVERAL = 6
"""From this number of pieces on, adding a tuple at once is faster than calls of ``append``."""

Again = Callable[[Any, Exception], bytes]


def encoder(layout: Layout, again: Again) -> tuple[str, Any]:
    """Source code, and the function of a mapping. ``again`` gets a value that the code does not accept."""
    source = Source()
    writer = _Encoder(source)
    source.named |= {
        "Rough": primitives.Rough,
        "ROUGH": ROUGH,
        "again": again,
        "UUID": UUID,
        "merge": merge,
        "tag_section": tag_section,
        "own_tags": own_tags,
        "S": primitives.int16_lengths(),
        "I": primitives.int32_lengths(),
        "C": primitives.compact_lengths(),
        "long_i": primitives.int32_length,
        "long_c": primitives.compact_length,
    }
    with source.block("def encode(value):"):
        with source.block("try:"):
            writer.struct(layout, "value", "")
            source.line(f"return {writer.joined()}")
        with source.block("except ROUGH as failure:"):
            source.line("rough = failure.with_traceback(None)")  # see ``lenient``
        source.line("return again(value, rough)")
    return source.text, source.function("encode", f"<encode {layout}>")


def filler(layout: Layout) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """A function that adds defaults and drops what the version lacks and does not need; nested structs are
    unchanged.
    """
    absent = {each.name: each for each in layout.absent}
    names = frozenset(layout.names)

    def fill(value: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(value, Mapping) or value.get(primitives.UNKNOWN, ()) is None:
            raise primitives.Rough("type")
        full = layout.defaults()
        for key in value:
            if key in names or (key == primitives.UNKNOWN and layout.flexible):
                full[key] = value[key]
            elif key not in absent or not (absent[key].ignorable or is_default(absent[key], value[key])):
                raise primitives.Rough("unknown-field")
        return full

    return fill


def _boolean(number: str) -> str:
    """A condition for True and False, which ``pack`` would take as numbers: neither is above 1, most numbers are."""
    return f"{number} < 2 and ({number} is True or {number} is False)"


class _Encoder:
    def __init__(self, source: Source) -> None:
        self.s = source
        self._out = "out"
        self._fresh = True
        self._pieces: list[str] = []
        self._run: list[tuple[str, str]] = []

    # Pieces

    def open(self) -> tuple[str, bool, list[str], list[tuple[str, str]]]:
        """Starts a list of pieces; the previous list continues after ``close``."""
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
        """Puts the pieces on the list, because a loop or a branch follows."""
        self._pack()
        written, self._pieces = self._pieces, []
        pieces = ", ".join(written)
        if self._fresh:
            self.s.line(f"{self._out} = [{pieces}]")
            self._fresh = False
        elif len(written) > SEVERAL:
            self.s.line(f"{self._out} += ({pieces},)")
        else:
            for piece in written:
                self.s.line(f"{self._out}.append({piece})")

    def joined(self) -> str:
        """An expression that joins all pieces."""
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
        unknown, tags = self.s.local("unknown"), self.s.local("tags")
        own = layout.tagged or layout.reserved
        self._fill(layout, value, unknown if own else tags, path)
        if layout.prefix is not None:
            if layout.prefix.name:
                version = f"{value}[{layout.prefix.name!r}]"
                self.refuse(f"{version} != {layout.version} or {version} is True", "version", layout.prefix.name)
            self.put(repr(struct.pack(">" + primitives.FORMATS[layout.prefix.type], layout.version)))
        for slot in layout.untagged:
            self.slot(slot, self._field(slot, value), f"{path}.{slot.name}".strip("."))
        if own:
            fields = self.s.local("fields")
            line(f"{fields} = []")
            for slot in layout.tagged:
                self._tagged(slot, self._field(slot, value), fields, f"{path}.{slot.name}".strip("."))
            known = frozenset(slot.tag for slot in layout.tagged) | layout.reserved
            with block(f"if {unknown} is not None:"):
                line(f"merge({fields}, {unknown}, {self.s.constant('known_tags', known, lambda: known)})")
            line(f"{tags} = tag_section({fields}) if {fields} else b'\\0'")
        if layout.flexible:
            self.put(tags)

    def _fill(self, layout: Layout, value: str, tags: str, path: str) -> None:
        """Adds missing names to ``value``; ``tags`` gets the tag section, or the unknown tags."""
        fill = self.s.constant("fill", (id(layout), path), lambda: filler(layout))
        own = layout.tagged or layout.reserved
        with self.s.block(f"if len({value}) != {len(layout.names)}:"):
            self.s.line(f"{value} = {fill}({value})")
            if layout.flexible:
                self.s.line(f"{tags} = {value}.get({primitives.UNKNOWN!r})" if own else f"{tags} = own_tags({value})")
        if layout.flexible:
            with self.s.block("else:"):
                self.s.line(f"{tags} = {None if own else NO_TAGS}")

    def _field(self, slot: Slot, value: str) -> str:
        name = self.s.local(slot.name)
        self.s.line(f"{name} = {value}[{slot.name!r}]")
        return name

    def _tagged(self, slot: Slot, name: str, fields: str, path: str) -> None:
        """Appends (tag, payload) unless the value is the default; null is one byte 0 where the default is not null."""
        line, block = self.s.line, self.s.block
        data = self.s.local("data")
        if slot.default is None:
            with block(f"if {name} is not None:"):
                self._payload(slot, name, data, path)
                line(f"{fields}.append(({slot.tag}, {data}))")
            return
        if slot.default == () and not slot.nullable:
            with block(f"if {name} or type({name}) is not list:"):
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
        elif not slot.array and slot.type in ("string", "bytes", "records"):
            self._pack()
            size, data = self.s.local("size"), self.s.local("data")
            with self.s.block(f"if {name} is None:"):
                self.s.line(f"{size} = {self._null(slot)}")
                self.s.line(f"{data} = b''")
            with self.s.block("else:"):
                at = len(self._pieces)
                self._one(slot, name, path)
                sized, piece = self._pieces[at:]
                del self._pieces[at:]
                self.s.line(f"{size} = {sized}")
                self.s.line(f"{data} = {piece}")
            self.put(size)
            self.put(data)
        else:
            self.spill()
            with self.s.block(f"if {name} is None:"):
                self.s.line(f"{self._out}.append({self._null(slot)})")
            with self.s.block("else:"):
                if not slot.array:
                    self.put("b'\\1'")
                self._present(slot, name, path)
                self.spill()

    def _null(self, slot: Slot) -> str:
        if slot.item is not None and not slot.array:
            return "b'\\xff'"
        if slot.compact:
            return "b'\\0'"
        return "b'\\xff\\xff'" if slot.type == "string" and not slot.array else "b'\\xff\\xff\\xff\\xff'"

    def _present(self, slot: Slot, name: str, path: str) -> None:
        """Generates code for a value that is not null."""
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
                if slot.compact or not self._run:
                    self.put(f"{'C' if slot.compact else 'S'}[len({text})]")
                else:
                    self.number("h", f"len({text})")
                self.put(text)
            case "utf":
                text = self.s.local("text")
                write = self.s.constant("modified_utf8", None, lambda: primitives.modified_utf8)
                line(f"{text} = {write}({name})")
                self.refuse(f"len({text}) > {primitives.LONGEST_UTF}", "length", path)
                self.number("H", f"len({text})")
                self.put(text)
            case "utf16":
                text = self.s.local("text")
                line(f"{text} = {name}.encode('utf-16-be')")
                self._size(f"len({text}) >> 1", "I", "long_i")
                self.put(text)
            case "rest" | "bytes" | "records":
                self.refuse(f"type({name}) is not bytes", "type", path)
                if slot.type != "rest":
                    self._length(slot, name)
                self.put(name)
            case _:
                self.refuse(_boolean(name), "type", path)
                self.number(primitives.FORMATS[slot.type], name)

    def _length(self, slot: Slot, name: str) -> None:
        """The length of bytes or an array; packed with the numbers before it where it is a number like them."""
        if slot.compact or not self._run:
            self._size(f"len({name})", *(("C", "long_c") if slot.compact else ("I", "long_i")))
        else:
            self.number("i", f"len({name})")

    def _size(self, length: str, table: str, other: str) -> None:
        size = self.s.local("size")
        self.s.line(f"{size} = {length}")
        self.put(f"{table}[{size}] if {size} < 1024 else {other}({size})")

    # Arrays

    def _array(self, slot: Slot, name: str, path: str) -> None:
        self.refuse(f"type({name}) is not list", "type", path)
        if slot.item is None and slot.type in primitives.FORMATS and slot.type != "float64":
            self._integers(slot, name, path)
            return
        self._length(slot, name)
        self.spill()
        rest = name
        if slot.item is not None and self._flat(slot.item):
            rest = self._rows(slot.item, name, path)
        each = self.s.local("each")
        with self.s.block(f"for {each} in {rest}:"):
            if slot.item is not None:
                self.struct(slot.item, each, path)
            else:
                self._one(slot, each, path)
            self.spill()

    def _integers(self, slot: Slot, name: str, path: str) -> None:
        """Packs all integers at once, together with their count unless that is a varint."""
        code, ahead = primitives.FORMATS[slot.type], "" if slot.compact else "i"
        many = self.s.constant(f"pack_many_{ahead}{code}", (code, ahead), lambda: primitives.packers(code, ahead))
        cell = self.s.local("cell")
        with self.s.block(f"for {cell} in {name}:"):
            self.refuse(_boolean(cell), "type", path)
        if slot.compact:
            self._length(slot, name)
            self.put(f"{many}[len({name})](*{name})")
        else:
            size = self.s.local("size")
            self.s.line(f"{size} = len({name})")
            self.put(f"{many}[{size}]({size}, *{name})")

    def _flat(self, item: Layout) -> bool:
        """Whether elements consist only of a few integers."""
        return 0 < len(item.slots) <= CELLS // 2 and all(
            slot.type in primitives.FORMATS and slot.type != "float64" and not slot.array and slot.tag is None
            for slot in item.slots
        )

    def _rows(self, item: Layout, name: str, path: str) -> str:
        """Packs several elements in one call, while they are complete and have no tags. Returns the name of the others.

        All rows together have the right number of keys; a row with a wrong key is found when its own key is missing.
        A boolean is not an integer: its row is left over and refused there.
        """
        line, done, each = self.s.line, self.s.local("done"), self.s.local("each")
        several = max(1, CELLS // len(item.slots))
        rows = [self.s.local("row") for _ in range(several)]
        cells = [(self.s.local(slot.name), row, slot.name) for row in rows for slot in item.slots]
        codes = "".join(primitives.FORMATS[slot.type] for slot in item.slots) + "x" * item.flexible
        pack = self.s.constant("pack_rows", codes, lambda: struct.Struct(primitives.times(codes, several)).pack)
        line(f"size = len({name})")
        line(f"{done} = zero = 0")
        line(f"{each} = iter({name} if sum(map(len, {name})) == {len(item.slots)} * size else ())")
        with self.s.block(f"for {', '.join(rows)}, in zip({', '.join([each] * several)}):"):
            for cell, row, field in cells:
                read = f"({cell} := {row}[{field!r}])"
                line(f"if {read} < 2 and {cell} is not zero and ({cell} is True or {cell} is False): break")
            line(f"{self._out}.append({pack}({', '.join(cell for cell, _, _ in cells)}))")
            line(f"{done} += {several}")
        return f"{name}[{done}:] if {done} < size else ()"
