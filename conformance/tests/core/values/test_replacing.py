"""``replace`` does as the one of ``dataclasses``, for classes of all kinds."""

import dataclasses
from dataclasses import dataclass, field

import pytest

from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.protocols.member.model.state import NO_IDENTITY, Phase, State


@dataclass(frozen=True, slots=True)
class Pair:
    left: int = 0
    right: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Triple(Pair):
    more: str = ""


@dataclass(frozen=True, slots=True)
class Single:
    left: int = 0


@dataclass
class Plain:
    left: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True)
class Positive:
    left: int = 1
    right: int = 1

    def __post_init__(self) -> None:
        if self.left < 1:
            raise ValueError("not positive")


@dataclass(frozen=True, slots=True)
class Derived:
    left: int = 0
    right: int = 1
    both: int = field(init=False, default=7)


@pytest.mark.parametrize("value", [Pair(1, (2,)), Triple(1, (2,), "x"), Single(1), Plain(1, 2), Positive(1, 2)])
def test_a_copy_has_the_new_values_and_the_others_of_the_old(value: Pair) -> None:
    copy, wanted = replace(value, left=5), dataclasses.replace(value, left=5)
    assert copy == wanted and type(copy) is type(value) and repr(copy) == repr(wanted)
    assert value.left == 1
    assert replace(value) == value and replace(value) is not value


def test_a_state_of_a_machine_is_replaced_and_stays_hashable() -> None:
    changes = {"phase": Phase.STABLE, "topics": ("t",), "told": ("t",)}
    copy = replace(State(), **changes)  # type: ignore[arg-type]
    assert copy == State(phase=Phase.STABLE, topics=("t",), told=("t",)) and copy.identity is NO_IDENTITY
    assert hash(copy) == hash(dataclasses.replace(State(), **changes))  # type: ignore[arg-type]


def test_what_a_class_demands_of_its_values_is_demanded_again() -> None:
    with pytest.raises(ValueError, match="not positive"):
        replace(Positive(), left=0)
    with pytest.raises(ValueError, match="both"):
        replace(Derived(), both=8)


@pytest.mark.parametrize("value", [Pair(), Plain()])
def test_what_is_no_field_is_refused(value: Pair) -> None:
    with pytest.raises(TypeError):
        replace(value, middle=1)  # type: ignore[call-arg]
