"""Invariants of codecs for the JSON nodes in ZooKeeper."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Refused as Refusal, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.codec.invariants import codec_invariant
from kipcheck.conformance.protocols.codec.invariants.wire import answered
from kipcheck.conformance.protocols.codec.two_decoders import brief, difference
from kipcheck.conformance.protocols.declare.invariant import ByMessage, impact
from kipcheck.conformance.wire import Layout, layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.znodes import ZNode

PLACE = 70

NODES: ByMessage = {
    ("apache", "BrokerIdZNode"): ("584-01",),
    ("apache", "FeatureZNode"): ("584-48",),
    ("kip-584", "BrokerIdZNode"): ("584-01", "584-60"),
    ("kip-584", "FeatureZNode"): ("584-02", "584-60", "584-61", "584-64"),
}


TIMES: Final = ("timestamp",)
"""The keys of a registration that its writer fills in."""


def layout_at(case: Case, step: Step) -> Layout:
    return layout(case.edition, step["message"], step["version"])


def is_node(step: Step) -> bool:
    return str(step.body.get("message", "")).endswith("ZNode")


def decoded(case: Case, step: Step, lenient: bool) -> Any:
    """The decoded node, or the refusal."""
    try:
        return layout_at(case, step).decode(bytes.fromhex(step["hex"]), lenient=lenient)
    except Refused as refusal:
        return refusal


def kept(at: Layout, wanted: Any, found: Any) -> tuple[Any, Any]:
    """Both values; the wanted one without those keys, of what released readers skip, that the other does not have."""
    assert isinstance(at, ZNode)
    if not isinstance(found, Mapping):
        return wanted, found
    skipped = {*at.unread} - found.keys()
    wanted = {name: each for name, each in wanted.items() if name not in skipped}
    if "features" in wanted and isinstance(entries := found.get("features"), Mapping):
        wanted["features"] = {
            name: {label: level for label, level in entry.items()
                   if label not in at.unread or label in entries.get(name, ())}
            for name, entry in wanted["features"].items()
        }  # fmt: skip
    return wanted, found


def is_legal(case: Case, step: Step) -> bool:
    return is_node(step) and step.verb == "decode" and not isinstance(decoded(case, step, False), Refused)


def is_illegal(case: Case, step: Step) -> bool:
    """Is it a node that both the strict and the lenient reader refuse?"""
    if not is_node(step) or step.verb != "decode":
        return False
    return all(isinstance(decoded(case, step, lenient), Refused) for lenient in (False, True))


def is_written(case: Case, step: Step) -> bool:
    return is_node(step) and step.verb == "encode"


@impact(
    "A legal node is refused or misread",
    "wrong data",
    "unknown-fields",
    "refused-peer",
    "wrong-data",
    links=("KIP-584",),
)
@codec_invariant("nodes/reads", checks=("nodes/round-trip",), applies_to=is_legal, extra_requirements=NODES)
def reads(history: History) -> Iterator[Violation]:
    """A legal node is read correctly, whatever the order of its keys, its whitespace and its unknown keys."""
    for op in answered(history, is_legal):
        wanted, at = decoded(history.case, op.step, False), layout_at(history.case, op.step)
        if isinstance(op.observation, Refusal):
            yield Violation(
                f"{at}: a legal node was refused with {op.observation.error}", (op.index,), brief(wanted),
                f"refused: {op.observation.error}", shape=("refused", op.observation.error),
            )  # fmt: skip
            continue
        assert isinstance(op.observation, Replied)
        found = difference(*kept(at, wanted, op.observation["value"]))
        if found is not None:
            why = f"{at}: {found.path or 'the node'} is read as {brief(found.got)}, not {brief(found.wanted)}"
            shape = "misread", found.path.partition(".")[0]
            yield Violation(why, (op.index,), brief(found.wanted), brief(found.got), found.path, shape=shape)


@impact(
    "A node is written in a form that other implementations misread",
    "wrong data",
    "layout",
    "wrong-data",
    "unreadable",
    links=("KIP-584",),
)
@codec_invariant("nodes/writes", checks=("nodes/round-trip",), applies_to=is_written, extra_requirements=NODES)
def writes(history: History) -> Iterator[Violation]:
    """An encoded node is legal and has the value that was given; a writer may take the time from its clock."""
    for op in answered(history, is_written):
        at, wanted = layout_at(history.case, op.step), op.step["value"]
        if isinstance(op.observation, Refusal):
            yield Violation(
                f"{at}: a legal value was refused with {op.observation.error}", (op.index,), "accepted",
                f"refused: {op.observation.error}", shape=("unwritten", op.observation.error),
            )  # fmt: skip
            continue
        assert isinstance(op.observation, Replied)
        data = bytes.fromhex(op.observation["hex"])
        shown = data.decode("utf-8", "replace")[:200]
        try:
            meant, told = {**at.defaults(), **wanted}, at.decode(data)
            for name in TIMES:
                meant.pop(name, None), told.pop(name, None)
            found = difference(meant, told)
        except Refused as refusal:
            why = f"{refusal}; written: {shown}"
            yield Violation(why, (op.index,), "a legal node", shown, refusal.path, shape=("illegal", refusal.kind))
            continue
        if found is not None:
            yield Violation(
                f"{at}: {found.path or 'the node'} was written as {brief(found.got)}, not {brief(found.wanted)}",
                (op.index,), brief(found.wanted), brief(found.got), found.path,
                shape=("miswritten", found.path.partition(".")[0]),
            )  # fmt: skip


@impact("An illegal node is accepted", "wrong data", "leniency", "wrong-data", links=("KIP-584",))
@codec_invariant("nodes/refuses", checks=("nodes/flaws",), applies_to=is_illegal, extra_requirements=NODES)
def refuses(history: History) -> Iterator[Violation]:
    """A node that breaks a rule of its edition, and that no released reader accepts, is refused."""
    for op in answered(history, is_illegal):
        refusal = decoded(history.case, op.step, False)
        assert isinstance(refusal, Refused)
        if isinstance(op.observation, Replied):
            field = refusal.path.partition(".")[0].partition("[")[0]
            yield Violation(
                f"{refusal}; it was accepted", (op.index,), f"refused: {refusal.why}", "accepted", refusal.path,
                refusal.offset, ("accepted", refusal.kind, field),
            )  # fmt: skip
