"""Completes a value: every field of the version, in plain types; or reports the first error in it."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from uuid import UUID

from kipcheck.conformance.wire import primitives
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Absent, Layout, Slot


def complete(layout: Layout, value: Any) -> dict[str, Any]:
    """The value as the compiled encoder takes it: all names of the version and no others, with plain types only.

    Errors: Refused, with the path.
    """
    return _Walk(layout).struct(layout, value, "")


def is_default(absent: Absent, value: Any) -> bool:
    """Whether a version without the field loses nothing."""
    if absent.default == ():
        return isinstance(value, list | tuple) and not value
    if absent.default is ...:
        return isinstance(value, Mapping) and not value
    if absent.default is None or value is None:
        return value is absent.default
    if isinstance(value, bytearray | memoryview):
        value = bytes(value)
    return isinstance(value, int | float | str | bytes | UUID) and bool(value == absent.default)


class _Walk:
    def __init__(self, layout: Layout) -> None:
        self.whole = layout

    def refuse(self, kind: str, why: str, path: str) -> NoReturn:
        raise Refused(kind, why, message=self.whole.message, version=self.whole.version, path=path)

    def struct(self, layout: Layout, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self.refuse("type", f"{_kind(value)} where a struct belongs", path)
        led = f"{path}." if path else ""
        out: dict[str, Any] = {}
        if layout.prefix is not None and layout.prefix.name:
            name = layout.prefix.name
            given = value.get(name, layout.version)
            if type(given) is not int or given != layout.version:
                self.refuse("version", f"version {_shown(given)} where version {layout.version} is written", led + name)
            out[name] = layout.version
        for slot in layout.slots:
            out[slot.name] = self.slot(slot, value[slot.name], led + slot.name) if slot.name in value else slot.fresh()
        absent = {each.name: each for each in layout.absent}
        for key, each in value.items():
            if key in out:
                continue
            if key == primitives.UNKNOWN:
                tags = self.tags(layout, each, led + primitives.UNKNOWN)
                if tags:
                    out[primitives.UNKNOWN] = tags
            elif key in absent:
                if not absent[key].ignorable and not is_default(absent[key], each):
                    self.refuse(
                        "absent-field",
                        f"version {layout.version} has no such field, and {_shown(each)} is not its default",
                        f"{led}{key}",
                    )
            else:
                name = key if isinstance(key, str) else _shown(key)
                self.refuse("unknown-field", f"no field has this name; there are {', '.join(out)}", led + name)
        return out

    def tags(self, layout: Layout, value: Any, path: str) -> list[dict[str, Any]]:
        if not isinstance(value, list | tuple):
            self.refuse("type", f"{_kind(value)} where a list of tagged fields belongs", path)
        if value and not layout.flexible:
            self.refuse("absent-field", f"version {layout.version} has no tagged fields", path)
        out: list[dict[str, Any]] = []
        for at, each in enumerate(value):
            here = f"{path}[{at}]"
            if not isinstance(each, Mapping) or set(each) != {"tag", "data"}:
                self.refuse("type", "a tagged field has the keys tag and data, and no others", here)
            tag = self.integer(each["tag"], 0, primitives.LARGEST_SIZE, f"{here}.tag")
            if tag in layout.declared_tags:
                whose = "a field of other versions" if tag in layout.reserved else "a field"
                self.refuse("tag", f"tag {tag} is that of {whose}", f"{here}.tag")
            if out and tag <= out[-1]["tag"]:
                self.refuse("tag", f"tag {tag} after {out[-1]['tag']}: tags ascend", f"{here}.tag")
            out.append({"tag": tag, "data": self.bytes(each["data"], f"{here}.data")})
        return out

    def slot(self, slot: Slot, value: Any, path: str) -> Any:
        if value is None:
            if not slot.nullable:
                self.refuse("null", "null where the layout has no null", path)
            return None
        if not slot.array:
            return self.one(slot, value, path)
        if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
            self.refuse("type", f"{_kind(value)} where a list belongs", path)
        return [self.element(slot, each, f"{path}[{at}]") for at, each in enumerate(value)]

    def element(self, slot: Slot, value: Any, path: str) -> Any:
        if value is None:
            self.refuse("null", "an element is never null", path)
        return self.one(slot, value, path)

    def one(self, slot: Slot, value: Any, path: str) -> Any:
        if slot.item is not None:
            return self.struct(slot.item, value, path)
        match slot.type:
            case "bool":
                if not isinstance(value, bool):
                    self.refuse("type", f"{_kind(value)} where a boolean belongs", path)
                return value
            case "float64":
                return self.float(value, path)
            case "uuid":
                if not isinstance(value, UUID):
                    self.refuse("type", f"{_kind(value)} where a uuid.UUID belongs", path)
                return UUID(int=value.int)
            case "string" | "utf" | "utf16":
                return self.text(slot.type, value, path)
            case "bytes" | "records" | "rest":
                return self.bytes(value, path)
            case _:
                return self.integer(value, *primitives.BOUNDS[slot.type], path)

    def integer(self, value: Any, low: int, high: int, path: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse("type", f"{_kind(value)} where a whole number belongs", path)
        if not low <= value <= high:
            self.refuse("range", f"{_digits(value)} is not from {low} to {high}", path)
        return int(value)

    def float(self, value: Any, path: str) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.refuse("type", f"{_kind(value)} where a number belongs", path)
        try:
            return float(value)
        except OverflowError:
            self.refuse("range", "too large for 64 bits of floating point", path)

    def text(self, kind: str, value: Any, path: str) -> str:
        if not isinstance(value, str):
            self.refuse("type", f"{_kind(value)} where text belongs", path)
        text = str(value)
        try:
            size = len(primitives.modified_utf8(text) if kind == "utf" else text.encode())
        except UnicodeEncodeError as wrong:
            self.refuse("text", f"a lone surrogate at character {wrong.start} has no UTF-8", path)
        most = {"string": primitives.LONGEST_STRING, "utf": primitives.LONGEST_UTF}.get(kind)
        if most is not None and size > most:
            self.refuse("length", f"{size} bytes, and there may be {most}", path)
        return text

    def bytes(self, value: Any, path: str) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            self.refuse("type", f"{_kind(value)} where bytes belong", path)
        return bytes(value)


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _digits(value: int) -> str:
    """Very long ints are described, since Python refuses to print them."""
    return str(value) if value.bit_length() < 256 else f"a number of {value.bit_length()} bits"


def _shown(value: Any) -> str:
    """For an error message; never fails, for any value."""
    if type(value) is int:
        return _digits(value)
    return f"{value!r:.60}" if isinstance(value, str | bytes | bool | float) else _kind(value)
