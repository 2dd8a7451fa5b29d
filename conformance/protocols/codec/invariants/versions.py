"""Invariants of codecs for absent fields, later versions, and ApiVersions answers in version 0."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise
from json import dumps, loads
from typing import Any

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Refused as Refusal, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.codec.invariants import codec_invariant, wire
from kipcheck.conformance.protocols.codec.two_decoders import brief, difference, layout_of, tags_in
from kipcheck.conformance.protocols.declare.invariant import AppliesTo, impact
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import spec

PLACE = 60


def layout_at(case: Case, step: Step) -> Layout:
    return layout_of(case.edition, step["message"], step["version"])


@lru_cache(maxsize=64)
def _refusal(layout: Layout, text: str) -> Refused | None:
    try:
        layout.encode(layout.codec.from_json(loads(text)))
    except Refused as refusal:
        return refusal
    return None


def refusal(case: Case, step: Step) -> Refused | None:
    """Why the layout cannot encode the value of a step; None if it can."""
    return _refusal(layout_at(case, step), dumps(step["value"]))


WRITTEN_BY_HAND = frozenset({"AssignmentInfo"})
"""Messages whose Kafka class is not generated, and omits fields that a version lacks."""


ESSENTIAL = {"groupInstanceId": "instance id", "subscribedTopicRegex": "regex", "validateOnly": "validate only"}
"""Fields without which a request does something else, and their names in a shape: a static member acts as a dynamic
one, a subscription by pattern is none, and a trial changes the cluster.
"""


def absent_field(case: Case, step: Step) -> Refused | None:
    """The refusal of a value with a field that the version lacks, that is not at its default and may not be ignored;
    None for other values.
    """
    if step.verb != "encode" or step["message"] in WRITTEN_BY_HAND or any(True for _ in tags_in(step["value"])):
        return None
    found = refusal(case, step)
    return found if found is not None and found.kind == "absent-field" else None


def _absent(matches: Callable[[Layout, str], bool]) -> AppliesTo:
    """Steps whose value has such a field; its layout and its path, without indexes, are given."""

    def applies_to(case: Case, step: Step) -> bool:
        found = absent_field(case, step)
        return found is not None and matches(layout_at(case, step), INDEX.sub("", found.path))

    return applies_to


INDEX = re.compile(r"\[\d+\]")


def is_essential(layout: Layout, path: str) -> bool:
    return path.rpartition(".")[2] in ESSENTIAL


@cache
def replacing(edition_name: str, message: str) -> frozenset[str]:
    """The paths of fields that a version adds to a struct in which it drops others, and of those that it drops: two
    forms of the same data, of which each version has one.
    """
    layouts = list(spec(edition(edition_name), message))
    return frozenset(path for one, other in pairwise(layouts) for path in _exchanged(one, other, ""))


def _exchanged(one: Layout, other: Layout, path: str) -> Iterator[str]:
    before, after = {slot.name: slot for slot in one.slots}, {slot.name: slot for slot in other.slots}
    if before.keys() - after.keys() and after.keys() - before.keys():
        yield from (f"{path}{name}" for name in before.keys() ^ after.keys())
    for name in before.keys() & after.keys():
        inner, later = before[name].item, after[name].item
        if inner is not None and later is not None:
            yield from _exchanged(inner, later, f"{path}{name}.")


def is_other_form(layout: Layout, path: str) -> bool:
    return not is_essential(layout, path) and path in replacing(layout.edition, layout.message)


has_essential_field = _absent(is_essential)
has_other_form = _absent(is_other_form)
has_absent_field = _absent(lambda layout, path: not is_essential(layout, path) and not is_other_form(layout, path))


@impact(
    "A request silently asks an older broker for something else",
    "wrong data",
    "versions",
    "lost-setting",
    links=("KIP-345",),
)
@codec_invariant(
    "wire/refuses-absent-essentials", "grp-90", checks=("wire/absent-fields",), applies_to=has_essential_field
)
def refuses_essentials(history: History) -> Iterator[Violation]:
    """A field that the version lacks is refused, not silently omitted, if without it the request does another thing.

    Without its instance id a static member is a dynamic one, without its pattern a subscription is empty, and without
    validateOnly a trial changes the cluster.
    """
    for each in _omitted(history, has_essential_field):
        yield replace(each, shape=("accepted", "absent-field", ESSENTIAL[each.path.rpartition(".")[2]]))


@impact("A setting that the version lacks is dropped without an error", "wrong data", "versions", "lost-setting")
@codec_invariant(
    "wire/refuses-absent-fields",
    "grp-10",
    checks=("wire/absent-fields",),
    grade=Grade.SHOULD,
    applies_to=has_absent_field,
)
def refuses_absent(history: History) -> Iterator[Violation]:
    """A field that the version lacks is refused, not silently omitted, if it may not be ignored."""
    yield from _omitted(history, has_absent_field)


@impact("Data in a form that the version lacks is silently omitted", "trivia", "versions", "lost-setting")
@codec_invariant(
    "wire/refuses-other-forms", "grp-93", checks=("wire/absent-fields",), grade=Grade.INFO, applies_to=has_other_form
)
def refuses_other_forms(history: History) -> Iterator[Violation]:
    """Data in a form for which the version has another one is refused, not silently omitted."""
    yield from _omitted(history, has_other_form)


def _omitted(history: History, applies_to: AppliesTo) -> Iterator[Violation]:
    for op in wire.answered(history, applies_to):
        found = absent_field(history.case, op.step)
        assert found is not None
        if isinstance(op.observation, Replied):
            got = op.observation["hex"]
            yield Violation(
                f"{found}; it was written, as {got[:96] or 'no bytes'}",
                (op.index,), f"refused: {found.why}", f"accepted as {got[:96]}", found.path,
                shape=("accepted", "absent-field"),
            )  # fmt: skip


def has_ignorable_field(case: Case, step: Step) -> bool:
    """Is it a value with a field that the version lacks, and that may be ignored?"""
    if step.verb != "encode" or any(True for _ in tags_in(step["value"])):
        return False
    return _foreign(layout_at(case, step), step["value"]) and refusal(case, step) is None


def _foreign(layout: Layout, value: object) -> bool:
    if isinstance(value, list):
        return any(_foreign(layout, each) for each in value)
    if not isinstance(value, dict):
        return False
    inner = {slot.name: slot.item for slot in layout.slots if slot.item is not None}
    return any(each.name in value for each in layout.absent) or any(
        _foreign(item, value.get(name)) for name, item in inner.items()
    )


@impact("A message is refused because of a field that its version may omit", "trivia", "versions", "refused-peer")
@codec_invariant(
    "wire/leaves-out-ignorable-fields", "grp-10", checks=("wire/absent-fields",), grade=Grade.INFO,
    applies_to=has_ignorable_field,
)  # fmt: skip
def leaves_out(history: History) -> Iterator[Violation]:
    """An ignorable field that the version lacks is omitted, and the rest is written as without it."""
    for op in wire.answered(history, has_ignorable_field):
        layout = layout_at(history.case, op.step)
        wanted = wire.canonical(layout, op.step)
        assert wanted is not None
        if not _plainly_written(history, op.index, wanted):
            continue
        if isinstance(op.observation, Refusal):
            yield wire.refused(op, layout, "a value with a field that may be ignored in this version")
        elif isinstance(op.observation, Replied):
            found = wire.rewritten(
                op, layout, wanted, bytes.fromhex(op.observation["hex"]), "a value with a field to omit"
            )
            if found is not None:
                yield found


def _plainly_written(history: History, index: int, data: bytes) -> bool:
    """Was the value without the field written correctly before? If not, another invariant reports it."""
    before = History(history.case, history.target, history.ops[:index])
    return wire.well_written(before, data)


def is_of_later_version(case: Case, step: Step) -> bool:
    """Is it Streams metadata of a version above the newest?"""
    if step.verb != "decode" or step["message"] not in ("SubscriptionInfo", "AssignmentInfo"):
        return False
    try:
        layout = layout_at(case, step)
    except LookupError:
        return False
    return any(slot.name == "_rest" for slot in layout.slots)


@impact(
    "Streams metadata of a newer release is refused", "refused peer", "versions", "refused-peer", links=("KIP-268",)
)
@codec_invariant(
    "wire/reads-future-versions", "268-06", checks=("wire/future-versions",), applies_to=is_of_later_version
)
def reads_future(history: History) -> Iterator[Violation]:
    """The used and the supported version of Streams metadata of a later version are read, whatever follows."""
    for op in wire.answered(history, is_of_later_version):
        found = wire.decoded(history.case, op.step)
        if isinstance(op.observation, Refusal):
            yield wire.refused(op, found.layout, "metadata of a later version")
        elif isinstance(op.observation, Replied):
            got = {name: op.observation["value"].get(name) for name in VERSIONS}
            wanted = {name: found.value[name] for name in VERSIONS}
            violation = wire.misread(op, found.layout, wanted, got, "in metadata of a later version")
            if violation is not None:
                yield violation


def is_of_no_known_version(case: Case, step: Step) -> bool:
    """Does the Streams metadata start with a version that has no layout, or is not the requested one?"""
    if step.verb != "decode" or step["message"] not in ("SubscriptionInfo", "AssignmentInfo"):
        return False
    found = wire.decoded(case, step)
    return found.refused is not None and found.refused.kind == "version" and found.lenient_refused is not None


@impact(
    "Streams metadata of an unknown version is read in another layout",
    "wrong data",
    "versions",
    "wrong-data",
    links=("KIP-268",),
)
@codec_invariant("wire/refuses-unknown-versions", "268-07", checks=("wire/damage",), applies_to=is_of_no_known_version)
def refuses_unknown(history: History) -> Iterator[Violation]:
    """Streams metadata is read only in the layout of the version that it starts with."""
    for op in wire.answered(history, is_of_no_known_version):
        if isinstance(op.observation, Replied):
            found = wire.decoded(history.case, op.step)
            assert found.refused is not None
            yield Violation(
                f"{found.refused}; it was accepted", (op.index,), f"refused: {found.refused.why}", "accepted",
                found.refused.path, found.refused.offset, ("accepted", "version"),
            )  # fmt: skip


VERSIONS = ("version", "latestSupportedVersion")


def is_given_in_v0(case: Case, step: Step) -> bool:
    """Is it the legal v0 answer with which a broker refuses the requested version?"""
    if step.verb != "decode" or not wire.is_answer_in_v0(step):
        return False
    return not wire.decoded(case, step).legal and _in_v0(case, step) is not None


def _in_v0(case: Case, step: Step) -> dict[str, object] | None:
    found = wire.decoded(case, Step(step.actor, step.verb, {**step.body, "version": 0}))
    return found.value if found.legal else None


@impact(
    "The versions of a broker are not read from its answer to an unsupported version",
    "refused peer",
    "negotiation",
    "wrong-data",
    "refused-peer",
    links=("KIP-511",),
)
@codec_invariant("wire/reads-answer-in-v0", "584-35", checks=("wire/answer-in-v0",), applies_to=is_given_in_v0)
def reads_answer(history: History) -> Iterator[Violation]:
    """If the v0 answer to an unsupported version is accepted, error 35 and the range of versions are read from it.

    A target may also refuse it: the generated class of a release does, and its client falls back to v0.
    """
    for op in wire.answered(history, is_given_in_v0):
        wanted = _in_v0(history.case, op.step)
        assert wanted is not None
        if isinstance(op.observation, Replied):
            # Fields that a later version adds, to the message and to its entries, have their defaults.
            shorter = layout_of(history.case.edition, op.step["message"], 0)
            found = difference(wanted, _as_far_as(shorter, op.observation["value"]))
            if found is not None:
                yield Violation(
                    f"{layout_at(history.case, op.step)}: in an answer in v0 {found.path} is read as "
                    f"{brief(found.got)}, not {brief(found.wanted)}",
                    (op.index,), brief(found.wanted), brief(found.got), found.path,
                    shape=("misread", "answer in v0"),
                )  # fmt: skip


def _as_far_as(layout: Layout, value: Any) -> dict[str, Any]:
    """Only the fields that the layout has."""
    known: dict[str, Any] = {}
    for slot in layout.slots:
        each = value.get(slot.name)
        items = slot.item is not None and isinstance(each, list)
        known[slot.name] = [_as_far_as(slot.item, one) for one in each] if items and slot.item else each
    return known


@impact(
    "The answer of an old broker to an unsupported version is refused",
    "refused peer",
    "negotiation",
    "refused-peer",
    links=("KIP-511",),
)
@codec_invariant(
    "wire/falls-back-to-v0", "584-35", checks=("wire/answer-in-v0",), grade=Grade.INFO, applies_to=is_given_in_v0
)
def falls_back(history: History) -> Iterator[Violation]:
    """The v0 answer to an unsupported version is read although a later version was requested."""
    for op in wire.answered(history, is_given_in_v0):
        if isinstance(op.observation, Refusal):
            yield wire.refused(op, layout_at(history.case, op.step), "the answer in v0 to an unsupported version")
