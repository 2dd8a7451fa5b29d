"""Lenient reading takes what the readers in released jars take, of damaged bytes too, and makes the same of it."""

import random
from dataclasses import replace
from typing import Any

import pytest

from kipcheck.conformance.clients.java.programs import JavaCodec, Order, java_judge
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.tests.support.agreement import BY_HAND
from kipcheck.conformance.tests.support.draws import damaged, value
from kipcheck.conformance.tests.support.releases import CLIENTS, OLD
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.constructs import read
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout, messages, spec

pytestmark = pytest.mark.jars
EACH = 12
"""Inputs for each version of each message."""


def inputs(release: str, wanted: tuple[str, ...], number: int = EACH) -> list[tuple[Layout, bytes]]:
    found = []
    for message in wanted:
        for each in spec(edition(f"apache@{release}"), message):
            rng = random.Random(f"{release} {each} lenient")
            for n in range(number):
                data = damaged(each.encode(value(each, rng)), rng) if n % 4 else rng.randbytes(rng.randrange(30))
                found.append((each, data))
    return found


def ours(found: Layout, data: bytes) -> Any:
    try:
        return found.codec.to_json(read(found, data, lenient=True))
    except Refused as refused:
        return refused


@pytest.mark.parametrize("release", CLIENTS)
def test_generated_readers_agree_on_damaged_bytes(release: str, judge: JavaCodec) -> None:
    wanted = tuple(each for each in messages(edition(f"apache@{release}")) if each not in BY_HAND)
    asked = inputs(release, wanted)
    orders = [Order("decode", each.message, each.version, hex=data.hex(), release=release) for each, data in asked]
    compared = {"accepted": 0, "rejected": 0}
    for (each, data), answer in zip(asked, judge.answers(orders), strict=True):
        if answer.status not in compared:
            assert answer.status == "unsupported", answer
            continue
        found = ours(each, data)
        assert isinstance(found, Refused) == (answer.status == "rejected"), (str(each), data.hex(), str(found), answer)
        if answer.status == "accepted":
            assert found == answer.value, (str(each), data.hex())
        compared[answer.status] += 1
    assert min(compared.values()) > 300, compared


def test_the_assignment_reader_of_streams_agrees_on_damaged_bytes(judge: JavaCodec) -> None:
    """On whether it reads them: what it makes of them are maps, which keep neither order nor repetition."""
    asked = inputs("4.3.1", ("AssignmentInfo",), 100)
    orders = [Order("decode", each.message, each.version, hex=data.hex(), release="4.3.1") for each, data in asked]
    for (each, data), answer in zip(asked, judge.answers(orders), strict=True):
        found = ours(each, data)
        assert isinstance(found, Refused) == (answer.status == "rejected"), (str(each), data.hex(), str(found), answer)


def test_a_tag_that_a_field_of_another_version_has_is_refused_as_generated_readers_refuse_it(judge: JavaCodec) -> None:
    """In the top struct of every layout of ours that reserves a tag; in others the lowest tag is skipped."""
    refused, skipped = 0, 0
    for release in CLIENTS:
        for message in messages(edition(f"apache@{release}")):
            for at in () if message in BY_HAND else spec(edition(f"apache@{release}"), message):
                if not at.flexible or (at.tagged and not at.reserved):
                    continue
                for tag in sorted(at.reserved) or (0,):
                    data = at.encode({})[:-1] + bytes((1, tag, 0))
                    answer = judge.one(Order("decode", message, at.version, hex=data.hex(), release=release))
                    if answer.status != "unsupported":
                        expected = "rejected" if at.reserved else "accepted"
                        assert (answer.status, release, str(at), tag) == (expected, release, str(at), tag)
                        assert isinstance(ours(at, data), Refused) == bool(at.reserved), (release, str(at), tag)
                        refused, skipped = refused + bool(at.reserved), skipped + (not at.reserved)
    assert refused >= 16 and skipped > 50


def test_a_release_that_does_not_know_a_later_tag_skips_it_inside_an_element() -> None:
    """Of Fetch v12 the partition has its first tag since 3.9.0."""
    partition = {"_unknownTaggedFields": [{"tag": 0, "data": bytes(16)}]}
    data = layout("apache@2.8.2", "FetchRequest", 12).encode({"topics": [{"topic": "t", "partitions": [partition]}]})
    order = Order("decode", "FetchRequest", 12, hex=data.hex())
    with java_judge({"2.8.2": ("clients",), OLD: ("clients",)}) as judge:
        answers = {release: judge.one(replace(order, release=release)) for release in ("2.8.2", OLD)}
    for release, taken in (("2.8.2", True), (OLD, False)):
        at, answer = layout(f"apache@{release}", "FetchRequest", 12), answers[release]
        assert (answer.status == "accepted") == taken, answer
        assert isinstance(ours(at, data), Refused) != taken
