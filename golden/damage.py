"""Selects the damage for golden vectors: a few of each kind, at fixed places of the small value of a version."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.wire.byte_map import ByteMap, Role, Span
from kipcheck.conformance.wire.constructs import byte_map
from kipcheck.conformance.wire.schema import Layout
from kipcheck.golden.samples import SMALL, Value, small
from kipcheck.strategies.damage import Corruption, Damage, apply_corruption, corruptions

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
    mapped = byte_map(layout, value)
    seen: dict[str, bytes] = {}
    for corruption in _chosen(mapped):
        damage = apply_corruption(mapped, corruption)
        if damage is None or damage.data in seen.values():
            continue
        note = _note(corruption, damage)
        if note in seen:
            note += f" at {damage.offset}"
        seen[note] = damage.data
        yield note, damage


def _chosen(mapped: ByteMap) -> Iterator[Corruption]:
    cuts = sorted({corruption.edits[0].offset: corruption for corruption in corruptions(mapped, ("prefix",))}.items())
    for at in sorted({0, len(cuts) // 3, 2 * len(cuts) // 3, len(cuts) - 1} if cuts else ()):
        yield cuts[at][1]
    kinds = [kind for kind in EACH if kind != "version" or _leads(mapped.layout)]
    if (mapped.layout.message, mapped.layout.version) == MANY_TAGS_IN:
        kinds.append("many-tags")
    regions = {region.offset: region for region in mapped.spans if region.size}
    taken: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], tuple[int, ...]] = {}
    for corruption in corruptions(mapped, kinds):
        region = regions.get(corruption.edits[0].offset)
        sort = (corruption.kind, *_sort(region)) if region else (corruption.kind,)
        # Of tags the innermost section is as good as any; of others all damage of a sort is at one place.
        where = tuple(edit.offset for edit in corruption.edits[:1])
        if first.setdefault(sort, where) != where or taken.get(sort, 0) >= EACH.get(corruption.kind, 1):
            continue
        taken[sort] = taken.get(sort, 0) + 1
        yield corruption


def _sort(region: Span) -> tuple[object, ...]:
    if region.role in (Role.LENGTH, Role.COUNT):
        return region.role, region.form, region.nullable
    return region.role, region.form, region.slot is None


def _leads(layout: Layout) -> bool:
    """Whether a class in the jar checks the leading version."""
    return layout.prefix is not None and (bool(layout.prefix.name) or layout.message.startswith("ConsumerProtocol"))


def _note(corruption: Corruption, damage: Damage) -> str:
    patch = corruption.edits[0].patch
    field = damage.path or "the message"
    match corruption.kind:
        case "prefix":
            return f"prefix of {damage.offset}"
        case "trailing" if len(patch) > 8:
            return "trailing, the same again"
        case "tag-order" | "tag-default" | "unknown-tag" | "many-tags":
            return f"{corruption.kind} in {field}, {corruption.edits[-1].patch[:6].hex()}"
    return f"{corruption.kind} of {field}, {patch[:8].hex()}"


__all__ = ["EACH", "SMALL", "damaged"]
