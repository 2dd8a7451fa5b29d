"""The laws of a member on hand-made traces: what a consumer did, beside what it was given."""

from collections.abc import Sequence
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.member.ops import OPERATIONS

LAWS = [each for each in all_invariants(Role.MEMBER) if each.id.startswith("member/")]
ONE = [["t", 0]]


def join(member: str = "", owned: Sequence[Sequence[Any]] = (), **more: Any) -> dict[str, Any]:
    subscription = {"topics": ["t"], "version": 1, "owned": list(owned)}
    usual = {"version": 5, "instance": None, "protocol_type": "consumer", "protocols": [["range", subscription]]}
    return {"action": "join", "member": member, **usual, **more}


def sent(action: str, member: str = "m1", generation: int = 1, **more: Any) -> dict[str, Any]:
    return {"action": action, "version": 3, "member": member, "instance": None, "generation": generation, **more}


def called(action: str, *partitions: Sequence[Any]) -> dict[str, Any]:
    return {"action": action, "partitions": list(partitions)}


def raised(error: str, exception: str = "") -> dict[str, Any]:
    return {"action": "raised", "error": error, **({"exception": exception} if exception else {})}


READS, REVOKED, SYNC = called("reads"), called("revoked"), sent("sync", assignments=[])
Trace = list[tuple[str, list[dict[str, Any]]]]
JOINS: Trace = [("open range", []), ("subscribe t", []), ("poll", [REVOKED, join(), READS])]
JOINED: Trace = [*JOINS, ("joined 1", [SYNC])]
OWNS: Trace = [*JOINED, ("synced t:0", []), ("poll", [called("assigned", *ONE), called("reads", *ONE)])]


def broken(trace: Trace, edition: str = "apache") -> list[tuple[str, ...]]:
    """The violations of a trace, in the order of its steps."""
    steps = OPERATIONS.parse_shorthand("; ".join(text for text, _ in trace))
    ops = tuple(Op(k, step, Replied((("actions", trace[k][1]),))) for k, step in enumerate(steps))
    history = History(Case("member/errors", edition, Role.MEMBER, steps), "by hand", ops)
    found = [(each.at, law.id.removeprefix("member/"), *each.shape) for law in LAWS for each in law.search(history)]
    return [tuple(map(str, rest)) for _, *rest in sorted(found)]


def test_a_sound_trace_breaks_nothing() -> None:
    assert broken(OWNS) == []


def test_an_assignment_that_a_poll_dropped_is_not_pending_any_more() -> None:
    """After ILLEGAL_GENERATION it joins with its id: what it dropped does not make it out of the group before."""
    dropped: Trace = [
        *JOINED, ("synced u:0", []), ("poll", [READS]), ("elapse 3000", [sent("heartbeat")]),
        ("beat ILLEGAL_GENERATION", []), ("poll", [REVOKED, join("m1"), READS]),
    ]  # fmt: skip
    assert broken(dropped) == []
    stays = [*dropped[:-1], ("poll", [READS])]
    assert [each[0] for each in broken(stays)] == ["joins-when-due"]


def test_an_assignment_that_does_not_fit_is_followed_by_a_join() -> None:
    stays: Trace = [*JOINED, ("synced u:0", []), ("poll", [READS]), ("poll", [READS])]
    assert broken(stays) == [("takes-what-fits", "stays", "nothing")]


def test_a_leader_that_cannot_assign_gets_its_next_assignment() -> None:
    """What failed before does not make the later assignment one that was never pending."""
    trace: Trace = [
        *JOINS, ("joined 1 leader=m1", []), ("poll", [join("m1"), READS]), ("joined 1", [SYNC]), ("synced t:0", []),
        ("poll", [called("assigned", *ONE), called("reads", *ONE)]),
    ]  # fmt: skip
    assert broken(trace) == []


def test_an_assignment_out_of_nothing_is_found_with_what_became_of_the_last_one() -> None:
    again = called("assigned", ["t", 1])
    trace: Trace = [*OWNS, ("poll", [again, called("reads", ["t", 0], ["t", 1])])]
    assert broken(trace) == [("owns-what-it-was-given", "out of nothing", "it was adopted")]


def test_one_defect_is_one_violation_and_the_next_defect_is_found_as_well() -> None:
    silent: Trace = [*OWNS, ("unsubscribe", [{"action": "leave", "version": 3, "members": [["m1", None]]}])]
    kept = ("leaves-with-callbacks", "kept", "unsubscribe")
    assert broken(silent) == [kept]
    later: Trace = [("subscribe t", []), ("poll", [REVOKED, join(), READS]), ("joined 2", [sent("sync", generation=2,
        assignments=[])]), ("synced t:0", []), ("poll", [called("assigned", *ONE), called("reads", *ONE)])]  # fmt: skip
    assert broken([*silent, *later]) == [kept]
    stale = ("elapse 3000", [sent("heartbeat")])
    other = ("speaks-as-it-was-told", "Heartbeat", "an older generation", "since joined NONE")
    assert broken([*silent, *later, stale]) == [kept, other]


def test_a_needless_join_is_the_join_that_it_makes() -> None:
    trace: Trace = [
        *OWNS, ("poll", [called("revoked", *ONE), join("m1"), READS]),
        ("joined 2", [sent("sync", generation=2, assignments=[])]), ("synced t:0", []),
        ("poll", [called("assigned", *ONE), called("reads", *ONE)]),
    ]  # fmt: skip
    assert broken(trace) == [("joins-only-when-due", "undue", "stable", "follower")]


@pytest.mark.parametrize("exception", ["kafka.errors.KafkaTimeoutError", "ValueError"])
def test_the_class_of_an_exception_is_part_of_the_shape(exception: str) -> None:
    trace: Trace = [*OWNS, ("poll", [raised("ILLEGAL_STATE", exception)])]
    assert broken(trace) == [("raises-what-is-fatal", "nothing", exception, "after poll", "stable")]


def test_an_error_that_is_not_raised_is_named_unless_something_came_between() -> None:
    failed: Trace = [*JOINS, ("joined GROUP_MAX_SIZE_REACHED", [])]
    poll = ("poll", [join(), READS])
    where = ("since joined", "joins")
    assert broken([*failed, poll]) == [("raises-what-is-fatal", "GROUP_MAX_SIZE_REACHED", *where, "at once")]
    between = [*failed, ("elapse 200", []), poll]
    assert broken(between) == [("raises-what-is-fatal", "a fatal error", *where, "later")]


def test_a_member_whose_generation_is_old_may_forget_its_id_but_should_not() -> None:
    trace: Trace = [
        *OWNS, ("elapse 3000", [sent("heartbeat")]), ("beat ILLEGAL_GENERATION", []),
        ("poll", [called("lost", *ONE), join(), READS]),
    ]  # fmt: skip
    assert broken(trace) == [("keeps-its-id", "no id", "beat ILLEGAL_GENERATION")]


def test_what_a_testee_leaves_out_of_a_request_is_not_judged() -> None:
    assert broken(JOINS) == []
    wrong: Trace = [*JOINS[:2], ("poll", [REVOKED, join(session_ms=10_000, rebalance_ms=10_000), READS])]
    assert broken(wrong) == [("names-its-timeouts", "rebalance timeout")]


def test_a_join_may_follow_in_the_poll_after_the_one_that_adopts_an_assignment() -> None:
    busy: Trace = [
        *JOINED, ("subscribe t,u", []), ("synced t:0", []),
        ("poll", [called("assigned", *ONE), called("reads", *ONE)]),
    ]  # fmt: skip
    assert broken(busy) == []
    assert broken([*busy, ("poll", [called("reads", *ONE)])]) == [("joins-when-due", "none", "subscribe")]


def test_a_join_may_follow_in_the_poll_after_the_one_that_drops_an_assignment() -> None:
    """It did not fit, since the user subscribed to something else while it joined."""
    busy: Trace = [*JOINED, ("subscribe u", []), ("synced t:0", []), ("poll", [READS])]
    assert broken(busy) == []
    assert broken([*busy, ("poll", [READS])]) == [("joins-when-due", "none", "subscribe")]


def test_after_an_exception_nothing_is_certain_until_it_joins_again() -> None:
    again = ("poll", [called("revoked", *ONE), join("m1"), READS])
    trace: Trace = [*OWNS, ("poll", [raised("ILLEGAL_STATE", "KeyError")]), again]
    assert [each[:3] for each in broken(trace)] == [("raises-what-is-fatal", "nothing", "KeyError")]


def test_shapes_hold_nothing_that_the_draw_decides() -> None:
    one: Trace = [*OWNS, ("elapse 3000", [sent("heartbeat", "m9", 4)])]
    other: Trace = [*OWNS, ("elapse 3000", [sent("heartbeat", "m8", 7)])]
    assert broken(one) == broken(other) != []
