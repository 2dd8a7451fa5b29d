"""Invariants of codecs: no state is carried over from one message to the next."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Observation, Refused, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.codec.invariants import codec_invariant
from kipcheck.conformance.protocols.codec.invariants.wire import answered, canonical, is_encode, rewritten, well_written
from kipcheck.conformance.protocols.codec.two_decoders import brief, difference, layout_of
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact

PLACE = 30


@impact("The result of a request depends on earlier requests", "wrong data", "shared-state", "wrong-data")
@codec_invariant("wire/same-answer", "grp-05", checks=("wire/repeat",), right_answer=RightAnswer.EARLIER)
def same_answer(history: History) -> Iterator[Violation]:
    """The same request gets the same answer, whatever was requested in between."""
    first_answers: dict[str, tuple[int, Observation]] = {}
    for op in answered(history, lambda case, step: True):
        question = str((op.step.verb, dict(op.step.body)))
        first, before = first_answers.setdefault(question, (op.index, op.observation))
        wanted, got = _plain(before), _plain(op.observation)
        found = difference(wanted, got)
        if found is not None:
            request = f"{op.step.verb} {op.step['message']} v{op.step['version']}"
            yield Violation(
                f"{request}: step {op.index + 1} repeats the request of step {first + 1}, and is answered with "
                f"{brief(found.got)} instead of {brief(found.wanted)}",
                (first, op.index), str(wanted)[:200], str(got)[:200], found.path.partition(".")[2],
                shape=("changed", op.step.verb, type(before).__name__, type(op.observation).__name__),
            )  # fmt: skip


def is_brief(case: Case, step: Step) -> bool:
    """Is it a value to encode that omits a tagged field?"""
    if not is_encode(case, step):
        return False
    layout = layout_of(case.edition, step["message"], step["version"])
    return any(slot.name not in step["value"] for slot in layout.tagged)


@impact(
    "An omitted field has the value of an earlier message",
    "wrong data",
    "shared-state",
    "wrong-data",
    links=("CWE-665",),
)
@codec_invariant("wire/own-defaults", "grp-05", checks=("wire/repeat",), applies_to=is_brief)
def own_defaults(history: History) -> Iterator[Violation]:
    """An omitted field has its default, whatever value it had in earlier messages."""
    for op in answered(history, is_brief):
        layout = layout_of(history.case.edition, op.step["message"], op.step["version"])
        wanted = canonical(layout, op.step)
        assert wanted is not None
        complete = [
            each for each in history.ops if each.step.verb == "encode" and not is_brief(history.case, each.step)
        ]
        if not well_written(History(history.case, history.target, tuple(complete)), wanted):
            continue  # the value is wrong even if every field is given
        if isinstance(op.observation, Replied):
            found = rewritten(op, layout, wanted, bytes.fromhex(op.observation["hex"]), "a value with omitted fields")
            if found is not None:
                yield found


def _plain(observation: Observation) -> dict[str, object]:
    match observation:
        case Replied(payload):
            return dict(payload)
        case Refused(error):
            return {"refused": error}
    return {}
