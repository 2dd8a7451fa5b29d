"""Operations that are declared once: steps, answers, shorthand, sentences, schemas."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from typing import Annotated, Any, Literal, NamedTuple

import jsonschema  # type: ignore[import-untyped]
import pytest

from kipcheck.conformance.core.operations.declaration import Operations, answer, declared, operation, variant
from kipcheck.conformance.core.operations.field_annotations import (
    about,
    hidden,
    named,
    omissible,
    optional,
    size,
    typical,
)
from kipcheck.conformance.core.operations.field_kinds import kind_of, one_of
from kipcheck.conformance.core.operations.observed_events import ObservedEvents, observed, sent
from kipcheck.conformance.core.operations.templates import Template
from kipcheck.conformance.core.values.case import Role, Step, step
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.play import verbs


class Colour(Enum):
    RED = "red"
    GREEN = "green"


@answer()
@dataclass(frozen=True, slots=True)
class Painted:
    by: Annotated[str, hidden]
    coats: int
    places: tuple[tuple[str, int], ...] | None


@answer("rejected", class_="DRY", message="{colour} is dry")
@dataclass(frozen=True, slots=True)
class Dry:
    colour: Colour


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Failed:
    error: Annotated[str, named("class")]


@operation(
    "paint-wall", "painter", ("paint {colour:red=crimson}{twice:!}[ on {walls:+}][ {mood}]",),
    sentence="paints {colour}{twice:, twice}",
    accepted=Painted,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Paint:
    """A painter paints walls.

    Twice, if it
    rains.
    """

    colour: Annotated[Colour, about("the colour"), typical("green", "red")]
    twice: bool = False
    walls: Annotated[tuple[str, ...] | None, typical(None, ("n",), ("n", "s"))] = None
    mood: Literal["happy", "sad"] | None = None


@operation("move", "owner", ("move {low}-{high}{later:-}", "move -"), sender="owner {low}", examples="move 1-2; move -")
@dataclass(frozen=True, slots=True)
class Move:
    """The owner moves."""

    low: Annotated[int | None, typical(range(1, 3))]
    high: Annotated[int | None, typical(range(2, 4))]
    later: Annotated[int, typical(range(-1, 2))] = 0


@operation("call", "owner", "call {name}[ {loud:loudly}]")
@dataclass(frozen=True, slots=True)
class Call:
    """The owner calls."""

    name: str
    loud: Annotated[bool, optional] = False


OURS: Operations[Paint | Move | Call, Painted | Dry | Failed] = Operations(
    "house", Role.STORE, (Paint, Move, Call), sample="paint green"
)


@pytest.mark.parametrize(
    ("event", "body", "text", "sentence"),
    [
        (
            Paint(Colour.RED),
            {"colour": "red", "twice": False, "walls": None, "mood": None},
            "paint crimson", "paints red",
        ),
        (
            Paint(Colour.GREEN, True, ("n", "s"), "sad"),
            {"colour": "green", "twice": True, "walls": ["n", "s"], "mood": "sad"},
            "paint green! on n+s sad", "paints green, twice",
        ),
        (Move(1, -2), {"low": 1, "high": -2, "later": 0}, "move 1--2", "move 1--2"),
        (Move(1, 2, 1), {"low": 1, "high": 2, "later": 1}, "move 1-2-1", "move 1-2-1"),
        (Move(1, 2, -1), {"low": 1, "high": 2, "later": -1}, "move 1-2+1", "move 1-2+1"),
        (Move(None, None), {"low": None, "high": None, "later": 0}, "move -", "move -"),
        (Call("n"), {"name": "n"}, "call n", "call n"),
        (Call("n", True), {"name": "n", "loud": True}, "call n loudly", "call n loudly"),
    ],
)  # fmt: skip
def test_an_event_is_a_step_and_a_text_and_back(event: Any, body: dict[str, Any], text: str, sentence: str) -> None:
    made = OURS.step_of(event)
    assert made.body == body and [*made.body] == [*body]
    assert OURS.event_of(made) == event
    assert OURS.event_of(Step(made.actor, made.verb, json.loads(json.dumps(body)))) == event
    assert OURS.shorthand([made]) == text
    assert OURS.parse_shorthand(f" {text.replace(' ', '  ')} ;") == (made,)
    assert OURS.sentence(made) == sentence


def test_names() -> None:
    assert OURS.verbs == ("paint-wall", "move", "call")
    assert OURS.sender(OURS.step_of(Move(1, 2))) == "owner 1"
    assert OURS.sender(OURS.step_of(Paint(Colour.RED))) == "painter"
    paint = declared(Paint)
    assert (paint.meaning, paint.details) == ("a painter paints walls", "Twice, if it rains.")
    assert [each.kind.words for each in paint.fields] == [
        "one of red, green", "true or false", "list of text, or null", "one of happy, sad, or null",
    ]  # fmt: skip
    assert [*OURS.samples()] == [{"op": "paint-wall", "colour": "green", "twice": False, "walls": None, "mood": None}]


def test_fields_with_defaults_may_be_left_out() -> None:
    assert OURS.event_of(step("painter", "paint-wall", colour="red")) == Paint(Colour.RED)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "the field colour is missing"),
        ({"colour": "blue"}, "colour: must be one of red, green, got 'blue'"),
        ({"colour": "red", "hue": 1}, "unknown field hue: the fields are colour, twice, walls, mood"),
        ({"colour": "red", "twice": 1}, "twice: must be true or false, got 1"),
        ({"colour": "red", "walls": "n"}, "walls: must be a list, got 'n'"),
        ({"colour": "red", "walls": ["n", 2]}, r"walls\[1\]: must be a string, got 2"),
        ({"colour": "red", "twice": False, "walls": [None], "mood": None}, r"walls\[0\]: must be a string, got None"),
        ({"colour": []}, r"colour: must be one of red, green, got \[\]"),
    ],
)
def test_an_invalid_body_is_refused_with_the_path(body: dict[str, Any], why: str) -> None:
    with pytest.raises(TypeError, match=f"^{why}$"):
        OURS.event_of(Step("painter", "paint-wall", body))
    validator = jsonschema.Draft202012Validator(declared(Paint).schema)
    assert not validator.is_valid({"twice": False, "walls": None, "mood": None, **body}) or "hue" in body


@pytest.mark.parametrize("low", [True, 1.0, "1", [1]])
def test_an_integer_is_an_integer(low: object) -> None:
    with pytest.raises(TypeError, match=r"^low: must be an integer, got "):
        OURS.event_of(step("owner", "move", low=low, high=1))


def test_an_unknown_verb_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match="unknown event 'jump': use one of paint-wall, move, call"):
        OURS.event_of(step("painter", "jump"))


@pytest.mark.parametrize("text", ["jump", "paint", "paint blue", "paint red", "move 1", "move 1-x", "paint crimson on"])
def test_what_is_no_shorthand_is_refused_with_the_forms(text: str) -> None:
    forms = "paint crimson|green[!][ on WALLS][ happy|sad], move LOW-HIGH[+N|-N], move - or call NAME[ [loudly]]"
    for before, where in (("", ""), ("move -; ", f"invalid step {text!r}: ")):
        with pytest.raises(ValueError, match=f"^{re.escape(f'{where}use {forms}')}$"):
            OURS.parse_shorthand(f"{before}{text}")


def test_answers_are_results_of_the_testee_protocol() -> None:
    painted = Painted("p", 2, (("n", 1),))
    assert OURS.answer_of([painted, Failed("E")]) == {"status": "accepted", "coats": 2, "places": [["n", 1]]}
    assert OURS.answer_of([Dry(Colour.RED)]) == {"status": "rejected", "class": "DRY", "message": "red is dry"}
    assert OURS.answer_of([Failed("E")]) == {"status": "rejected", "class": "E"}
    assert OURS.answer_of([]) == {"status": "accepted"}
    assert declared(Painted).needed == ("coats",)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("a {colour", ValueError), ("a {paint}", KeyError), ("{pairs}", ValueError), ("a[ {colour}]", ValueError)],
)
def test_an_invalid_template_is_refused(text: str, wrong: type[Exception]) -> None:
    kinds = {"colour": kind_of(Colour), "pairs": kind_of(tuple[str, int])}
    with pytest.raises(wrong):
        Template(text, kinds, {})


@pytest.mark.parametrize("annotation", [set[str], int | str, bytes, list[int]])
def test_what_is_no_kind_of_field_is_refused(annotation: Any) -> None:
    with pytest.raises(TypeError, match="is no kind of field"):
        kind_of(annotation)


@pytest.mark.parametrize("name", [each for each in registry.modules("ops") if hasattr(sys.modules[each], "OPERATIONS")])
def test_a_client_imports_operations_with_the_standard_library_alone(name: str) -> None:
    """As in an environment of its own, where nothing else is installed."""
    root = str(files("kipcheck"))
    code = (
        "import sys\nfrom importlib import util\n"
        f"root = {root!r}\n"
        "spec = util.spec_from_file_location('kipcheck', root + '/__init__.py', submodule_search_locations=[root])\n"
        "sys.modules['kipcheck'] = made = util.module_from_spec(spec)\nspec.loader.exec_module(made)\n"
        f"from {name} import OPERATIONS\n"
        "print(len(OPERATIONS.verbs), 'kipcheck.conformance.protocols.checks' in sys.modules)"
    )
    command = [sys.executable, "-S", "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == [str(len(sys.modules[name].OPERATIONS.verbs)), "False"], done.stderr


def test_an_optional_field_is_not_required() -> None:
    validator = jsonschema.Draft202012Validator(declared(Call).schema)
    assert validator.is_valid({"name": "n"}) and validator.is_valid({"name": "n", "loud": False})
    assert not validator.is_valid({"loud": True})
    with pytest.raises(TypeError, match=r"^Wrong\.x is optional and has no default$"):

        @operation("wrong", "owner", "wrong {x}")
        @dataclass(frozen=True, slots=True)
        class Wrong:
            """Nobody can leave it out."""

            x: Annotated[int, optional]

    with pytest.raises(TypeError, match=r"^Middle\.x is optional and not among the last fields$"):

        @operation("middle", "owner", "middle {x} {y}")
        @dataclass(frozen=True, slots=True)
        class Middle:
            """It is between others."""

            x: Annotated[int, optional] = 1
            y: int = 2


# Kinds in annotations, records, observed events


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Room:
    name: Annotated[str, one_of("hall", "attic")]
    corners: tuple[Point, ...] = ()
    owner: str | None = None


def test_a_dataclass_or_named_tuple_is_an_object_with_its_fields() -> None:
    kind = kind_of(Room)
    value = Room("hall", (Point(1, 2), Point(3)), "o")
    body = {"name": "hall", "corners": [{"x": 1, "y": 2}, {"x": 3, "y": 0}], "owner": "o"}
    assert kind.plain(value) == body and kind.read(body) == value
    assert kind.read({"name": "attic"}) == Room("attic") and kind.read({"name": "attic", "owner": None}) == Room(
        "attic"
    )
    assert kind.read({"name": "hall", "corners": [{"x": 3}]}) == Room("hall", (Point(3),))
    validator = jsonschema.Draft202012Validator(kind.schema)
    assert validator.is_valid(body) and not validator.is_valid({"corners": []})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ([], ": must be an object, got []"),
        ({}, ": the field name is missing"),
        ({"name": "cellar"}, ".name: must be one of hall, attic, got 'cellar'"),
        ({"name": "hall", "doors": 1}, ": unknown field doors: the fields are name, corners, owner"),
        ({"name": "hall", "corners": [{"x": 1}, {"x": "1", "y": 0}]}, ".corners[1].x: must be an integer, got '1'"),
        ({"name": "hall", "corners": [{"y": 0}], "owner": "o"}, ".corners[0]: the field x is missing"),
    ],
)
def test_an_invalid_object_is_refused_with_its_path(body: Any, why: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(why)}$"):
        kind_of(Room).read(body)


@operation("furnish", "owner", "furnish {room} {chairs}[ {colours:+}]", abbreviations="furnish {room}", examples="f")
@dataclass(frozen=True, slots=True)
class Furnish:
    """The owner furnishes a room."""

    room: Annotated[str, about("the room"), one_of("hall", "attic")]
    chairs: Annotated[int, about("how many"), omissible] = 4
    colours: Annotated[tuple[Annotated[str, one_of("red", "green")], ...], omissible, size(1, 2)] = ("red",)


@operation("plan", "owner", (), text=lambda event: f"plan {event.room.name}", required=())
@dataclass(frozen=True, slots=True)
class Plan:
    """The owner plans a room."""

    room: Room = Room("hall")


@observed("seen", "{name} is {lit:lit|dark}[ for {hours} h]; {walls}")
@dataclass(frozen=True, slots=True)
class Seen:
    """A room was seen."""

    name: str
    lit: bool
    walls: Annotated[tuple[str, ...], kind_of(tuple[str, ...]).printed_by(lambda walls: f"{len(walls)} walls")]
    hours: int = 0


@observed("gone", lambda event: f"{event.name} goes")
@dataclass(frozen=True, slots=True)
class Gone:
    """A person left."""

    name: str


ROOMS: Operations[Furnish | Plan, Seen | Gone] = Operations(
    "rooms", Role.STORE, (Furnish, Plan), observed=ObservedEvents(Seen, Gone), alike=("huts",)
)
OTHERS: Operations[Furnish, Seen] = Operations(
    "cabins", Role.STORE,
    (variant(Furnish, "cabin-furnish", kinds={"room": one_of("deck")}, meaning="a sailor furnishes a cabin"),),
)  # fmt: skip


def test_shorthand_may_have_an_abbreviation_that_is_only_parsed() -> None:
    parsed = ROOMS.parse_shorthand("furnish hall; furnish hall 2 red+green")
    assert [*map(ROOMS.event_of, parsed)] == [Furnish("hall"), Furnish("hall", 2, ("red", "green"))]
    assert ROOMS.shorthand(ROOMS.parse_shorthand("furnish attic")) == "furnish attic 4"


def test_an_operation_without_a_template_is_printed_and_not_parsed() -> None:
    planned = ROOMS.step_of(Plan(Room("attic")))
    assert ROOMS.event_of(planned) == Plan(Room("attic"))
    assert ROOMS.shorthand([planned]) == ROOMS.sentence(planned) == "plan attic"
    with pytest.raises(ValueError, match=r"^use furnish hall\|attic CHAIRS"):
        ROOMS.parse_shorthand("plan attic")


def test_an_omissible_field_is_written_always_and_required_by_schemas() -> None:
    assert ROOMS.step_of(Furnish("hall")).body == {"room": "hall", "chairs": 4, "colours": ["red"]}
    assert ROOMS.event_of(step("owner", "furnish", room="hall")) == Furnish("hall")
    assert [each.needed for each in verbs(ROOMS)[0].fields] == [True, False, False]
    assert declared(Furnish).schema["required"] == ["room", "chairs", "colours"]
    assert declared(Plan).schema["required"] == []


def test_a_variant_is_the_operation_of_another_machine_with_the_same_class() -> None:
    (one,) = OTHERS.declared
    assert (one.verb, one.made, one.meaning) == ("cabin-furnish", Furnish, "a sailor furnishes a cabin")
    assert OTHERS.parse_shorthand("furnish deck 1") == (OTHERS.step_of(Furnish("deck", 1)),)
    assert OTHERS.of(Furnish) == (one,) and OTHERS.verb_of == {Furnish: "cabin-furnish"}
    with pytest.raises(TypeError, match=r"^room: must be one of deck, got 'hall'$"):
        OTHERS.event_of(step("owner", "cabin-furnish", room="hall"))


def test_an_answer_is_the_list_of_observed_events() -> None:
    seen: list[Seen | Gone] = [Seen("hall", True, ("n", "s"), 2), Seen("hall", False, ()), Gone("a")]
    answer = ROOMS.answer_of(seen)
    assert answer["status"] == "accepted" and ROOMS.machines == ("rooms", "huts")
    assert answer["actions"][0] == {"what": "seen", "name": "hall", "lit": True, "walls": ["n", "s"], "hours": 2}
    assert ROOMS.observed is not None
    assert [*map(ROOMS.observed.from_json, answer["actions"])] == seen
    assert ROOMS.observed.from_json({"what": "seen", "name": "hall", "lit": False, "walls": []}) == seen[1]
    assert [*map(ROOMS.observed.describe, seen)] == ["hall is lit for 2 h; 2 walls", "hall is dark; 0 walls", "a goes"]
    for wrong in ({"what": "heard"}, {"name": "a"}, {"what": "gone"}, {"what": "gone", "name": 1}):
        with pytest.raises((LookupError, TypeError)):
            ROOMS.observed.from_json(wrong)


# ---- requests among observed events


@dataclass(frozen=True)
class Order:
    number: int = 0
    meal: str = ""
    table: int | None = None


@observed("shouted", "shouts {words}", omitted=("loudness",), lenient=True)
@dataclass(frozen=True)
class Shouted:
    words: str
    loudness: str = ""


WAITER = ObservedEvents[Any](
    sent(Order, "order", "orders {meal}[ for table {table}]", without=("number",), prints={"meal": str.upper}),
    Shouted,
    key="action",
)


def test_a_request_is_an_event_of_the_machine_that_sends_it() -> None:
    event = Order(0, "soup", 5)
    assert WAITER.to_json(event) == {"action": "order", "meal": "soup", "table": 5}
    assert WAITER.from_json({"action": "order", "table": 5, "meal": "soup"}) == event
    assert WAITER.from_json({"action": "order", "meal": "soup", "other": 1}) == Order(0, "soup")
    assert (WAITER.describe(event), WAITER.describe(Order(meal="tea"))) == ("orders SOUP for table 5", "orders TEA")


def test_an_event_may_omit_what_is_empty() -> None:
    assert WAITER.to_json(Shouted("fire")) == {"action": "shouted", "words": "fire"}
    assert WAITER.to_json(Shouted("fire", "very"))["loudness"] == "very"
    assert WAITER.from_json({"action": "shouted", "words": "fire", "other": None}) == Shouted("fire")


def test_an_event_in_an_answer_is_checked() -> None:
    assert WAITER.check({"action": "order", "meal": "soup", "table": None}) == ""
    assert WAITER.check({"action": "order", "table": "x"}) == ".table: must be an integer, got 'x'"
    assert WAITER.check({"action": "shouted"}) == ": the field words is missing"
    others: tuple[Any, ...] = ({"action": "sit"}, {"action": []}, {}, None)
    for wrong in others:
        assert WAITER.check(wrong) == f": unknown action {wrong!r}: use one of order, shouted"
