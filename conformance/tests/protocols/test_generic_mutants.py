"""Mutants that fit every machine: the forms of their answers, each on a machine that shows it."""

from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.generic_mutants import GENERIC, generic, learned
from kipcheck.conformance.protocols.group.ops import OPERATIONS as GROUP
from kipcheck.conformance.protocols.stores.ops import OPERATIONS as STORES
from kipcheck.conformance.targets.protocol import operation
from kipcheck.conformance.targets.registry import adapter, target


def answers(name: str, steps: tuple[Step, ...], edition: str = "apache") -> list[dict[str, Any]]:
    made = adapter(f"miniature/{name}")
    assert made.configure(edition) is None
    return [made.answer({"case": 0, **operation(each)}) for each in steps]


STORED = STORES.parse_shorthand("open timestamped; put 61=31 at 5; get 61; put 61=32 at 7; get 61")


def found_values(name: str) -> list[Any]:
    return [each["value"] for each in answers(name, STORED) if "value" in each]


def test_a_machine_that_forgets_its_last_write_or_is_behind_or_stops_reads_old_values() -> None:
    assert found_values("forgets-its-last-write") == [None, "31"]
    assert found_values("is-one-step-behind") == [None, "31"]
    assert found_values("stops-after-some-steps") == ["31", "31"]
    assert found_values("repeats-its-last-answer") == ["31", "31"]
    assert found_values("accepts-everything") == ["31", "32"]


def test_a_constant_answer_does_not_depend_on_the_state() -> None:
    first, second = found_values("answers-the-same-always")
    assert first == second == learned("timestamped-store", None, "apache").by_verb["store-get"].accepted["value"]  # type: ignore[index]


def test_a_refused_request_of_a_group_has_the_number_of_the_request_and_an_error() -> None:
    steps = GROUP.parse_shorthand("join a; beat a; join b")
    found = [each["answers"] for each in answers("refuses-everything", steps)]
    assert [[one["to"] for one in each] for each in found] == [[0], [1], [2]]
    assert all(one["error"] != "NONE" for each in found for one in each)
    accepted = [one for each in answers("accepts-everything", steps) for one in each["answers"]]
    assert {one["error"] for one in accepted} == {"NONE"} and accepted


def test_one_operation_alone_can_be_altered() -> None:
    steps = STORES.parse_shorthand("open timestamped; put 61=31 at 5; get 61; count; put 61=32 at 7; get 61; count")
    assert answers("answers-the-same-always/store-count", steps)[:3] == answers("accepts-everything", steps)[:3]
    *_, last = answers("refuses-everything/store-open", steps)
    assert last != answers("accepts-everything", steps)[-1]
    with pytest.raises(LookupError, match="unknown operation 'store-shout'"):
        generic("refuses-everything/store-shout")
    assert generic("refuses-nothing") is None


def test_each_is_a_target_with_a_sentence() -> None:
    for name, each in GENERIC.items():
        assert each.sentence.endswith("."), name
        assert target(f"miniature/{name}").name == f"miniature/{name}"
    with pytest.raises(LookupError, match="unknown target"):
        target("miniature/refuses-nothing")
