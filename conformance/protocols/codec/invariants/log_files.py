"""Invariants of codecs for the files beside a log."""

from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Refused as Refusal, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.codec.invariants import codec_invariant
from kipcheck.conformance.protocols.codec.invariants.wire import answered
from kipcheck.conformance.protocols.codec.two_decoders import brief, difference
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.wire import Layout, layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.log_files import VERSIONS, decode, in_order

PLACE = 80


def layout_at(case: Case, step: Step) -> Layout:
    return layout(case.edition, step["message"], step["version"])


def is_file(step: Step) -> bool:
    return step.body.get("message") in VERSIONS


def content(step: Step, lenient: bool = False) -> Any:
    """The value of the file, or the refusal."""
    try:
        return decode(step["message"], bytes.fromhex(step["hex"]), lenient)
    except Refused as refusal:
        return refusal


def is_read(case: Case, step: Step) -> bool:
    return is_file(step) and step.verb == "decode" and not isinstance(content(step), Refused)


def is_written(case: Case, step: Step) -> bool:
    legal = step.verb == "encode" or (step.verb == "recode" and not isinstance(content(step), Refused))
    return is_file(step) and legal


def is_damaged(case: Case, step: Step) -> bool:
    """Is it a file that no broker reads?"""
    return is_file(step) and step.verb == "decode" and isinstance(content(step, lenient=True), Refused)


@impact("A broker misreads what another release left beside a log", "wrong data", "layout", "wrong-data", "unreadable",
        links=("KIP-384",))  # fmt: skip
@codec_invariant("log-files/reads", "384-24", checks=("log-files/round-trip",), applies_to=is_read)
def reads(history: History) -> Iterator[Violation]:
    """A file that a broker wrote is read, with every value in it."""
    for op in answered(history, is_read):
        message, at = op.step["message"], layout_at(history.case, op.step)
        wanted = in_order(message, content(op.step))
        if isinstance(op.observation, Refusal):
            yield Violation(
                f"{at}: a file was refused with {op.observation.error}", (op.index,), brief(wanted),
                f"refused: {op.observation.error}", shape=("refused", op.observation.error),
            )  # fmt: skip
            continue
        assert isinstance(op.observation, Replied)
        found = difference(wanted, in_order(message, op.observation["value"]))
        if found is not None:
            why = f"{at}: {found.path or 'the file'} is read as {brief(found.got)}, not {brief(found.wanted)}"
            shape = "misread", found.path.rpartition(".")[2]
            yield Violation(why, (op.index,), brief(found.wanted), brief(found.got), found.path, shape=shape)


@impact("A broker leaves a file beside a log that another release misreads", "wrong data", "layout", "wrong-data",
        "unreadable", links=("KIP-384",))  # fmt: skip
@codec_invariant("log-files/writes", "384-24", checks=("log-files/round-trip",), applies_to=is_written)
def writes(history: History) -> Iterator[Violation]:
    """What is written is a file that brokers read, with every value that was given or read before."""
    for op in answered(history, is_written):
        message, at = op.step["message"], layout_at(history.case, op.step)
        wanted = in_order(message, op.step["value"] if op.step.verb == "encode" else content(op.step))
        if isinstance(op.observation, Refusal):
            yield Violation(
                f"{at}: a value was refused with {op.observation.error}", (op.index,), "accepted",
                f"refused: {op.observation.error}", shape=("unwritten", op.observation.error),
            )  # fmt: skip
            continue
        assert isinstance(op.observation, Replied)
        data = bytes.fromhex(op.observation["hex"])
        try:
            found = difference(wanted, in_order(message, decode(message, data)))
        except Refused as refusal:
            why = f"{refusal}; written: {data[:100].hex()}"
            yield Violation(why, (op.index,), "a file", data[:100].hex(), refusal.path, shape=("illegal", refusal.kind))
            continue
        if found is not None:
            yield Violation(
                f"{at}: {found.path or 'the file'} was written as {brief(found.got)}, not {brief(found.wanted)}",
                (op.index,), brief(found.wanted), brief(found.got), found.path,
                shape=("miswritten", found.path.rpartition(".")[2]),
            )  # fmt: skip


@impact("A broker takes a damaged file beside a log", "wrong data", "leniency", "wrong-data", links=("KIP-384",))
@codec_invariant("log-files/refuses", "384-24", checks=("log-files/flaws",), applies_to=is_damaged)
def refuses(history: History) -> Iterator[Violation]:
    """A damaged file, or one of another version, is refused."""
    for op in answered(history, is_damaged):
        refusal = content(op.step, lenient=True)
        assert isinstance(refusal, Refused)
        if isinstance(op.observation, Replied):
            yield Violation(
                f"{refusal}; it was accepted", (op.index,), f"refused: {refusal.why}", "accepted", refusal.path,
                refusal.offset, ("accepted", refusal.kind),
            )  # fmt: skip
