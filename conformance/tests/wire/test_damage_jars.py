"""What is expected of readers holds for released Kafka: what must be refused is refused by every jar, and so on."""

from collections import Counter
from random import Random

import pytest

from kipcheck.conformance.clients.java.programs import Answer, JavaCodec, Order, java_judge, parts
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.tests.support.agreement import BY_HAND, CONSUMER, STREAMS, generated, of
from kipcheck.conformance.tests.support.releases import CLIENTS, STREAMS_JARS
from kipcheck.conformance.tests.wire.test_jars import LINES
from kipcheck.conformance.wire.constructs import byte_map
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout, messages
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.damage import Damage, Outcome, damages, every_damage
from kipcheck.strategies.messages import from_layout, layouts

pytestmark = pytest.mark.jars

VALUES = 3
"""Of every version of every message."""


def asked(judge: JavaCodec, release: str, layout: Layout, op: str) -> list[tuple[Damage, Answer]]:
    draw, random = compiled(from_layout(layout)), Random(f"jars {layout}")
    done = [damage for _ in range(VALUES) for damage in damages(layout, draw(random), random)]
    orders = (Order(op, layout.message, layout.version, hex=each.data.hex(), release=release) for each in done)
    return [*zip(done, judge.answers(orders), strict=True)]


@pytest.mark.parametrize("release", CLIENTS)
def test_generated_readers_do_as_is_expected_of_them(release: str, judge: JavaCodec) -> None:
    wrong: list[tuple[Layout, str, str, str, object]] = []
    seen = Counter[str]()
    for message in (each for each in messages(edition(f"apache@{release}")) if each not in BY_HAND):
        for layout in of(release, message):
            for damage, answer in asked(judge, release, layout, "recode"):
                seen[damage.kind] += 1
                accepted = answer.status == "accepted"
                if accepted and damage.outcome is Outcome.REFUSE:
                    wrong.append((layout, damage.kind, damage.path, damage.data.hex(), "accepted"))
                if damage.outcome is Outcome.ACCEPT and answer.hex != damage.data.hex():
                    wrong.append((layout, damage.kind, damage.path, damage.data.hex(), answer))
    assert not wrong, (len(wrong), [f"{layout}: {rest}" for layout, *rest in wrong[:5]])
    assert {"prefix", "length", "long-varint", "unknown-tag"} <= seen.keys()


@pytest.mark.parametrize("message", STREAMS)
def test_hand_written_readers_refuse_what_must_be_refused(message: str, judge: JavaCodec) -> None:
    wrong = []
    for release in STREAMS_JARS:
        for layout in of(release, message):
            for damage, answer in asked(judge, release, layout, "decode"):
                if answer.status == "accepted" and damage.outcome is not Outcome.EITHER:
                    wrong.append((release, str(layout), damage.kind, damage.path, damage.data.hex()))
    assert not wrong, (len(wrong), wrong[:5])


def test_every_damage_to_a_few_messages_is_met_as_expected(judge: JavaCodec) -> None:
    release, wrong = "4.4.0", []
    for message, version in (("JoinGroupRequest", 9), ("ApiVersionsResponse", 3), ("ShareGroupHeartbeatResponse", 1)):
        (layout,) = (each for each in of(release, message) if each.version == version)
        draw, random = compiled(from_layout(layout)), Random(1)
        done = [damage for _ in range(3) for damage in every_damage(layout, draw(random))]
        orders = [Order("decode", message, version, hex=each.data.hex(), release=release) for each in done]
        for damage, answer in zip(done, judge.answers(orders), strict=True):
            accepted = answer.status == "accepted"
            if damage.outcome is (Outcome.REFUSE if accepted else Outcome.ACCEPT):
                wrong.append((str(layout), damage.kind, damage.path, damage.data.hex(), answer))
    assert not wrong, (len(wrong), wrong[:5])


def test_every_definition_in_a_jar_has_values_and_a_map(judge: JavaCodec) -> None:
    """Messages that nobody declared here, with types and tags that none of ours has."""
    met = 0
    for message in messages(edition("maven:4.4.0")):
        for layout in layouts("maven:4.4.0", message):
            random = Random(f"definitions {layout}")
            value = compiled(from_layout(layout))(random)
            data = layout.encode(value)
            assert layout.decode(data) == value
            assert byte_map(layout, value).value == value
            for damage in damages(layout, value, random, ("prefix", "length", "long-varint", "unknown-tag")):
                try:
                    found = layout.decode(damage.data)
                except Refused:
                    assert damage.outcome is not Outcome.ACCEPT, (layout, damage)
                else:
                    assert damage.outcome is not Outcome.REFUSE and damage.value in (None, found), (layout, damage)
            met += 1
    assert met > 500


@pytest.mark.all_jars
@pytest.mark.parametrize("release", LINES)
def test_no_release_accepts_what_must_be_refused(release: str) -> None:
    have, wrong, met = parts(release), [], 0
    with java_judge({release: have}) as judge:
        by_hand = (each for name in (*(STREAMS if "streams" in have else ()), *CONSUMER) for each in of(release, name))
        recoded = generated(release) if Release.parse(release) >= Release.parse("2.4.0") else ()
        for layout in (*by_hand, *recoded):
            if judge.one(Order("versions", layout.message)).status == "unsupported":
                continue
            for damage, answer in asked(judge, release, layout, "decode" if layout.message in STREAMS else "recode"):
                met += 1
                if answer.status == "accepted" and damage.outcome is Outcome.REFUSE:
                    wrong.append((str(layout), damage.kind, damage.path, damage.data.hex(), answer))
    assert met > 10
    assert not wrong, (len(wrong), wrong[:5])
