"""When a conversation with a broker waits, and which waits are in doubt."""

import pytest

from kipcheck.conformance.live.coordinator.classic_time import Schedule, Span
from kipcheck.conformance.protocols.group.model.answers import DEFAULT
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.service import By, Elapse, Service
from kipcheck.conformance.protocols.group.ops import OPERATIONS

RULES = Rules.of("2.8.2")
CLOSE = "timers of the coordinator expire too close together"


def first_doubt(text: str, request_s: float) -> str:
    """The doubt in the first wait, if every request takes that long and is answered as the machine does."""
    schedule = Schedule(RULES, DEFAULT, times=5, margin_s=0.1)
    service = Service(Coordinator(RULES))
    state, now_s = service.initial(), 0.0
    for step in OPERATIONS.parse_shorthand(text):
        event = OPERATIONS.event_of(step)
        if isinstance(event, Elapse):
            return schedule.elapse(event.ms, now_s, request_s).doubt
        assert isinstance(event, By)
        schedule.ask(event)
        state, replies = service.step(state, event)
        assert not schedule.asked(event, replies, Span(now_s, now_s + request_s))
        now_s += request_s
    raise AssertionError("no wait")


@pytest.mark.parametrize("request_s", [0.001, 0.05])
def test_timers_of_one_moment_are_in_doubt_unless_the_machine_lets_the_earlier_one_expire_first(
    request_s: float,
) -> None:
    """The session of a new static member's successor and the second part of the join phase both end after 6 s: the
    machine ends the session first, which was begun later by the time of a few requests."""
    joins = "join a as j v5; join c as i v5 session=6000; join b as i v5 session=6000"
    assert first_doubt(f"{joins}; elapse 30000", request_s) == CLOSE
    assert first_doubt(f"{joins}; elapse 3000", request_s) == ""


@pytest.mark.parametrize(("request_s", "doubt"), [(0.001, CLOSE), (0.05, "")])
def test_timers_of_one_moment_are_told_apart_if_requests_are_slow(request_s: float, doubt: str) -> None:
    """An id that was given out and the second part of the join phase both end after 6 s, in the machine's order."""
    text = "join b v4 session=6000; join a v3; join c v3; elapse 6000"
    assert first_doubt(text, request_s) == doubt
