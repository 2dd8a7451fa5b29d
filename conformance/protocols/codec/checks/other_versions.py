"""Values and bytes that belong to another version than the one under which they are used."""

from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.protocols.codec.checks.example_values import present, utmost
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.complete import is_default
from kipcheck.conformance.wire.schema import Absent, Slot, spec

Value = dict[str, Any]

LATER = (1, 2, 1000)
"""How far above the newest version of Streams metadata."""
API_VERSIONS = 18


def with_foreign_fields(layout: Layout, value: Value) -> Iterator[Value]:
    """The value as JSON, each time with one additional field that only another version has, not at its default."""
    plain = layout.codec.to_json(value)
    for path, absent in lacking(layout):
        found = _elsewhere(layout, path, absent)
        if found is not None:
            yield from _inserted(plain, path, absent.name, found)


def lacking(layout: Layout, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Absent]]:
    """Every field that a version lacks, with the names that lead to its struct."""
    for absent in layout.absent:
        yield path, absent
    for slot in layout.slots:
        if slot.item is not None:
            yield from lacking(slot.item, (*path, slot.name))


def _elsewhere(layout: Layout, path: tuple[str, ...], absent: Absent) -> Any:
    """A value of the field in JSON, in the form of the nearest version that has it; None if no value is suitable."""
    others = sorted(spec(edition(layout.edition), layout.message), key=lambda each: abs(each.version - layout.version))
    for other in others:
        slot = _slot(other, (*path, absent.name))
        if slot is not None:
            made = next((each for each in (present(slot), utmost(slot)) if not is_default(absent, each)), None)
            return None if made is None else _plain(slot, made)
    return None


def _slot(layout: Layout, path: tuple[str, ...]) -> Slot | None:
    found, inner = None, layout
    for name in path:
        found = next((slot for slot in inner.slots if slot.name == name), None)
        if found is None or (found.item is None and name != path[-1]):
            return None
        inner = found.item or inner
    return found


def _plain(slot: Slot, value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(slot, each) for each in value]
    if slot.item is not None:
        return slot.item.codec.to_json(value)
    return value.hex() if isinstance(value, bytes) else str(value) if isinstance(value, UUID) else value


def _inserted(value: Any, path: tuple[str, ...], name: str, more: Any) -> Iterator[Any]:
    """The value with the field in the first struct at the path, if the value has one."""
    if not path:
        yield {**value, name: more}
        return
    first, *rest = path
    inner = value.get(first)
    if isinstance(inner, list) and inner:
        yield from ({**value, first: [each, *inner[1:]]} for each in _inserted(inner[0], tuple(rest), name, more))
    elif isinstance(inner, dict):
        yield from ({**value, first: each} for each in _inserted(inner, tuple(rest), name, more))


def of_the_future(layout: Layout, random: Random) -> Iterator[tuple[int, bytes]]:
    """Versions later than the newest, with bytes that begin with two version numbers, as each version must."""
    for more in LATER:
        used = layout.version + more
        supported = used + random.choice((0, 1, 7))
        rest = random.randbytes(random.choice((0, 1, 40)))
        yield used, used.to_bytes(4, "big") + supported.to_bytes(4, "big") + rest


def answer_in_v0(layout: Layout, random: Random) -> bytes:
    """The response of a broker that does not support this version of ApiVersions, with the versions it supports
    (KIP-511).
    """
    highest = random.randrange(layout.version)
    shorter = spec(edition(layout.edition), layout.message).at(0)
    (keys,) = (slot.item for slot in shorter.slots if slot.item is not None)
    known = dict(zip(keys.names, (API_VERSIONS, 0, highest), strict=True))  # the key's name differs by release
    return shorter.encode({"errorCode": KafkaError.UNSUPPORTED_VERSION, "apiKeys": [known]})
