"""The declarations of steps that are derived from operations."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from kipcheck.conformance.core.operations import operation, optional, typical
from kipcheck.strategies.events import event
from kipcheck.strategies.nodes import Flag, Integer, OneOf, Pick, Record, Row, Text, record
from kipcheck.strategies.operations import nodes


@operation("up", "broker", ("up {broker} {low}", "up {broker} -"))
@dataclass(frozen=True, slots=True)
class Up:
    """A broker starts."""

    broker: Annotated[int, typical(range(3))]
    low: Annotated[int | None, typical(1, 5)]


@operation("name", "client", "name {text}{loud:!}[ on {topics}]")
@dataclass(frozen=True, slots=True)
class Name:
    """A client has a name."""

    text: str
    loud: bool = False
    topics: Annotated[tuple[str, ...] | None, typical(None, ("t", "u"))] = None


@operation("wait", "time", "wait {ms}")
@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""

    ms: int


def test_each_form_is_an_alternative_and_typical_values_are_drawn() -> None:
    broker = Integer(0, 2)
    forms = (record(broker=broker, low=Pick((1, 5))), record(broker=broker, low=Pick((None,))))
    topics = OneOf((Pick((None,)), Row((Pick(("t",)), Pick(("u",))))))
    found = nodes(Name, Up)
    assert [*found] == ["name", "up"]
    assert found["up"] == event("broker", "up", OneOf(forms))
    assert found["name"] == event("client", "name", text=Text(), loud=Flag(), topics=topics)


@operation("call", "owner", "call {name}[ {loud:loudly}]")
@dataclass(frozen=True, slots=True)
class Call:
    """The owner calls."""

    name: str
    loud: Annotated[bool, optional] = False


def test_optional_fields_may_be_left_out() -> None:
    assert nodes(Call)["call"] == event("owner", "call", Record((("name", Text()),), (("loud", Flag()),)))


def test_an_integer_without_typical_values_is_an_error() -> None:
    with pytest.raises(TypeError, match="the field ms has no typical values"):
        nodes(Wait)
