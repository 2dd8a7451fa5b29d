"""The declarations of steps that are derived from operations."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from kipcheck.conformance.core.operations.declaration import Operations, operation
from kipcheck.conformance.core.operations.field_annotations import optional, size, typical
from kipcheck.conformance.core.operations.field_kinds import one_of
from kipcheck.conformance.core.values.case import Role
from kipcheck.strategies.events import event
from kipcheck.strategies.nodes import Flag, Integer, OneOf, Pick, Record, Row, Seq, Text, record
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


@operation("sing", "client", "sing {song} {parts}")
@dataclass(frozen=True, slots=True)
class Sing:
    """A client sings."""

    song: Annotated[str, one_of("lied", "aria")]
    parts: Annotated[tuple[Annotated[str, one_of("alto", "bass")], ...], size(1, 2)]
    times: Annotated[int, typical(1, 2)] = 1


def test_choices_lists_of_choices_and_fields_that_are_drawn_otherwise() -> None:
    parts = Seq(Pick(("alto", "bass")), 1, 2)
    assert nodes(Sing)["sing"] == event("client", "sing", song=Pick(("lied", "aria")), parts=parts, times=Pick((1,)))
    (other,) = Operations("choir", Role.STORE, (Sing,)).of(Sing)
    assert nodes(other, drawn={"song": Text()})["sing"] == event(
        "client", "sing", song=Text(), parts=parts, times=Pick((1,))
    )
