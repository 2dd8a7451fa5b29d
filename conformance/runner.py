"""cases x session -> histories -> verdicts."""

from collections.abc import Iterable, Iterator, Sequence

from conformance.core.case import Case
from conformance.core.history import Died, History, Lost, Op, Unsupported
from conformance.core.verdict import Result, Verdict
from conformance.invariants.registry import Invariant
from conformance.targets.protocol import Session


def converse(cases: Sequence[Case], session: Session) -> Iterator[History]:
    """Errors: ``Broken`` and ``Unstable``, when no more can be asked of the target."""
    name = session.info.name
    for case, answers in zip(cases, session.hold(cases), strict=True):
        ops = tuple(
            Op(index, step, answer, index + 1)
            for index, (step, answer) in enumerate(zip(case.steps, answers, strict=True))
        )
        yield History(case, name, ops)


def judge(history: History, invariants: Iterable[Invariant]) -> Iterator[Verdict]:
    """One verdict for each invariant that a step of the case concerns."""
    for each in invariants:
        read = [op for op in history.ops if each.concerns(history.case, op.step)]
        if not read:
            continue
        found = tuple(each.search(history))
        seen = {type(op.observation) for op in read}
        result = (
            Result.FAIL
            if found
            else Result.SKIP
            if Unsupported in seen
            else Result.UNKNOWN
            if seen & {Lost, Died}
            else Result.PASS
        )
        yield Verdict(history.case.id, history.target, each.id, result, found)
