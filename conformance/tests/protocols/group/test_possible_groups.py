"""What the broker of a group can do: by hand, drawn and mutated."""

from random import Random

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.protocols.declare.check import Impossible
from kipcheck.conformance.protocols.group.checks import CHECKS as GROUP_CHECKS, COORDINATOR
from kipcheck.conformance.protocols.group.model.messages import Load, Loaded, Unload
from kipcheck.conformance.protocols.group.model.possible import impossible_events, possible_event
from kipcheck.conformance.protocols.group.model.service import Elapse
from kipcheck.conformance.protocols.group.model.state import Standing
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.protocols.group.possible_conversations import impossible
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.strategies.compiled import compiled


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("unload; load; loaded", []),
        ("unload; load; unload; load; loaded; unload", []),
        ("join a; load", [1]),
        ("join a; loaded; unload", [1]),
        ("unload; unload", [1]),
        ("unload; loaded; load", [1]),
        ("unload; load; load; loaded; loaded", [2, 4]),
    ],
)
def test_a_broker_gives_up_loads_and_has_read_in_this_order(text: str, steps: list[int]) -> None:
    case = Case("group/errors", "apache", Role.COORDINATOR, OPERATIONS.parse_shorthand(text))
    assert [each.step for each in impossible(case, ())] == steps


def test_an_explanation_names_the_state_of_the_partition() -> None:
    case = Case("group/errors", "apache", Role.COORDINATOR, OPERATIONS.parse_shorthand("load"))
    assert [*impossible(case, ())] == [
        Impossible(
            0,
            "broker-order",
            "A broker loads a partition that is away, has read it after it began to, and gives up what it has. "
            "The partition is ours.",
        )
    ]


@pytest.mark.parametrize(
    ("standing", "event", "instead"),
    [
        (Standing.OURS, Unload(), Unload()),
        (Standing.OURS, Load(), Elapse(3_000)),
        (Standing.OURS, Loaded(), Elapse(3_000)),
        (Standing.AWAY, Unload(), Load()),
        (Standing.AWAY, Loaded(), Load()),
        (Standing.LOADING, Load(), Loaded()),
        (Standing.LOADING, Unload(), Unload()),
    ],
)
def test_an_event_that_cannot_happen_is_replaced_by_the_next_one(
    standing: Standing, event: Unload | Load | Loaded, instead: object
) -> None:
    assert possible_event(standing, event) == instead


@pytest.mark.parametrize("seed", range(10))
def test_drawn_cases_can_happen(seed: int) -> None:
    subject = COORDINATOR.subject("apache", "group", None)
    for check in GROUP_CHECKS[:3]:
        for sample in check.samples(subject, seed, 8):
            assert not any(impossible(sample.case, ()))
            assert sample.case.data == list(sample.value)


def test_whatever_is_declared_becomes_as_many_steps_that_can_happen() -> None:
    talks, random = group_conversations("apache"), Random(0)
    changed = 0
    for _ in range(100):
        raw = tuple(Step(**each) for each in compiled(talks.declaration)(random))
        steps = talks.mended(raw)
        assert len(steps) == len(raw)
        assert not any(impossible_events(map(OPERATIONS.event_of, steps)))
        changed += steps != raw
    assert changed > 30
    assert OPERATIONS.step_of(Load()).verb == "load"
