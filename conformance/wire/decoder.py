"""Generates the strict decoder of a layout: one function, with one ``unpack`` per run of fixed-size fields.

Strings, bytes and arrays are sliced from the input, and a slice is never longer than the input. So a length may point
past the end for a moment: from then on the position is past the end (negative lengths are refused at once), so that the
next read or the final comparison fails. Counts are compared with the remaining bytes before anything is allocated.
"""

import struct
from collections.abc import Callable
from typing import Any

from kipcheck.conformance.wire import primitives
from kipcheck.conformance.wire.measure import SIZES, fixed, least_element
from kipcheck.conformance.wire.schema import Layout, Slot
from kipcheck.conformance.wire.source import Source, default_of
from kipcheck.conformance.wire.tags import unknown_tags

ROUGH = (struct.error, IndexError, ValueError, OverflowError)
"""The exceptions that strict code raises on bytes that it refuses."""


def decoder(
    layout: Layout, locate: Callable[[bytes, Exception], Exception], leniently: Callable[[bytes], Any] | None
) -> tuple[str, Any]:
    """Source code, and the function of bytes-like data. ``locate`` converts a failure to the exception to raise.

    Without ``leniently``, the function has ``Entries.take`` as its second argument, which it calls before each array.
    """
    source = Source()
    writer = _Decoder(source, "" if leniently else ", take")
    source.named |= {
        "Rough": primitives.Rough,
        "ROUGH": ROUGH,
        "uvarint": primitives.read_uvarint,
        "unknown_tags": unknown_tags,
        "located": locate,
        "leniently": leniently,
    }
    with source.block("def decode(d, /, *, lenient=False):" if leniently else "def decode(d, take):"):
        if leniently:
            with source.block("if lenient:"):
                source.line("return leniently(d)")
        with source.block("if type(d) is not bytes:"):
            source.line("d = bytes(memoryview(d))")
        with source.block("try:"):
            source.line("p = 0")
            source.line("z = len(d)")
            led = ""
            if layout.prefix is not None:
                name = source.local(layout.prefix.name or "version")
                writer.take(primitives.FORMATS[layout.prefix.type], name)
                writer.check(f"{name} != {layout.version}", "version", layout.prefix.name or "")
                if layout.prefix.name:
                    led = f"{layout.prefix.name!r}: {name}"
            made = writer.struct(layout, "", led, "value")
            writer.flush()
            with source.block("if p != z:"):
                source.line("raise Rough('trailing' if p < z else 'truncated')")
            writer.assign("value", made)
            source.line("return value")
        with source.block("except ROUGH as failure:"):
            source.line("rough = failure.with_traceback(None)")  # see ``lenient``
        source.line("raise located(d, rough)")
    writer.write_tags()
    return source.text, source.function("decode", f"<decode {layout}>")


class _Made:
    """A struct that was read and not yet built."""

    def __init__(self, entries: list[str], unknown: tuple[str, str] | None) -> None:
        self.display = "{" + ", ".join(entries) + "}"
        self.unknown = unknown
        """The names of the number of tags and of the list of unknown ones."""


class _Decoder:
    def __init__(self, source: Source, take: str) -> None:
        """``take``: what follows the arguments of functions that count entries; else empty."""
        self.s = source
        self._take = take
        self._run: list[tuple[str, str]] = []
        self._checks: list[tuple[str, str, str]] = []
        self._tags: list[tuple[str, Layout, str]] = []

    # Runs of fields of fixed size

    def take(self, code: str, name: str) -> None:
        self._run.append((code, name))

    def check(self, condition: str, kind: str, path: str) -> None:
        """Adds a check that runs after the run is read."""
        self._checks.append((condition, kind, path))

    def flush(self, into: str = "p") -> None:
        """Reads the run; then ``into`` is its end (and ``p`` its start, if ``into`` is another name)."""
        if self._run:
            codes = "".join(code for code, _ in self._run)
            if codes == "B":
                self.s.line(f"{self._run[0][1]} = d[p]")
            else:
                names = ", ".join(name for _, name in self._run)
                unpack = self.s.constant(f"unpack_{codes}", codes, lambda: struct.Struct(">" + codes).unpack_from)
                self.s.line(f"{names}{',' if len(self._run) == 1 else ''} = {unpack}(d, p)")
            size = struct.calcsize(">" + codes)
            self.s.line(f"p += {size}" if into == "p" else f"{into} = p + {size}")
            self._run.clear()
        elif into != "p":
            self.s.line(f"{into} = p")
        for condition, kind, path in self._checks:
            self.refuse(condition, kind, path)
        self._checks.clear()

    def refuse(self, condition: str, kind: str, path: str) -> None:
        with self.s.block(f"if {condition}:"):
            self.fail(kind, path)

    def fail(self, kind: str, path: str) -> None:
        self.s.line(f"raise Rough({kind!r}, {path!r})")

    def assign(self, name: str, made: _Made) -> None:
        self.s.line(f"{name} = {made.display}")
        if made.unknown:
            count, unknown = made.unknown
            with self.s.block(f"if {count} and {unknown}:"):
                self.s.line(f"{name}[{primitives.UNKNOWN!r}] = {unknown}")

    # Structs

    def struct(self, layout: Layout, path: str, led: str = "", hint: str = "") -> _Made:
        values = {slot.name: self.slot(slot, f"{path}.{slot.name}".strip(".")) for slot in layout.untagged}
        unknown = None
        if layout.flexible:
            count, rest = self.s.local("tags"), self.s.local("unknown")
            self.take("B", count)
            self.flush()
            names = {slot.name: self.s.local(slot.name) for slot in layout.tagged}
            reader = "unknown_tags"
            if names or layout.reserved:
                reader = self.s.local("read_tags")
                self._tags.append((reader, layout, path))
            with self.s.block(f"if {count}:"):
                self.s.line(f"{', '.join(['p', *names.values(), rest])} = {reader}(d, p - 1{self._take})")
            if names:
                with self.s.block("else:"):
                    for slot in layout.tagged:
                        self.s.line(f"{names[slot.name]} = {default_of(self.s, slot)}")
            values |= names
            unknown = (count, rest)
        entries = [led] if led else []
        return _Made([*entries, *(f"{slot.name!r}: {values[slot.name]}" for slot in layout.slots)], unknown)

    def write_tags(self) -> None:
        """Generates a function for each struct that has tags, called where it has some."""
        while self._tags:  # including those added meanwhile
            name, layout, path = self._tags.pop(0)
            with self.s.block(f"def {name}(d, p{self._take}):"):
                self._tag_section(layout, path)
            self.s.lines.append("")

    def _tag_section(self, layout: Layout, path: str) -> None:
        line, block = self.s.line, self.s.block
        line("z = len(d)")
        line("n, p = uvarint(d, p)")
        self.refuse("n * 2 > z - p", "length", path)
        self._count("n")
        names = {slot.name: self.s.local(slot.name) for slot in layout.tagged}
        for slot in layout.tagged:
            line(f"{names[slot.name]} = {default_of(self.s, slot)}")
        line("unknown = []")
        line("last = -1")
        with block("for _ in range(n):"):
            line("tag, p = uvarint(d, p)")
            line("size, p = uvarint(d, p)")
            wrong = f"tag <= last or tag > {primitives.LARGEST_SIZE}"
            if layout.reserved:
                reserved = layout.reserved
                wrong += f" or tag in {self.s.constant('reserved', reserved, lambda: reserved)}"
            self.refuse(wrong, "tag", path)
            line("last = tag")
            self.refuse("size > z - p", "length", path)
            line("end = p + size")
            word = "if"
            for slot in layout.tagged:
                with block(f"{word} tag == {slot.tag}:"):
                    value = self.slot(slot, f"{path}.{slot.name}".strip("."), tagged=True)
                    self.flush()
                    line(f"{names[slot.name]} = {value}")
                    self.refuse("p != end", "tag", f"{path}.{slot.name}".strip("."))
                word = "elif"
            with block("else:" if names else "if True:"):
                line("unknown.append({'tag': tag, 'data': d[p:end]})")
                line("p = end")
        line(f"return {', '.join(['p', *names.values(), 'unknown'])}")

    # Slots: each method returns an expression that stays valid while the position advances

    def slot(self, slot: Slot, path: str, tagged: bool = False) -> str:
        if slot.array:
            return self._array(slot, path)
        if slot.item is not None:
            return self._struct_slot(slot, slot.item, path, tagged)
        name = self.s.local(slot.name)
        if slot.type in SIZES:
            return self._scalar(slot, name, path)
        match slot.type:
            case "utf":
                self._cut(slot, name, path, "H", self._reader("utf", primitives.read_modified_utf8))
            case "utf16":
                self._utf16(name, path)
            case "rest":
                self.flush()
                self.s.line(f"{name} = d[p:]")
                self.s.line("p = z")
            case "string":
                self._cut(slot, name, path, "h", "{}.decode()")
            case _:
                self._cut(slot, name, path, "i", "{}")
        return name

    def _reader(self, name: str, function: Callable[..., Any]) -> str:
        return self.s.constant(f"read_{name}", name, lambda: function) + "({})"

    def _scalar(self, slot: Slot, name: str, path: str) -> str:
        match slot.type:
            case "bool":
                self.take("B", name)
                self.check(f"{name} > 1", "boolean", path)
                return f"{name} == 1"
            case "uuid":
                self.take("16s", name)
                return f"{self.s.constant('uuid_of', None, lambda: primitives.uuid_of)}({name})"
            case _:
                self.take(primitives.FORMATS[slot.type], name)
                return name

    def _cut(self, slot: Slot, name: str, path: str, code: str, reading: str) -> None:
        """Slices the input after its length."""
        line, block, n = self.s.line, self.s.block, self.s.local(f"{slot.name}_size")
        cut = reading.format("d[q:p]")
        if slot.compact:
            self.take("B", n)
            self.flush("q")
            with block(f"if {n} > 127:"):
                line(f"{n}, q = uvarint(d, q - 1)")
                if slot.type == "string":
                    self.refuse(f"{n} > {primitives.LONGEST_STRING + 1}", "length", path)
            with block(f"if {n}:"):
                line(f"p = q + {n} - 1")
                line(f"{name} = {cut}")
            with block("else:"):
                self._null(slot, name, path, "p = q")
            return
        self.take(code, n)
        self.flush("q")
        line(f"p = q + {n}")
        if slot.nullable:
            with block(f"if {n} >= 0:"):
                line(f"{name} = {cut}")
            with block(f"elif {n} == -1:"):
                self._null(slot, name, path, "p = q")
            with block("else:"):
                self.fail("length", path)
        else:
            if code != "H":
                with block(f"if {n} < 0:"):
                    line(f"raise Rough('null' if {n} == -1 else 'length', {path!r})")
            line(f"{name} = {cut}")

    def _null(self, slot: Slot, name: str, path: str, step: str = "") -> None:
        if slot.nullable:
            self.s.line(f"{name} = None")
            if step:
                self.s.line(step)
        else:
            self.fail("null", path)

    def _utf16(self, name: str, path: str) -> None:
        n = self.s.local("units")
        self.take("i", n)
        self.flush("q")
        self.refuse(f"not 0 <= {n} * 2 <= z - q", "length", path)
        self.s.line(f"p = q + {n} * 2")
        self.s.line(f"{name} = d[q:p].decode('utf-16-be')")

    def _struct_slot(self, slot: Slot, item: Layout, path: str, tagged: bool) -> str:
        name = self.s.local(slot.name)
        if not slot.nullable:
            made = self.struct(item, path)
            self.flush()
            self.assign(name, made)
            return name
        n = self.s.local(f"{slot.name}_here")
        if tagged:
            self.flush()
            self.s.line(f"{n}, p = uvarint(d, p)")
            self.refuse(f"{n} > 1", "presence", path)
            none = f"not {n}"
        else:
            self.take("b", n)
            self.flush()
            self.refuse(f"{n} != 1 and {n} != -1", "presence", path)
            none = f"{n} < 0"
        with self.s.block(f"if {none}:"):
            self.s.line(f"{name} = None")
        with self.s.block("else:"):
            made = self.struct(item, path)
            self.flush()
            self.assign(name, made)
        return name

    # Arrays

    def _array(self, slot: Slot, path: str) -> str:
        line, block, name, n = self.s.line, self.s.block, self.s.local(slot.name), self.s.local(f"{slot.name}_count")
        least_size = max(1, least_element(slot))
        if slot.compact:
            self.take("B", n)
            self.flush()
            with block(f"if {n} > 127:"):
                line(f"{n}, p = uvarint(d, p - 1)")
            line(f"{n} -= 1")
        else:
            self.take("i", n)
            self.flush()
        times = f"{n} * {least_size}" if least_size > 1 else n
        if slot.nullable:
            with block(f"if {n} == -1:"):
                line(f"{name} = None")
            with block("else:"):
                self.refuse(f"not 0 <= {times} <= z - p", "length", path)
                self._elements(slot, name, n, path)
        else:
            with block(f"if not 0 <= {times} <= z - p:"):
                line(f"raise Rough('null' if {n} == -1 else 'length', {path!r})")
            self._elements(slot, name, n, path)
        return name

    def _count(self, number: str) -> None:
        if self._take:
            self.s.line(f"take({number})")

    def _elements(self, slot: Slot, name: str, n: str, path: str) -> None:
        line, block = self.s.line, self.s.block
        self._count(n)
        if slot.item is not None and fixed(slot.item):
            self._rows(slot.item, name, n, path)
        elif slot.item is not None:
            self._loop(slot.item, name, n, path)
        elif slot.type in primitives.FORMATS:
            code = primitives.FORMATS[slot.type]
            table = self.s.constant(f"unpack_many_{code}", code, lambda: primitives.unpackers(code))
            line(f"{name} = [*{table}[{n}](d, p)]")
            line(f"p += {n} * {SIZES[slot.type]}")
        elif slot.type == "bool":
            line(f"{name} = [each == 1 for each in d[p:p + {n}]]")
            self.refuse(f"d[p:p + {n}].strip(b'\\0\\1')", "boolean", path)
            line(f"p += {n}")
        elif slot.type == "uuid":
            make = self.s.constant("uuid_of", None, lambda: primitives.uuid_of)
            line(f"{name} = [{make}(d[at:at + 16]) for at in range(p, p + {n} * 16, 16)]")
            line(f"p += {n} * 16")
        else:
            element = Slot(slot.name, slot.type, compact=slot.compact)
            line(f"{name} = []")
            with block(f"for _ in range({n}):"):
                value = self.slot(element, path)
                self.flush()
                line(f"{name}.append({value})")

    def _loop(self, item: Layout, name: str, n: str, path: str) -> None:
        self.s.line(f"{name} = []")
        with self.s.block(f"for _ in range({n}):"):
            made = self.struct(item, path)
            self.flush()
            if made.unknown is None:
                self.s.line(f"{name}.append({made.display})")
            else:
                one = self.s.local("one")
                self.assign(one, made)
                self.s.line(f"{name}.append({one})")

    def _rows(self, item: Layout, name: str, n: str, path: str) -> None:
        """Reads all elements at once, in an array of fixed-size structs, while none of them has a tag."""
        block = self.s.block
        codes, names, entries, flags = "", [], [], []
        for slot in item.slots:
            each = self.s.local(slot.name)
            names.append(each)
            value = each
            if slot.type == "bool":
                flags.append(struct.calcsize(">" + codes))
                codes += "?"
            elif slot.type == "uuid":
                codes += "16s"
                value = f"{self.s.constant('uuid_of', None, lambda: primitives.uuid_of)}({each})"
            else:
                codes += primitives.FORMATS[slot.type]
            entries.append(f"{slot.name!r}: {value}")
        tag_at = struct.calcsize(">" + codes)
        codes += "x" * item.flexible
        size = struct.calcsize(">" + codes)
        display = f"{{{', '.join(entries)}}}"
        if not item.flexible:
            self._all_rows(name, n, display, names, codes, flags, path)
            return
        with block(f"if d[p + {tag_at}:p + {n} * {size}:{size}].count(0) == {n}:  # no element has a tag"):
            self._all_rows(name, n, display, names, codes, flags, path)
        with block("else:"):
            self._loop(item, name, n, path)

    def _all_rows(
        self, name: str, n: str, display: str, names: list[str], codes: str, flags: list[int], path: str
    ) -> None:
        line, block, size = self.s.line, self.s.block, struct.calcsize(">" + codes)
        for at in flags:
            self.refuse(f"d[p + {at}:p + {n} * {size}:{size}].strip(b'\\0\\1')", "boolean", path)
        called = codes.replace("?", "t")
        few = self.s.constant(f"unpack_rows_{called}", codes, lambda: primitives.unpackers(codes))
        many = self.s.constant(f"each_row_{called}", codes, lambda: struct.Struct(">" + codes).iter_unpack)
        with block(f"if {n} < {primitives.MANY}:"):
            line(f"cells = iter({few}[{n}](d, p))")
            line(f"rows = zip({', '.join(['cells'] * len(names))})")
        with block("else:"):
            line(f"rows = {many}(d[p:p + {n} * {size}])")
        line(f"{name} = [{display} for {', '.join(names)}{',' * (len(names) == 1)} in rows]")
        line(f"p += {n} * {size}")
