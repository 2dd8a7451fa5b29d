"""What a step that the target cannot take leaves undecided, and what it does not."""

from collections.abc import Mapping
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge, possible_part
from kipcheck.conformance.engine.execution.worker import invariants_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.conformance.tests.support.sessions import history_of

TWO_BEAT = "join a v3; elapse 3000; sync a v2 a=A; beat a v2; beat a v2"


class Limited(Reference):
    """Cannot take requests of one kind, as its hello says."""

    name = "limited"

    def __init__(self, *verbs: str) -> None:
        super().__init__()
        self._verbs = verbs

    def claims(self) -> Claims:
        found = super().claims()
        return Claims(found.messages, found.missing, found.assignors, found.machines, {"broker": "others refuse it"})

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["op"] in self._verbs:
            return {"status": "unsupported", "capability": "broker", "message": "a broker refuses it"}
        return super().answer(op)


def history(conversation: str, check: str, *verbs: str) -> History:
    case = Case(check, "apache", Role.COORDINATOR, OPERATIONS.parse_shorthand(conversation))
    return history_of(Limited(*verbs), case)


def results(conversation: str, check: str, *verbs: str) -> dict[str, Result]:
    found = history(conversation, check, *verbs)
    return {each.invariant: each.result for each in judge(found, invariants_of(CHECKS[check]))}


def test_a_step_that_a_target_cannot_take_skips_only_the_invariants_that_compare_its_answer() -> None:
    whole = results(TWO_BEAT, "group/generations")
    assert set(whole.values()) == {Result.PASS}
    partly = results(TWO_BEAT, "group/generations", "heartbeat")
    skipped = {id for id, result in partly.items() if result is Result.SKIP}
    assert skipped == {"group/answers-heartbeat", "group/like-its-release", "survives", "keeps-its-claims"}
    assert {result for id, result in partly.items() if id not in skipped} == {Result.PASS}


def test_a_request_that_was_not_sent_is_left_out_of_the_conversation() -> None:
    found = history(TWO_BEAT, "group/generations", "heartbeat")
    assert [op.step.verb for op in possible_part(found).ops] == ["join", "elapse", "sync"]
    assert possible_part(history(TWO_BEAT, "group/generations")).ops == history(TWO_BEAT, "group/generations").ops


@pytest.mark.parametrize("check", ["group/generations", "group/parked", "group/static", "group/errors"])
def test_where_no_step_was_taken_nothing_is_passed(check: str) -> None:
    found = results(TWO_BEAT, check, "join", "sync", "heartbeat", "elapse")
    assert set(found.values()) == {Result.SKIP}
    assert "survives" in found
