"""The codec that is derived from declared operations agrees with the one that was written by hand."""

import json
from itertools import islice
from random import Random

import pytest

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.mutants import MUTANTS
from kipcheck.conformance.protocols.consumer_group.checks import CHECKS
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup
from kipcheck.conformance.protocols.consumer_group.ops import CLIENTS, OPERATIONS, PASSES, SUBSCRIPTIONS
from kipcheck.conformance.protocols.consumer_group.strategies import CONSUMER_GROUPS
from kipcheck.conformance.tests.support import old_consumer_group as old
from kipcheck.strategies.events import Conversations, event
from kipcheck.strategies.mutate import mutate
from kipcheck.strategies.nodes import Integer, OneOf, Pick, Row, record

_HEARTBEAT = record(
    client=Pick(CLIENTS),
    says=Pick(("stay", "join", "leave")),
    behind=Integer(-1, 2),
    topics=OneOf((Pick((None,)), *(Row(tuple(Pick((topic,)) for topic in each)) for each in SUBSCRIPTIONS))),
    owned=Pick(("told", None, "none", "before")),
)
BEFORE = Conversations(
    ConsumerGroup(),
    old.step_of,
    old.event_of,
    events={old.BEAT: event("client", old.BEAT, _HEARTBEAT), old.PASS: event("time", old.PASS, ms=Pick(PASSES))},
    progress=frozenset({old.BEAT}),
    max_steps=30,
)


def test_the_nodes_are_the_same() -> None:
    assert [*CONSUMER_GROUPS.events.items()] == [*BEFORE.events.items()]
    assert CONSUMER_GROUPS.declaration == BEFORE.declaration


def written(each: Step) -> str:
    """Byte for byte, order of keys included."""
    return json.dumps({"actor": each.actor, "verb": each.verb, "body": each.body})


def compare(steps: tuple[Step, ...], machine: ConsumerGroup) -> None:
    state = machine.initial()
    for each in steps:
        event = OPERATIONS.event_of(each)
        assert event == old.event_of(each) and type(event) is type(old.event_of(each))
        assert written(OPERATIONS.step_of(event)) == written(old.step_of(event))
        assert OPERATIONS.sentence(each) == old.shorthand([each])
        assert OPERATIONS.sender(each) == each.body.get("client", each.actor)
        state, actions = machine.step(state, event)
        assert json.dumps(OPERATIONS.answer_of(actions)) == json.dumps(old.answer_of(actions))
    text = old.shorthand(steps)
    assert OPERATIONS.shorthand(steps) == text
    assert [*map(written, OPERATIONS.parse_shorthand(text))] == [*map(written, old.parse_shorthand(text))]


@pytest.mark.parametrize("seed", range(5))
def test_ten_thousand_draws_agree(seed: int) -> None:
    machine = ConsumerGroup()
    left, right = Random(seed), Random(seed)
    for number in range(2_000):
        if number % 5 == 0:
            swarm, other = CONSUMER_GROUPS.swarm(left), BEFORE.swarm(right)
        steps = CONSUMER_GROUPS.draw(left, swarm)
        assert [*map(written, steps)] == [*map(written, BEFORE.draw(right, other))]
        compare(steps, machine)


def test_mutated_cases_agree() -> None:
    random = Random(2)
    machine = ConsumerGroup()
    for check in CHECKS:
        for subject in check.family.subjects("apache"):
            for sample in islice(check.samples(subject, 0), 100):
                value = mutate(CONSUMER_GROUPS.declaration, sample.value, random)
                compare(tuple(Step(**each) for each in value), machine)
                compare(sample.case.steps, machine)


def test_the_least_cases_of_mutants_agree() -> None:
    texts = [each.least for each in MUTANTS.values() if each.check.startswith("consumer-group/")]
    assert len(texts) > 10
    for text in texts:
        if isinstance(text, str):
            assert [*map(written, OPERATIONS.parse_shorthand(text))] == [*map(written, old.parse_shorthand(text))]


@pytest.mark.parametrize("text", ["jump", "pass", "pass x", "beat a gone", "join"])
def test_what_is_no_shorthand_is_refused_by_both(text: str) -> None:
    for parse in (old.parse_shorthand, OPERATIONS.parse_shorthand):
        with pytest.raises((ValueError, IndexError)):
            parse(text)


WRONG = [
    step("time", "consumer-elapse"),
    step("c", "jump"),
    step("client", "consumer-heartbeat", says="gone", topics=None),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_no_operation_is_refused_by_both(wrong: Step) -> None:
    for read in (old.event_of, OPERATIONS.event_of):
        with pytest.raises((LookupError, TypeError, ValueError)):
            read(wrong)
