"""When timers of coordinators expire: in the plan of a conversation, and in the verdicts on what is in doubt."""

from dataclasses import asdict, replace

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import invariants_of
from kipcheck.conformance.live.coordinator.classic_time import EARLY, Schedule
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.real_time import DOUBT, SETTINGS
from kipcheck.conformance.protocols.group.model.answers import DEFAULT, Config
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import Error, Joined
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.service import Elapse, Service
from kipcheck.conformance.protocols.group.ops import OPERATIONS, By
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.tests.support.sessions import history_of

MARGIN_S = 0.1


def joined(config: Config, *answers: Joined) -> tuple[frozenset[int], str, Schedule]:
    """A member joins: the requests that should be answered at once, and the doubt after these answers."""
    schedule = Schedule(Rules.of("3.9.2"), config, 5, MARGIN_S)
    (step,) = OPERATIONS.parse_shorthand("join a v3")
    event = OPERATIONS.event_of(step)
    assert isinstance(event, By)
    return schedule.ask(event), schedule.asked(event, answers, Span(0.0, 0.01)), schedule


def test_a_first_join_phase_without_delay_ends_at_once_and_leaves_no_doubt() -> None:
    answer = Joined(0, Error.NONE, 1, None, "p", "a.1", "a.1", (("a.1", None, "x"),))
    answered, doubt, schedule = joined(replace(DEFAULT, initial_delay_ms=0), answer)
    assert (answered, doubt, schedule.apart) == (frozenset({0}), "", False)


def test_a_first_join_phase_with_a_delay_ends_when_it_has_passed() -> None:
    answered, doubt, schedule = joined(DEFAULT)
    assert (answered, doubt, schedule.apart) == (frozenset(), "", False)
    assert schedule.elapse(DEFAULT.initial_delay_ms, 0.01, 0.0).answered == {0}


def test_a_step_that_lasts_as_long_as_a_timer_is_in_doubt_if_the_timers_are_not_known() -> None:
    answer = Joined(0, Error.NONE, 1, None, "p", "a.1", "a.1", (("a.1", None, "x"),))
    _, _, schedule = joined(DEFAULT, answer)  # the machine waits for others
    assert schedule.apart
    event = OPERATIONS.event_of(OPERATIONS.parse_shorthand("beat a v2")[0])
    assert isinstance(event, By)
    schedule.ask(event)
    assert schedule.asked(event, (), Span(0.1, 0.2)) == ""
    schedule.ask(event)
    assert schedule.asked(event, (), Span(0.2, 2.2)) == EARLY


def test_what_the_release_would_answer_depends_on_the_delay_that_the_broker_states() -> None:
    (joining,) = OPERATIONS.parse_shorthand("join a v3")
    answer = {"to": 0, "answer": "joined", "error": "NONE", "generation": 1, "protocol_type": None, "protocol": "p",
              "leader": "a.1", "member": "a.1", "members": [["a.1", None, "x"]], "skip_assignment": False}  # fmt: skip
    for delay, result in ((0, Result.PASS), (3000, Result.FAIL)):
        stated = asdict(replace(DEFAULT, initial_delay_ms=delay))
        found = Replied((("answers", [answer]), (SETTINGS, stated)))
        case = Case("group/generations", "apache@3.9.2", Role.COORDINATOR, (joining,))
        verdicts = judge(History(case, "mine", (Op(0, joining, found, 1),)), invariants_of(CHECKS["group/generations"]))
        assert next(each.result for each in verdicts if each.invariant == "group/like-its-release") is result


def doubted(step: int) -> Result:
    """Of the law of heartbeats: the second one is answered wrongly, and a step is in doubt."""
    steps = OPERATIONS.parse_shorthand("join a v3; elapse 3000; sync a v2 a=A; beat a v2; beat a v2")
    case = Case("group/generations", "apache", Role.COORDINATOR, steps)
    found = history_of(Reference(), case)
    ops = list(found.ops)
    wrong = [{"to": 3, "answer": "beat", "error": "UNKNOWN_MEMBER_ID"}]
    ops[3] = replace(ops[3], observation=Replied((("answers", wrong),)))
    noted = ops[step].observation
    assert isinstance(noted, Replied)
    ops[step] = replace(ops[step], observation=Replied((*noted.payload, (DOUBT, "late"))))
    verdicts = judge(History(case, "mine", tuple(ops)), invariants_of(CHECKS["group/generations"]))
    return next(each.result for each in verdicts if each.invariant == "group/answers-heartbeat")


def test_doubt_excuses_what_comes_with_it_and_after_it_but_nothing_before_it() -> None:
    assert [doubted(each) for each in (1, 3, 4)] == [Result.UNKNOWN, Result.UNKNOWN, Result.FAIL]


CLOSE = "timers of the coordinator expire too close together"


def doubts(text: str, request_s: float) -> list[str]:
    """The doubt at each step, if every request takes that long and everything is answered as the machine does."""
    rules = Rules.of("2.8.2")
    schedule, service = Schedule(rules, DEFAULT, 5, MARGIN_S), Service(Coordinator(rules))
    state, now_s, found = service.initial(), 0.0, []
    for step in OPERATIONS.parse_shorthand(text):
        event = OPERATIONS.event_of(step)
        if isinstance(event, Elapse):
            wait = schedule.elapse(event.ms, now_s, request_s)
            state, replies = service.step(state, event)
            now_s = wait.until_s
            found.append(wait.doubt or schedule.elapsed(event.ms, replies, now_s))
        else:
            assert isinstance(event, By)
            schedule.ask(event)
            state, replies = service.step(state, event)
            found.append(schedule.asked(event, replies, Span(now_s, now_s + request_s)))
            now_s += request_s
    return found


@pytest.mark.parametrize("request_s", [0.001, 0.05])
def test_timers_of_one_moment_are_in_doubt_unless_the_machine_lets_the_earlier_one_expire_first(
    request_s: float,
) -> None:
    """The session of a new static member's successor and the second part of the join phase both end after 6 s: the
    machine ends the session first, which was begun later by the time of a few requests."""
    joins = "join a as j v5; join c as i v5 session=6000; join b as i v5 session=6000"
    assert doubts(f"{joins}; elapse 30000", request_s)[-1] == CLOSE
    assert doubts(f"{joins}; elapse 3000", request_s)[-1] == ""


TIMEOUTS = (
    "join a session=6000 rebalance=4000 v2; join b session=6000 rebalance=10000 v2; join c session=30000 "
    "rebalance=4000 v2; elapse 9000; sync b; sync c; sync a"
)


@pytest.mark.parametrize(("request_s", "doubt"), [(0.001, CLOSE), (0.05, "")])
def test_sessions_of_one_moment_are_told_apart_if_requests_are_slow(request_s: float, doubt: str) -> None:
    """The join phase lasts as long as the member states that stays longer."""
    assert doubts(f"{TIMEOUTS}; beat a v1; fetch; fetch; beat b v1; elapse 6000", request_s)[-1] == doubt


def test_timers_of_one_moment_are_not_in_doubt_if_any_order_comes_to_the_same() -> None:
    """Of an id that was given out and the second part of the join phase, which both end after 6 s; of two sessions, and
    the join phase that began when the first ended."""
    for text in (
        "join b v4 session=6000; join a v3; join c v3; elapse 6000",
        "join a session=6000 v2; join b session=6000 v2; elapse 6000; sync a; sync b; elapse 30000",
    ):
        assert doubts(text, 0.001)[-1] == "", text


@pytest.mark.parametrize(("release", "suspect"), [("3.9.2", True), ("4.0.2", False)])
def test_a_member_is_suspect_that_is_answered_when_its_former_session_ends(release: str, suspect: bool) -> None:
    """The deadline for SyncGroups and the follower's session were armed at once. Up to 3.9 its SyncGroup does not
    disarm the session, which ends in another thread than the deadline."""
    rules = Rules.of(release)
    schedule, service, now_s = Schedule(rules, DEFAULT, 5, MARGIN_S), Service(Coordinator(rules)), 0.0
    state = service.initial()
    joins = "join a session=30000 rebalance=30000 v2; join b session=30000 rebalance=30000 v2; elapse 9000"
    for step in OPERATIONS.parse_shorthand(f"{joins}; sync b; elapse 30000"):
        assert not schedule.suspect
        event = OPERATIONS.event_of(step)
        if isinstance(event, Elapse):
            now_s = schedule.elapse(event.ms, now_s, 0.0).until_s
            state, _ = service.step(state, event)
        else:
            assert isinstance(event, By)
            schedule.ask(event)
            state, replies = service.step(state, event)
            schedule.asked(event, replies, Span(now_s, now_s + 0.001))
    assert schedule.suspect is suspect


def test_a_join_phase_without_members_is_in_doubt() -> None:
    """It has no length, and ends before the next request or after it."""
    *before, leave = doubts("join a v3; elapse 3000; sync a; join b v4; leave a v2", 0.01)
    assert (before, leave) == ([""] * 4, "a timer of the coordinator may have expired before its time")
