"""Selects the damage for golden vectors: a few of each kind, at fixed places of the small value of a version."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.wire.schema import Layout
from kipcheck.golden.samples import SMALL, Value, small
from kipcheck.strategies.byte_map import Marked, Place, Role, mark
from kipcheck.strategies.damage import Damage, Wound, inflict, wounds

EACH: Final = {
    "length": 2, "long-varint": 1, "trailing": 2, "boolean": 1, "presence": 3, "text": 5, "null": 2, "wide-varint": 2,
    "padded-varint": 1, "tag-order": 3, "tag-size": 3, "tag-default": 1, "version": 4, "unknown-tag": 2,
}  # fmt: skip
"""How many of a kind, for each sort of place: the length of a text and that of bytes are two sorts."""
MANY_TAGS_IN: Final = ("ApiVersionsRequest", 3)
"""Ten thousand tags take 60 kB, so only one version of one message gets them."""


def damaged(layout: Layout) -> Iterator[tuple[str, Damage]]:
    """Notes and damage of the value with the note ``SMALL``."""
    value: Value = layout.decode(layout.encode(small(layout)))
    marked = mark(layout, value)
    seen: dict[str, bytes] = {}
    for wound in _chosen(marked):
        damage = inflict(marked, wound)
        if damage is None or damage.data in seen.values():
            continue
        note = _note(wound, damage)
        if note in seen:
            note += f" at {damage.offset}"
        seen[note] = damage.data
        yield note, damage


def _chosen(marked: Marked) -> Iterator[Wound]:
    cuts = sorted({wound.edits[0].offset: wound for wound in wounds(marked, ("prefix",))}.items())
    for at in sorted({0, len(cuts) // 3, 2 * len(cuts) // 3, len(cuts) - 1} if cuts else ()):
        yield cuts[at][1]
    kinds = [kind for kind in EACH if kind != "version" or _leads(marked.layout)]
    if (marked.layout.message, marked.layout.version) == MANY_TAGS_IN:
        kinds.append("many-tags")
    places = {place.offset: place for place in marked.places if place.size}
    taken: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], tuple[int, ...]] = {}
    for wound in wounds(marked, kinds):
        place = places.get(wound.edits[0].offset)
        sort = (wound.kind, *_sort(place)) if place else (wound.kind,)
        # Of tags the innermost section is as good as any; of others all damage of a sort is at one place.
        where = tuple(edit.offset for edit in wound.edits[:1])
        if first.setdefault(sort, where) != where or taken.get(sort, 0) >= EACH.get(wound.kind, 1):
            continue
        taken[sort] = taken.get(sort, 0) + 1
        yield wound


def _sort(place: Place) -> tuple[object, ...]:
    if place.role in (Role.LENGTH, Role.COUNT):
        return place.role, place.form, place.nullable
    return place.role, place.form, place.known


def _leads(layout: Layout) -> bool:
    """Whether a class in the jar checks the leading version."""
    return layout.prefix is not None and (bool(layout.prefix.name) or layout.message.startswith("ConsumerProtocol"))


def _note(wound: Wound, damage: Damage) -> str:
    patch = wound.edits[0].patch
    field = damage.path or "the message"
    match wound.kind:
        case "prefix":
            return f"prefix of {damage.offset}"
        case "trailing" if len(patch) > 8:
            return "trailing, the same again"
        case "tag-order" | "tag-default" | "unknown-tag" | "many-tags":
            return f"{wound.kind} in {field}, {wound.edits[-1].patch[:6].hex()}"
    return f"{wound.kind} of {field}, {patch[:8].hex()}"


__all__ = ["EACH", "SMALL", "damaged"]
