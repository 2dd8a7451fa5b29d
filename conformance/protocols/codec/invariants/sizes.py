"""Invariant of codecs: a message of any size is written and read as a small one is."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.codec.invariants import codec_invariant
from kipcheck.conformance.protocols.codec.invariants.wire import answered, canonical, encodable
from kipcheck.conformance.protocols.codec.two_decoders import brief, difference, layout_of, read, where
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 50

STRADDLED: Final = (1 << 12, 1 << 16, 1 << 20)
"""Bytes: usual sizes of buffers, and sizes at which they grow."""
SLACK: Final = 1 << 8
"""How many bytes less than a size a message may have, and still be meant for it."""


def size_of(case: Case, step: Step) -> int:
    """The number of canonical bytes that are written or read; 0 for what cannot be written or read."""
    layout = layout_of(case.edition, step["message"], step["version"])
    if step.verb == "encode":
        found = encodable(case, step)
        return len(found.data) if found is not None and found.data is not None else 0
    data = bytes.fromhex(step["hex"])
    return len(data) if len(data) >= STRADDLED[0] - SLACK and read(layout, data).legal else 0


def straddled(size: int) -> int | None:
    """The size of a buffer that a message of this size fills; None for small messages."""
    return next((each for each in reversed(STRADDLED) if size >= each - SLACK), None)


def is_large(case: Case, step: Step) -> bool:
    return step.verb in ("encode", "decode") and straddled(size_of(case, step)) is not None


@impact(
    "A message of a certain size is written or read wrongly",
    "wrong data",
    "bounds",
    "wrong-data",
    "unreadable",
    links=("CWE-131",),
)
@codec_invariant("wire/any-size", "grp-92", checks=("wire/sizes",), applies_to=is_large)
def any_size(history: History) -> Iterator[Violation]:
    """A message is written and read whatever its size, also where a field straddles byte 4096, 65536 or 1048576."""
    for op in answered(history, is_large):
        small = [each for each in history.ops[: op.index] if not is_large(history.case, each.step)]
        if any(_trouble(history.case, each) for each in small if each.step.verb == op.step.verb):
            continue  # the small value is wrong too
        found = _trouble(history.case, op)
        if found is not None:
            layout = layout_of(history.case.edition, op.step["message"], op.step["version"])
            size = size_of(history.case, op.step)
            how, why = found
            yield Violation(
                f"{layout}: {op.step.verb} of {size} bytes: {why}", (op.index,), "as with fewer bytes", why,
                shape=("size", op.step.verb, how, str(straddled(size)), *where(layout)),
            )  # fmt: skip


def _trouble(case: Case, op: Op) -> tuple[str, str] | None:
    """How the answer differs from what the bytes or the value are, as a word for a shape and as a sentence."""
    layout = layout_of(case.edition, op.step["message"], op.step["version"])
    if isinstance(op.observation, Refused):
        return "refused", f"it was refused with {op.observation.error}: {op.observation.why}"
    if not isinstance(op.observation, Replied):
        return None
    if op.step.verb == "decode":
        found = difference(read(layout, bytes.fromhex(op.step["hex"])).value, op.observation["value"])
        return None if found is None else ("misread", f"{found.path} is read as {brief(found.got)}")
    wanted, got = canonical(layout, op.step), bytes.fromhex(op.observation["hex"])
    if got == wanted or wanted is None:
        return None
    offset = next((n for n, (one, other) in enumerate(zip(wanted, got, strict=False)) if one != other), None)
    at = min(len(wanted), len(got)) if offset is None else offset
    return "written", f"{len(got)} bytes are written, which are wrong from offset {at} on"
