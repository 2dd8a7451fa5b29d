"""Invariant of codecs: an untagged field that is omitted has its declared default."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.codec.invariants import codec_invariant
from kipcheck.conformance.protocols.codec.invariants.wire import answered, canonical, encodable, rewritten, well_written
from kipcheck.conformance.protocols.codec.two_decoders import layout_of, where
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.schema import INTEGERS, Slot

PLACE = 40

NOT_DEFINED: Final = frozenset({
    "AssignmentInfo", "CooperativeStickyAssignorUserData", "StickyAssignorUserData", "SubscriptionInfo",
    "ValueAndTimestamp",
})  # fmt: skip
"""Data without a definition among Kafka's messages in every release, so that no default is declared."""


def omits_a_field(case: Case, step: Step) -> bool:
    """Is it a value to encode that omits an untagged field, at any depth?"""
    if step.verb != "encode" or step["message"] in NOT_DEFINED:
        return False
    found = encodable(case, step)
    return found is not None and not found.complete


@impact(
    "A field that the application omits is written with another value than its default",
    "wrong data",
    "layout",
    "wrong-data",
    links=("CWE-665",),
)
@codec_invariant("wire/fills-in-defaults", "grp-91", checks=("wire/omitted-fields",), applies_to=omits_a_field)
def fills_in(history: History) -> Iterator[Violation]:
    """An untagged field that is omitted, at any depth, is written with its declared default.

    A target may refuse the value: then the user has to set every field. It may also write null, if the field may be
    null and has no default but that of its type.
    """
    for op in answered(history, omits_a_field):
        if not isinstance(op.observation, Replied):
            continue
        layout = layout_of(history.case.edition, op.step["message"], op.step["version"])
        wanted, got = canonical(layout, op.step), bytes.fromhex(op.observation["hex"])
        assert wanted is not None
        if not well_written(History(history.case, history.target, history.ops[: op.index]), wanted):
            continue  # the value is wrong even if every field is given
        violation = rewritten(op, layout, wanted, got, "a value with an omitted field")
        if violation is not None and got != layout.encode(layout.codec.from_json(with_nulls(layout, op.step["value"]))):
            _, sort, kind, *_ = violation.shape
            yield replace(violation, shape=("omitted", sort, kind, *where(layout)))


def with_nulls(layout: Layout, value: Mapping[str, Any]) -> dict[str, Any]:
    """The value with null in the omitted fields that may be null and whose default is that of their type."""
    filled = dict(value)
    for slot in layout.untagged:
        if slot.name not in value:
            if slot.nullable and is_usual(slot):
                filled[slot.name] = None
        elif slot.item is not None and (inner := value[slot.name]) is not None:
            item = slot.item
            filled[slot.name] = [with_nulls(item, each) for each in inner] if slot.array else with_nulls(item, inner)
    return filled


def is_usual(slot: Slot) -> bool:
    """Is the default the one of the type: 0, false, empty?"""
    if slot.default is None:
        return slot.type == "records"
    if slot.default in ((), ...) or slot.type == "uuid":
        return True
    return slot.default in ((0,) if slot.type in INTEGERS or slot.type == "float64" else (False, "", b""))
