"""What a codec remembers from one case to the next: nothing."""

from collections.abc import Iterator

from conformance.core.case import Role
from conformance.core.history import History, Observation, Refused, Replied
from conformance.core.verdict import Violation
from conformance.invariants.readings import brief, difference
from conformance.invariants.registry import invariant
from conformance.invariants.wire import answered


@invariant("wire/same-answer", "grp-05", role=Role.CODEC)
def same_answer(history: History) -> Iterator[Violation]:
    """The same question has the same answer, whatever was asked in between."""
    seen: dict[str, tuple[int, Observation]] = {}
    for op in answered(history, lambda case, step: True):
        question = str((op.step.verb, dict(op.step.body)))
        first, before = seen.setdefault(question, (op.index, op.observation))
        wanted, got = _plain(before), _plain(op.observation)
        found = difference(wanted, got)
        if found is not None:
            asked = f"{op.step.verb} {op.step['message']} v{op.step['version']}"
            yield Violation(
                f"{asked}: step {op.index + 1} asks what step {first + 1} asked, and is answered with "
                f"{brief(found.got)} in place of {brief(found.wanted)}",
                (first, op.index), str(wanted)[:200], str(got)[:200], found.path.partition(".")[2],
                shape=("changed", op.step.verb, type(before).__name__, type(op.observation).__name__),
            )  # fmt: skip


def _plain(observation: Observation) -> dict[str, object]:
    match observation:
        case Replied(payload):
            return dict(payload)
        case Refused(error):
            return {"refused": error}
    return {}
