"""The checks of the JSON in ZooKeeper: what is drawn is legal, what is spoilt is not, and who takes what."""

import json
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step, step
from kipcheck.conformance.core.values.history import History, Observation, Op, Refused as Refusal, Replied
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.catalogue.tables import requirement
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.codec.checks.nodes import (
    FLAWS,
    drawn,
    flawed,
    node_of,
    round_trip,
    shown,
    subject,
    subjects,
)
from kipcheck.conformance.protocols.codec.invariants.nodes import decoded
from kipcheck.conformance.protocols.codec.strategies import as_json, from_node
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.znodes import znode
from kipcheck.strategies.parse import belongs

OURS = [each for each in all_invariants(Role.CODEC) if each.id.startswith("nodes/")]
SUBJECTS = [*subjects("apache"), *subjects("kip-584"), *subjects("apache@2.7.0")]


@pytest.mark.parametrize("of", SUBJECTS, ids=lambda each: f"{each.edition}-{each.layout}")
def test_what_is_drawn_is_a_legal_node_and_all_its_forms_are(of: Any) -> None:
    for seed in range(30):
        value = drawn(of, Random(seed))
        assert belongs(from_node(node_of(of)), value)
        node = as_json(node_of(of), value)
        assert of.layout.decode(of.layout.encode(node)) == node
        for conversation in round_trip(of, value, Random(0)):
            for each in conversation.steps:
                if each.verb == "decode":
                    assert of.layout.decode(bytes.fromhex(each["hex"])) == node, conversation.kind


@pytest.mark.parametrize("of", SUBJECTS, ids=lambda each: f"{each.edition}-{each.layout}")
def test_what_is_spoilt_breaks_the_text(of: Any) -> None:
    kinds = set()
    for seed in range(10):
        for conversation in flawed(of, drawn(of, Random(seed)), Random(0)):
            (asked,) = conversation.steps
            case = Case("nodes/flaws", of.edition, Role.CODEC, (asked,))
            strictly = decoded(case, asked, lenient=False)
            # From 3.8.0 on a broker's lowest level may be 0 (KAFKA-17011); a feature without a name the draft forbids.
            zero = conversation.kind in ("lowest level 0", "highest level 0") and node_of(of).lowest == 0
            lawful = zero or (conversation.kind == "no name" and of.edition != "kip-584")
            assert isinstance(strictly, Refused) or lawful, (conversation.kind, bytes.fromhex(asked["hex"]))
            kinds.add(conversation.kind)
    if of.name == "FeatureZNode" and len(node_of(of).labels) == 2:
        assert kinds == FLAWS.keys() - {"endpoints as text"}


def judged(of: Any, text: str, observation: Observation, verb: str = "decode") -> dict[str, Result]:
    body = {"hex": text.encode().hex()} if verb == "decode" else {"value": json.loads(text)}
    asked = step("codec", verb, message=of.name, version=of.version, **body)
    history = History(Case("test", of.edition, Role.CODEC, (asked,)), "somebody", (Op(0, asked, observation, 1),))
    return {each.invariant: each.result for each in judge(history, OURS)}


DRAFT, RELEASED = subject("kip-584", "FeatureZNode", 0), subject("apache", "FeatureZNode", 1)
NO = Refusal("ValueError")


def node(version: int, features: str) -> str:
    return f'{{"version":{version},"status":1,"features":{features}}}'


def test_only_what_no_reader_takes_has_to_be_refused() -> None:
    took = Replied((("value", {}),))
    past = '{"f":{"min_version_level":1,"max_version_level":65537}}'
    assert judged(DRAFT, node(0, past), took) == {"nodes/refuses": Result.FAIL}
    assert judged(DRAFT, node(0, past), NO) == {"nodes/refuses": Result.PASS}
    # Released readers keep the low 16 bits, so either answer is one that Kafka gives.
    assert reading_of(RELEASED, node(1, past)) == (True, False)
    assert judged(RELEASED, node(1, past), took) == judged(RELEASED, node(1, past), NO) == {}


def reading_of(of: Any, text: str) -> tuple[bool, bool]:
    asked = step("codec", "decode", message=of.name, version=of.version, hex=text.encode().hex())
    case = Case("test", of.edition, Role.CODEC, (asked,))
    strictly, leniently = (isinstance(decoded(case, asked, lenient), Refused) for lenient in (False, True))
    return strictly, leniently


def test_a_legal_node_is_read_as_it_stands() -> None:
    text = node(0, '{"f":{"min_version_level":1,"max_version_level":2,"since":"2020"}}')
    right = {"version": 0, "status": 1, "features": {"f": {"min_version_level": 1, "max_version_level": 2}}}
    assert judged(DRAFT, text, Replied((("value", right),))) == {"nodes/reads": Result.PASS}
    wrong = {**right, "status": 0}
    assert judged(DRAFT, text, Replied((("value", wrong),))) == {"nodes/reads": Result.FAIL}
    assert judged(DRAFT, text, NO) == {"nodes/reads": Result.FAIL}


@pytest.mark.parametrize(
    ("read", "result"),
    [
        ({"status": 1, "features": {"f": {"max_version_level": 2}}}, Result.PASS),
        ({"status": 1, "features": {"f": {"max_version_level": 2, "min_version_level": 1}}}, Result.PASS),
        ({"status": 1, "features": {"f": {"max_version_level": 2, "min_version_level": 2}}}, Result.FAIL),
        ({"status": 1, "features": {"f": {}}}, Result.FAIL),
        ({"status": 1, "features": {}}, Result.FAIL),
        ({"features": {"f": {"max_version_level": 2}}}, Result.FAIL),
    ],
)
def test_a_reader_may_skip_what_released_readers_skip(read: Any, result: Result) -> None:
    """Since 3.3 a finalized feature has no lowest level in memory, and no release keeps the time of a registration."""
    text = node(1, '{"f":{"min_version_level":1,"max_version_level":2}}')
    assert judged(RELEASED, text, Replied((("value", {"version": 1, **read}),))) == {"nodes/reads": result}
    old = subject("apache@3.2.3", "FeatureZNode", 1)
    if "min_version_level" not in str(read):
        assert judged(old, text, Replied((("value", {"version": 1, **read}),))) == {"nodes/reads": Result.FAIL}


def test_a_writer_takes_the_time_from_its_clock() -> None:
    of = subject("apache", "BrokerIdZNode", 1)
    value = {"version": 1, "host": "h", "port": 1, "jmx_port": 2, "timestamp": "3"}
    for other, result in (({"timestamp": "4"}, Result.PASS), ({"jmx_port": 4}, Result.FAIL)):
        written = Replied((("hex", json.dumps({**value, **other}).encode().hex()),))
        assert judged(of, json.dumps(value), written, "encode") == {"nodes/writes": result}


@pytest.mark.parametrize(
    ("written", "result"),
    [
        (node(0, "{}"), Result.PASS),
        ('{ "features": {}, "status": 1,\n "version": 0 }', Result.PASS),
        (node(0, '{"f":{"min_version_level":1,"max_version_level":1}}'), Result.FAIL),
        (node(1, "{}"), Result.FAIL),
        ("{}", Result.FAIL),
        ("", Result.FAIL),
    ],
)
def test_what_is_written_is_judged_by_what_it_says(written: str, result: Result) -> None:
    observation = Replied((("hex", written.encode().hex()),))
    assert judged(DRAFT, node(0, "{}"), observation, "encode") == {"nodes/writes": result}


def test_a_value_that_has_to_be_written_is_not_refused() -> None:
    assert judged(DRAFT, node(0, "{}"), NO, "encode") == {"nodes/writes": Result.FAIL}


def test_other_steps_are_none_of_these_rules() -> None:
    asked = step("codec", "decode", message="HeartbeatResponse", version=0, hex="0000")
    history = History(Case("test", "apache", Role.CODEC, (asked,)), "somebody", (Op(0, asked, NO, 1),))
    assert not [*judge(history, OURS)]


@pytest.mark.parametrize("id", ["584-01", "584-02", "584-48", "584-60", "584-61", "584-64"])
def test_the_rules_of_nodes_are_covered(id: str) -> None:
    assert "nodes/flaws" in requirement(id)["checks"]


def test_the_guilty_bytes_are_shown() -> None:
    asked: Step = step("codec", "decode", message="FeatureZNode", version=0, hex=node(0, '{"f":3}').encode().hex())
    history = History(Case("test", "kip-584", Role.CODEC, (asked,)), "somebody", (
        Op(0, asked, Replied((("value", {}),)), 1),
    ))  # fmt: skip
    (verdict,) = judge(history, OURS)
    (exhibit,) = shown(history, verdict.violations[0])
    guilty = [row for row in exhibit["rows"] if row["guilty"]]
    assert [row["path"] for row in guilty] == ["features.f"]
    assert znode("kip-584", "FeatureZNode", 0).names == ("version", "status", "features")


def test_the_checks_are_about_every_node_of_every_edition_that_has_some() -> None:
    assert {(each.name, each.version) for each in subjects("kip-584")} >= {("FeatureZNode", 0), ("BrokerIdZNode", 5)}
    assert not [*subjects("apache@4.4.0")]
    assert {"nodes/round-trip", "nodes/flaws"} <= CHECKS.keys()
