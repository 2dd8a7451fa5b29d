"""Requests of clients that are declared once, and the shorthand of their words."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from kipcheck.conformance.core.operations.declaration import Operations, operation
from kipcheck.conformance.core.operations.field_annotations import omissible
from kipcheck.conformance.core.operations.field_kinds import NOTHING, TextForm
from kipcheck.conformance.core.operations.request_words import listed, words
from kipcheck.conformance.core.operations.requests import RequestOperation, request
from kipcheck.conformance.core.values.case import Role, step
from kipcheck.conformance.protocols.group.errors import Error
from kipcheck.conformance.protocols.group.ops import OPERATIONS, By, Heartbeat, Join, Joined


def test_a_step_has_the_fields_of_the_request_and_of_its_carrier_without_those_that_are_hidden() -> None:
    beat = step("b", "heartbeat", version=3, member="b", instance=None, behind=1)
    event = OPERATIONS.event_of(beat)
    assert event == By("b", Heartbeat(3, "b", None, -1), behind=1)
    assert OPERATIONS.step_of(event) == beat
    assert "nameless" in OPERATIONS.step_of(By("b", Heartbeat(3, "b", None, 7), nameless=True)).body


def test_defaults_of_words_depend_on_other_fields_and_on_the_newest_version() -> None:
    (plain,), (static,) = OPERATIONS.parse_shorthand("join a"), OPERATIONS.parse_shorthand("join a as i")
    assert (plain["version"], static["version"]) == (3, 5)
    (old,) = OPERATIONS.parse_shorthand("join a", {"join": 1})
    assert old["version"] == 1
    assert OPERATIONS.shorthand([old]) == "join a v1" and OPERATIONS.shorthand([old], {"join": 1}) == "join a"
    (again,) = OPERATIONS.parse_shorthand("rejoin a")
    assert again["member"] == "a" and OPERATIONS.shorthand([again]) == "rejoin a"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("beat", "'beat': the client is missing"),
        ("beat a 5", "'beat a 5': unexpected 5"),
        ("beat a=b", "'beat a=b': unexpected a=b"),
        ("leave a b as i", "'leave a b as i': unexpected as"),
        ("join a session=x", "'join a session=x': invalid literal"),
        ("hop a", "invalid event 'hop a': it must begin with one of join, rejoin, sync"),
    ],
)
def test_words_that_are_not_read(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        OPERATIONS.parse_shorthand(text)


def test_the_shortest_form_is_printed_of_steps_with_any_fields() -> None:
    (join,) = OPERATIONS.parse_shorthand("join a id=b as i v9 pv=1")
    assert OPERATIONS.shorthand([join]) == "join a id=b as i pv=1 v9"
    assert OPERATIONS.shorthand([step("a", "join", **{**join.body, "member": "a"})]) == "rejoin a as i pv=1 v9"
    named = step("a", "heartbeat", version=3, member="a", instance=None, behind=0, nameless=False)
    assert OPERATIONS.shorthand([named]) == "beat a"
    assert OPERATIONS.shorthand([step("a", "join", version=3, member="", instance=None, protocol_type="consumer",
                                      protocols=[["p", "x"]])]) == "join a"  # fmt: skip


@pytest.mark.parametrize("body", [{}, {"ms": "x"}, {"ms": 5, "other": 1}, {"other": 5}])
def test_a_step_that_is_no_event_has_no_shorthand(body: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        OPERATIONS.shorthand([step("time", "elapse", **body)])
    with pytest.raises(TypeError):
        OPERATIONS.shorthand([step("a", "heartbeat", version=3, **body)])


def test_forms_of_a_request_differ_in_their_words_alone() -> None:
    with pytest.raises(ValueError, match="forms of dance differ"):
        request(
            "dance", By, ("a",), ("dance {actor} {version:v}", "hop {actor}"), examples="", sentence="", carried=()
        )(Heartbeat)


def test_an_answer_from_a_later_release_is_read() -> None:
    found = {"to": 1, "answer": "joined", "error": "NEW_ERROR", "more": 1}
    assert OPERATIONS.answer_from_json(found) == Joined(1, Error.UNKNOWN_SERVER_ERROR)
    with pytest.raises(TypeError, match="the field to is missing"):
        OPERATIONS.answer_from_json({"answer": "joined", "error": "NONE"})


def test_a_declaration_names_its_class_and_its_fields() -> None:
    found = OPERATIONS.requests["join"]
    assert isinstance(found, RequestOperation) and found.made is Join
    assert [each.name for each in found.fields][-2:] == ["protocol_version", "nameless"]


# ---- the form of an event

_NAMES = listed(TextForm(NOTHING, str, str))


@operation(
    "bake", "cook",
    (words("bake {cakes!} {oven:in=} {hot} {guests*}", defaults={"cakes": ("apple",)},
           forms={"cakes": _NAMES, "guests": TextForm(NOTHING, str, str)}),
     words("warm {cakes!} {guests**}", fixed={"hot": True},
           forms={"cakes": _NAMES, "guests": TextForm(NOTHING, lambda text: tuple(text.split()), " ".join)})),
    examples="bake apple,plum in=big a b",
)  # fmt: skip
@dataclass(frozen=True)
class Bake:
    """Bakes."""

    cakes: Annotated[tuple[str, ...], omissible] = ("apple",)
    oven: Annotated[str | None, omissible] = None
    hot: Annotated[bool, omissible] = False
    guests: Annotated[tuple[str, ...], omissible] = ()


KITCHEN = Operations[Bake, Bake]("kitchen", Role.CONTROLLER, (Bake,))


def baked(text: str) -> Bake:
    (step,) = KITCHEN.parse_shorthand(text)
    return KITCHEN.event_of(step)


def test_words_of_an_event_stand_in_any_order_behind_the_first_one() -> None:
    assert baked("bake plum,apple a hot in=big b") == Bake(("plum", "apple"), "big", True, ("a", "b"))
    assert baked("bake in=big") == Bake(oven="big") and baked("bake") == Bake()
    assert baked("warm plum a b") == Bake(("plum",), hot=True, guests=("a", "b"))
    for event in (Bake(), Bake(("plum",), "big", True, ("a",)), Bake(guests=("a", "b"))):
        text = KITCHEN.shorthand([KITCHEN.step_of(event)])
        assert baked(text) == event and text.startswith("bake ")


def test_the_first_form_is_taken_that_suits() -> None:
    assert KITCHEN.shorthand([KITCHEN.step_of(Bake(hot=True))]) == "bake apple hot"
    plain, warm = KITCHEN.by_verb["bake"].shorthand
    assert plain.suits(Bake(oven="big")) and not warm.suits(Bake(hot=True, oven="big"))
    assert plain.usage == "bake [CAKES] [in=OVEN] [hot] [GUESTS ...]"


def test_words_that_no_form_has() -> None:
    with pytest.raises(ValueError, match="unexpected out=x"):
        words_of = words("warm {cakes!}", forms={"cakes": _NAMES})
        kitchen = Operations[Bake, Bake]("kitchen", Role.CONTROLLER, (operation("warm", "cook", words_of)(Bake),))
        kitchen.parse_shorthand("warm plum out=x")
    with pytest.raises(ValueError, match="use bake"):
        KITCHEN.parse_shorthand("fry")
