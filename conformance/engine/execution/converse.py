"""Runs cases in a session: sends each step and records the observations as a history."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Lost, Observation, Op
from kipcheck.conformance.engine.execution.deaths import HELD_BACK, Deaths
from kipcheck.conformance.protocols.checks import family_of
from kipcheck.conformance.protocols.declare.check import Completes
from kipcheck.conformance.targets.protocol import Session
from kipcheck.conformance.targets.session import run_up_to_death

NO_ROUND_BEFORE = Lost("the round before it has no answer to go on from")


def converse(cases: Sequence[Case], session: Session, deaths: Deaths | None = None) -> Iterator[History]:
    """The histories, in the order of the cases. A step that uses an earlier answer waits for it, so the cases are run
    in several rounds if necessary. ``deaths``: what looks like them is held back, its steps are not sent.

    Errors: ``Broken`` and ``Unstable``, if the target cannot be used any more.
    """
    found: list[list[Op]] = [[] for _ in cases]
    complete = [family_of(case).complete for case in cases]
    while waiting := [number for number, case in enumerate(cases) if len(found[number]) < len(case.steps)]:
        if deaths is not None and (held_back := [each for each in waiting if deaths.alike(cases[each]) is not None]):
            for number in held_back:
                found[number] += [
                    _op(each, step, HELD_BACK) for each, step in _rest(cases[number].steps, found[number])
                ]
            continue
        runs = {number: _ready(cases[number].steps, found[number], complete[number]) for number in waiting}
        ready = {number: run for number, run in runs.items() if run}
        for number in runs.keys() - ready.keys():
            ops = found[number]
            ops += [_op(each, step, NO_ROUND_BEFORE) for each, step in _rest(cases[number].steps, ops)]
        sent = [replace(cases[number], steps=run) for number, run in ready.items()]
        answers = _answers(session, sent, deaths is not None) if sent else ()
        for (number, run), given in zip(ready.items(), answers, strict=deaths is None):
            ops = found[number]
            for step, answer in zip(run, given, strict=True):
                ops.append(_op(len(ops), step, answer))
            if deaths is not None:
                deaths.note(History(cases[number], session.info.name, tuple(ops[-len(run) :])))
    for case, ops in zip(cases, found, strict=True):
        yield History(case, session.info.name, tuple(ops))


def converse_once(several: Sequence[Sequence[Case]], session: Session) -> Iterator[History]:
    """As ``converse``, of the cases of several checks: what is in more than one list is one conversation, which is run
    as often as a list has it."""
    keys = [[(case.id, cases[:at].count(case)) for at, case in enumerate(cases)] for cases in several]
    every = dict(zip(chain(*keys), chain(*several), strict=True))
    found = dict(zip(every, converse([*every.values()], session), strict=True))
    for key, case in zip(chain(*keys), chain(*several), strict=True):
        yield replace(found[key], case=case)


def _answers(session: Session, cases: Sequence[Case], stops: bool) -> Sequence[tuple[Observation, ...]]:
    """``stops``: perhaps of the first cases only, if the target died."""
    return run_up_to_death(session, cases) if stops else session.run(cases)


def _ready(steps: Sequence[Step], before: Sequence[Op], complete: Completes | None) -> tuple[Step, ...]:
    """The steps that can be sent now: the next one, completed, and those after it that use no later answer."""
    if complete is None:
        return tuple(steps[len(before) :])
    run: list[Step] = []
    for _, step in _rest(steps, before):
        completed = complete(step, before)
        if completed is None or (run and completed is not step):
            break
        run.append(completed)
    return tuple(run)


def _rest(steps: Sequence[Step], before: Sequence[Op]) -> list[tuple[int, Step]]:
    return list(enumerate(steps))[len(before) :]


def _op(index: int, step: Step, answer: Observation) -> Op:
    return Op(index, step, answer, index + 1)
