"""Machines that send requests: answers as operations, words and JSON, and actions."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import pytest

from kipcheck.conformance.core.operations.client_operations import Requester, received, receives
from kipcheck.conformance.core.operations.declaration import answer, operation
from kipcheck.conformance.core.operations.field_kinds import NOTHING, Kind, TextForm, kind_of
from kipcheck.conformance.core.operations.observed_events import ObservedEvents, observed, sent
from kipcheck.conformance.core.operations.request_words import words
from kipcheck.conformance.core.operations.requests import request_answer
from kipcheck.conformance.core.values.case import Role, step


class Trouble(IntEnum):
    NONE = 0
    SOLD_OUT = 1


def _trouble(found: Any) -> Trouble:
    if found in Trouble.__members__:
        return Trouble[found]
    raise TypeError(f": unknown error {found!r}")


TROUBLE = Kind(
    "text", {"type": "string"}, _trouble, lambda error: error.name,
    lambda note: TextForm(NOTHING, _trouble, lambda error: error.name),
)  # fmt: skip
NUMBER = kind_of(int)


@request_answer("served")
@dataclass(frozen=True)
class Served:
    to: int
    error: "int"
    meal: str = ""
    price: int = 0


@request_answer("paid")
@dataclass(frozen=True)
class Paid:
    to: int
    error: "int"
    change: int = 0


@dataclass(frozen=True)
class Order:
    meal: str
    request: int = 0


@observed("ate", "eats {meal}", lenient=True)
@dataclass(frozen=True)
class Ate:
    meal: str


@answer("rejected", message="{why}")
@dataclass(frozen=True)
class Closed:
    why: str


@operation("guest-sit", "user", words("sit {table!}"), examples="sit 3")
@dataclass(frozen=True)
class Sit:
    """Sits down."""

    table: int


KINDS: dict[str, Any] = {
    "unnamed": {"to": 0}, "defaults": {"error": Trouble.NONE}, "kinds": {"error": TROUBLE},
    "meanings": {"error": "what is wrong"},
}  # fmt: skip


@receives(
    "guest-answer", "waiter",
    received(Served, words("served {meal!} {price:for=}", defaults={"price": 5}), words("served {error!}"), **KINDS),
    received(Paid, words("paid {change:change=}"), words("paid {error!}"), **KINDS),
    examples="served soup; paid", text=lambda event: "served, somehow" if isinstance(event.answer, Served) else "",
)  # fmt: skip
@dataclass(frozen=True)
class Answered:
    """Answers the request."""

    answer: Served | Paid


Event: TypeAlias = Sit | Answered
GUEST = Requester[Event, Any](
    "guest",
    Role.CONTROLLER,
    (Sit, Answered),
    ObservedEvents(sent(Order, "order", "orders {meal}", without=("request",)), Ate, key="action"),
    rejections=(Closed,),
)


def test_a_step_has_the_name_of_the_answer_and_its_fields() -> None:
    served = step("waiter", "guest-answer", answer="served", error="NONE", meal="soup", price=4)
    event = Answered(Served(0, Trouble.NONE, "soup", 4))
    assert GUEST.event_of(served) == event and GUEST.step_of(event) == served
    assert GUEST.event_of(step("", "guest-answer", answer="paid")) == Answered(Paid(0, Trouble.NONE))


def test_an_answer_with_an_error_has_only_fields_that_differ_from_their_defaults() -> None:
    event = Answered(Served(0, Trouble.SOLD_OUT, price=4))
    assert GUEST.step_of(event).body == {"answer": "served", "error": "SOLD_OUT", "price": 4}
    assert GUEST.event_of(GUEST.step_of(event)) == event


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "unknown answer 'None': use one of served, paid"),
        ({"answer": "paid", "meal": "soup"}, "unknown field meal: the fields are error, change"),
        ({"answer": "paid", "change": "x"}, "change: must be an integer, got 'x'"),
        ({"answer": "paid", "error": "LATE"}, "error: unknown error 'LATE'"),
        ({"answer": "paid", "to": 1}, "unknown field to"),
    ],
)
def test_answers_that_are_refused(body: dict[str, Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        GUEST.event_of(step("waiter", "guest-answer", **body))


@pytest.mark.parametrize(
    "text", ["sit 3", "served soup", "served soup for=9", "served SOLD_OUT", "paid", "paid change=2"]
)
def test_words_are_read_and_printed(text: str) -> None:
    assert GUEST.shorthand(GUEST.parse_shorthand(text)) == text


def test_what_words_cannot_express_is_json() -> None:
    dear = step("waiter", "guest-answer", answer="served", error="SOLD_OUT", price=9)
    text = GUEST.shorthand([dear])
    assert text == 'guest-answer {"answer": "served", "error": "SOLD_OUT", "price": 9}'
    assert GUEST.parse_shorthand(text) == (dear,)
    assert GUEST.sentence(dear) == "served, somehow"
    failed = step("waiter", "guest-answer", answer="paid", error="SOLD_OUT", change=9)
    assert GUEST.sentence(failed) == GUEST.shorthand([failed]) != "served, somehow"
    assert GUEST.inexact(Served(0, Trouble.SOLD_OUT, price=9), 1) == "served SOLD_OUT"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("stand", "invalid step 'stand': use sit TABLE, served MEAL"),
        ("sit", "invalid step 'sit': table is missing: use sit TABLE"),
        ("served soup cold", r"unexpected cold: use served MEAL \[for=PRICE\] or served ERROR"),
        ("guest-answer {", "invalid step 'guest-answer {'"),
        ('guest-jump {"x": 1}', "unknown event 'guest-jump'"),
    ],
)
def test_words_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        GUEST.parse_shorthand(text)


def test_the_fields_of_all_answers_stand_in_tables_and_schemas() -> None:
    carrier = GUEST.by_verb["guest-answer"]
    assert [(each.name, each.meaning, each.optional) for each in carrier.fields] == [
        ("answer", "served or paid", False),
        ("error", "what is wrong", False),
        ("meal", "only for served", True),
        ("price", "only for served", True),
        ("change", "only for paid", True),
    ]
    assert carrier.required == ("answer", "error") and carrier.schema["properties"]["answer"]["enum"] == [
        "served",
        "paid",
    ]


def test_an_answer_lists_requests_and_events_or_is_a_rejection() -> None:
    assert GUEST.answer_of([Order("soup"), Ate("soup")]) == {
        "status": "accepted",
        "actions": [{"action": "order", "meal": "soup"}, {"action": "ate", "meal": "soup"}],
    }
    assert GUEST.answer_of([Closed("night")]) == {"status": "rejected", "message": "night"}
