"""KIP-848: the machine by hand, what its coordinator owes, and that what is planted is found."""

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Died, History, Lost, Observation, Op
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.consumer_group.checks import AT_REST, GROUPS
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup
from kipcheck.conformance.protocols.consumer_group.mutants import (
    REVOKING,
    CountsRevocations,
    KeepsTopicsWhileRevoking,
    RebalancesForSuccessors,
)
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS, Beat, Pass
from kipcheck.conformance.protocols.consumer_group.strategies import CONSUMER_GROUPS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.machine_targets import machine_adapters
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reconciled.terms import Says
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.protocol import Adapter, operation
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.sessions import history_of
from kipcheck.strategies.parse import belongs

PLANTED = {name: mutant for name, mutant in MUTANTS.items() if mutant.check.startswith("consumer-group/")}
OURS = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("consumer-group/")]


def executed(made: Adapter, text: str) -> History:
    steps = OPERATIONS.parse_shorthand(text)
    return history_of(made, Case("consumer-group/epochs", "apache", Role.COORDINATOR, steps))


def answers(text: str, release: str = "4.1.2") -> list[str]:
    player = machine_adapters(edition(f"apache@{release}"))[OPERATIONS.machine]
    reported = []
    for each in OPERATIONS.parse_shorthand(text):
        found = player.answer({"case": 0, **operation(each)})
        given = found.get("assignment")
        partitions = "-" if given is None else ",".join(f"{topic}{number}" for topic, number in given) or "nothing"
        reported.append(found.get("class") or f"{found.get('epoch', 'passed')} {partitions}")
    return reported


FENCED, UNKNOWN, INVALID, NO_GROUP, UNRELEASED, FENCED_INSTANCE, BAD_REGEX, NO_ASSIGNOR = (
    "FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "INVALID_REQUEST", "GROUP_ID_NOT_FOUND", "UNRELEASED_INSTANCE_ID",
    "FENCED_INSTANCE_ID", "INVALID_REGULAR_EXPRESSION", "UNSUPPORTED_ASSIGNOR",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("join a on t none", "1 t0,t1,t2"),
        ("join a", INVALID),
        ("join a on t", INVALID),
        ("leave a", NO_GROUP),
        ("join a on t none; leave b", UNKNOWN),
        ("join a on t none; beat a", "1 -"),
        ("join a on t none; beat a+1", FENCED),
        ("join a on t none; leave a", "-1 -"),
        ("join a on t none; leave a; join a on t none", "3 t0,t1,t2"),
        # Two members: the old one is told to give up, says so, and only then the new one gets it.
        ("join a on t none; join b on t none", "2 nothing"),
        ("join a on t none; join b on t none; beat a", "1 t0,t1"),
        ("join a on t none; join b on t none; beat a; beat b", "2 -"),
        ("join a on t none; join b on t none; beat a; beat a told", "2 -"),
        ("join a on t none; join b on t none; beat a; beat a before; beat b", "2 -"),
        ("join a on t none; join b on t none; beat a; beat a told; beat b", "2 t2"),
        # What is not given up in time is taken with the member, and so is what a silent one has.
        ("join a on t none; join b on t none; beat a; pass 30000; beat a", UNKNOWN),
        ("join a on t none; join b on t none; beat a; pass 30000; beat b; beat b", "3 -"),
        ("join a on t none; pass 45000; beat a", UNKNOWN),
        ("join a on t none; pass 30000; beat a; pass 30000; beat a", "1 -"),
        # A repetition after an answer that did not come.
        ("join a on t none; join b on u none; beat a; beat a-1 told", "2 -"),
        ("join a on t none; beat a on t,u told; beat a-1 told", "2 -"),
        ("join a on t none; beat a on t,u told; beat a-1", FENCED),
        ("join a on t none; join b on u none; beat a told; leave b; beat a told; beat a-2 told", FENCED),
    ],
)
def test_the_machine_by_hand(text: str, last: str) -> None:
    assert answers(text)[-1] == last


@for_each(
    [
        ("join a on t none as i; join b on t none as i", UNRELEASED),
        ("join a on t none as i; join b on u none; beat b as i", FENCED_INSTANCE),
        ("join a on t none as i; beat a as j", UNKNOWN),
        ("join a on t none as i; away b as i", FENCED_INSTANCE),
        ("join a on t none as i; away a as i", "-2 -"),
        ("join a on t none; away a", INVALID),
        # What it had is kept for its instance, and for its session.
        ("join a on t none as i; away a as i; join b on t none", "2 nothing"),
        ("join a on t none as i; away a as i; join b on t none as i", "1 t0,t1,t2"),
        ("join a on t none as i; away a as i; pass 45000; join b on t none", "3 t0,t1,t2"),
        ("join a on t none as i; away a as i; join b on t none as i; leave a as i", FENCED_INSTANCE),
        # A regular expression is resolved after the answer.
        ("join a none like t|u", "1 nothing"),
        ("join a none like t|u; beat a told", "2 t0,t1,t2,u0,u1"),
        ("join a none like [", BAD_REGEX),
        ("join a on t none by custom", NO_ASSIGNOR),
        *((f"join a on t none without {each}", INVALID) for each in ("group", "member", "instance", "rack", "timeout")),
        ("join a on t none; beat a told without timeout", "1 -"),
    ]
)
def test_static_members_expressions_and_invalid_heartbeats(text: str, last: str) -> None:
    assert answers(text)[-1] == last


@for_each(
    [
        ("join a on t none", "2 t0,t1,t2"),
        ("join a on t none; join b on t none", "2 nothing"),
        ("join a on t none; join b on t none; beat a told", "2 -"),
        ("join a on t none; join b on t none; pass 1000; beat a", "2 t0,t1"),
    ]
)
def test_from_4_3_on_groups_begin_at_1_and_targets_are_computed_at_intervals(text: str, last: str) -> None:
    assert answers(text, "4.3.1")[-1] == last


def test_what_is_said_in_shorthand_is_said_back() -> None:
    text = "join a on t,u none; beat a; beat a-1 told; beat b+2 on t before; leave a; pass 1000"
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(text)) == text
    for wrong in ("jump", "beat a everything"):
        with pytest.raises(ValueError, match=r"^use join\|beat\|leave\|away CLIENT"):
            OPERATIONS.parse_shorthand(wrong)


def test_an_event_is_its_step() -> None:
    for event in (Beat("a", Says.JOIN, 0, ("t", "u"), "none"), Beat("b", Says.STAY, 2, None, None), Pass(5)):
        assert OPERATIONS.event_of(OPERATIONS.step_of(event)) == event
    assert OPERATIONS.answer_of(()) == {"status": "accepted"}


def test_whatever_is_drawn_is_declared_and_enabled_events_are_accepted() -> None:
    machine, subject = ConsumerGroup(), GROUPS.subject("apache", OPERATIONS.machine, None)
    refused = total = 0
    for number, sample in enumerate(CHECKS["consumer-group/epochs"].samples(subject, 0, 40)):
        assert not sample.value or belongs(CONSUMER_GROUPS.declaration, sample.value), number
        state = machine.initial()
        for each in sample.case.steps:
            for event in machine.enabled(state):
                total += 1
                refused += "Rejected" in repr(machine.step(state, event).actions)
            state = machine.step(state, OPERATIONS.event_of(each)).state
    assert not refused
    assert total > 5_000


def broken(history: History) -> set[str]:
    return {each.invariant for each in judge(history, OURS) if each.result is Result.FAIL}


def test_each_invariant_has_a_vice_and_a_check() -> None:
    ids = {each.id for each in OURS}
    assert ids == {mutant.invariant for mutant in PLANTED.values()}
    assert ids == {id for check in CHECKS.values() if check.family is GROUPS for id in check.invariants}


@for_each(
    [
        ("away a as i; pass 1000; join c on t none as i", {"consumer-group/takeover-without-rebalance"}),
        ("away a as i; pass 1000; join a on t none as i", {"consumer-group/takeover-without-rebalance"}),
        ("away a as i; pass 1000; join c on t,u none as i", set()),
        ("away a as i; pass 1000; join c on t none as i by range", set()),
        ("join d on t none; away a as i; pass 1000; join c on t none as i", set()),
        ("away a as i; pass 30000; beat b told; pass 15000; join c on t none as i", set()),
    ]
)
def test_only_an_unchanged_successor_in_a_group_at_rest_owes_the_epoch(end: str, laws: set[str]) -> None:
    assert broken(executed(RebalancesForSuccessors(), f"{AT_REST}{end}")) == laws


@for_each(
    [
        (CountsRevocations, "join c on t,u none; beat a told", {"consumer-group/keeps-epoch-to-revoke"}),
        (CountsRevocations, "join c on t,u none; beat a none", set()),  # it owns nothing that it has to give up
        (CountsRevocations, "beat a told; beat a told; beat b told", set()),
        (KeepsTopicsWhileRevoking, "beat a on u before", {"consumer-group/co-subscription"}),
        (KeepsTopicsWhileRevoking, "beat a before; beat a told; beat a on u told; beat a told", set()),
        (Reference, "join c on t,u none; pass 1000; beat a told; beat a on u told; beat a told; beat a told", set()),
    ]
)
def test_what_a_member_has_to_give_up_keeps_its_epoch(made: type[Adapter], end: str, laws: set[str]) -> None:
    assert broken(executed(made(), f"{REVOKING}; {end}")) == laws


def test_an_instance_that_was_away_beside_another_one_need_not_get_all_back() -> None:
    text = "join b on t none as i; away b as i; join a on t none as j; away a as j; join a on t none as i"
    assert broken(executed(Reference(), text)) == set()


@pytest.mark.parametrize("gone", [Lost("gone"), Died("crashed")])
def test_a_lost_answer_condemns_nobody(gone: Observation) -> None:
    history = executed(Reference(), "join a on t none; join b on t none; beat a; beat a told; beat b")
    for lost in range(len(history.ops)):
        ops = tuple(Op(op.index, op.step, gone if op.index == lost else op.observation) for op in history.ops)
        results = {each.result for each in judge(History(history.case, "somebody", ops), OURS)}
        assert Result.FAIL not in results
        assert Result.UNKNOWN in results


def test_releases_before_it_was_released_have_none_of_it() -> None:
    assert [each.edition for each in GROUPS.subjects("apache@4.0.0")] == ["apache@4.0.0"]
    assert not [*GROUPS.subjects("apache@3.9.2"), *GROUPS.subjects("kip-584")]
