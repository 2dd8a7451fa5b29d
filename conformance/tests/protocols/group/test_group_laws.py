"""The laws of classic group coordinators: what is planted breaks them in its least case, and nothing else does."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Died, History, Lost, Observation, Op, Refused, Replied, Silent
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.strength.mutation_test import subject_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.check import Check
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.declare.mutant import Mutant
from kipcheck.conformance.protocols.group.invariants import answers
from kipcheck.conformance.protocols.group.invariants.observer import longest_wait_ms
from kipcheck.conformance.protocols.group.invariants.view import group_trace
from kipcheck.conformance.protocols.group.model.answers import DEFAULT
from kipcheck.conformance.protocols.group.ops import GROUP, OPERATIONS
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.conformance.protocols.group.target import CoordinatorAdapter, DraftCoordinatorAdapter
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.tests.support.sessions import history_of

PLANTED = {name: mutant for name, mutant in MUTANTS.items() if mutant.subject == GROUP}
OURS: list[Invariant] = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("group/")]


def case(text: str, edition: str = "apache") -> Case:
    return Case("group/errors", edition, Role.COORDINATOR, OPERATIONS.parse_shorthand(text))


def sound(edition: str = "apache") -> Adapter:
    adapter = DraftCoordinatorAdapter() if edition == "kip-429" else CoordinatorAdapter()
    adapter.configure(edition)
    return adapter


def broken(history: History) -> set[str]:
    return {each.invariant for each in judge(history, OURS) if each.result is Result.FAIL}


def least(name: str) -> tuple[Mutant, Case]:
    mutant = PLANTED[name]
    assert isinstance(mutant.least, str)
    return mutant, case(mutant.least, subject_of(mutant).edition)


def test_every_law_has_a_vice_and_a_check() -> None:
    ids = {each.id for each in OURS}
    assert ids == {mutant.invariant for mutant in PLANTED.values()}
    checks: list[Check[Any]] = [each for each in CHECKS.values() if each.id.startswith("group/")]
    assert ids == {id for check in checks for id in check.invariants}
    for mutant in PLANTED.values():
        assert mutant.invariant in CHECKS[mutant.check].invariants


@pytest.mark.parametrize("edition", ["apache"])
def test_the_unspoiled_coordinator_keeps_them_all(edition: str) -> None:
    """For long: ``python -m kipcheck.conformance.benchmarks.group_laws``."""
    conversations = group_conversations(edition)
    for seed in range(4):
        random = Random(seed)
        steps = conversations.draw(random, conversations.swarm(random))
        history = history_of(sound(edition), Case("group/errors", edition, Role.COORDINATOR, steps))
        assert not broken(history), OPERATIONS.shorthand(steps)


# Histories by hand: what the unspoiled coordinator answers, but for one thing


def changed(history: History, index: int, observation: Observation) -> History:
    ops = [Op(op.index, op.step, observation if op.index == index else op.observation, op.after) for op in history.ops]
    return replace(history, ops=tuple(ops))


def answering(text: str, index: int, asked: int, edition: str = "apache", **fields: Any) -> History:
    """With other fields in the answer that the step ``index`` gives to the step ``asked``."""
    history = history_of(sound(edition), case(text, edition))
    observation = history.ops[index].observation
    assert isinstance(observation, Replied)
    changes = [{**each, **fields} if each["to"] == asked else each for each in observation["answers"]]
    assert changes != observation["answers"], "nothing is changed"
    return changed(history, index, Replied((("answers", changes),)))


PAIR = "join a; join b; elapse 6000; sync b; sync a a=x b=y"
ALONE = "join a; elapse 3000; sync a a=x"
STATIC = "join a as i; elapse 3000; sync a a=x; join b as i; beat a as i; sync b"


@pytest.mark.parametrize(
    ("law", "history"),
    [
        ("generation-grows", answering(f"{ALONE}; join a id=a", 3, 3, generation=1)),
        ("generation-grows", answering(f"{ALONE}; join a id=a", 3, 3, generation=4)),
        ("generation-grows", answering(f"{ALONE}; join a id=a; sync a; join a id=a", 5, 5, generation=1)),
        ("one-leader", answering(PAIR, 2, 1, leader="b.1")),
        ("list-only-to-leader", answering(PAIR, 2, 0, members=[])),
        ("list-only-to-leader", answering(PAIR, 2, 1, members=[["a.1", None, "x"]])),
        ("leader-hears-all", answering(PAIR, 2, 0, members=[["a.1", None, "x"]])),
        ("leader-hears-all", answering(PAIR, 2, 0, members=[["a.1", None, "x"], ["b.1", None, "y"]])),
        ("leader-hears-all", answering(PAIR, 2, 0, members=[["a.1", None, "x"], ["b.1", "i", "x"]])),
        ("common-protocol", answering(PAIR, 2, 0, protocol="q")),
        ("assignment-from-leader", answering(PAIR, 4, 3, assignment="x")),
        ("assignment-from-leader", answering(STATIC, 5, 5, assignment="")),
        ("stale-never-wins", answering(f"{ALONE}; beat a behind=1", 3, 3, error="NONE")),
        ("answered-once", answering(f"{ALONE}; beat a", 3, 3, to=2)),
        ("answered-once", answering(f"{ALONE}; beat a", 3, 3, answer="left")),
        ("answers-at-once", answering(f"{ALONE}; beat a", 3, 3, to=9)),
        ("unload-answers-all", answering("join a; unload", 1, 0, error="UNKNOWN_MEMBER_ID")),
        ("unload-answers-all", answering("unload; fetch", 1, 1, error="NONE")),
        ("sessions-end", answering(f"{ALONE}; elapse 10000; beat a", 4, 4, error="NONE")),
        ("sessions-kept", answering(f"{ALONE}; elapse 5000; beat a", 4, 4, error="UNKNOWN_MEMBER_ID")),
        ("fresh-ids", answering("join a v4; join b v4", 1, 1, member="a.1")),
        ("ids-before-members", answering("join a v4", 0, 0, error="NONE", member="a.1")),
        ("fenced-never-wins", answering(STATIC, 4, 4, error="NONE")),
        ("fenced-let-go", answering("join a as i; join b as i", 1, 0, error="UNKNOWN_MEMBER_ID")),
        ("refused-disturbs-nobody", answering(f"{ALONE}; beat b; beat a", 4, 4, error="UNKNOWN_MEMBER_ID")),
        ("refused-changes-nothing", answering(f"{ALONE}; describe; beat b; describe", 5, 5, members=[])),
        ("outlives-moves", answering(f"{ALONE}; describe; move; describe", 7, 7, members=[])),
        ("goes-on-after-moves", answering(f"{ALONE}; move; sync a", 6, 6, assignment="y")),
        ("commits-kept", answering("commit a id= 5 behind=none; fetch", 1, 1, offsets=[["t", 0, 6]])),
        ("commits-kept", answering("fetch", 0, 0, offsets=[["t", 0, 6]])),
        ("failed-writes-count-nothing", answering("join a; elapse 3000; fail NOT_ENOUGH_REPLICAS; sync a", 3, 3,
                                                  error="NONE")),
        ("answers-groups", answering(f"{ALONE}; delete", 3, 3, error="NONE")),
    ],
)  # fmt: skip
def test_one_answer_that_is_wrong_breaks_the_law(law: str, history: History) -> None:
    assert f"group/{law}" in broken(history)


def shapes(law: str, history: History) -> set[tuple[str, ...]]:
    return {each.shape for invariant in OURS if invariant.id == f"group/{law}" for each in invariant.search(history)}


def test_each_way_in_which_lists_of_members_differ_has_a_shape() -> None:
    one, two, three = ["a.1", None, "x", "x"], ["b.1", None, "x", "y"], ["c.1", None, "x", ""]
    for members, how in (
        ([one], "members missing"),
        ([one, two, three], "more members"),
        ([one, three], "other members"),
        ([one, two, two], "members repeated"),
    ):
        assert shapes("answers-groups", answering(f"{PAIR}; describe", 5, 5, members=members)) == {("Describe", how)}
    before = f"{ALONE}; describe; beat b; describe"
    other = [["a.1", None, "x", "y"]]
    for members, how in (([], "members missing"), (other, "assignment")):
        found = shapes("refused-changes-nothing", answering(before, 5, 5, members=members))
        assert found == {("group", "changed by what was refused", how)}


@pytest.mark.parametrize(
    ("named", "shape"),
    [
        ([("b", "j"), ("a", "i")], "in another order"),
        ([("a", "i")], "members missing"),
        ([("a", "i"), ("b", "j"), ("b", "j")], "members repeated"),
        ([("c", "i"), ("b", "j")], "another id"),
        ([("a", "i"), ("b", None)], "another instance"),
        ([("c", "i"), ("b", "k")], "other members"),
    ],
)
def test_each_way_in_which_the_members_of_a_leave_are_answered_has_a_shape(
    named: list[tuple[str, str | None]], shape: str
) -> None:
    assert answers._unlike([("a", "i"), ("b", "j")], named) == shape


def truncated(text: str, edition: str) -> Iterator[tuple[Observation, History]]:
    history = history_of(sound(edition), case(text, edition))
    for index in range(len(history.ops)):
        for lost in (Lost("gone"), Died("crashed"), Silent()):
            yield lost, changed(history, index, lost)


@pytest.mark.parametrize("text", [PAIR, STATIC, f"{ALONE}; describe; move; describe; beat a; commit a 5; fetch"])
def test_what_is_lost_is_neither_failed_nor_done(text: str) -> None:
    for lost, history in truncated(text, "apache"):
        results = {each.result for each in judge(history, OURS)}
        assert Result.FAIL not in results
        assert isinstance(lost, Silent) or results == {Result.UNKNOWN}


@pytest.mark.parametrize("text", ["move; beat a as j", "move; sync a as j", "move; sync a v5 type=other protocol=q"])
def test_after_a_move_nobody_goes_on_as_somebody_else(text: str) -> None:
    history = history_of(sound(), case(f"join a as i; elapse 3000; sync a as i a=x; {text}"))
    assert "UNKNOWN" in str(history.ops[-1]) or "INCONSISTENT" in str(history.ops[-1])
    assert not broken(history)


def test_a_step_that_is_turned_away_is_no_answer() -> None:
    history = changed(history_of(sound(), case(ALONE)), 1, Refused("Nonsense"))
    assert broken(history) == {"group/answered-once"}


def test_the_laws_follow_the_release() -> None:
    text = "join a as i; elapse 3000; sync a; fail NOT_ENOUGH_REPLICAS; join b as i"
    for edition in ("apache@2.3.1", "apache@3.9.2", "apache"):
        assert not broken(history_of(sound(edition), case(text, edition)))
    assert (
        group_trace(history_of(sound("apache@2.3.1"), case(ALONE, "apache@2.3.1"))).rules.replacement_written is False
    )


def test_who_never_sent_sync_may_be_removed_although_it_sends_heartbeats() -> None:
    joined = "; ".join(
        f"join {each} session=30000 rebalance={ms}" for each, ms in (("c", 4000), ("a", 30000), ("b", 30000))
    )
    synced = "elapse 33999; sync c a=x b=y c=y; beat b; beat a; sync b"  # the join phase ended after 4 s
    history = history_of(sound("apache@4.4.0"), case(f"{joined}; {synced}; elapse 1; join a id=a", "apache@4.4.0"))
    assert "UNKNOWN_MEMBER_ID" in str(history.ops[-1])
    assert "group/answers-join" not in broken(history)


def test_where_kafka_leaves_it_open_either_may_lead() -> None:
    text = "join a; join b; join c; elapse 9000; leave a; join b id=b; join c id=c"

    class Otherwise(CoordinatorAdapter):
        """Takes the last where any will do."""

        def choose_leader(self, state: Any, candidates: Any) -> Any:
            return candidates[-1]

    Otherwise.name = "otherwise"
    ours, other = history_of(sound(), case(text)), history_of(Otherwise(), case(text))
    assert ours.ops[-1].observation != other.ops[-1].observation
    assert not broken(ours) and not broken(other)


def test_a_phase_without_members_and_joins_lasts_no_longer_than_the_first_delay() -> None:
    assert longest_wait_ms(history_of(sound(), case("beat a v2")), 0, 0) == DEFAULT.initial_delay_ms


def test_a_group_without_a_name_that_is_joined_has_no_first_join_phase() -> None:
    (joining,) = case("join a v3").steps
    nameless = replace(joining, body={**joining.body, "nameless": True})
    joined = {"to": 0, "answer": "joined", "error": "NONE", "generation": 1, "protocol_type": None, "protocol": "p",
              "leader": "a.0", "member": "a.0", "members": [["a.0", None, "x"]], "skip_assignment": False}  # fmt: skip
    about = Case("group/errors", "apache", Role.COORDINATOR, (nameless,))
    found = History(about, "mine", (Op(0, nameless, Replied((("answers", [joined]),)), 1),))
    broken = {each.id for each in OURS if any(each.search(found))}
    assert "group/answers-join" in broken and "group/initial-delay" not in broken
