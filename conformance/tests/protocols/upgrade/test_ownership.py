"""Who reads what, over histories that are written by hand: what the searches find, and what they say."""

from collections.abc import Sequence
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import History, Lost, Op
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.upgrade.invariants.ownership import contested, unread, unsubscribed
from kipcheck.conformance.protocols.upgrade.ops import (
    OBSERVED,
    OPERATIONS,
    Assigned,
    Counted,
    Ended,
    Failed,
    Formed,
    Gave,
    Joining,
    ObservedEvent,
    PutOut,
    Restless,
    Rests,
    SteppedDown,
    Took,
)
from kipcheck.conformance.targets.protocol import observed

OF_THE_ROLE = [each for each in all_invariants(Role.OPERATOR_TOOL) if each.role is Role.OPERATOR_TOOL]
OURS = [each for each in OF_THE_ROLE if each.id != "bounce/acts"]
"""Histories by hand leave out what they are not about, such as that a wait ends."""
T0, T1, T2, U0 = ("t", 0), ("t", 1), ("t", 2), ("u", 0)


def history(
    text: str, *happenings: Sequence[ObservedEvent], edition: str = "kip-429", lost: int | None = None
) -> History:
    """What was seen in each step."""
    steps = OPERATIONS.parse_shorthand(text)
    case = Case("bounce/ownership", edition, Role.OPERATOR_TOOL, steps)
    answers = [observed(OPERATIONS.answer_of(each)) for each in (*happenings, *[()] * (len(steps) - len(happenings)))]
    if lost is not None:
        answers[lost] = Lost("gone")
    return History(case, "somebody", tuple(map(Op, range(len(steps)), steps, answers)))


def broken(*args: Any, **options: Any) -> dict[str, tuple[str, ...]]:
    """Invariant -> the shape of its first violation."""
    return {
        each.invariant: each.violations[0].shape
        for each in judge(history(*args, **options), OURS)
        if each.result is Result.FAIL
    }


def formed(generation: int, leader: str, topics: tuple[str, ...] = ("t",), **versions: int | tuple[int, int]) -> Formed:
    """``a=1``: speaks and knows 1; ``a=(0, 1)``: speaks 0, knows 1."""
    pairs = {name: (each, each) if isinstance(each, int) else each for name, each in versions.items()}
    members = tuple(Joining(name, speaks, knows, topics) for name, (speaks, knows) in pairs.items())
    return Formed(generation, leader, "cooperative-sticky", members)


def rests(of: Formed) -> Rests:
    return Rests(of.generation, of.members)


def test_the_sums() -> None:
    assert [*contested([("a", (T0, T1)), ("b", (T2,)), ("c", (T1, T2))])] == [(T1, "a", "c"), (T2, "b", "c")]
    assert unread([("t",)], [(T0,), (T2,)]) == [T1]
    assert unread([("t", "u")], [(T0, T1, T2)]) == [U0]
    assert unread([], []) == []
    assert unsubscribed(("t",), (T0, U0)) == [U0]


def test_two_owners_in_one_generation_and_across() -> None:
    both = formed(1, "a", a=1, b=1)
    once: list[ObservedEvent] = [Took("a", 1, (T0,)), Took("b", 1, (T1, T2))]
    assert not broken("roll a cooperative; settle", [both, *once])
    assert broken("settle", [both, *once, Took("b", 1, (T0,))]) == {
        "bounce/one-owner": ("two owners", "one generation")
    }
    later: list[ObservedEvent] = [formed(2, "a", a=1, b=1), Took("b", 2, (T0,))]
    found = broken("settle; settle", [both, *once], later)
    assert found == {"bounce/revoked-first": ("two owners", "across generations")}
    assert not broken("settle; settle", [both, *once], [Gave("a", (T0,), lost=True), *later])
    assert not broken("settle; crash a", [both, *once], [Ended("a"), *later])
    assert not broken("settle; settle", [both, *once], [PutOut("a"), *later]), "who was put out is fenced"


def test_a_clash_is_told_like_a_proof() -> None:
    before: list[ObservedEvent] = [formed(1, "a", a=1, b=1), Took("a", 1, (T0,))]
    result = history("settle; roll c ready; settle", before, [], [formed(2, "a", a=1, b=1), Took("b", 2, (T0,))])
    (found,) = next(each for each in judge(result, OURS) if each.violations).violations
    assert found.why == (
        "t-0: a owns it since step 1, generation 1 and has not given it up; b adds it in step 3, generation 2, "
        "and both read it"
    )
    assert found.at == (0, 2)


def test_what_an_unaware_leader_does_is_flagged_and_condemns_nobody() -> None:
    before: list[ObservedEvent] = [formed(1, "b", b=1), Took("b", 1, (T0, T1, T2))]
    after: list[ObservedEvent] = [formed(2, "a", a=0, b=1), Took("a", 2, (T0, T1))]
    result = history("old-brokers; settle", before, after)
    verdicts = {each.invariant: each for each in judge(result, OURS) if each.result is Result.FAIL}
    assert set(verdicts) == {"bounce/skipped-path"}
    first = verdicts["bounce/skipped-path"].violations[0]
    start = "a, which leads generation 2, does not know every member's version. t-0: b owns it since step 1"
    assert first.why.startswith(start)


def test_a_group_at_rest_reads_all_unless_it_is_mixed() -> None:
    alone = formed(1, "a", a=1)
    assert broken("roll a cooperative; settle", [], [alone, Took("a", 1, (T0, T2)), rests(alone)]) == {
        "bounce/all-owned": ("unread",)
    }
    both = formed(2, "a", a=1, b=(0, 1))
    mixed: list[ObservedEvent] = [both, Assigned("a", 2, (T0,)), Assigned("b", 2, (), 1), Counted("b", 1), rests(both)]
    steps = "roll a cooperative; roll b ready; settle"
    assert not broken(steps, [formed(1, "a", a=1), Took("a", 1, (T0,))], [], mixed)
    assert not broken("crash a", [Rests(1, ())]), "where nobody is left nobody need read"


def test_what_a_mixed_group_is_given() -> None:
    before: list[ObservedEvent] = [formed(1, "a", a=1), Took("a", 1, (T0,))]
    both = formed(2, "a", a=1, b=(0, 1))
    refused: list[ObservedEvent] = [Assigned("b", 2, (), 1), Counted("b", 1)]

    def after(*seen: ObservedEvent) -> dict[str, tuple[str, ...]]:
        return broken("settle; settle", before, [both, *seen])

    assert not after(Assigned("a", 2, (T0,)), *refused)
    assert after(Assigned("a", 2, (T0, T1)), *refused) == {"bounce/mixed": ("mixed", "given")}
    assert after(Assigned("a", 2, ()), *refused) == {"bounce/mixed": ("mixed", "taken")}
    assert after(Assigned("b", 2, (T1,), 1), Counted("b", 1)) == {"bounce/mixed": ("mixed", "partitions")}
    assert after(Assigned("b", 2, ())) == {"bounce/mixed": ("mixed", "no error")}
    assert after(Assigned("b", 2, (), 1), rests(both))["bounce/metric"] == ("metric", "not raised")
    assert after(Assigned("b", 2, (), 1), Assigned("b", 2, (), 1)) == {"bounce/metric": ("metric", "not raised")}
    assert after(*refused, Counted("b", 2)) == {"bounce/metric": ("metric", "miscounted")}
    assert after(*refused, Assigned("b", 2, (), 1), Counted("b", 3)) == {"bounce/metric": ("metric", "miscounted")}
    assert not after(*refused, Ended("b"), Assigned("b", 2, (), 1), Counted("b", 1))
    old = formed(2, "a", a=1, b=0)
    assert not broken("settle; settle", before, [old, Assigned("b", 2, (), 1), rests(old)]), "it cannot read it"


def test_who_is_eager_gives_up_all_and_who_is_not_only_what_it_lost() -> None:
    kept = [formed(1, "a", a=0), Took("a", 1, (T0,)), formed(2, "a", a=0)]
    assert broken("settle", kept) == {"bounce/eager-gives-up": ("eager", "keeps")}
    had = [formed(1, "a", a=1), Assigned("a", 1, (T0, T1)), Took("a", 1, (T0, T1))]
    assert broken("settle", [*had, Gave("a", (T0, T1))]) == {"bounce/incremental": ("cooperative", "revokes all")}
    assert not broken("settle", [*had, Gave("a", (T0, T1), lost=True)])
    taken = [formed(2, "a", a=1), Assigned("a", 2, (T0,)), Gave("a", (T1,))]
    assert not broken("settle; settle", had, taken)
    leaves = "roll a cooperative; settle; stop a"
    assert not broken(leaves, [], had, [Gave("a", (T0, T1)), Ended("a")])


def test_who_leads() -> None:
    old = formed(1, "a", a=0, b=(0, 1))
    assert broken("settle", [old]) == {"bounce/newest-leads": ("leader", "not the newest")}
    assert not broken("old-brokers; settle", [old])
    assert not broken("settle", [old], edition="apache@4.4.0")
    assert not broken("settle", [formed(1, "b", a=0, b=(0, 1))])
    assert not broken("settle", [formed(1, "a", a=1, b=(0, 1))]), "what it speaks counts"
    down = [SteppedDown("a", 3)]
    assert broken("streams a 6", down) == {"bounce/no-probing": ("probing",)}
    assert not broken("old-brokers; streams a 6", [], down)


def test_a_group_that_does_not_come_to_rest() -> None:
    assert broken("settle", [Restless(500)]) == {"bounce/rests": ("restless",)}
    group = [formed(n, "a", a=1) for n in range(1, 9)]
    whole = Took("a", 1, (T0, T1, T2))
    assert broken("roll a cooperative; settle", [], [*group, whole, rests(group[-1])]) == {
        "bounce/rests": ("generations",)
    }
    assert not broken("roll a cooperative; settle", [], [*group[:6], whole, rests(group[5])])


def test_what_becomes_of_a_bounce() -> None:
    one, whole = formed(1, "a", a=1), Took("a", 1, (T0, T1, T2))
    steps = "roll a cooperative; settle"
    assert not broken(steps, [], [one, whole, rests(one)])
    eager = formed(1, "a", a=(0, 1))
    assert broken(steps, [], [eager, whole, rests(eager)]) == {"bounce/upgraded": ("upgrade", "other version")}
    assert broken("roll b ready; " + steps, [], [], [one, whole, rests(one)]) == {
        "bounce/upgraded": ("upgrade", "missing")
    }
    alone = [one, whole, Failed("b", "INCONSISTENT_GROUP_PROTOCOL"), rests(one)]
    told_so = {"bounce/upgraded": ("gives up", "INCONSISTENT_GROUP_PROTOCOL")}
    for kind, edition, wanted in (
        ("old", "apache@4.4.0", {}),
        ("ready", "apache@4.4.0", told_so),
        ("old", "kip-429", told_so),
    ):
        assert broken(f"roll b {kind}; {steps}", [], [], alone, edition=edition) == wanted
    assert not broken("roll a ready; stop a; settle", [], [Ended("a")], [Rests(2, ())])
    assert not broken("roll a cooperative; crash a; revive a; settle", [], [Ended("a")], [], [one, whole, rests(one)])


def test_a_lost_answer_is_neither_done_nor_failed() -> None:
    had = [formed(1, "a", a=1), Took("a", 1, (T0, T1, T2))]
    lost = "roll a cooperative; settle; lose a"
    assert not broken(lost, [], had)
    assert broken(lost, [], had, [Gave("a", (T0,), lost=True)]) == {
        "bounce/lost-is-neither": ("lost", "takes it for failed")
    }
    assert broken("roll a cooperative; lose a", [], [Assigned("a", 1, ())]) == {
        "bounce/lost-is-neither": ("lost", "takes it for done")
    }


def test_what_was_not_answered_is_left_open_and_condemns_nobody() -> None:
    both: list[ObservedEvent] = [formed(1, "a", a=1, b=1), Took("a", 1, (T0,)), Took("b", 1, (T0,))]
    result = history("settle; settle", both, lost=0)
    results = {each.invariant: each.result for each in judge(result, OURS)}
    assert set(results.values()) == {Result.UNKNOWN}


def test_every_step_has_an_effect_and_a_stopped_member_reads_no_more() -> None:
    (acts,) = [each for each in OF_THE_ROLE if each.id == "bounce/acts"]
    one = formed(1, "a", a=1)
    silent = history("roll a cooperative; settle; streams b 6", (), [one, Took("a", 1, (T0,))])
    assert [each.shape for each in acts.search(silent)] == [("acts", "no end"), ("acts", "no rebalance")]
    assert not [*acts.search(history("roll a cooperative; settle", (), [one, rests(one)]))]
    text = "roll a cooperative; settle; stop a"
    begun: tuple[Sequence[ObservedEvent], ...] = ((), (one, Took("a", 1, (T0, T1, T2)), rests(one)))
    assert broken(text, *begun, [Ended("a")]) == {"bounce/leaves": ("leaves", "keeps")}
    assert not broken(text, *begun, [Gave("a", (T0, T1, T2)), Ended("a")])


SCRIPT = (
    "old-brokers; roll a old; roll b ready t,u; settle; crash a; revive a; lose b; expire b; move b 3; stop b; "
    "streams a 6"
)


def test_what_is_said_in_shorthand_is_said_back() -> None:
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(SCRIPT)) == SCRIPT
    assert [OPERATIONS.step_of(OPERATIONS.event_of(each)) for each in OPERATIONS.parse_shorthand(SCRIPT)] == [
        *OPERATIONS.parse_shorthand(SCRIPT)
    ]
    for wrong in ("roll a newest", "jump", "crash"):
        with pytest.raises(ValueError, match=f"invalid step '{wrong}': use old-brokers, roll "):
            OPERATIONS.parse_shorthand(f"settle; {wrong}")
    with pytest.raises(TypeError, match=r"^kind: must be one of old, ready, cooperative, later, got 'newest'$"):
        OPERATIONS.event_of(step("operator", "roll", member="a", kind="newest"))
    with pytest.raises(LookupError, match="unknown event 'join': use one of old-brokers, "):
        OPERATIONS.event_of(step("member", "join"))


@pytest.mark.parametrize(
    "happening",
    [
        formed(3, "b", a=1, b=(0, 1)), Rests(0, ()), Took("a", 1, (T0, U0)), Gave("a", (), lost=True), Ended("a"),
        PutOut("b"), Assigned("a", 2, (T1,), 1), Counted("a", 7), SteppedDown("a", 3), Failed("a", "X"), Restless(5),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_seen_is_told_and_read_back(happening: ObservedEvent) -> None:
    assert OBSERVED.from_json(OBSERVED.to_json(happening)) == happening
