"""Describes a layout: the name, type and meaning of each field."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.wire.schema import Layout, Slot


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field of a layout, for documentation."""

    path: str
    """``protocols[].metadata``."""
    type: str
    """As in the layout: ``compact nullable string``, ``compact array of int32``."""
    nullable: bool
    tag: int | None
    default: Any
    """None for null; ``...`` for a struct of defaults."""
    meaning: str


def describe(layout: Layout) -> list[FieldRow]:
    """A row for each field: fields of structs after the field that contains them, tagged ones in declaration order."""
    prefix = layout.prefix
    led = FieldRow(prefix.name or "version", prefix.type, False, None, layout.version, VERSION) if prefix else None
    return ([led] if led else []) + list(_rows(layout, ""))


VERSION = "version of the layout that follows"


def _rows(layout: Layout, above: str) -> Iterator[FieldRow]:
    for slot in layout.slots:
        path = f"{above}{slot.name}"
        meaning = meaning_of(layout.message, slot)
        yield FieldRow(path, laid_out(slot), slot.nullable, slot.tag, slot.default, meaning)
        if slot.item is not None:
            yield from _rows(slot.item, f"{path}[]." if slot.array else f"{path}.")


def laid_out(slot: Slot) -> str:
    """The type of a field in words: ``compact nullable array of string``."""
    sized = slot.type in ("string", "bytes", "records") or slot.array
    words = ["compact"] * (slot.compact and sized) + ["nullable"] * slot.nullable + ["array of"] * slot.array
    return " ".join([*words, slot.type])


def meaning_of(owner: str, slot: Slot) -> str:
    """A short description of the field; empty where there is none. ``owner`` declares the field."""
    return slot.about or meaning(owner, slot.name)


def meaning(owner: str, name: str) -> str:
    """Like ``meaning_of``, by the names of the struct and the field."""
    meanings = _folded()  # some releases write generationid
    return meanings.get(f"{owner}.{name}".casefold(), meanings.get(name.casefold(), ""))


def name_of(owner: str, name: str, value: Any, edition: str = "") -> str:
    """Kafka's name of a value of the field: UNSUPPORTED_VERSION for error code 35. Empty where it has no name."""
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    own = _names(f"{edition}/{name}") or {}
    names = _names(f"{owner}.{name}") or _names(name) or {}
    return own.get(str(value)) or names.get(str(value), "")


def _names(key: str) -> Mapping[str, str] | None:
    table: Mapping[str, str] | str | None = _meanings()["values"].get(key)
    return _names(table) if isinstance(table, str) else table


@cache
def _folded() -> Mapping[str, str]:
    return {name.casefold(): words for name, words in _meanings()["fields"].items()}


@cache
def _meanings() -> Mapping[str, Any]:
    read = tomllib.loads((files("kipcheck.conformance.wire") / "schemas" / "meanings.toml").read_text("utf-8"))
    read["values"]["errorCode"] = {str(each.value): each.name for each in KafkaError}
    return read
