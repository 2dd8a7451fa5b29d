"""A declaration has three readings and one language."""

import math
import subprocess
import sys
from itertools import islice
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import find, given, settings, strategies as st

from kipcheck.conformance.wire import layout
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.compiled import ascending, compiled, double, text
from kipcheck.strategies.messages import from_layout
from kipcheck.strategies.mutate import mutate
from kipcheck.strategies.nodes import (
    Blob,
    Embedded,
    Flag,
    Float,
    Integer,
    Node,
    OneOf,
    Pick,
    Record,
    Row,
    Seq,
    Text,
    Uuid,
    nullable,
    record,
    with_fields,
)
from kipcheck.strategies.parse import belongs, parse
from kipcheck.strategies.reduce import least, reduce, simpler, simpler_together

JOIN_GROUP = from_layout(layout("apache", "JoinGroupRequest", 9))
STICKY = Embedded("apache", "StickyAssignorUserData", 1, from_layout(layout("apache", "StickyAssignorUserData", 1)))
TAGGED = record(tag=Integer(0, 3), data=Blob(0, 2))
DECLARATIONS: dict[str, Node] = {
    "a request": JOIN_GROUP,
    "an answer with tags": from_layout(layout("apache", "ApiVersionsResponse", 4)),
    "sizes": record(text=Text(2, 3), blob=Blob(1, 2), seq=Seq(Seq(Flag(), 2, 2), 1, 3), wide=Integer(-(2**63), 2**63)),
    "nothing to choose": record(none=Record(()), one=Pick(("range",)), int=Integer(5, 5), seq=Seq(Flag(), 0, 0)),
    "overlaps": OneOf((Integer(5, 9), nullable(Integer(-9, 7, interesting=(-9,))), Seq(Pick((1, "1", b"1", None))))),
    "far from zero": record(above=Integer(10_000, 2**40), below=Integer(-(2**40), -10_000), byte=Integer(0, 255)),
    "scalars": record(float=Float(), uuid=Uuid(), text=Text(0, 300, interesting=("t0", "t1")), blob=Blob(0, 300)),
    "ascending": Seq(TAGGED, 1, 3, ascending="tag"),
    "optional": Record((("here", Flag()),), (("perhaps", Integer(0, 1)), ("tags", Seq(TAGGED, 1, 2, ascending="tag")))),
    "a row": Row((Pick((0,)), Text(0, 3), Row((Flag(), Flag())))),
    "embedded": OneOf((Blob(0, 300), STICKY)),
    "only embedded": STICKY,
}
QUICK = {"sizes", "overlaps", "optional", "embedded"}
"""Those of few fields: each value is reduced to the least one."""
each_declaration = pytest.mark.parametrize("node", DECLARATIONS.values(), ids=DECLARATIONS)


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(each, id=name, marks=() if name in QUICK else pytest.mark.integration)
        for name, each in DECLARATIONS.items()
    ],
)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_what_hypothesis_draws_belongs(node: Node, data: st.DataObject) -> None:
    value = data.draw(strategy(node))
    assert parse(node, value) is value
    assert all(belongs(node, each) for each in islice(simpler(node, value), 50))
    assert all(belongs(node, each) for each in islice(simpler_together(node, value), 50))
    assert reduce(node, value, lambda _: True) == least(node)


def test_two_amounts_are_made_one_within_the_bounds_only() -> None:
    node = Seq(record(ms=Integer(-5, 5)), 0, 4)
    value = [{"ms": -4}, {"ms": -3}, {"ms": -1}]
    found = list(simpler(node, value))
    assert all(belongs(node, each) for each in found)
    assert [{"ms": -4}, {"ms": -4}] in found


@each_declaration
def test_what_is_compiled_or_mutated_belongs(node: Node) -> None:
    random, draw = Random(7), compiled(node)
    for _ in range(200):
        value = parse(node, draw(random))
        for _ in range(3):
            value = parse(node, mutate(node, value, random))


@pytest.mark.parametrize(
    "node, language",
    [
        (
            record(flag=Flag(), level=OneOf((Pick((None,)), Integer(0, 1), Seq(Pick(("a", "b")), 1, 1)))),
            [{"flag": f, "level": v} for f in (False, True) for v in (None, 0, 1, ["a"], ["b"])],
        ),
        (
            Record((("a", Row((Pick((0, 1)), Pick((2,))))),), (("b", Flag()),)),
            [{"a": [n, 2], **b} for n in (0, 1) for b in ({}, {"b": False}, {"b": True})],
        ),
        (
            Seq(record(n=Integer(0, 2)), 1, 2, ascending="n"),
            [[{"n": n} for n in ns] for ns in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))],
        ),
    ],
)
def test_no_reading_says_less_than_another(node: Node, language: list[Any]) -> None:
    random, value, mutated = Random(7), least(node), []
    for _ in range(400):
        mutated.append(value := mutate(node, value, random))
    drawn = [compiled(node)(random) for _ in range(400)]
    for word in language:
        assert word in mutated
        assert word in drawn
        assert find(strategy(node), word.__eq__, settings=settings(database=None)) == word
    assert all(each in language for each in (*mutated, *drawn))


@pytest.mark.parametrize(
    "node, value, complaint",
    [
        (
            JOIN_GROUP,
            least(JOIN_GROUP) | {"protocols": [{"name": "", "metadata": bytes(n)} for n in (0, 301)]},
            "protocols[1].metadata: size 301 is outside 0 to 300",
        ),
        (
            JOIN_GROUP,
            least(JOIN_GROUP) | {"_unknownTaggedFields": [{"tag": n, "data": b""} for n in (4, 9, 9)]},
            "_unknownTaggedFields[2].tag: more than 9 is wanted, not 9",
        ),
        (record(level=Flag()), {"levels": True}, "the value: the fields level are wanted, not levels"),
        (
            Record((("a", Flag()),), (("b", Flag()),)),
            {"b": True},
            "the value: the fields a (and perhaps b) are wanted, not b",
        ),
        (Integer(0, 1), True, "the value: an integer is wanted, not True"),
        (Float(), math.nan, "the value: a finite float is wanted, not nan"),
        (Float(), 1, "the value: a finite float is wanted, not 1"),
        (Uuid(), "0", "the value: a uuid is wanted, not '0'"),
        (Text(), "\ud800", "the value: '\\ud800' has a surrogate, which UTF-8 cannot carry"),
        (Row((Flag(), Flag())), [True], "the value: size 1 is outside 2 to 2"),
        (Row((Flag(), Flag())), [True, 1], "[1]: true or false is wanted, not 1"),
        (STICKY, "", "the value: bytes are wanted, not ''"),
        (
            STICKY,
            bytes(4),
            "the value: StickyAssignorUserData v1 / generation at byte 4: ",
        ),
    ],
)
def test_what_does_not_belong_is_told_where_and_why(node: Node, value: Any, complaint: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse(node, value)
    assert str(raised.value).startswith(complaint)


def test_one_and_true_are_two_constants() -> None:
    assert [compiled(Pick((option,)))(Random(7)) is option for option in (1, True)] == [True, True]
    with pytest.raises(ValueError, match="constants must be distinct"):
        Pick((1, True))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Integer(2, 1),
        lambda: Integer(0, 1, (2,)),
        lambda: Text(0, 1, ("ab",)),
        lambda: Text(3, 2),
        lambda: Blob(-1, 2),
        lambda: Seq(Flag(), 2, 1),
        lambda: Seq(TAGGED, 2, 3, ascending="tag"),
    ],
)
def test_a_declaration_that_allows_nothing_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError):
        wrong()


def test_fields_are_replaced_by_name() -> None:
    node = with_fields(record(a=Flag(), b=Flag()), b=Pick((3,)))
    assert compiled(node)(Random(1))["b"] == 3
    with pytest.raises(KeyError, match="c"):
        with_fields(node, c=Flag())


def test_the_source_is_kept_and_reads_well() -> None:
    node = Record(
        (("level", Integer(1, 3)), ("names", Seq(Text())), ("pair", Row((Flag(), Pick(("x",)))))),
        (("rest", Blob(0, 9)),),
    )
    assert (
        compiled(node).source
        == """\
def draw(random):
    rand, bits = random.random, random.getrandbits
    return {
        'level': 1 + int(rand() * 3),
        'names': [text(random, int(rand() * 21)) for _ in range(int(rand() * 5))],
        'pair': [
            rand() < 0.5,
            'x',
        ],
        **({'rest': bits(8 * (size := int(rand() * 10))).to_bytes(size, 'little')} if rand() < 0.125 else {}),
    }
"""
    )


def test_texts_have_every_sort_of_character() -> None:
    random = Random(7)
    drawn = "".join(text(random, 20) for _ in range(2_000))
    drawn.encode()  # no half of a surrogate pair
    sorts = {"NUL": "\0", "ASCII": "a", "two": "\x80\u07ff", "three": "\u0800\uffff", "four": "\U00010000\U0010ffff"}
    for name, ends in sorts.items():
        assert any(ends[0] <= each <= ends[-1] for each in drawn), name


def test_doubles_are_finite_and_not_only_whole() -> None:
    drawn = [double(Random(seed)) for seed in range(500)]
    assert all(map(math.isfinite, drawn))
    assert any(each != int(each) for each in drawn) and any(abs(each) > 2**60 for each in drawn)


def test_numbers_come_in_every_size_and_at_their_bounds() -> None:
    node = Integer(-(2**63), 2**63 - 1, interesting=(-(2**63), 2**63 - 1))
    random, draw = Random(7), compiled(node)
    drawn = [draw(random) for _ in range(4_000)]
    assert {node.low, node.high} <= {*drawn}
    assert {abs(each).bit_length() for each in drawn} >= {*range(1, 64)}


def test_of_equal_keys_the_last_stays() -> None:
    items = [{"n": 2, "x": 0}, {"n": 1, "x": 1}, {"n": 2, "x": 2}]
    assert ascending(items, "n") == [{"n": 1, "x": 1}, {"n": 2, "x": 2}]


PROGRAM = """
import hashlib
from random import Random
from kipcheck.conformance.wire import layout
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.damage import damages
from kipcheck.strategies.messages import from_layout
from kipcheck.strategies.mutate import mutate
from kipcheck.strategies.reduce import reduce
from kipcheck.strategies.versions import join_group_stream

digest, random = hashlib.sha256(), Random("seed/0/1")
for name, version in (("JoinGroupRequest", 9), ("ApiVersionsResponse", 3), ("StreamsGroupHeartbeatRequest", 0)):
    one = layout("apache", name, version)
    node = from_layout(one)
    draw = compiled(node)
    for _ in range(20):
        value = mutate(node, draw(random), random)
        digest.update(repr(value).encode())
        digest.update(repr([*damages(one, value, random)]).encode())
    digest.update(repr(reduce(node, value, lambda each: len(repr(each)) > 200)).encode())
digest.update(repr(compiled(join_group_stream())(random)).encode())
print(digest.hexdigest())
"""


def test_one_seed_gives_the_same_draws_in_every_process() -> None:
    runs = [
        subprocess.check_output([sys.executable, "-c", PROGRAM], env={"PYTHONHASHSEED": seed}, text=True, timeout=120)
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != ""


def test_no_value_is_changed_in_place() -> None:
    node, random = JOIN_GROUP, Random(3)
    value = compiled(node)(random)
    before = repr(value)
    for _ in range(50):
        mutate(node, value, random)
    reduce(node, value, lambda each: bool(each["memberId"]))
    assert repr(value) == before


def test_the_zero_uuid_is_drawn_often_and_others_too() -> None:
    drawn = [compiled(Uuid())(random) for random in map(Random, range(50))]
    assert UUID(int=0) in drawn and len({*drawn}) > 20
