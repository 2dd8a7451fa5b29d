"""The codec of consumers agrees with the one that was written by hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.protocols.member.model.client import Client
from kipcheck.conformance.protocols.member.model.rules import rules_of
from kipcheck.conformance.protocols.member.ops import ACTIONS, MEMBER, OPERATIONS
from kipcheck.conformance.protocols.member.strategies.conversations import conversations
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.publish import ROOT
from kipcheck.conformance.tests.protocols.member import old_ops, old_sentences, old_shorthand
from kipcheck.strategies.compiled import compiled

EDITIONS = ("apache", "apache@3.3.2", "apache@2.8.1", "apache@2.3.1", "apache@0.10.1.0", "kip-429")
VALUES: tuple[Any, ...] = (
    None, "", "x", "NONE", "joined", "beat", "eager", 0, -1, True, [], ["a"], [["a", "b"]], [["t", 0]], [["t", 0, 1]],
    {}, 1.5, {"topics": ["t"]}, {"partitions": [["t", 0]]}, [["m1", None, {"topics": [], "other": 1}]], ["range"],
    ["range", "range"], ["other"],
)  # fmt: skip
STORED = json.loads(Path(__file__).with_name("member_failures.json").read_text())
TEXTS = (
    "open", "open as=i", "open knows=t:3,u:1 rack=r range,sticky", "open range knows=t:3,u:1 rack=r as=i",
    "open range protocol=cooperative", "open x", "open range,range", "open range other=1", "open knows=t", "subscribe",
    "subscribe t,u", "subscribe t u", "unsubscribe", "unsubscribe x", "commit t:0=5 u:1=3", "commit", "commit t=5",
    "elapse 3000", "elapse x", "elapse", "metadata t:3 u:1", "metadata", "metadata t", "disconnected", "joined",
    "joined 1", "joined 1 skip members=m1,m2/i by=sticky leader=m1 me=m3", "joined 1 other=1", "joined x",
    "joined MEMBER_ID_REQUIRED", "joined MEMBER_ID_REQUIRED me=m1", "synced", "synced t:1 t:0", "synced nothing",
    "synced error", "synced NOT_COORDINATOR", "synced t:0 by=range", "synced nothing by=range", 
    "synced OTHER", "beat", "beat NOT_COORDINATOR", "beat x", "left", "committed", "close", "poll", "poll 1", "other",
    'member-subscribe {"topics": ["a-b", "c"]}', "member-poll", "member-poll {}", "member-other {}", "member-open {}",
    'member-open {"assignors": []}', 'member-told {"answer": "beat"}', "elapse -1",
    'member-told {"answer": "joined", "member": "x", "error": "NONE", "skip_assignment": true}', "close; poll; poll",
)  # fmt: skip


def written(each: Step) -> str:
    """Byte for byte, order of keys included."""
    return json.dumps({"actor": each.actor, "verb": each.verb, "body": each.body})


def read(function: Any, given: Any) -> Any:
    try:
        return function(given)
    except (TypeError, LookupError, ValueError) as wrong:
        return type(wrong)


def draws(edition_name: str, count: int) -> Iterator[tuple[Step, ...]]:
    random, generate = Random(f"agreement {edition_name}"), compiled(conversations(edition_name).declaration)
    for _ in range(count):
        yield tuple(Step(**each) for each in generate(random))


def compare(each: Step) -> None:
    event = OPERATIONS.event_of(each)
    assert event == old_ops.event_of(each) and type(event) is type(old_ops.event_of(each))
    assert written(OPERATIONS.step_of(event)) == written(old_ops.step_of(event))
    text = old_shorthand.shorthand([each])
    assert OPERATIONS.shorthand([each]) == text
    assert OPERATIONS.parse_shorthand(text) == old_shorthand.parse_shorthand(text)
    assert OPERATIONS.sentence(each) == old_sentences.describe_event(each)


def damaged(random: Random, each: Step) -> Step:
    body = dict(each.body)
    key = random.choice([*body, "other", "error"])
    if random.random() < 0.3:
        body.pop(key, None)
    else:
        body[key] = random.choice(VALUES)
    return Step(each.actor, each.verb, body)


def test_texts() -> None:
    for text in (
        *TEXTS,
        *(each.least for each in MUTANTS.values() if each.subject == MEMBER and isinstance(each.least, str)),
    ):
        steps = read(old_shorthand.parse_shorthand, text)
        assert read(OPERATIONS.parse_shorthand, text) == steps, text
        if isinstance(steps, tuple):
            assert [*map(written, OPERATIONS.parse_shorthand(text))] == [*map(written, steps)]
            before = read(old_shorthand.shorthand, steps)
            assert before in (OPERATIONS.shorthand(steps), ValueError)


def test_stored_failures() -> None:
    steps = [Step(*each) for case in STORED for each, _ in case["steps"]]
    assert len(steps) > 30
    for each in steps:
        compare(each)


def test_conversations() -> None:
    for name in EDITIONS:
        rules = rules_of(edition(name))
        assert rules is not None
        client = Client(rules)
        for steps in draws(name, 1_700):
            state = client.initial()
            for each in steps:
                compare(each)
                state, actions = client.step(state, OPERATIONS.event_of(each))
                found = OPERATIONS.answer_of(actions)
                assert json.dumps(found) == json.dumps(old_ops.answer_of(actions))
                for data in found.get("actions", ()):
                    action = ACTIONS.from_json(data)
                    assert action == old_ops.action_of(data)
                    if data["action"] in ("join", "sync", "heartbeat", "leave", "commit"):
                        sentence = ACTIONS.describe(action)
                        assert sentence == old_sentences.describe_request(action)


def test_damaged_steps_and_actions() -> None:
    random = Random("damaged")
    refused = 0
    for name in EDITIONS:
        rules = rules_of(edition(name))
        assert rules is not None
        client = Client(rules)
        for steps in draws(name, 300):
            state = client.initial()
            for each in steps:
                step = damaged(random, each)
                found = read(OPERATIONS.event_of, step)
                assert found == read(old_ops.event_of, step), step
                refused += isinstance(found, type)
                state, actions = client.step(state, OPERATIONS.event_of(each))
                for data in OPERATIONS.answer_of(actions).get("actions", ()):
                    changed = dict(damaged(random, Step("", "", data)).body)
                    new, old = read(ACTIONS.from_json, changed), read(old_ops.action_of, changed)
                    assert new == old or (isinstance(new, type) and isinstance(old, type)), changed
    assert refused > 1_000


def validator(path: Path) -> Any:
    """Of operations."""
    found = json.loads(path.read_text("utf-8"))
    return jsonschema.Draft202012Validator({"$defs": found["$defs"], "$ref": "#/$defs/op"})


def test_schemas() -> None:
    """Of fields that are valid, and of others."""
    old = validator(Path(__file__).with_name("old_testee.schema.json"))
    new = validator(ROOT / "targets" / "testee.schema.json")
    random, accepted, refused = Random("schemas"), 0, 0
    for name in EDITIONS:
        for steps in draws(name, 40):
            for each in steps:
                step = damaged(random, each) if random.random() < 0.6 else each
                data = {"n": 1, "case": 0, "op": step.verb, **step.body}
                assert old.is_valid(data) == new.is_valid(data), data
                accepted, refused = accepted + old.is_valid(data), refused + (not old.is_valid(data))
    assert accepted > 1_000 and refused > 300
