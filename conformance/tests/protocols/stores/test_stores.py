"""Stores with timestamps: the machine by hand and explored, least cases of its mutants, and what a crash may lose."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.explore.exploration import explored
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.protocols.stores.model import store_of
from kipcheck.conformance.protocols.stores.mutants import OLD
from kipcheck.conformance.protocols.stores.ops import OPERATIONS
from kipcheck.conformance.protocols.stores.play import PLAYABLES
from kipcheck.conformance.protocols.stores.strategies import lives
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.tests.support.machines import machine_answers
from kipcheck.conformance.tests.support.sessions import history_of

OURS = {id: each for id, each in INVARIANTS.items() if id.startswith("stores/")}
PLANTED = {id: each for id, each in MUTANTS.items() if each.invariant in OURS}
RELEASE = "3.9.2"
EDITION = f"apache@{RELEASE}"
WITH_HEADERS = "4.3.1"


def answers(release: str, text: str) -> list[dict[str, Any]]:
    return machine_answers(OPERATIONS, store_of(release), OPERATIONS.parse_shorthand(text))


def converted(answer: Mapping[str, Any]) -> str:
    """What an answer says of the contents, in a line."""
    if "rows" in answer:
        return ", ".join(f"{each['key']} {contents(each)}" for each in answer["rows"])
    if "value" in answer:
        return contents(answer)
    return str(answer.get("class", answer.get("count", "")))


def contents(found: Mapping[str, Any]) -> str:
    headers = found.get("headers")
    return f"{found['value']} {found['timestamp']}" + ("" if headers is None else f" {headers or 'none'}")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("open timestamped; put 61=31 at 5; get 61", "31 5"),
        ("open plain; put 61=31 at 5; get 61", "31 -1"),
        (f"{OLD}; get 61", "31 -1"),
        (f"{OLD}; get 61; get 61", "31 -1"),
        (f"{OLD}; put 61=32 at 5; get 61", "32 5"),
        (f"{OLD}; put 61 null; get 61", "None None"),
        (f"{OLD}; delete 61", "31 -1"),
        (f"{OLD}; delete 61; get 61", "None None"),
        (f"{OLD}; put-if-absent 61=32 at 5", "31 -1"),
        (f"{OLD}; put-if-absent 62=32 at 5; get 62", "32 5"),
        (f"{OLD}; put 00=32 at 5; all", "00 32 5, 61 31 -1"),
        (f"{OLD}; put ff=32 at 5; range 62-ff", "ff 32 5"),
        (f"{OLD}; restore 61=32 at 9; get 61", "32 9"),
        (f"{OLD}; restore 61 null at 9; get 61", "None None"),
        (f"{OLD}; put 62=31 at 5; count", "2"),
        (f"{OLD}; get 61; crash; open timestamped; get 61", "31 -1"),
        (f"{OLD}; get 61; crash within a flush; open timestamped; get 61", "31 -1"),
        (f"{OLD}; put 61=32 at 5; crash; open timestamped; get 61", "31 -1"),
        (f"{OLD}; put 61=32 at 5; flush; crash; open timestamped; get 61", "32 5"),
        ("open timestamped; close; open plain", "UNREADABLE"),
        ("open timestamped; open timestamped", "LOCKED"),
        ("get 61", "CLOSED"),
    ],
)
def test_the_machine_by_hand(text: str, last: str) -> None:
    assert converted(answers(RELEASE, text)[-1]) == last


STAMPED = "open timestamped; put 61=31 at 5; close"
MIXED = f"{OLD}; close; open headers"


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("open headers; put 61=31 at 5 with h=31,i=,h=32,j; get 61", "31 5 h=31,i=,h=32,j"),
        ("open headers; put 61=31 at 5; get 61", "31 5 none"),
        ("open headers; restore 61=31 at 5 with h=31; all", "61 31 5 h=31"),
        ("open headers; put 61=31 at 5 with h=31; put-if-absent 61=32 at 7 with i", "31 5 h=31"),
        ("open headers; put 61=31 at 5 with h=31; put 61=32 at 7; get 61", "32 7 none"),
        ("open timestamped; put 61=31 at 5 with h=31; get 61", "31 5"),
        (f"{STAMPED}; open headers; get 61", "31 5 none"),
        (f"{STAMPED}; open headers; get 61; crash; open headers; get 61", "31 5 none"),
        (f"{STAMPED}; open headers; put 62=31 at 5; count", "2"),
        (f"{OLD}; get 61; close; open headers; get 61", "31 -1 none"),
        ("open plain; put 61=31 at 5; close; open headers; all", "61 31 -1 none"),
        # Once it had a place for headers, no older store opens the directory; places stay through crashes.
        (f"{STAMPED}; open headers; crash; open timestamped", "UNREADABLE"),
        ("open headers; close; open plain", "UNREADABLE"),
        # Two older formats are refused, and then the store with timestamps is, too.
        (MIXED, "UNREADABLE"),
        (f"{MIXED}; open timestamped", "UNREADABLE"),
        (f"{MIXED}; open headers", "UNREADABLE"),
    ],
)
def test_a_store_with_headers_by_hand(text: str, last: str) -> None:
    assert converted(answers(WITH_HEADERS, text)[-1]) == last


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("open headers", False),
        (f"{STAMPED}; open headers", True),
        (f"{STAMPED}; open headers; get 61; close; open headers", False),
    ],
)
def test_a_store_with_headers_looks_for_an_older_format_until_it_is_empty(text: str, both: bool) -> None:
    assert answers(WITH_HEADERS, text)[-1]["both"] is both


def test_the_place_for_timestamps_is_dropped_once_it_is_empty() -> None:
    text = f"{STAMPED}; open headers; get 61; close; open headers; close"
    machine = store_of(WITH_HEADERS)
    state = machine.initial()
    for step in OPERATIONS.parse_shorthand(text):
        state = machine.step(state, OPERATIONS.event_of(step)).state
    assert state.families == {"plain", "headers"}


def test_no_store_of_an_older_release_has_headers() -> None:
    assert converted(answers("4.2.1", "open headers")[-1]) == "UNREADABLE"
    random = Random("headers")
    for release, some in (("4.2.1", False), ("4.3.0", True)):
        talk = lives(f"apache@{release}")
        drawn = [talk.mended(talk.draw(random, talk.swarm(random))) for _ in range(60)]
        opened = {step["format"] for each in drawn for step in each if step.verb == "store-open"}
        headers = {step.body["headers"] for each in drawn for step in each if step.body.get("headers")}
        assert (("headers" in opened), bool(headers)) == (some, some)


@pytest.mark.parametrize(
    ("release", "text", "both"),
    [
        ("2.3.0", "open timestamped", True),
        ("2.3.0", "open timestamped; close; open timestamped", False),
        ("2.3.1", "open timestamped", False),
        ("2.3.1", OLD, True),
    ],
)
def test_a_new_store_of_one_release_looks_for_old_values(release: str, text: str, both: bool) -> None:
    assert answers(release, text)[-1]["both"] is both


@pytest.mark.parametrize(("release", "last"), [("4.2.1", "32 5"), ("4.3.1", "31 -1")])
def test_from_4_3_on_a_flush_stays_in_memory_and_the_store_says_so(release: str, last: str) -> None:
    text = f"{OLD}; flush; put 61=32 at 5; flush; crash; open timestamped; get 61"
    *_, opened, found = answers(release, text)
    assert (opened["flushes"], converted(found)) == (None if release == "4.2.1" else 0, last)


def executed(made: Adapter, text: str, edition: str = EDITION) -> History:
    return history_of(made, Case("stores/contents", edition, Role.STORE, OPERATIONS.parse_shorthand(text)))


def broken(history: History) -> dict[str, list[str]]:
    return {id: found for id, each in OURS.items() if (found := [one.why for one in each.search(history)])}


@pytest.mark.parametrize("mutant", sorted(PLANTED))
def test_the_least_case_of_a_mutant_breaks_its_invariant_and_the_reference_keeps_all(mutant: str) -> None:
    planted = PLANTED[mutant]
    assert isinstance(planted.least, str)
    latest = f"apache@{WITH_HEADERS}"
    assert broken(executed(planted.made(), planted.least, latest))[planted.invariant]
    assert broken(executed(Reference(), planted.least, latest)) == {}


def test_every_invariant_has_a_mutant() -> None:
    assert {each.invariant for each in PLANTED.values()} == {*OURS}


REFUSED = {"status": "rejected", "class": "ProcessorStateException"}
OPENED = [
    # Where a crash may have brought back values without timestamps, a store with headers may refuse the directory.
    ("open plain; put 61=31 at 5; close; open headers", {"stores/opens-older"}),
    ("open timestamped; put 61=31 at 5; crash; open headers", {"stores/opens-older"}),
    (f"{OLD}; get 61; close; open headers", {"stores/opens-older"}),
    (f"{OLD}; put 61=32 at 7; close; open headers", {"stores/opens-older"}),
    (f"{OLD}; close; open headers", set()),
    (f"{OLD}; get 61; crash; open headers", set()),
    (f"{OLD}; get 61; flush; crash; open headers", set()),
    (f"{OLD}; put 61=32 at 7; crash; open headers", set()),
    (f"{OLD}; delete 61; crash; open headers", set()),
    (f"{OLD}; put 62=32 at 7; close; open headers", set()),
]


@pytest.mark.parametrize(("text", "owed"), OPENED)
def test_when_a_store_with_headers_may_refuse_a_directory(text: str, owed: set[str]) -> None:
    class Refusing(Reference):
        def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
            found = super().answer(op)
            return REFUSED if op.get("format") == "headers" else found

    assert broken(executed(Refusing(), text, f"apache@{WITH_HEADERS}")).keys() == owed


OWED = [
    # After a flush, a put and a crash: either value, and the same one from then on.
    ("open timestamped; put 61=31 at 5; flush; put 61=32 at 7; crash; open timestamped; get 61", [("31", 5)], True),
    ("open timestamped; put 61=31 at 5; flush; put 61=32 at 7; crash; open timestamped; get 61", [("32", 7)], True),
    ("open timestamped; put 61=31 at 5; flush; put 61=32 at 7; crash; open timestamped; get 61", [None], True),
    ("open timestamped; put 61=31 at 5; flush; crash; open timestamped; get 61", [None], False),
    ("open timestamped; put 61=31 at 5; flush; put 61=32 at 7; crash; open timestamped; get 61", [("33", 5)], False),
    ("open timestamped; put 61=31 at 5; crash; open timestamped; get 61; get 61", [None, ("31", 5)], False),
    ("open timestamped; put 61=31 at 5; crash; open timestamped; get 61; get 61", [("31", 5)] * 2, True),
    ("open timestamped; put 61=31 at 5; close; open timestamped; crash; open timestamped; get 61", [None], False),
    # Within a flush a written key may be lost, for its changelog has it since; one that was only read may not.
    (f"{OLD}; get 61; crash within a flush; open timestamped; get 61", [("31", -1), ("31", -1)], True),
    (f"{OLD}; get 61; crash within a flush; open timestamped; get 61", [("31", -1), None], False),
    (f"{OLD}; put 61=32 at 7; crash within a flush; open timestamped; get 61", [None], True),
    (f"{OLD}; put 61=32 at 7; crash within a flush; open timestamped; get 61", [("33", 7)], False),
    (f"{OLD}; put 61=32 at 7; flush; crash within a flush; open timestamped; get 61", [None], False),
]


@pytest.mark.parametrize(("text", "readings", "kept"), OWED)
def test_what_a_crash_may_lose(text: str, readings: list[tuple[str, int] | None], kept: bool) -> None:
    class Scripted(Reference):
        """Answers readings from a list."""

        def __init__(self) -> None:
            super().__init__()
            self.left = [*readings]

        def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
            if op["op"] != "store-get":
                return {"status": "accepted"}
            value, timestamp = self.left.pop(0) or (None, None)
            return {"status": "accepted", "value": value, "timestamp": timestamp}

    found = broken(executed(Scripted(), text))
    assert (found == {}) is kept, found


@pytest.mark.parametrize(("flushes", "kept"), [(0, True), (1, False), (None, False)])
def test_a_store_that_manages_offsets_owes_what_it_says_it_has_kept(flushes: int | None, kept: bool) -> None:
    class Losing(Reference):
        def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
            return {"status": "accepted", "both": False, "flushes": flushes, "value": None, "timestamp": None}

    text = "open timestamped; put 61=31 at 5; flush; crash; open timestamped; get 61"
    assert (broken(executed(Losing(), text)) == {}) is kept


@pytest.mark.parametrize("release", ["2.3.0", RELEASE, pytest.param("4.3.1", marks=pytest.mark.integration)])
def test_one_store_is_explored_in_full(release: str) -> None:
    (model,) = PLAYABLES
    at = edition(f"apache@{release}")
    scope = model.scope("keys=2,values=1", at)
    found = explored(model, at, scope, model.world(at, scope), 100_000, None, lambda *_: None)
    assert found.exit_code == 0


def test_impossible_steps_are_replaced() -> None:
    steps = OPERATIONS.parse_shorthand("get 61; open plain; range 62-61; put 61 null; put 61=31; close; crash")
    mended = lives(EDITION).mended(steps)
    assert OPERATIONS.shorthand(mended) == (
        "open timestamped; close; open timestamped; put 61 null; put 61=31 at 5; close; open timestamped"
    )
    state, machine = store_of(RELEASE).initial(), store_of(RELEASE)
    for each in mended:
        state, actions = machine.step(state, OPERATIONS.event_of(each))
        assert not [one for one in actions if type(one).__name__ == "Rejected"]
