"""Coverage keys: small, the same in every process, and deaf to what a target adds to its answers."""

from itertools import islice
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.campaign.coverage import keys
from kipcheck.conformance.core.values.case import Case, Role, Step, step, steps_from
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
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.protocols.assignment.checks.assignors import Assignor
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.codec.checks.family import Subject as Coded
from kipcheck.conformance.protocols.declare.conversations import Subject as Machine
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh
from kipcheck.conformance.wire import layout

GROUP = Machine("apache", "group")
JOIN_GROUP = Coded("apache", layout("apache", "JoinGroupRequest", 5))
RANGE = Assignor("apache", "range")
JOINED = {"to": 0, "answer": "joined", "error": "NONE", "member": "a.1"}


def history(*stated: tuple[Step, Observation]) -> History:
    case = Case("c", "apache", Role.COORDINATOR, tuple(each for each, _ in stated))
    return History(case, "t", tuple(Op(at, each, seen, at + 1) for at, (each, seen) in enumerate(stated)))


def of_group(*stated: tuple[Step, Observation]) -> tuple[tuple[int, ...], ...]:
    return keys(CHECKS["group/static"], GROUP, history(*stated))


def of_codec(*stated: tuple[Step, Observation]) -> tuple[tuple[int, ...], ...]:
    return keys(CHECKS["wire/round-trip"], JOIN_GROUP, history(*stated))


def of_leader(*stated: tuple[Step, Observation]) -> tuple[tuple[int, ...], ...]:
    return keys(CHECKS["assign/one-round"], RANGE, history(*stated))


def answers(*reported: Any) -> Replied:
    return Replied((("answers", [*reported]),))


def test_a_key_is_the_same_in_every_process() -> None:
    """Written down: if this changes, the corpora of before are worth less."""
    assert of_group((step("a", "join"), answers(JOINED))) == ((5140527114015645814, 8228811453448738086),)


def test_the_words_of_a_target_make_no_difference() -> None:
    join = step("a", "join")
    assert of_group((join, Refused("Wrong", "at 7"))) == of_group((join, Refused("Wrong", "at 8", 8)))
    assert of_group((join, Died("crashed", "x", "y"))) == of_group((join, Died("crashed")))
    assert of_group((join, answers(JOINED))) == of_group((join, answers({**JOINED, "member": "a.2", "more": [1]})))


def test_outcomes_are_told_apart() -> None:
    seen: list[Observation] = [
        Refused("Wrong"), Refused("Other"), Died("crashed"), Died("timeout"), Lost("x"), Silent(), Unsupported("x"),
        Unsupported("x", "limit"), answers(), answers(JOINED), answers({**JOINED, "error": "FENCED_INSTANCE_ID"}),
        answers(JOINED, {"to": 1, "answer": "beat", "error": "NONE"}),
    ]  # fmt: skip
    assert len({of_group((step("a", "join"), each)) for each in seen}) == len(seen)


def test_what_an_actor_heard_before_counts() -> None:
    join, beat, fetch = step("a", "join"), step("a", "heartbeat"), step("a", "fetch")
    other = step("b", "join")
    _, after_a_join = of_group((join, answers(JOINED)), (beat, answers()))
    _, after_a_fetch = of_group((fetch, answers()), (beat, answers()))
    _, after_another = of_group((other, answers(JOINED)), (beat, answers()))
    assert len({after_a_join, after_a_fetch, after_another}) == 3
    assert {*after_a_join} & {*after_a_fetch} & {*after_another}, "what it hears now is one of the keys"


def value(**fields: Any) -> dict[str, Any]:
    return {**JOIN_GROUP.layout.defaults(), **fields}


def reported(of: Any) -> tuple[tuple[int, ...], ...]:
    return of_codec((JOIN_GROUP.decode(b""), Replied((("value", of),))))


def test_of_codecs_fields_count_by_sort_and_size() -> None:
    assert reported(value(groupId="ab")) == reported(value(groupId="cd"))
    sorts = [
        value(groupId=""), value(groupId="abcd"), value(sessionTimeoutMs=-5), value(sessionTimeoutMs=1 << 20),
        value(groupInstanceId="i"), value(protocols=[{"name": "", "metadata": ""}]),
        value(protocols=[{"name": "range", "metadata": ""}]),
    ]  # fmt: skip
    assert len({reported(each) for each in sorts}) == len(sorts)


@pytest.mark.parametrize(
    "strange",
    [
        {}, [], None, 7, "text", {"x" * 50: 1}, {"protocols": 3}, {"protocols": [3, None, {"name": [[]]}]},
        {"groupId": True}, {"groupId": 1.5}, {"groupId": {"a": {"b": []}}},
    ],
)  # fmt: skip
def test_whatever_a_codec_answers_has_keys_along_the_layout(strange: Any) -> None:
    (found,) = reported(strange)
    assert found
    if isinstance(strange, dict):
        assert reported({**strange, "of no layout": 1}) == (found,)


def test_one_and_true_are_two_things_in_whatever_order_they_come() -> None:
    """They are equal in Python, and so would be what is looked up by them."""
    first = reported(value(memberId="x", groupId=True)), reported(value(memberId="x", groupId=1))
    assert first[0] != first[1]
    other = reported(value(memberId="xyz", groupId=1)), reported(value(memberId="xyz", groupId=True))
    assert {*first[0][0]} - {*first[1][0]} == {*other[1][0]} - {*other[0][0]}


def assigned(**shares: list[list[Any]]) -> Replied:
    return Replied((("assignment", [{"id": each, "partitions": got} for each, got in shares.items()]),))


def asked(*members: dict[str, Any]) -> Step:
    return step("leader", "assign", topics=[{"name": "t", "partitions": 4, "racks": None}], members=[*members])


def member(id: str, *owned: list[Any], **more: Any) -> dict[str, Any]:
    return {"id": id, "subscription": ["t"], "owned": [*owned], "generation": 1, "instance": None, "rack": None, **more}


def test_of_leaders_evenness_and_moves_count() -> None:
    pair = asked(member("a"), member("b"))
    even = assigned(a=[["t", 0], ["t", 1]], b=[["t", 2], ["t", 3]])
    uneven = assigned(a=[["t", 0], ["t", 1], ["t", 2]], b=[["t", 3]])
    owning = asked(member("a", ["t", 2]), member("b"))
    racked = asked(member("a", rack="r"), member("b"))
    seen: list[tuple[Step, Observation]] = [
        (pair, even),
        (pair, uneven),
        (owning, even),
        (racked, even),
        (pair, Refused("Wrong")),
        (pair, Replied(())),
    ]
    assert len({of_leader(each) for each in seen}) == len(seen)
    other = assigned(a=[["t", 3], ["t", 1]], b=[["t", 2], ["t", 0]])
    assert of_leader((pair, even)) == of_leader((pair, other)), "which partitions they are is no matter"


@pytest.mark.parametrize("strange", [7, [], [{}], [{"id": "a"}], [{"id": [], "partitions": [["t", 0]]}]])
def test_whatever_a_leader_answers_has_keys(strange: Any) -> None:
    assert of_leader((asked(member("a")), Replied((("assignment", strange),))))[0]
    assert of_leader((step("member", "user-data"), Replied((("assignment", strange),))))[0]


@pytest.mark.parametrize("id", ["features/gating", "nodes/round-trip"])
def test_after_a_while_hardly_a_case_shows_anything_new(id: str) -> None:
    check = CHECKS[id]
    subject = next(iter(check.family.subjects("kip-584")))
    random, seen = Random(1), set[int]()
    admitted = []
    with Afresh("ours", Reference).open(subject.edition, check.role) as session:
        for number in range(120):
            draw = check.drawing(subject, random)
            for each in check.cases(subject, draw(random, None), 1, number, ""):
                (found,) = converse([each], session)
                new = {key for of_step in keys(check, subject, found) for key in of_step} - seen
                admitted.append(bool(new))
                seen |= new
    assert any(admitted[:10])
    assert sum(admitted[60:]) < 0.1 * len(admitted[60:])
    assert len(seen) < 1_000


def test_every_machine_has_keys_for_every_step() -> None:
    for role in (Role.COORDINATOR, Role.MEMBER, Role.CONTROLLER, Role.OPERATOR_TOOL):
        check = next(each for each in CHECKS.values() if each.role is role)
        subject = next(iter(check.family.subjects("apache")))
        steps = steps_from(check.drawing(subject, Random(1))(Random(1), None))
        with Afresh("ours", Reference).open(subject.edition, role) as session:
            (found,) = converse([Case(check.id, subject.edition, role, steps)], session)
        shown = keys(check, subject, found)
        assert len(shown) == len(steps)
        assert all(shown)
        assert len({key for each in islice(shown, 9) for key in each}) > 1
