"""The laws of assignment: who breaks them is found in time and told in few words, and who keeps them is left alone."""

import re
from importlib.resources import files

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Died, History, Observation, Op, Refused, Replied
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.assignment.checks.assignors import digest as gist, shown
from kipcheck.conformance.protocols.assignment.ops import with_user_data
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.tests.support.groups import CHECKED, LEADING, answered, member_writes, stated

LEADERS = {name: mutant for name, mutant in MUTANTS.items() if mutant.check in CHECKED}


def test_every_law_has_a_vice_and_is_asked_by_a_check() -> None:
    assert LEADING.keys() <= {mutant.invariant for mutant in LEADERS.values()}
    assert LEADING.keys() == {law for check in CHECKED.values() for law in check.invariants}
    assert len(LEADERS) >= 20


def test_what_only_warns_or_is_noted() -> None:
    grades = {grade: {law for law, each in LEADING.items() if each.grade is grade} for grade in Grade}
    assert grades[Grade.INFO] == {"assign/any-order-sticky"}
    assert grades[Grade.SHOULD] == {
        "assign/any-order",
        "assign/hand-over-older",
        "assign/newest-wins",
        "assign/no-needless-move",
        "assign/reads-old-user-data",
        "assign/static-order",
        "assign/writes-generation",
    }


@pytest.mark.parametrize("id", CHECKED)
def test_every_check_has_cases_for_every_assignor_that_it_is_about(id: str) -> None:
    check = CHECKED[id]
    for subject in check.family.subjects("apache"):
        if check.about(subject):
            samples = list(check.samples(subject, 0, 40))
            assert len(samples) >= 20
            assert len({each.case.id for each in samples}) > len(samples) // 2


BREACHES = {
    "a partition for nobody": ("assign/none-idle", "sticky t0:2; a[t0]", ["a t0-0"], "t0-1 is not assigned"),
    "held back though free": (
        "assign/none-idle", "cooperative-sticky t0:2; a[t0]=t0-0@1; b[t0]", ["a t0-0; b"], "no member claims it"
    ),
    "two owners": (
        "assign/one-owner", "range t0:1; a[t0]; b[t0]", ["a t0-0; b t0-0"], "t0-0 is assigned to a and to b"
    ),
    "named twice": ("assign/one-owner", "range t0:1; a[t0]", ["a t0-0 t0-0"], "t0-0 is assigned to a twice"),
    "no such topic": ("assign/nothing-else", "range t0:1; a[t0 t1]", ["a t0-0 t1-0"], "topic t1 does not exist"),
    "no such partition": (
        "assign/nothing-else", "range t0:1; a[t0]", ["a t0-0 t0-1"], "t0 has 1 partitions, numbered from 0"
    ),
    "not subscribed": (
        "assign/nothing-else", "range t0:1; a[t0]; b[]", ["a; b t0-0"], "b is assigned t0-0; it subscribes to nothing"
    ),
    "a stranger": ("assign/everybody", "range t0:1; a[t0]", ["a t0-0; b"], "'b' is in the answer and not in the group"),
    "left out": ("assign/everybody", "range t0:1; a[t0]; b[t0]", ["a t0-0"], "b is in the group and not in the answer"),
    "one topic uneven": ("assign/balance", "range t0:2; a[t0]; b[t0]", ["a t0-0 t0-1; b"], "a has 2 and b has 0"),
    "alike and uneven": (
        "assign/balance", "roundrobin t0:2; a[t0 gone]; b[t0]; c[gone]", ["a t0-0 t0-1; b; c"], "a has 2 and b has 0"
    ),
    "could give one": (
        "assign/balance", "sticky t0:3 t1:1; a[t0]; b[t0 t1]", ["a t0-0 t0-1 t0-2; b t1-0"],
        "a has 3 partitions and b has 1: t0-0 could move to b",
    ),
    "moved for nothing": (
        "assign/stays", "sticky t0:2; a[t0]=t0-0@1; b[t0]=t0-1@1", ["a t0-1; b t0-0"], "a loses t0-0 to b"
    ),
    "moved more": (
        "assign/keeps-most", "sticky t0:3; a[t0]=t0-0,t0-1@1; b[t0]", ["a t0-0; b t0-1 t0-2"],
        "2 of the 2 owned can stay; 1 stay",
    ),
    "exchanged": (
        "assign/no-exchange", "sticky t0:3; a[t0]=t0-0@1; b[t0]=t0-1@1", ["a t0-1 t0-2; b t0-0"],
        "t0-1 goes from b to a and t0-0 from a to b",
    ),
    "without need": (
        "assign/no-needless-move", "sticky t0:2 t1:1; a[t0 t1]=t0-0,t0-1@1; b[t0 t1]", ["a t0-0; b t0-1 t1-0"],
        "if it stayed, the shares would be in balance too",
    ),
    "the stale claim": (
        "assign/newest-wins", "sticky t0:2; a[t0]=t0-0@9; b[t0]=t0-0@10", ["a t0-0; b t0-1"],
        "b gets t0-1 instead, which it does not claim",
    ),
    "a robbery": (
        "assign/hand-over", "cooperative-sticky t0:2; a[t0]=t0-0,t0-1@1; b[t0]", ["a t0-0; b t0-1"],
        "t0-1 is assigned to b, which does not claim it, while a claims it",
    ),
    "an older claim": (
        "assign/hand-over-older", "cooperative-sticky t0:1; a[]=t0-0@2; b[t0]=t0-0@1", ["a; b t0-0"],
        "which claims it only in generation 1",
    ),
    "another order": (
        "assign/any-order", "range t0:1; a[t0]; b[t0] | range t0:1; b[t0]; a[t0]", ["a t0-0; b", "a; b t0-0"],
        "where the same group is listed in another order",
    ),
    "not in runs": (
        "assign/by-rule", "range t0:4; a[t0]; b[t0]", ["a t0-0 t0-2; b t0-1 t0-3"],
        "in the order a, b, a should get t0-0, t0-1",
    ),
    "not by instance": (
        "assign/static-order", "range t0:1; a[t0]; b(i)[t0]", ["a t0-0; b"], "in the order b (instance i), a"
    ),
    "not alike": (
        "assign/range-alike", "range t0:1 t1:1; a[t0 t1]; b[t0 t1]", ["a t0-0; b t1-0"], "t1-0 to b, although both"
    ),
}  # fmt: skip


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_told_by_members_partitions_and_steps(breach: str) -> None:
    law, asked, answers, words = BREACHES[breach]
    history = answered(asked, *answers)
    (why, *_) = stated(law, history)
    assert words in why and re.search(r"step \d", why)
    violation = next(iter(LEADING[law].search(history)))
    assert violation.at and max(violation.at) < len(history.ops)
    assert not any(re.search(r"\b([a-h]|t\d)\b", each) for each in violation.shape), "a shape names nobody"


def test_round_robin_in_another_order_of_members_is_no_other_outcome() -> None:
    asked = "roundrobin t0:3; a[t0]; b[t0]"
    for answer, shape in (
        ("a t0-1; b t0-0 t0-2", "members in another order"),
        ("a t0-0; b t0-1 t0-2", "another outcome"),
    ):
        (violation,) = LEADING["assign/by-rule"].search(answered(asked, answer))
        assert violation.shape == (shape,)


KEPT: dict[str, tuple[str, str, list[str | Observation]]] = {
    "what others hold is held back": (
        "assign/none-idle", "cooperative-sticky t0:1; a[]=t0-0@1; b[t0]", ["a; b"]
    ),
    "more subscriptions, more partitions": (
        "assign/balance", "sticky t0:3 t1:1; a[t0]; b[t1]", ["a t0-0 t0-1 t0-2; b t1-0"]
    ),
    "mixed round robin owes no balance": (
        "assign/balance", "roundrobin t0:3 t1:1; a[t0]; b[t0 t1]", ["a t0-0 t0-1 t0-2; b t1-0"]
    ),
    "held back, so not yet balanced": (
        "assign/balance", "cooperative-sticky t0:2; a[t0]=t0-0,t0-1@1; b[t0]", ["a t0-0; b"]
    ),
    "stale claims agree about nothing": (
        "assign/stays", "sticky t0:2; a[t0]=t0-0@1; b[t0]=t0-1@2", ["a t0-1; b t0-0"]
    ),
    "racks count for more": (
        "assign/stays", "sticky t0:2; a[t0]=t0-0@1; b[t0]=t0-1@1", ["a t0-1; b t0-0"]
    ),
    "balance asked for it": (
        "assign/no-needless-move", "sticky t0:2; a[t0]=t0-0,t0-1@1; b[t0]", ["a t0-0; b t0-1"]
    ),
    "a stale claim that balance helps": (
        "assign/newest-wins", "sticky t0:2; a[t0]=t0-0@9; b[t0]=t0-0,t0-1@10", ["a t0-0; b t0-1"]
    ),
    "its own claim": ("assign/hand-over", "cooperative-sticky t0:1; a[t0]=t0-0@1; b[]=t0-0@1", ["a t0-0; b"]),
    "another order of another group": (
        "assign/any-order", "range t0:1; a[t0]; b[t0] | range t0:2; b[t0]; a[t0]", ["a t0-0; b", "a t0-1; b t0-0"]
    ),
    "a garbled answer is one breach": ("assign/none-idle", "range t0:1; a[t0]", [Replied((("assignment", 7),))]),
}  # fmt: skip


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_no_breach_is_not_told(kept: str) -> None:
    law, asked, answers = KEPT[kept]
    history = answered(asked, *answers)
    if kept.startswith("racks"):
        history = with_racks(history)
    assert stated(law, history) == []


@pytest.mark.parametrize(("asked", "answer", "breaks"), [
    ("sticky t0:2; a[t0]=t0-0@10; b[t0]=t0-1@10", "a t0-1; b t0-0", True),
    (
        "sticky t0:3 t1:3; a[t0 t1]=t1-0,t1-1,t1-2@10; b[t0 t1]=t0-0,t0-1@10; c[t0]=t0-2@10",
        "a t1-1 t1-2; b t0-0 t1-0; c t0-1 t0-2", False,
    ),
])  # fmt: skip
def test_a_move_shows_unread_claims_only_where_all_subscribe_alike(asked: str, answer: str, breaks: bool) -> None:
    (op,) = answered(asked, answer).ops
    for version, law in ((1, "assign/reads-user-data"), (0, "assign/reads-old-user-data")):
        step = with_user_data(op.step, version)
        case = Case("", "apache", Role.LEADER, (step,))
        assert LEADING[law].applies_to(case, step)
        history = History(case, "test", (Op(op.index, step, op.observation, op.after),))
        assert bool(stated(law, history)) is breaks


def with_racks(history: History) -> History:
    (op,) = history.ops
    topics = [{**each, "racks": [["r0"]] * each["partitions"]} for each in op.step["topics"]]
    members = [{**each, "rack": "r0"} for each in op.step["members"]]
    step = type(op.step)(op.step.actor, op.step.verb, {**op.step.body, "topics": topics, "members": members})
    return History(history.case, history.target, (Op(op.index, step, op.observation, op.after),))


def test_a_refusal_breaks_one_law_and_leaves_no_other_undecided() -> None:
    history = answered("sticky t0:1; a[t0]", Refused("KeyError", "'a'"))
    results = {each.invariant: each.result for each in judge(history, LEADING.values())}
    assert results.pop("assign/answers") is Result.FAIL
    assert set(results.values()) == {Result.PASS}
    why = "step 1 requests an assignment from sticky, which fails with KeyError: 'a'"
    assert stated("assign/answers", history) == [why]


def test_a_death_leaves_the_laws_undecided() -> None:
    history = answered("sticky t0:1; a[t0]", Died("timeout"))
    assert {each.result for each in judge(history, LEADING.values())} == {Result.UNKNOWN}


@pytest.mark.parametrize(
    ("answers", "wrong"),
    [
        ("a; b | a; b t0-0 | a; b | a t0-0; b | a; b t0-0", "t0-0 still moves"),
        ("a; b | a; b t0-0 | a; b | a t0-0; b | a; b", "t0-0 is still withheld"),
        ("a; b | a; b t0-0 | a; b t0-0 | a; b t0-0 | a; b t0-0", None),
        ("a; b | a; b t0-0 | a; b | a t0-0; b | a t0-0; b", None),
    ],
)
def test_rounds_come_to_rest(answers: str, wrong: str | None) -> None:
    first, *again = answers.split(" | ")
    asked = ["cooperative-sticky t0:1; a[t0]=t0-0@1; b[t0]; c[t0]"]  # c leaves, and from then on nothing changes
    for number, before in enumerate([first, *again[:-1]]):
        reported = (f"{id}[t0]={','.join(got)}@{number + 2}" for id, *got in map(str.split, before.split(";")))
        asked.append("; ".join(("cooperative-sticky t0:1", *reported)))
    why = stated("assign/converges", answered(" | ".join(asked), f"{first}; c", *again))
    assert [each.partition("of the group ")[2] for each in why] == ([] if wrong is None else [wrong])


@pytest.mark.parametrize(
    ("assignor", "owned", "data", "wrong"),
    [
        ("sticky", "t-0 t-2", "0000000100017400000002000000000000000200000007", None),
        ("sticky", "t-0 t-2", "0000000100017400000002000000020000000000000007", None),
        ("sticky", "", None, None),
        ("sticky", "", "0000000000000009", None),
        ("sticky", "t-0", None, "none"),
        ("sticky", "t-0", "000100000001000174000000010000000000000007", "unreadable"),
        ("sticky", "t-0", "00000001000174000000010000000100000007", "other partitions"),
        ("sticky", "t-0", "00000001000174000000010000000000000008", "other generation"),
        ("sticky", "t-0", "000000010001740000000100000000", "other generation"),
        ("cooperative-sticky", "t-0", None, None),
        ("cooperative-sticky", "t-0", "00000007", None),
        ("cooperative-sticky", "t-0", "00000008", "other generation"),
        ("cooperative-sticky", "t-0", "0000000700", None),
        ("cooperative-sticky", "t-0", "0000000000000007", "other generation"),
        ("cooperative-sticky", "t-0", "0007", "unreadable"),
    ],
)  # fmt: skip
def test_user_data_is_what_kafka_reads(assignor: str, owned: str, data: str | None, wrong: str | None) -> None:
    step = member_writes(assignor, owned, 7)
    history = History(
        Case("", "apache", Role.LEADER, (step,)), "test", (Op(0, step, Replied((("hex", data),)), 1),)
    )  # fmt: skip
    law = LEADING["assign/writes-user-data" if assignor == "sticky" else "assign/writes-generation"]
    assert law.applies_to(history.case, step)
    assert [each.shape for each in law.search(history)] == ([] if wrong is None else [("user data", wrong)])


def test_an_exhibit_shows_who_said_and_got_what() -> None:
    history = answered("sticky t0:1; a(i0)[t0]=t0-0@7; b[]", "a; c t0-0")
    violation = next(iter(LEADING["assign/everybody"].search(history)))
    (table,) = shown(history, violation)
    assert table["kind"] == "table"
    assert table["columns"] == ["member", "subscribes to", "owned", "generation", "got"]
    assert [each["cells"] for each in table["rows"]] == [
        ["a (i0)", "t0", "t0-0", "7", "nothing"],
        ["b", "nothing", "nothing", "-1", "not answered"],
        ["c", "not in the group", "", "", "t0-0"],
    ]
    assert [each["guilty"] for each in table["rows"]] == [False, False, True]


def test_a_vice_of_a_leader_is_caught_by_no_check_of_codecs() -> None:
    assert all(CHECKS[mutant.check].role is Role.LEADER for mutant in LEADERS.values())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a t0-0 t0-1; b", "b; a t0-1 t0-0", True),
        ("a t0-0; b t0-1", "a t0-1; b t0-0", False),
        ("a t0-0; b", "a t0-0", False),
    ],
)
def test_answers_are_compared_by_who_gets_what(one: str, other: str, same: bool) -> None:
    asked = "sticky t0:2; a[t0]; b[t0]"
    assert (gist(answered(asked, one)) == gist(answered(asked, other))) is same
    garbled = Replied((("assignment", {"a": 7}),))
    assert gist(answered(asked, garbled)) not in (gist(answered(asked, one)), gist(answered(asked, other)))


def test_the_page_tells_every_law_and_its_grade() -> None:
    page = (files("kipcheck.conformance") / "docs" / "assignments.md").read_text("utf-8")
    reported = {
        law: grade
        for laws, grade in re.findall(r"^\| (`assign/.*?) \| (MUST|SHOULD|INFO) \|", page, re.MULTILINE)
        for law in re.findall(r"`(.*?)`", laws)
    }
    assert reported == {id: law.grade.value for id, law in LEADING.items()}
