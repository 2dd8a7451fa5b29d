"""Structs, arrays, nullable structs and tagged fields."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from kipcheck.conformance.wire.byte_map import Role, Section
from kipcheck.conformance.wire.constructs import scalars
from kipcheck.conformance.wire.constructs.tape import Tape, counted, shown
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout, Limits, Slot

UNKNOWN: Final = "_unknownTaggedFields"


class Fields(scalars.Part):
    """A struct: its fields in order, then the tagged ones in a flexible version."""

    def __init__(self, layout: Layout):
        super().__init__()
        self.layout = layout
        self.parts = [(slot, wire(slot, layout.limits)) for slot in layout.slots if slot.tag is None]
        self.tags = Tags(layout) if layout.flexible else None
        self.order = [slot.name for slot in layout.slots]
        self.least = sum(part.least for _, part in self.parts) + layout.flexible

    def take(self, tape: Tape) -> dict[str, Any]:
        tape.owners.append(self.layout.message)
        found: dict[str, Any] = {}
        for slot, part in self.parts:
            tape.steps.append(slot.name)
            found[slot.name] = part.take(tape)
            tape.steps.pop()
        if self.tags is not None:
            found.update(self.tags.take(tape))
        tape.owners.pop()
        value = {name: found[name] for name in self.order}
        if UNKNOWN in found:
            value[UNKNOWN] = found[UNKNOWN]
        return value

    def put(self, value: Any, tape: Tape) -> None:
        if not isinstance(value, Mapping):
            kind = "null" if value is None else "type"
            raise tape.refused(kind, f"{shown(value)} where an object with the fields of {self.layout} is wanted")
        self._known(value, tape)
        for slot, part in self.parts:
            tape.steps.append(slot.name)
            part.put(value[slot.name] if slot.name in value else slot.fresh(), tape)
            tape.steps.pop()
        if self.tags is not None:
            self.tags.put(value, tape)

    def _known(self, value: Mapping[str, Any], tape: Tape) -> None:
        """Errors: ``Refused`` for an unknown key, and for a field that this version lacks and cannot drop."""
        absent = {each.name: each for each in self.layout.absent}
        for name, each in value.items():
            if name in self.order or (name == UNKNOWN and self.layout.flexible):
                continue
            tape.steps.append(str(name))
            if name == UNKNOWN and not isinstance(each, list | tuple):
                raise tape.refused("type", f"{shown(each)} where an array is wanted")
            elif name == UNKNOWN and not each:
                pass
            elif name == UNKNOWN:
                raise tape.refused("absent-field", f"{self.layout} is not flexible: it has no tagged fields")
            elif name not in absent:
                raise tape.refused("unknown-field", f"{self.layout} has no field of that name")
            elif not absent[name].ignorable and not _is_default(each, absent[name].default):
                raise tape.refused("absent-field", f"{self.layout} lacks the field, and it is not its default")
            tape.steps.pop()


class Listed(scalars.Part):
    """A count, then that many elements."""

    def __init__(self, slot: Slot, element: scalars.Part, limits: Limits | None):
        super().__init__()
        self.slot = slot
        self.element = element
        self.limits = limits
        self.length = "uvarint" if slot.compact else "int32"
        self.least = 1 if slot.compact else 4

    def take(self, tape: Tape) -> list[Any] | None:
        start = tape.tell()
        count = scalars.take_length(self.length, self.slot, tape)
        least = 1 if tape.lenient else max(1, self.element.least)
        if count is not None and count * least > tape.left:
            raise _too_many(count, "element", count * least, tape, start)
        if count is not None and tape.limited and self.limits and count > self.limits.elements:
            raise tape.refused("length", f"{count} elements where at most {self.limits.elements} may be", start)
        tape.record(start, Role.COUNT, self.length, count, self.slot)
        if count is None:
            return None
        found = []
        for index in range(count):
            tape.steps.append(index)
            found.append(self.element.take(tape))
            tape.steps.pop()
        tape.record_end(start)
        return found

    def put(self, value: Any, tape: Tape) -> None:
        if value is None and not self.slot.nullable:
            raise tape.refused("null", "null where an array is wanted")
        if value is not None and not isinstance(value, list | tuple):
            raise tape.refused("type", f"{shown(value)} where an array is wanted")
        scalars.put_length(self.length, None if value is None else len(value), tape)
        for index, each in enumerate(value or ()):
            tape.steps.append(index)
            self.element.put(each, tape)
            tape.steps.pop()


class Maybe(scalars.Part):
    """A byte that indicates whether a struct follows; in a tagged field, a varint."""

    def __init__(self, slot: Slot, struct: Fields):
        super().__init__()
        self.slot = slot
        self.struct = struct
        self.type = "int8" if slot.tag is None else "uvarint"

    def take(self, tape: Tape) -> dict[str, Any] | None:
        start = tape.tell()
        if self.slot.tag is None:
            flag: int = scalars.take_number("int8", "presence byte", tape)
            fits, present = flag in (-1, 1), flag >= 0
        else:
            flag = tape.varint()
            fits, present = flag in (0, 1), 0 < flag <= scalars.MOST
        if not fits and not tape.lenient:
            wanted = "-1 or 1" if self.slot.tag is None else "0 or 1"
            raise tape.refused("presence", f"{flag} where {wanted} is wanted", start)
        tape.record(start, Role.PRESENCE, self.type, present, self.slot)
        if not present:
            return None
        value: dict[str, Any] = self.struct.take(tape)
        return value

    def put(self, value: Any, tape: Tape) -> None:
        scalars.put_number("int8", 1 if value is not None else -1 if self.slot.tag is None else 0, tape)
        if value is not None:
            self.struct.put(value, tape)


class Tags(scalars.Part):
    """The tagged fields at the end of a struct of a flexible version."""

    def __init__(self, layout: Layout):
        super().__init__()
        self.layout = layout
        self.known = {slot.tag: (slot, wire(slot, layout.limits)) for slot in layout.slots if slot.tag is not None}

    @cached_property
    def defaults(self) -> dict[int, bytes]:
        """By tag: the data of a field with its default value."""
        tape = Tape(self.layout, writing=True)
        return {tag: _aside(part, slot.fresh(), tape) for tag, (slot, part) in self.known.items()}

    def take(self, tape: Tape) -> dict[str, Any]:
        found = {slot.name: slot.fresh() for slot, _ in self.known.values()}
        unknown: list[dict[str, Any]] = []
        tags, starts, last, begin = [], [], -1, tape.tell()
        for _ in range(self._take_count(tape)):
            start = tape.tell()
            tag = tape.varint()
            if not tape.lenient and not last < tag <= scalars.MOST:
                raise tape.refused("tag", f"tag {tag} after tag {last}" if last >= 0 else f"tag {tag}", start)
            if tag in self.layout.reserved:
                raise tape.refused("tag", f"tag {tag} belongs to a field of other versions", start)
            last = tag
            tags.append(tag)
            starts.append(start)
            known = self.known.get(tag)
            if known:
                tape.steps.append(known[0].name)
                tape.record(start, Role.TAG, "uvarint", tag, known[0])
                found[known[0].name] = self._take_known(known[1], known[0], tape)
            else:
                tape.steps += [UNKNOWN, len(unknown)]
                tape.record(start, Role.TAG, "uvarint", tag)
                unknown.append({"tag": tag, "data": self._take_unknown(tape)})
                tape.steps.pop()
            tape.steps.pop()
        if tape.found is not None:
            ends, path = (*starts, tape.tell()), tuple(tape.steps)
            tape.found.sections.append(Section(self.layout, path, begin, tuple(tags), ends, self.defaults))
        return {**found, UNKNOWN: unknown} if unknown else found

    def _take_count(self, tape: Tape) -> int:
        start = tape.tell()
        count = tape.varint()
        limits = self.layout.limits
        if tape.lenient and not limits and count > scalars.MOST:
            tape.record(start, Role.TAG_COUNT, "uvarint", count)
            return 0  # Kafka reads a negative number, and its loop does not run.
        if count * 2 > tape.left:
            raise _too_many(count, "tagged field", count * 2, tape, start)
        if tape.limited and limits and count > limits.tags:
            raise tape.refused("length", f"{count} tagged fields where at most {limits.tags} may be", start)
        tape.record(start, Role.TAG_COUNT, "uvarint", count)
        return count

    def _take_known(self, part: scalars.Part, slot: Slot, tape: Tape) -> Any:
        start = tape.tell()
        size = tape.varint()
        if size > tape.left and not tape.lenient:
            raise tape.refused("length", f"length {size} runs {size - tape.left} past {tape.edge}", start)
        tape.record(start, Role.TAG_SIZE, "uvarint", size, slot)
        around = tape.end, tape.inside
        tape.end, tape.inside = tape.end if tape.lenient else tape.tell() + size, True
        value = part.take(tape)
        if tape.left and not tape.lenient:
            raise tape.refused("tag", f"tag {slot.tag} says {size} bytes, the field takes {size - tape.left}")
        tape.end, tape.inside = around
        return value

    def _take_unknown(self, tape: Tape) -> bytes:
        start = tape.tell()
        size = tape.varint()
        if size > tape.left:
            raise tape.refused("length", f"length {size} runs {size - tape.left} past {tape.edge}", start)
        tape.record(start, Role.TAG_SIZE, "uvarint", size)
        start = tape.tell()
        value = tape.read(size)
        tape.record(start, Role.BYTES, "tag", value)
        return value

    def put(self, value: Any, tape: Tape) -> None:
        payloads: dict[int, bytes] = {}
        for tag, (slot, part) in self.known.items():
            if tag is None or slot.name not in value:
                continue
            tape.steps.append(slot.name)
            payload = _aside(part, value[slot.name], tape)
            if payload != self.defaults[tag]:
                payloads[tag] = payload
            tape.steps.pop()
        last = -1
        for index, each in enumerate(_unknown_tags(value.get(UNKNOWN, ()), tape)):
            tape.steps += [UNKNOWN, index]
            tag, data = _unknown_tag(each, tape)
            if tag <= last or tag in self.layout.declared_tags:
                why = f"after tag {last}"
                if tag in self.layout.declared_tags:
                    why = "is a field of its own" if tag in self.known else "belongs to a field of other versions"
                tape.steps.append("tag")
                raise tape.refused("tag", f"tag {tag} {why}")
            payloads[tag] = data
            last = tag
            del tape.steps[-2:]
        scalars.put_varint(len(payloads), tape)
        for tag in sorted(payloads):
            scalars.put_varint(tag, tape)
            scalars.put_varint(len(payloads[tag]), tape)
            tape.write(payloads[tag])


def wire(slot: Slot, limits: Limits | None) -> scalars.Part:
    """The part of a message that encodes a field."""
    if slot.array:
        element = replace(slot, array=False, nullable=False, tag=None, default=None)
        return Listed(slot, wire(element, limits), limits)
    if slot.item is not None:
        return Maybe(slot, Fields(slot.item)) if slot.nullable else Fields(slot.item)
    match slot.type:
        case "bool":
            return scalars.Truth(slot)
        case "uuid":
            return scalars.Unique(slot)
        case "rest":
            return scalars.Rest(slot)
        case kind if kind in scalars.NUMBERS:
            return scalars.Number(slot)
        case _:
            return scalars.Sized(slot)


def _too_many(count: int, what: str, least: int, tape: Tape, offset: int) -> Refused:
    why = f"{counted(count, what)} of {least} bytes or more, {tape.left or 'none'} left before {tape.edge}"
    return tape.refused("length", why, offset)


def _aside(part: scalars.Part, value: Any, tape: Tape) -> bytes:
    """The bytes of a tagged field: its size is written before them."""
    aside = Tape(tape.layout, writing=True)
    aside.steps = tape.steps
    part.put(value, aside)
    return aside.getvalue()


def _unknown_tags(value: Any, tape: Tape) -> list[Any]:
    if not isinstance(value, list | tuple):
        tape.steps.append(UNKNOWN)
        raise tape.refused("type", f"{shown(value)} where an array is wanted")
    return list(value)


def _unknown_tag(value: Any, tape: Tape) -> tuple[int, bytes]:
    if not isinstance(value, Mapping) or set(value) != {"tag", "data"}:
        raise tape.refused("type", f"{shown(value)} where an object with tag and data is wanted")
    tag, data = value["tag"], value["data"]
    tape.steps.append("tag")
    if not isinstance(tag, int) or isinstance(tag, bool):
        raise tape.refused("type", f"{shown(tag)} where a number is wanted")
    if not 0 <= tag <= scalars.MOST:
        raise tape.refused("range", f"tag {shown(tag)} is not from 0 to {scalars.MOST}")
    tape.steps[-1] = "data"
    if not isinstance(data, bytes | bytearray | memoryview):
        raise tape.refused("type", f"{shown(data)} where bytes are wanted")
    tape.steps.pop()
    return tag, bytes(data)


def _is_default(value: Any, default: Any) -> bool:
    if default == ():
        return value in ([], ())
    return value is default if default is None or default is ... else bool(value == default)
