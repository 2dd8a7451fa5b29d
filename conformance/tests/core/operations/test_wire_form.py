"""Places of fields in messages: rows, versions that lack a place, and bodies that no value has."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

import pytest

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import Context, Inexpressible, Unfit, Value, message
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.wire.schema import Layout, MessageSpec

UPPER: Final = Context({"upper": Value(str.upper, str.lower)}, {"owner": "me"})
DEFINITION: Final[dict[str, Any]] = {
    "name": "ThingRequest",
    "type": "request",
    "validVersions": "0-2",
    "flexibleVersions": "none",
    "fields": [
        {"name": "Owner", "type": "string", "versions": "0+"},
        {"name": "Note", "type": "string", "versions": "1+", "nullableVersions": "2+", "default": "none"},
        {"name": "Hint", "type": "string", "versions": "2+", "ignorable": True},
        {"name": "Name", "type": "string", "versions": "0"},
        {"name": "Boxes", "type": "[]Box", "versions": "1+", "nullableVersions": "2+", "fields": [
            {"name": "Name", "type": "string", "versions": "1+"},
            {"name": "Sizes", "type": "[]int32", "versions": "1+"},
        ]},
        {"name": "Lid", "type": "Lid", "versions": "2+", "nullableVersions": "2+", "default": "null", "fields": [
            {"name": "Colour", "type": "string", "versions": "2+"},
        ]},
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Lid:
    colour: Annotated[str, wire("colour as upper")]


@message("ThingRequest", "owner = owner")
@dataclass(frozen=True)
class Thing:
    version: int
    boxes: Annotated[tuple[tuple[str, int], ...] | None, wire("boxes[].name", "boxes[].sizes[]")]
    note: Annotated[str | None, wire("note")] = "none"
    hint: Annotated[str, wire("hint")] = ""
    lid: Annotated[Lid | None, wire("lid")] = None
    number: int = 0


@message("ThingRequest")
@dataclass(frozen=True)
class OneSize:
    size: Annotated[int, wire("boxes[].sizes[0]")]


@message("ThingRequest")
@dataclass(frozen=True)
class OneName:
    name: Annotated[str, wire("boxes[0].name | name")]


def at(version: int) -> Layout:
    return MessageSpec.of(DEFINITION, APACHE).at(version)


def written(thing: Any, version: int) -> dict[str, Any]:
    return wire_form.write(thing, at(version), UPPER)


def test_rows_with_equal_parts_are_one_element_of_the_outer_list() -> None:
    body = written(Thing(1, (("a", 1), ("b", 2), ("a", 3))), 1)
    assert body == {
        "owner": "me", "note": "none", "boxes": [{"name": "a", "sizes": [1, 3]}, {"name": "b", "sizes": [2]}],
    }  # fmt: skip
    found = wire_form.read(Thing, at(1), body, UPPER, number=7)
    assert found == Thing(1, (("a", 1), ("a", 3), ("b", 2)), number=7)
    assert wire_form.named(Thing, at(1), body) == {"owner": "me"}


def test_a_dataclass_in_a_field_has_places_of_its_own() -> None:
    thing = Thing(2, (), None, "here", Lid("red"))
    body = written(thing, 2)
    assert (body["lid"], body["note"]) == ({"colour": "RED"}, None)
    assert wire_form.read(Thing, at(2), body, UPPER) == thing
    assert wire_form.read(Thing, at(2), body | {"lid": None, "boxes": None}, UPPER) == Thing(2, None, None, "here")


def test_a_version_leaves_out_defaults_and_what_the_message_ignores() -> None:
    assert written(Thing(0, ()), 0) == {"owner": "me"}
    assert written(Thing(1, None, None, "lost"), 1) == {"owner": "me"}, "null is the default where there is no null"
    assert wire_form.read(Thing, at(0), {"owner": "me"}, UPPER) == Thing(0, ())
    assert wire_form.lacking(Thing, at(0)) == {"boxes", "note", "hint", "lid"}


def test_a_version_refuses_what_it_would_lose() -> None:
    with pytest.raises(Inexpressible, match=r"^ThingRequest v0 has no note$"):
        written(Thing(0, (), "mine"), 0)
    with pytest.raises(Inexpressible, match=r"^ThingRequest v0 has no boxes\[\]\.name$"):
        written(Thing(0, (("a", 1),)), 0)
    with pytest.raises(Inexpressible, match=r"^colour as upper: there is no upper$"):
        wire_form.write(Thing(2, (), lid=Lid("red")), at(2), Context({}, {"owner": "me"}))


def test_a_value_outside_a_list_is_its_only_element_or_the_same_in_all() -> None:
    boxes = [{"name": "a", "sizes": [1]}, {"name": "b", "sizes": [1]}]
    assert wire_form.read(OneSize, at(1), {"boxes": boxes}, UPPER) == OneSize(1)
    with pytest.raises(Unfit, match=r"^different values of boxes\[\]\.sizes\[0\]: 1, 2$"):
        wire_form.read(OneSize, at(1), {"boxes": [*boxes, {"name": "c", "sizes": [2]}]}, UPPER)
    with pytest.raises(Unfit, match=r"^2 boxes in place of one$"):
        wire_form.read(OneName, at(1), {"boxes": boxes}, UPPER)
    assert wire_form.write(OneSize(5), at(1), UPPER, {"owner": "me", "boxes": [{"name": "a"}]}) == {
        "owner": "me", "boxes": [{"name": "a", "sizes": [5]}],
    }  # fmt: skip


def test_a_version_has_the_first_place_that_it_knows() -> None:
    assert written(OneName("a"), 0) == {"name": "a"}
    assert written(OneName("a"), 1) == {"boxes": [{"name": "a"}]}
    assert wire_form.read(OneName, at(0), {"name": "a"}, UPPER) == OneName("a")


def test_a_place_that_cannot_be_read_is_reported() -> None:
    @message("ThingRequest")
    @dataclass(frozen=True)
    class Wrong:
        name: Annotated[str, wire("name as a text")]

    with pytest.raises(ValueError, match=r"^invalid place 'name as a text'$"):
        written(Wrong("a"), 0)
