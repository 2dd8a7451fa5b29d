"""The codec that is derived from declared operations agrees with the one that was written by hand."""

import json
from itertools import islice, product
from random import Random

import jsonschema  # type: ignore[import-untyped]
import pytest

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.core.plain import plain
from kipcheck.conformance.mutants import MUTANTS
from kipcheck.conformance.protocols.features.checks import CHECKS
from kipcheck.conformance.protocols.features.model import ENVIRONMENT_EVENTS, FeatureController
from kipcheck.conformance.protocols.features.ops import OPERATIONS
from kipcheck.conformance.protocols.features.play import PLAYABLE
from kipcheck.conformance.protocols.features.strategies import FEATURE_UPDATES
from kipcheck.conformance.protocols.publish import definition
from kipcheck.conformance.tests.support import old_features as old
from kipcheck.strategies.events import Conversations, event
from kipcheck.strategies.mutate import mutate
from kipcheck.strategies.nodes import Flag, Integer, OneOf, Pick, record

BROKER = Integer(0, 2)
NO_RANGE = record(broker=BROKER, low=Pick((None,)), high=Pick((None,)))
BEFORE = Conversations(
    FeatureController(),
    old.step_of,
    old.event_of,
    events={
        "describe": event("operator", "describe"),
        "update": event("operator", "update", level=Integer(-1, 4), allow_downgrade=Flag()),
        "broker-up": event(
            "broker", "broker-up", OneOf((record(broker=BROKER, low=Integer(1, 2), high=Integer(2, 3)), NO_RANGE))
        ),
        "broker-down": event("broker", "broker-down", broker=BROKER),
        "restart": event("controller", "restart"),
    },
    progress=frozenset({"update", "broker-up", "describe"}),
)


def test_the_nodes_are_the_same() -> None:
    assert [*FEATURE_UPDATES.events.items()] == [*BEFORE.events.items()]
    assert FEATURE_UPDATES.declaration == BEFORE.declaration


def written(each: Step) -> str:
    """Byte for byte, order of keys included."""
    return json.dumps({"actor": each.actor, "verb": each.verb, "body": each.body})


def compare(steps: tuple[Step, ...], machine: FeatureController) -> None:
    state = machine.initial()
    for each in steps:
        event = OPERATIONS.event_of(each)
        assert event == old.event_of(each) and type(event) is type(old.event_of(each))
        assert written(OPERATIONS.step_of(event)) == written(old.step_of(event))
        state, actions = machine.step(state, event)
        assert json.dumps(OPERATIONS.answer_of(actions)) == json.dumps(old.answer_of(actions))
    text = old.shorthand(steps)
    assert OPERATIONS.shorthand(steps) == text
    assert [*map(written, OPERATIONS.parse_shorthand(text))] == [*map(written, old.parse_shorthand(text))]


def test_ten_thousand_draws_agree() -> None:
    machine = FeatureController()
    left, right = Random(1), Random(1)
    for number in range(10_000):
        if number % 5 == 0:
            swarm, other = FEATURE_UPDATES.swarm(left), BEFORE.swarm(right)
        steps = FEATURE_UPDATES.draw(left, swarm)
        assert [*map(written, steps)] == [*map(written, BEFORE.draw(right, other))]
        compare(steps, machine)


def test_mutated_cases_agree() -> None:
    random = Random(2)
    machine = FeatureController()
    for check in CHECKS:
        for subject in check.family.subjects("kip-584"):
            for sample in islice(check.samples(subject, 0), 200):
                value = mutate(FEATURE_UPDATES.declaration, sample.value, random)
                compare(tuple(Step(**each) for each in value), machine)


@pytest.mark.parametrize("event", ENVIRONMENT_EVENTS, ids=str)
def test_every_event_agrees(event: object) -> None:
    compare((OPERATIONS.step_of(event),), FeatureController())  # type: ignore[arg-type]


def test_the_least_cases_of_mutants_agree() -> None:
    texts = [each.least for each in MUTANTS.values() if each.check.startswith("features/")]
    assert len(texts) > 20
    for text in texts:
        assert isinstance(text, str)
        assert [*map(written, OPERATIONS.parse_shorthand(text))] == [*map(written, old.parse_shorthand(text))]


@pytest.mark.parametrize("text", ["jump", "update", "update x", "up 0", "up 0 1", "up x 1-2", "down", "restart now"])
def test_what_is_no_shorthand_is_refused_by_both(text: str) -> None:
    for parse in (old.parse_shorthand, OPERATIONS.parse_shorthand):
        with pytest.raises(ValueError):
            parse(text)


@pytest.mark.parametrize(
    "wrong", [step("o", "update"), step("o", "update", levels=1), step("o", "jump"), step("b", "broker-up", broker=1)]
)
def test_what_is_no_operation_is_refused_by_both(wrong: Step) -> None:
    for read in (old.event_of, OPERATIONS.event_of):
        with pytest.raises((LookupError, TypeError)):
            read(wrong)


BEFORE_IN_PLAY = [
    {"name": "update", "actors": ["operator"], "meaning": "the operator requests that a level be finalized",
     "shorthand": "update 2; update 1!", "fields": [
         ["level", "integer", "the level; below 1 deletes the feature"],
         ["allow_downgrade", "true or false", "the allowDowngrade flag"]]},
    {"name": "broker-up", "actors": ["broker"],
     "meaning": "a broker registers; with the number of a live broker, it replaces that one",
     "shorthand": "up 0 1-3; up 1 -", "fields": [
         ["broker", "integer", "its number"],
         ["low", "integer, or null", "lowest supported level; null if the broker does not know the feature"],
         ["high", "integer, or null", "highest supported level; null if the broker does not know the feature"]]},
    {"name": "broker-down", "actors": ["broker"], "meaning": "a broker goes down", "shorthand": "down 0",
     "fields": [["broker", "integer", "its number"]]},
    {"name": "restart", "actors": ["controller"], "meaning": "all controllers restart", "shorthand": "restart",
     "fields": []},
    {"name": "describe", "actors": ["operator"], "meaning": "the operator requests the finalized level",
     "shorthand": "describe", "fields": []},
]  # fmt: skip


def test_the_table_of_events_is_the_same() -> None:
    assert [
        {
            "name": each.name,
            "actors": [*each.actors],
            "meaning": each.meaning,
            "shorthand": each.shorthand,
            "fields": [[one.name, one.kind.words, one.meaning] for one in each.fields if one.needed],
        }
        for each in PLAYABLE.verbs
    ] == BEFORE_IN_PLAY


def test_kinds_in_play_are_the_same() -> None:
    assert plain(OPERATIONS.event_of(step("broker", "broker-up", broker=0, low=None, high=3)), "kind") == {
        "kind": "broker-up", "broker": 0, "low": None, "high": 3,
    }  # fmt: skip


INTEGER, MAYBE = {"type": "integer"}, {"type": ["integer", "null"]}
SCHEMAS_BEFORE = {
    "update": {"properties": {"level": INTEGER, "allow_downgrade": {"type": "boolean"}},
               "required": ["level", "allow_downgrade"]},
    "broker-up": {"properties": {"broker": INTEGER, "low": MAYBE, "high": MAYBE},
                  "required": ["broker", "low", "high"]},
    "broker-down": {"properties": {"broker": INTEGER}, "required": ["broker"]},
}  # fmt: skip


def test_the_schemas_accept_the_same_documents() -> None:
    values: tuple[object, ...] = (None, True, False, -1, 0, 1 << 40, 1.5, "", "1", [], {}, ...)
    for verb, schema in SCHEMAS_BEFORE.items():
        names: list[str] = schema["required"]  # type: ignore[assignment]
        before, now = (
            jsonschema.Draft202012Validator(each) for each in (schema, definition(OPERATIONS, OPERATIONS.by_verb[verb]))
        )
        accepted = 0
        for found in product(values, repeat=len(names)):
            body = {name: each for name, each in zip((*names, "more"), (*found, 1), strict=True) if each is not ...}
            assert before.is_valid(body) == now.is_valid(body), body
            accepted += now.is_valid(body)
        assert accepted > 1
