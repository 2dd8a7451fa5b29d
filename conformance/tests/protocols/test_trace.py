"""The trace that invariants of several protocols share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import (
    Died,
    History,
    Lost,
    Observation,
    Op,
    Refused,
    Replied,
    Silent,
    Unsupported,
)
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload, plain_steps

GRANTED = Replied((("until", 40),))
STEPS = (
    Step("", "lease", {"client": 1, "ms": 40}), Step("", "lease", {"client": 2, "ms": 40}),
    Step("", "lease-elapse", {"ms": 15}), Step("", "release", {"client": 1}),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeaseStep(AnsweredStep[Step, Mapping[str, Any], int]):
    """What is known is how many ms of the lease are left."""

    def known_after(self) -> int:
        if self.verb == "lease" and self.accepted:
            return int(self.request["ms"])
        return self.before - int(self.request["ms"]) if self.verb == "lease-elapse" else self.before


def trace(*observations: Observation) -> list[LeaseStep]:
    ops = tuple(Op(index, *each) for index, each in enumerate(zip(STEPS, observations, strict=True)))
    history = History(Case("leases/holders", "apache", Role.BROKER, STEPS), "somebody", ops)
    return list(plain_steps(history, 0, LeaseStep))


def test_each_step_knows_what_the_steps_before_it_say() -> None:
    found = trace(GRANTED, Refused("LEASED"), Replied(()), Replied(()))
    assert [each.before for each in found] == [0, 40, 40, 25]
    assert [(each.verb, each.accepted, each.error) for each in found[:2]] == [
        ("lease", True, ""), ("lease", False, "LEASED"),
    ]  # fmt: skip
    assert [each.answer for each in found[:2]] == [{"until": 40}, {}]


@pytest.mark.parametrize(
    "unanswered",
    [Lost("reset"), Silent(), Died("crashed"), Unsupported("no leases")],
    ids=lambda each: type(each).__name__,
)
def test_a_trace_ends_before_the_first_step_without_an_answer(unanswered: Observation) -> None:
    assert [each.op.index for each in trace(GRANTED, unanswered, Replied(()), Replied(()))] == [0]


def test_a_trace_ends_where_its_reader_finds_no_step() -> None:
    ops = tuple(Op(index, step, GRANTED) for index, step in enumerate(STEPS))
    history = History(Case("leases/holders", "apache", Role.BROKER, STEPS), "somebody", ops)

    def granted_only(op: Op, known: int) -> LeaseStep | None:
        return LeaseStep(op, op.step, payload(op), known) if op.step.verb == "lease" else None

    assert [each.op.index for each in answered_steps(history, 0, granted_only)] == [0, 1]
