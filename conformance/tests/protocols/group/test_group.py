"""Conversations with the coordinator of a classic group: their words, the service that holds them, what is drawn."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from kipcheck.conformance.core.values.case import Case, Role, Step, step, steps_from
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Lost, Observation, Replied, Unsupported
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import Unit, Worker
from kipcheck.conformance.engine.search.shrink import shrunk
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.group.checks import CHECKS as GROUP_CHECKS, group_sequence
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.messages import (
    Described,
    Error,
    Heartbeat,
    Joined,
    Left,
    Phase,
    Reply,
    Sync,
    Synced,
)
from kipcheck.conformance.protocols.group.model.names import Names
from kipcheck.conformance.protocols.group.model.service import By, Elapse, Served, Service
from kipcheck.conformance.protocols.group.model.state import Standing, State
from kipcheck.conformance.protocols.group.ops import GROUP, OPERATIONS
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.conformance.protocols.group.target import CoordinatorAdapter
from kipcheck.conformance.protocols.group.trace import trace
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh, InProcess
from kipcheck.conformance.tests.support.sessions import history_of
from kipcheck.strategies import conversations, steps as any_steps
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.parse import belongs

OURS = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("group/")]
EDITIONS = ("apache", "apache@3.3.2", "apache@2.3.1", "apache@1.1.1", "apache@0.10.0.1", "kip-429")
DRAWN = 300
"""Cases: in so many every row below is reached."""


def conversation(text: str, edition_name: str = "apache") -> Case:
    return Case("group/errors", edition_name, Role.COORDINATOR, OPERATIONS.parse_shorthand(text))


def reported(text: str, edition_name: str = "apache") -> list[str]:
    """Of each step, what came of it, in words: ``2: done`` answers the third step."""
    found = trace(history_of(Reference(), conversation(text, edition_name)))
    return [
        "; ".join(f"{each.to}: {OPERATIONS.describe_answer(each)}" for each in traced.replies) for traced in found.steps
    ]


# By hand


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("join a", ""),
        ("join a v4", "0: MEMBER_ID_REQUIRED, member a.1"),
        ("join a; elapse 2999", ""),
        ("join a; elapse 3000", "0: generation 1, protocol p, member a.1, leads over a.1"),
        ("join a; elapse 2000; join b; elapse 3999", ""),
        ("join a v4; rejoin a v4; elapse 3000", "1: generation 1, protocol p, member a.1, leads over a.1"),
        ("join a; elapse 3000; sync a a=x", "2: assigned 'x'"),
        ("join a; elapse 3000; sync a", "2: assigned ''"),
        ("join a; elapse 3000; sync a a=x behind=1", "2: ILLEGAL_GENERATION"),
        ("join a; elapse 3000; beat a; beat a behind=-1", "3: ILLEGAL_GENERATION"),
        ("join a; elapse 3000; beat a id=?", "2: UNKNOWN_MEMBER_ID"),
        ("join a; elapse 3000; beat a id=b", "2: UNKNOWN_MEMBER_ID"),
        ("beat a nameless", "0: INVALID_GROUP_ID"),
        ("join a; elapse 3000; sync a; elapse 10000; beat a", "4: UNKNOWN_MEMBER_ID"),
        ("join a as i; elapse 3000; sync a a=x; join b as i; beat a as i", "4: FENCED_INSTANCE_ID"),
        ("join a as i; join b as i", "0: FENCED_INSTANCE_ID, member untold"),
        ("join a; elapse 3000; join a; elapse 3000; sync a id=a-old", "4: UNKNOWN_MEMBER_ID"),
        ("join a; elapse 3000; leave a", "2: a.1: NONE"),
        ("join a; leave a ; describe", "2: PreparingRebalance, untold"),
        ("commit a 5 id= behind=none; fetch", "1: t-0 at 5"),
        ("commit a 5 t:1:6 id= behind=none; move; fetch", "4: t-0 at 5, t-1 at 6"),
        ("fail NOT_ENOUGH_REPLICAS; commit a 5 id= behind=none", "1: COORDINATOR_NOT_AVAILABLE"),
        ("fail NOT_ENOUGH_REPLICAS; commit a 5 id= behind=none; commit a 6 id= behind=none; fetch", "3: t-0 at 6"),
        ("unload; beat a", "1: NOT_COORDINATOR"),
        ("unload; load; join a", "2: COORDINATOR_LOAD_IN_PROGRESS"),
        ("join a; unload", "0: NOT_COORDINATOR, member untold"),
        ("list", "0: no groups"),
        ("join a; list v4", "1: consumer PreparingRebalance"),
        ("join a; delete", "1: NON_EMPTY_GROUP"),
        ("describe", "0: Dead, no members"),
        ("join a session=5999", "0: INVALID_SESSION_TIMEOUT"),
        ("join a lists=", "0: INCONSISTENT_GROUP_PROTOCOL"),
        ("join a; join b lists=q:x", "1: INCONSISTENT_GROUP_PROTOCOL"),
    ],
)
def test_by_hand(text: str, last: str) -> None:
    assert reported(text)[-1] == last


def test_whoever_waits_is_answered_when_what_it_waits_for_is_there() -> None:
    one, two = "generation 1, protocol p", "generation 2, protocol p"
    text = "join a; join b; elapse 3000; elapse 3000; sync b; sync a a=x b=y; join c; beat a; rejoin a; rejoin b"
    assert reported(text) == [
        "",
        "",
        "",  # somebody joined meanwhile: another round
        f"0: {one}, member a.1, leads over a.1, b.1; 1: {one}, member b.1, led by a.1",
        "",
        "5: assigned 'x'; 4: assigned 'y'",
        "",
        "7: REBALANCE_IN_PROGRESS",
        "",
        "; ".join(
            (
                f"8: {two}, member a.1, leads over a.1, b.1, c.1",
                f"9: {two}, member b.1, led by a.1",
                f"6: {two}, member c.1, led by a.1",
            )
        ),
    ]


def test_in_the_draft_whoever_speaks_the_highest_version_leads() -> None:
    text = "join a pv=0; rejoin a pv=0; join b pv=1; rejoin b pv=1; elapse 6000"
    assert reported(text, "kip-429")[-1].endswith("3: generation 1, protocol p, member b.1, leads over a.1, b.1")


@pytest.mark.parametrize("name", EDITIONS)
def test_the_reference_plays_the_coordinator_of_every_release_and_of_the_draft(name: str) -> None:
    reference = Reference()
    assert reference.configure(name) is None
    assert GROUP in reference.claims().machines
    assert reference.configure("kip-584") is None
    assert GROUP not in reference.claims().machines


def test_each_case_begins_afresh() -> None:
    with InProcess(Reference()).open("apache", Role.COORDINATOR) as session:
        first, second = converse([conversation("join a; elapse 3000; describe"), conversation("describe")], session)
    assert first.ops[2].observation != second.ops[0].observation


# Words


FULL = (
    "join a; rejoin a v4; join a as i; elapse 3000; sync a a=x b-old=y; beat b; leave a; leave a b/i /j; leave a none; "
    "commit a 5 t:1:7; fetch; fetch b; describe v0; list; delete v2; move; fail NOT_ENOUGH_REPLICAS; "
    "beat a id=? behind=-1 nameless; commit a id= 5 behind=none; sync b type=consumer protocol=p v5; "
    "join a lists= type=T session=6000 rebalance=1 pv=1; unload"
)


def test_what_is_said_in_shorthand_is_said_back() -> None:
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(FULL)) == FULL
    assert {each.verb for each in OPERATIONS.parse_shorthand(FULL)} == set(OPERATIONS.verbs)


def test_versions_that_are_not_said_stay_below_the_newest() -> None:
    newest = {"join": 2, "sync": 1}
    steps = OPERATIONS.parse_shorthand("join a; sync a; beat a", newest)
    assert [each["version"] for each in steps] == [2, 1, 3]
    assert OPERATIONS.shorthand(steps, newest) == "join a; sync a; beat a"


@pytest.mark.parametrize(
    "text", ["join", "jump a", "beat a 5", "elapse x", "commit a x", "describe foo=1", "fetch a b"]
)
def test_what_is_no_shorthand_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=text.split()[0]):
        OPERATIONS.parse_shorthand(text)


@pytest.mark.parametrize(
    ("wrong", "kind", "why"),
    [
        (step("a", "jump"), LookupError, "unknown event 'jump': use one of join, sync"),
        (step("a", "heartbeat", version=0), TypeError, "the field member is missing"),
        (step("time", "elapse", ms="3"), TypeError, "ms: must be an integer, got '3'"),
        (step("time", "elapse", ms=True), TypeError, "ms: must be an integer, got True"),
        (step("time", "elapse", ms=1, s=1), TypeError, "unknown field s: the fields are ms"),
        (step("broker", "fail-write", error="OH_NO"), TypeError, "error: unknown error 'OH_NO': use one of"),
        (
            step("a", "leave", version=3, members=[["a"]]),
            TypeError,
            r"members\[0\]: must be \[text, text, or null\], got \['a'\]",
        ),
        (step("a", "describe-group", version=0, nameless=1), TypeError, "nameless: must be true or false, got 1"),
    ],
)
def test_what_is_no_event_is_told(wrong: Step, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why):
        OPERATIONS.event_of(wrong)


REPLIES: tuple[Reply, ...] = (
    Joined(0, Error.NONE, 1, "consumer", "p", "a.1", "a.1", (("a.1", "i", "x"),), True),
    Synced(1, Error.NONE, None, None, "x"),
    Left(2, Error.NONE, (("a.1", None, Error.FENCED_INSTANCE_ID),)),
    Described(3, Error.NONE, "Stable", "consumer", "p", (("a.1", None, "x", "y"),)),
)


def test_an_answer_is_what_is_read_of_it() -> None:
    assert tuple(map(OPERATIONS.answer_from_json, OPERATIONS.answer_of(REPLIES)["answers"])) == REPLIES
    assert OPERATIONS.answer_from_json({"to": 1, "answer": "synced", "error": "NONE"}) == Synced(1, Error.NONE)
    assert (
        OPERATIONS.answer_from_json({"to": 1, "answer": "beat", "error": "STALE_MEMBER_EPOCH"}).error
        is Error.UNKNOWN_SERVER_ERROR
    )


@pytest.mark.parametrize(
    "found",
    [
        None,
        {},
        {"to": 0, "answer": "sung", "error": "NONE"},
        {"to": "0", "answer": "beat", "error": "NONE"},
        {"to": 0, "answer": "beat"},
        {"to": 0, "answer": "left", "error": "NONE", "members": [["a", None]]},
    ],
)
def test_what_is_no_answer_is_none(found: Any) -> None:
    with pytest.raises(TypeError):
        OPERATIONS.answer_from_json(found)


def joined(to: int, member: str, generation: int = 1, error: Error = Error.NONE) -> Joined:
    return Joined(to, error, generation, member=member)


def test_names_are_given_in_the_order_of_the_requests_and_references_mean_the_last() -> None:
    names = Names().after_answers([("a", joined(4, "y", 2)), ("a", joined(1, "x")), ("b", joined(2, "z", 3))])
    assert [names.canonical(each) for each in ("x", "y", "z", "?", "", "c.0", "w")] == [
        "a.1", "a.2", "b.1", "?", "", "c.0", "untold",
    ]  # fmt: skip
    assert [names.resolved(each) for each in ("a", "a-old", "b", "b-old", "c", "", "?")] == [
        "y", "x", "z", "b.0", "c.0", "", "?",
    ]  # fmt: skip
    assert [names.generation("a", behind) for behind in (0, 1, -1, None)] == [2, 1, 3, -1]
    again = names.after_answers([("a", joined(5, "x", 9, Error.MEMBER_ID_REQUIRED))])
    assert (again.resolved("a"), again.resolved("a-old"), again.canonical("x")) == ("x", "y", "a.1")
    assert again.generation("a", 0) == 2, "an id is no generation"
    assert again.after_answers([("a", joined(6, "v", 9, Error.FENCED_INSTANCE_ID))]) == again, (
        "that id is not for whoever asked"
    )


# Traces


def test_a_trace_says_when_which_request_was_answered() -> None:
    found = trace(
        history_of(Reference(), conversation("join a; elapse 1000; beat b; elapse 5000; sync a a=x behind=1"))
    )
    parked, beat, sync = found.asked
    assert (parked.index, parked.at_ms, parked.by, parked.from_ms, parked.to_ms) == (0, 0, 3, 1000, 6000)
    assert parked.parked and not beat.parked
    assert isinstance(beat.request, Heartbeat) and (beat.request.member, beat.request.generation) == ("b.0", 0)
    assert isinstance(sync.request, Sync) and (sync.request.member, sync.request.generation) == ("a.1", 0)
    assert sync.request.assignments == (("a.1", "x"),)
    assert found.whole and not found.strays and found.end_ms == 6000
    assert found.request(2) is beat


def answering(case: Case, **instead: Observation) -> History:
    """With other answers than the reference's: ``at2=...`` to the third step."""
    ops = tuple(
        replace(op, observation=instead.get(f"at{op.index}", op.observation))
        for op in history_of(Reference(), case).ops
    )
    return History(case, "somebody", ops)


def test_a_trace_ends_with_the_first_answer_that_is_lost_and_passes_over_what_cannot_be_said() -> None:
    case = conversation("join a; fail NOT_ENOUGH_REPLICAS; beat a; elapse 3000; beat a")
    cut = trace(answering(case, at2=Lost("gone"), at1=Unsupported("no log")))
    assert [each.index for each in cut.steps] == [0]
    assert not cut.whole
    garbled = trace(answering(case, at2=Replied((("answers", [{"to": 2}]),))))
    assert [each.index for each in garbled.steps] == [0, 1]


def test_an_answer_to_nobody_is_a_stray() -> None:
    twice = Replied(
        (("answers", [*OPERATIONS.answer_of([joined(0, "a.1"), joined(0, "a.1"), joined(7, "b.1")])["answers"]]),)
    )
    found = trace(answering(conversation("join a; elapse 3000"), at1=twice))
    assert found.strays == ((1, joined(0, "a.1")), (1, joined(7, "b.1")))
    assert found.asked[0].answer == joined(0, "a.1")


def test_a_failure_shows_who_said_what_and_what_waited() -> None:
    case = conversation("join a; elapse 3000; sync a a=x; beat a id=? as i")
    history = answering(case, at3=Lost("gone"))
    verdict = next(each for each in judge(history_of(Tardy(), conversation(TARDY)), OURS) if each.violations)
    (exhibit,) = group_sequence(history, replace(verdict.violations[0], at=(1,)))
    assert [(each["from"], each["says"], each["answer"], each["guilty"]) for each in exhibit["steps"]] == [
        ("a", "JoinGroup v3, no member id, consumer p:x, session 10000 ms, rebalance 30000 ms", None, False),
        ("time", "3000 ms pass", None, True),
        ("coordinator", "to step 1: generation 1, protocol p, member a.1, leads over a.1", None, True),
        ("a", "SyncGroup v3, member a.1, generation 1, gives a.1 'x'", "assigned 'x'", False),
        ("a", "beat a id=? as i", "no answer", False),
    ]
    assert [each for each in exhibit["steps"] if each.get("reply")] == [
        {**exhibit["steps"][2], "to": "a", "first": False, "reply": True}
    ]


# The service


@cache
def drawn(name: str, cases: int) -> tuple[tuple[Step, ...], ...]:
    found = group_conversations(name)
    randoms = (Random(f"{name}/{number}") for number in range(cases))
    return tuple(found.draw(random, found.swarm(random)) for random in randoms)


def service(name: str = "apache") -> Service[State]:
    found = coordinator(edition(name))
    assert found is not None
    return Service(found)


def played(steps: Iterable[Step], name: str = "apache") -> list[tuple[Step, Served[State], tuple[Reply, ...]]]:
    """Each step, the state before it, and what came of it."""
    machine = service(name)
    state, found = machine.initial(), []
    for each in steps:
        after, replies = machine.step(state, OPERATIONS.event_of(each))
        found.append((each, state, replies))
        state = after
    return found


def test_time_may_pass_in_pieces() -> None:
    for steps in drawn("apache", 25):
        machine = service()
        state = whole = machine.initial()
        for event in map(OPERATIONS.event_of, steps):
            whole, replies = machine.step(whole, event)
            pieces = [event]
            if isinstance(event, Elapse):
                pieces = [Elapse(event.ms // 3), Elapse(event.ms - event.ms // 3)]
            stated: list[Reply] = []
            for piece in pieces:
                state, more = machine.step(replace(state, actors=whole.actors[:-1]), piece)
                stated += more
            assert (state, tuple(stated)) == (whole, replies), OPERATIONS.shorthand(steps)


def test_only_what_was_asked_is_answered_and_only_once() -> None:
    for steps in drawn("apache", 30):
        open_ = set()
        for number, (each, _, replies) in enumerate(played(steps)):
            if isinstance(OPERATIONS.event_of(each), By):
                open_.add(number)
            for reply in replies:
                open_.remove(reply.to)


# What is drawn


@pytest.mark.parametrize("name", EDITIONS)
def test_what_is_drawn_is_declared_and_what_is_declared_has_a_shorthand(name: str) -> None:
    found = group_conversations(name)
    for steps in drawn(name, 12):
        case = Case("", name, Role.COORDINATOR, steps)
        assert belongs(found.declaration, case.data)
        assert OPERATIONS.parse_shorthand(OPERATIONS.shorthand(steps)) == steps
        assert tuple(OPERATIONS.step_of(OPERATIONS.event_of(each)) for each in steps) == steps


@pytest.mark.parametrize("name", EDITIONS)
def test_whatever_is_declared_can_be_told_to_the_release(name: str) -> None:
    draw = compiled(group_conversations(name).declaration)
    for number in range(12):
        for _, _, replies in played(steps_from(draw(Random(number))), name):
            assert not [each for each in replies if each.error is Error.UNSUPPORTED_VERSION]


def row(each: Step, state: Served[State], reply: Reply | None) -> str:
    """``heartbeat PREPARING REBALANCE_IN_PROGRESS``: what was asked, when, and what was said at once."""
    group = state.group
    phase = group.phase.name if group.standing is Standing.OURS else group.standing.name
    static = " as" if each.body.get("instance") else ""
    known = " ?" if each.verb == "join" and not each["member"] else ""
    error = "waits" if reply is None else reply.error.name
    if isinstance(reply, Left) and reply.members:
        error = max(error for _, _, error in reply.members).name
    return f"{each.verb}{static}{known} {phase} {error}"


ROWS = """
join ? DEAD waits; join ? DEAD MEMBER_ID_REQUIRED; join ? DEAD INCONSISTENT_GROUP_PROTOCOL; join as ? DEAD waits
join DEAD UNKNOWN_MEMBER_ID; join ? EMPTY waits; join EMPTY waits; join as EMPTY UNKNOWN_MEMBER_ID
join ? PREPARING waits; join PREPARING waits; join ? PREPARING INCONSISTENT_GROUP_PROTOCOL; join as ? PREPARING waits
join PREPARING NONE; join as PREPARING FENCED_INSTANCE_ID; join PREPARING UNKNOWN_MEMBER_ID
join ? PREPARING GROUP_MAX_SIZE_REACHED; join ? PREPARING MEMBER_ID_REQUIRED
join COMPLETING NONE; join COMPLETING waits; join as COMPLETING NONE; join as ? COMPLETING waits
join ? COMPLETING MEMBER_ID_REQUIRED; join STABLE NONE; join STABLE waits; join as ? STABLE NONE; join ? STABLE waits
join as ? STABLE waits; join as STABLE FENCED_INSTANCE_ID; join STABLE INCONSISTENT_GROUP_PROTOCOL
join STABLE INVALID_SESSION_TIMEOUT; join ? LOADING COORDINATOR_LOAD_IN_PROGRESS; join ? AWAY NOT_COORDINATOR
sync COMPLETING NONE; sync COMPLETING waits; sync COMPLETING ILLEGAL_GENERATION; sync COMPLETING UNKNOWN_MEMBER_ID
sync COMPLETING COORDINATOR_NOT_AVAILABLE; sync COMPLETING NOT_COORDINATOR; sync COMPLETING UNKNOWN_SERVER_ERROR
sync COMPLETING INCONSISTENT_GROUP_PROTOCOL; sync as COMPLETING FENCED_INSTANCE_ID; sync STABLE NONE
sync STABLE ILLEGAL_GENERATION; sync as STABLE FENCED_INSTANCE_ID; sync PREPARING REBALANCE_IN_PROGRESS
sync PREPARING ILLEGAL_GENERATION; sync LOADING COORDINATOR_LOAD_IN_PROGRESS
heartbeat PREPARING REBALANCE_IN_PROGRESS; heartbeat COMPLETING NONE; heartbeat STABLE NONE
heartbeat STABLE ILLEGAL_GENERATION; heartbeat STABLE UNKNOWN_MEMBER_ID; heartbeat as STABLE FENCED_INSTANCE_ID
heartbeat EMPTY UNKNOWN_MEMBER_ID; heartbeat LOADING NONE; heartbeat AWAY NOT_COORDINATOR
leave PREPARING NONE; leave COMPLETING NONE; leave STABLE NONE; leave STABLE UNKNOWN_MEMBER_ID
commit PREPARING NONE; commit STABLE NONE; commit STABLE ILLEGAL_GENERATION; commit COMPLETING REBALANCE_IN_PROGRESS
commit COMPLETING UNKNOWN_MEMBER_ID; commit as STABLE FENCED_INSTANCE_ID; leave STABLE FENCED_INSTANCE_ID
commit DEAD NONE; commit EMPTY NONE; commit STABLE UNKNOWN_MEMBER_ID; commit LOADING COORDINATOR_LOAD_IN_PROGRESS
fetch STABLE NONE; fetch EMPTY NONE; fetch AWAY NOT_COORDINATOR; describe-group COMPLETING NONE
describe-group LOADING COORDINATOR_LOAD_IN_PROGRESS; list-groups STABLE NONE; delete-group EMPTY NONE
delete-group STABLE NON_EMPTY_GROUP; delete-group DEAD GROUP_ID_NOT_FOUND
delete-group LOADING COORDINATOR_LOAD_IN_PROGRESS
"""
LATER = """
join NONE; join UNKNOWN_MEMBER_ID; join NOT_COORDINATOR; join FENCED_INSTANCE_ID; sync NONE; sync REBALANCE_IN_PROGRESS
sync NOT_COORDINATOR
"""
"""What those hear that waited."""


def listed(text: str) -> set[str]:
    return {each.strip() for line in text.split("\n") for each in line.split(";") if each.strip()}


def test_conversations_reach_every_row_of_what_a_coordinator_decides_and_deep_states() -> None:
    rows, later = set(), set()
    generations, members = [], []
    for steps in drawn("apache", DRAWN):
        history = played(steps)
        for number, (each, state, replies) in enumerate(history):
            if isinstance(OPERATIONS.event_of(each), By):
                rows.add(row(each, state, next((reply for reply in replies if reply.to == number), None)))
            later |= {f"{steps[reply.to].verb} {reply.error.name}" for reply in replies if reply.to != number}
        groups = [state.group for _, state, _ in history]
        generations.append(max(each.generation for each in groups))
        members.append(max((len(each.members) for each in groups if each.phase is Phase.STABLE), default=0))
    assert not listed(ROWS) - rows
    assert not listed(LATER) - later
    assert sum(each >= 3 for each in generations) > DRAWN // 3
    assert sum(each >= 2 for each in members) > DRAWN // 8


@given(strategy(group_conversations("apache").declaration))
@settings(max_examples=20, deadline=None)
def test_whatever_is_said_to_the_reference_it_keeps_every_invariant(data: list[dict[str, Any]]) -> None:
    history = history_of(Reference(), Case("group/errors", "apache", Role.COORDINATOR, steps_from(data)))
    assert not [each for each in judge(history, OURS) if each.result is not Result.PASS]


# Checks


def test_every_invariant_of_groups_is_in_a_check_and_every_case_has_a_place() -> None:
    assert {each.id for each in OURS} == {id for check in GROUP_CHECKS for id in check.invariants}
    for name, there in (("apache", 5), ("apache@2.3.1", 5), ("kip-429", 6), ("kip-584", 0)):
        assert sum(bool([*check.family.subjects(name)]) for check in GROUP_CHECKS) == there, name
    with pytest.raises(LookupError, match="unknown machine 'features' in edition apache: the machine is group"):
        CHECKS["group/errors"].family.subject("apache", "features", None)


class Tardy(CoordinatorAdapter):
    """Believes a heartbeat of the generation before."""

    def fault(self, state: State, request: Any) -> Error | None:
        found = super().fault(state, request)
        stale = found is Error.ILLEGAL_GENERATION and isinstance(request, Heartbeat)
        return None if stale and request.generation == state.generation - 1 else found


TARDY = "join a; elapse 3000; beat a behind=1"


@pytest.mark.integration
def test_a_failing_conversation_shrinks_until_no_step_can_be_left_out() -> None:
    with Worker("tardy", Afresh("tardy", Tardy)) as worker:
        findings = worker.run(Unit("tardy", "apache", "group/errors", GROUP, None, 0, 60)).findings
        longest = max(findings, key=lambda each: len(each.case.steps))
        least = shrunk(worker, longest)
        assert least is not None
        invariant = next(each for each in OURS if each.id == least.invariant)
        steps = least.case.steps
        assert len(longest.case.steps) > 20
        assert len(steps) <= 6, OPERATIONS.shorthand(steps)
        for left_out in range(len(steps)):
            found = worker.violation(replace(least.case, steps=steps[:left_out] + steps[left_out + 1 :]), invariant)
            assert found is None or found[1].shape != least.violation.shape, OPERATIONS.shorthand(steps)


# What people import


@settings(max_examples=5, deadline=None)
@given(conversations("group", deep=True), any_steps("group", edition="kip-429"))
def test_conversations_are_strategies_too(deep: list[dict[str, Any]], one: dict[str, Any]) -> None:
    assert belongs(group_conversations("apache").declaration, deep)
    assert belongs(group_conversations("kip-429").declaration, [one])


def test_a_machine_that_there_is_not_is_told() -> None:
    with pytest.raises(LookupError, match=r"unknown machine 'groups'; known: features, .*, group, "):
        conversations("groups")
    with pytest.raises(LookupError, match="edition kip-584 has no coordinator of classic groups"):
        any_steps("group", edition="kip-584")
