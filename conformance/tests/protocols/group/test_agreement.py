"""The codec that is derived from declared operations agrees with the one that was written by hand."""

import json
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.names import Names
from kipcheck.conformance.protocols.group.model.service import By, Service
from kipcheck.conformance.protocols.group.ops import GROUP, OPERATIONS
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.conformance.protocols.group.trace import Trace, TracedRequest, TracedStep
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.tests.protocols.group import old_ops, old_sentences, old_shorthand
from kipcheck.strategies.compiled import compiled

EDITIONS = ("apache", "apache@3.3.2", "apache@2.3.1", "apache@1.1.1", "apache@0.10.0.1", "kip-429")
VALUES: tuple[Any, ...] = (None, "", "x", 0, -1, True, [], ["a"], [["a", "b"]], [["t", 0, 1]], {}, 1.5)


def written(each: Step) -> str:
    """Byte for byte, order of keys included."""
    return json.dumps({"actor": each.actor, "verb": each.verb, "body": each.body})


def compare(each: Step) -> None:
    event = OPERATIONS.event_of(each)
    assert event == old_ops.event_of(each) and type(event) is type(old_ops.event_of(each))
    assert written(OPERATIONS.step_of(event)) == written(old_ops.step_of(event))
    text = old_shorthand.shorthand([each])
    assert OPERATIONS.shorthand([each]) == text
    assert OPERATIONS.parse_shorthand(text) == old_shorthand.parse_shorthand(text)
    if isinstance(event, By):
        asked = TracedRequest(0, event.actor, event.request, event.nameless, 0, Names())
        sentence = OPERATIONS.describe_request(event.request) + ", with an empty group id" * event.nameless
        assert sentence == old_sentences.describe_request(asked)
    else:
        moment = TracedStep(0, event, 0, 0, (), Names())
        assert OPERATIONS.sentence(each) == old_sentences.describe_step(moment, Trace((), (), (), True))


def test_least_cases_of_mutants() -> None:
    texts = [each.least for each in MUTANTS.values() if each.subject == GROUP]
    assert len(texts) > 20
    for text in texts:
        steps = old_shorthand.parse_shorthand(text)
        assert OPERATIONS.parse_shorthand(text) == steps
        assert OPERATIONS.shorthand(steps) == old_shorthand.shorthand(steps)


def read(module: Any, name: str, given: Any) -> Any:
    try:
        return getattr(module, name)(given)
    except (TypeError, LookupError) as wrong:
        return type(wrong)


def conversations(edition_name: str, count: int) -> Any:
    random, draw = Random(f"agreement {edition_name}"), group_conversations(edition_name)
    assert draw is not None
    generate = compiled(draw.declaration)
    for _ in range(count):
        yield generate(random)


def validator(name: str, old: bool) -> Any:
    """Of operations."""
    path = Path(__file__).with_name("old_testee.schema.json")
    found = json.loads(
        (path if old else files("kipcheck.conformance.targets") / "testee.schema.json").read_text("utf-8")
    )
    return jsonschema.Draft202012Validator({"$defs": found["$defs"], "$ref": f"#/$defs/{name}"})


def test_schemas() -> None:
    """Of both fields that are valid and others."""
    old, new, random = validator("op", True), validator("op", False), Random("schemas")
    accepted = refused = 0
    for name in EDITIONS:
        for steps in conversations(name, 40):
            for each in steps:
                step = each if isinstance(each, Step) else Step(**each)
                body = dict(step.body)
                if random.random() < 0.6:
                    body[random.choice([*body, "other"])] = random.choice(VALUES)
                data = {"n": 1, "case": 0, "op": step.verb, "actor": step.actor, **body}
                assert old.is_valid(data) == new.is_valid(data), data
                accepted, refused = accepted + old.is_valid(data), refused + (not old.is_valid(data))
    assert accepted > 1_000 and refused > 300


def test_conversations() -> None:
    for name in EDITIONS:
        machine = coordinator(edition(name))
        assert machine is not None
        for steps in conversations(name, 1_700):
            service, state = Service(machine), None
            state = service.initial()
            for each in steps:
                step = each if isinstance(each, Step) else Step(**each)
                compare(step)
                state, replies = service.step(state, OPERATIONS.event_of(step))
                found, before = OPERATIONS.answer_of(replies), old_ops.answer_of(replies)
                assert json.dumps(found) == json.dumps(before)
                for reply, data in zip(replies, found["answers"], strict=True):
                    assert OPERATIONS.answer_from_json(data) == old_ops.reply_of(data) == reply
                    assert OPERATIONS.describe_answer(reply) == old_sentences.describe_answer(reply)


def test_damaged_steps_and_answers() -> None:
    random = Random("damaged")
    for name in EDITIONS:
        for steps in conversations(name, 300):
            for each in steps:
                step = each if isinstance(each, Step) else Step(**each)
                body = dict(step.body)
                key = random.choice([*body, "other"])
                if random.random() < 0.3:
                    body.pop(key, None)
                else:
                    body[key] = random.choice(VALUES)
                damaged = Step(step.actor, step.verb, body)
                assert read(OPERATIONS, "event_of", damaged) == read(old_ops, "event_of", damaged), damaged
                assert read(OPERATIONS, "lenient_event_of", damaged) == read(old_ops, "lenient_event_of", damaged)
