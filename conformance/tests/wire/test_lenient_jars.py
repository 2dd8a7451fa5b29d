"""Lenient reading takes what the readers in released jars take, of damaged bytes too, and makes the same of it."""

import random
from typing import Any

import pytest

from kipcheck.conformance.clients.java.programs import JavaCodec, Order
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.tests.support.agreement import BY_HAND
from kipcheck.conformance.tests.support.draws import damaged, value
from kipcheck.conformance.tests.support.releases import CLIENTS
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
            luck = random.Random(f"{release} {each} lenient")
            for n in range(number):
                data = damaged(each.encode(value(each, luck)), luck) if n % 4 else luck.randbytes(luck.randrange(30))
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
