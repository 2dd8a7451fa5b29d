"""The codec that is derived from declared operations agrees with the one that was written by hand."""

import json
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from kipcheck.conformance.core.case import Role, Step, step, steps_from
from kipcheck.conformance.core.edition import KIP_429, edition
from kipcheck.conformance.protocols.checks import LISTED
from kipcheck.conformance.protocols.cluster.kinds import KINDS, TOPICS
from kipcheck.conformance.protocols.conversations import CONVERSATIONS
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.streams.model.members import FUTURE, OWN
from kipcheck.conformance.protocols.streams.model.rules import LINES
from kipcheck.conformance.protocols.streams.ops import (
    MEMBERS as THREADS,
    OPERATIONS as STREAMS,
    ShutDown,
)
from kipcheck.conformance.protocols.streams.strategies import scripts
from kipcheck.conformance.protocols.streams.target import streams_group
from kipcheck.conformance.protocols.upgrade.model.upgrade import upgrade_model
from kipcheck.conformance.protocols.upgrade.ops import (
    MEMBERS,
    OPERATIONS as UPGRADE,
    Crash,
    Expire,
    Lose,
    Restart,
    Stop,
)
from kipcheck.conformance.protocols.upgrade.strategies import streams, upgrade_scripts
from kipcheck.conformance.tests.protocols.streams import old_ops as old_streams, old_sentences
from kipcheck.conformance.tests.protocols.upgrade import old_ops as old_upgrade
from kipcheck.strategies.events import event
from kipcheck.strategies.mutate import mutate
from kipcheck.strategies.nodes import Integer, OneOf, Pick, Seq
from kipcheck.strategies.parse import belongs

NEW: dict[str, Any] = {"bounce": UPGRADE, "streams": STREAMS}
OLD: dict[str, Any] = {"bounce": old_upgrade.CODEC, "streams": old_streams.CODEC}
SENTENCES: dict[str, Any] = {"bounce": old_upgrade.describe, "streams": old_sentences.describe}
OLD_SCHEMA = json.loads(Path(__file__).with_name("old_testee.schema.json").read_text("utf-8"))


def new_schema() -> Any:
    from importlib.resources import files

    return json.loads((files("kipcheck.conformance.targets") / "testee.schema.json").read_text("utf-8"))


def bounce_nodes(edition_name: str) -> dict[str, Any]:
    member = Pick(MEMBERS)
    topics = Seq(Pick(tuple(name for name, _ in TOPICS)), 1, 2)
    events = {
        "settle": event("operator", "settle"),
        "roll": event("operator", "roll", member=member, kind=Pick(tuple(KINDS)), topics=topics),
        "move": event("operator", "move", member=member, moves=Integer(1, 6)),
        **{
            OLD["bounce"].verbs[made]: event("operator", OLD["bounce"].verbs[made], member=member)
            for made in (Crash, Lose, Expire, Stop, Restart)
        },
    }
    if edition_name == KIP_429.name:
        events["old-brokers"] = event("operator", "old-brokers")
    return events


def streams_nodes(releases: tuple[Any, ...], named: bool) -> dict[str, Any]:
    member = Pick(THREADS)
    verbs = OLD["streams"].verbs
    return {
        "stream-settle": event("operator", "stream-settle"),
        "stream-start": event(
            "operator", "stream-start",
            member=member, release=Pick(releases), upgrade_from=Pick((None, *LINES)), instance=Pick((None, *THREADS)),
        ),
        "stream-move": event("operator", "stream-move", member=member, moves=Integer(1, 6)),
        "stream-deploy": event(
            "operator", "stream-deploy", OneOf((*scripts.deployments(named).options, *scripts.LACKING.options))
        ),
        **{
            verbs[made]: event("operator", verbs[made], member=member)
            for made in (Lose, Expire, Crash, Restart, ShutDown)
        },
    }  # fmt: skip


def test_the_nodes_are_the_same() -> None:
    for name in ("kip-429", "apache@3.9.2"):
        assert [*upgrade_scripts(name).events.items()] == [*bounce_nodes(name).items()]
    versions = event("operator", "roll-streams", member=Pick(MEMBERS), version=Integer(1, 11))
    assert [*streams("kip-429").events.items()] == [("roll-streams", versions)]
    own = scripts.streams_scripts("apache@4.3.1").events
    assert [*own.items()] == [*streams_nodes((OWN, FUTURE), True).items()]
    mixed = (*scripts.MODERN, *scripts.PROBING, *scripts.ANCIENT)
    assert [*scripts.mixed_streams_scripts("apache@4.3.1").events.items()] == [*streams_nodes(mixed, False).items()]


def written(each: Step) -> str:
    """Byte for byte, order of keys included."""
    return json.dumps({"actor": each.actor, "verb": each.verb, "body": each.body})


def compare(kind: str, steps: tuple[Step, ...]) -> None:
    new, old = NEW[kind], OLD[kind]
    for each in steps:
        event = new.event_of(each)
        assert event == old.event_of(each) and type(event) is type(old.event_of(each))
        assert written(new.step_of(event)) == written(old.step_of(event))
        text = old.shorthand([each])
        assert new.shorthand([each]) == text == new.sentence(each)
        assert new.sender(each) == each.actor
        if each.verb != "stream-deploy":
            assert [*map(written, new.parse_shorthand(text))] == [*map(written, old.parse_shorthand(text))]


def compare_observed(kind: str, events: Any) -> None:
    new, old = NEW[kind], OLD[kind]
    assert json.dumps(new.answer_of(events)) == json.dumps(old.answer_of(events))
    for each in json.loads(json.dumps(old.answer_of(events)))["actions"]:
        made = new.observed.from_json(each)
        assert made == old.from_json(each) and type(made) is type(old.from_json(each))
        assert new.observed.describe(made) == SENTENCES[kind](made)


def machine(kind: str, where: str) -> Any:
    if kind == "bounce":
        return upgrade_model(edition(where))
    adapter: Any = streams_group(edition(where))
    return adapter._machine


@pytest.mark.parametrize(
    ("kind", "name", "where", "draws", "played"),
    [
        ("bounce", "bounce", "kip-429", 2_500, 150), ("bounce", "bounce", "apache@3.9.2", 2_500, 150),
        ("streams", "streams", "kip-268", 1_000, 30), ("streams", "streams", "apache@3.9.2", 2_000, 40),
        ("streams", "streams-mixed", "apache@4.3.1", 2_000, 40),
    ],
)  # fmt: skip
def test_ten_thousand_draws_agree(kind: str, name: str, where: str, draws: int, played: int) -> None:
    found = CONVERSATIONS[name](where)
    random, model = Random(where), machine(kind, where)
    swarm = found.swarm(random)
    for number in range(draws):
        if number < played:
            swarm = found.swarm(random) if number % 5 == 0 else swarm
            steps = found.draw(random, swarm)
        else:
            value = [{"actor": each.actor, "verb": each.verb, "body": each.body} for each in steps]
            steps = steps_from(mutate(found.declaration, value, random))
            steps = steps or found.draw(random, swarm)
        compare(kind, steps)
        if number < played:
            state = model.initial()
            for each in steps:
                state, actions = model.step(state, NEW[kind].event_of(each))
                compare_observed(kind, actions)


def test_samples_of_checks_and_their_mutations_agree() -> None:
    random = Random(2)
    for check in LISTED:
        kind = check.id.partition("/")[0]
        if kind in NEW:
            for subject in check.family.subjects("apache"):
                for sample in islice(check.samples(subject, 0), 40):
                    assert isinstance(subject, Subject)
                    compare(kind, sample.case.steps)
                    if belongs(check.declaration(subject), sample.value):
                        compare(kind, steps_from(mutate(check.declaration(subject), sample.value, random)))


def test_the_least_cases_of_mutants_agree() -> None:
    count = 0
    for each in MUTANTS.values():
        kind = each.check.partition("/")[0]
        if kind in NEW and isinstance(each.least, str):
            steps, before = NEW[kind].parse_shorthand(each.least), OLD[kind].parse_shorthand(each.least)
            assert [*map(written, steps)] == [*map(written, before)]
            compare(kind, steps)
            count += 1
    assert count > 50


OPS: list[dict[str, Any]] = [
    {"op": "roll", "member": "a", "kind": "old", "topics": ["t"]},
    {"op": "roll-streams", "member": "a", "version": 3},
    *({"op": verb, "member": "b"} for verb in ("stop", "crash", "revive", "lose", "expire")),
    {"op": "move", "member": "c", "moves": 2},
    {"op": "stream-start", "member": "d", "release": "own", "upgrade_from": None, "instance": None},
    *({"op": f"stream-{verb}", "member": "d"} for verb in ("stop", "restart", "lose", "expire", "shut-down")),
    {"op": "stream-move", "member": "a", "moves": 2},
    {"op": "stream-deploy", "topology": {"subtopologies": [], "standbys": 0}, "topics": {"t": 3}, "end_points": True,
     "tags": [["zone", "z1"]], "newest_leads": False},
    *({"op": verb} for verb in ("old-brokers", "settle", "stream-settle")),
]  # fmt: skip
WRONG: list[Any] = [
    None, "", "e", "a", 0, -1, True, 1.5, [], ["t"], ["x"], [1], {}, {"t": 1}, {"t": -1}, {"t": "1"}, [["a", "b"]],
    [["a"]], [["a", "b", "c"]], "own", {"subtopologies": []}, {"subtopologies": [{}], "standbys": 1},
]  # fmt: skip


def test_the_schemas_of_the_testee_accept_and_refuse_the_same() -> None:
    before, after = (
        jsonschema.Draft202012Validator({"$defs": each["$defs"], "$ref": "#/$defs/op"})
        for each in (OLD_SCHEMA, new_schema())
    )
    accepted = refused = 0
    base = {"type": "op", "case": 0, "role": "operator-tool", "edition": "apache", "n": 1}
    for op in OPS:
        whole = {**base, **op}
        variants = [whole]
        for key in op:
            variants += [{name: value for name, value in whole.items() if name != key}]
            variants += [{**whole, key: wrong} for wrong in WRONG]
        for each in variants:
            assert before.is_valid(each) == after.is_valid(each), each
            accepted, refused = accepted + before.is_valid(each), refused + (not before.is_valid(each))
    assert accepted > 100 and refused > 200


@pytest.mark.parametrize(("kind", "text"), [
    ("bounce", "jump"), ("bounce", "roll a newest"), ("bounce", "crash"), ("bounce", "crash d"), ("bounce", "move a x"),
    ("bounce", "roll a old v"), ("bounce", "streams a"), ("bounce", "settle now"), ("streams", "start e own"),
    ("streams", "start a own of"), ("streams", "deploy"), ("streams", "stop"), ("streams", "move a 1 2"),
])  # fmt: skip
def test_what_is_no_shorthand_is_refused_by_both(kind: str, text: str) -> None:
    for parse in (OLD[kind].parse_shorthand, NEW[kind].parse_shorthand):
        with pytest.raises(ValueError):
            parse(text)


@pytest.mark.parametrize(("kind", "wrong"), [
    ("bounce", step("o", "jump")), ("bounce", step("o", "roll", member="a")),
    ("bounce", step("o", "crash", member="d")),
    ("bounce", step("o", "roll", member="a", kind="new")), ("streams", step("o", "stream-start", member="e")),
    ("bounce", step("o", "roll", member="a", kind="old", topics=["x"])), ("streams", step("o", "crash", member="a")),
    ("streams", step("o", "stream-deploy", topology={})), ("streams", step("o", "stream-settle", member="a")),
])  # fmt: skip
def test_what_is_no_operation_is_refused_by_both(kind: str, wrong: Step) -> None:
    for read in (OLD[kind].event_of, NEW[kind].event_of):
        with pytest.raises((LookupError, TypeError, ValueError)):
            read(wrong)


def test_roles_and_machines_are_the_same() -> None:
    assert UPGRADE.role is STREAMS.role is Role.OPERATOR_TOOL
    assert (UPGRADE.machines, STREAMS.machines) == (("bounce",), ("streams", "streams-mixed"))
    assert [[*each.verbs] for each in NEW.values()] == [[*each.events] for each in OLD.values()]
