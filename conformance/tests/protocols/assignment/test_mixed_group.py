"""KIP-429's draft: groups in which some members send subscriptions of version 0 and some of version 1."""

from collections.abc import Mapping

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.engine.execution.worker import Unit, Worker
from kipcheck.conformance.protocols.assignment.checks.mixed import subject, subjects
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import V0, V1, Assigned, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import DRAFT, INCOMPATIBLE, draft_leader, old_leader
from kipcheck.conformance.protocols.assignment.ops import shorthand, subscriptions_of
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.tests.support.groups import DRAFTED, MIXING, answered, case, stated, step_of
from kipcheck.conformance.tests.support.sessions import history_of

TOPICS = (Topic("t", 4),)
NOTHING = Assigned(error=INCOMPATIBLE)


def old() -> Subscription:
    return Subscription(("t",), V0)


def new(*owned: int, generation: int = -1, topics: tuple[str, ...] = ("t",)) -> Subscription:
    return Subscription(topics, V1, tuple(("t", number) for number in owned), generation)


def numbers(assigned: Mapping[str, Assigned]) -> dict[str, tuple[int, ...]]:
    assert all(topic == "t" for each in assigned.values() for topic, _ in each.partitions)
    return {member: tuple(number for _, number in each.partitions) for member, each in assigned.items()}


def test_where_all_have_revoked_the_group_is_assigned_as_ever() -> None:
    given = draft_leader(TOPICS, {"a": old(), "b": old()})
    assert given == old_leader(TOPICS, {"a": old(), "b": old()})
    assert numbers(given) == {"a": (0, 1), "b": (2, 3)}
    assert not any(each.error for each in given.values())


def test_where_none_has_revoked_what_moves_is_given_up_first() -> None:
    first = draft_leader(TOPICS, {"a": new(0, 1, 2, 3), "b": new()})
    assert len(first["a"].partitions) == 2
    assert first["b"] == Assigned()
    then = draft_leader(TOPICS, {"a": new(*numbers(first)["a"]), "b": new()})
    assert then["a"] == first["a"]
    assert sorted(then["a"].partitions + then["b"].partitions) == [("t", number) for number in range(4)]


def test_in_a_mix_the_old_get_an_error_and_the_new_keep_what_they_own() -> None:
    given = draft_leader(TOPICS, {"a": new(0, 3), "b": old(), "c": new(1), "d": new()})
    assert numbers(given) == {"a": (0, 3), "b": (), "c": (1,), "d": ()}
    assert {member for member, each in given.items() if each.error} == {"b"}
    assert given["b"] == NOTHING


def test_what_the_one_who_left_had_goes_to_nobody_while_the_group_is_mixed() -> None:
    assert numbers(draft_leader(TOPICS, {"a": new(0, 3), "b": old()})) == {"a": (0, 3), "b": ()}
    resolved = draft_leader(TOPICS, {"a": new(0, 3), "b": new()})
    assert numbers(resolved) == {"a": (0, 3), "b": (1, 2)}


def test_in_a_mix_nothing_is_kept_that_is_not_one_members_own() -> None:
    doubled = {"a": new(0, 1), "b": old(), "c": new(1, 2)}
    assert numbers(draft_leader(TOPICS, doubled)) == {"a": (0,), "b": (), "c": (2,)}
    stale = {"a": new(0, 1, generation=7), "b": old(), "c": new(1, 2, generation=8)}
    assert numbers(draft_leader(TOPICS, stale)) == {"a": (0,), "b": (), "c": (1, 2)}
    unread = {"a": new(0, topics=("u",)), "b": old(), "c": new(9)}
    assert numbers(draft_leader(TOPICS, unread)) == {"a": (), "b": (), "c": ()}


def test_an_old_leader_gives_away_what_new_members_still_read() -> None:
    """Left undefined by the text (429-06): two owners of one partition until somebody hears of it."""
    given = old_leader(TOPICS, {"a": old(), "b": new(0, 1)})
    assert numbers(given) == {"a": (0, 1), "b": (2, 3)}
    assert not any(each.error for each in given.values())


def test_a_version_0_owns_nothing_whatever_else_it_says() -> None:
    claiming = Subscription(("t",), V0, (("t", 0),))
    assert numbers(draft_leader(TOPICS, {"a": claiming, "b": new(0)})) == {"a": (), "b": (0,)}


def test_nobody_gets_nothing() -> None:
    assert draft_leader(TOPICS, {}) == old_leader(TOPICS, {}) == {}


# The check, and who breaks its laws

SPOILED = {name: mutant for name, mutant in MUTANTS.items() if mutant.check in DRAFTED}


def reference() -> Reference:
    found = Reference()
    assert found.configure("kip-429") is None
    return found


def test_every_law_has_a_vice_and_is_asked_by_the_check() -> None:
    (check,) = DRAFTED.values()
    assert MIXING.keys() == {mutant.invariant for mutant in SPOILED.values()}
    assert MIXING.keys() <= {*check.invariants}


def test_the_reference_keeps_every_law() -> None:
    worker = Worker("reference", InProcess(reference()))
    (check,) = DRAFTED.values()
    result = worker.run(Unit("reference", "kip-429", check.id, DRAFT, None, 1, 60))
    assert {word for _, word, _ in result.cases} == {"PASS"}


def test_the_draft_is_led_in_its_own_edition_alone() -> None:
    assert [each.name for each in subjects("kip-429")] == [DRAFT]
    assert not [*subjects("apache"), *subjects("kip-584"), *subjects("apache@2.3.0")]
    assert subject("kip-429", DRAFT, None).edition == "kip-429"
    for edition, name in (("apache", DRAFT), ("kip-429", "range")):
        with pytest.raises(LookupError, match="unknown leader"):
            subject(edition, name, None)
    assert reference().answer({"op": "user-data", "assignor": DRAFT})["status"] == "unsupported"


STATED = "draft t0:3 t1:1; a v0[t0]; b v1[t0]=t0-0@-1; c v1[t0 t1]=t0-1@-1"


def test_versions_are_said_in_shorthand_and_read_back() -> None:
    assert shorthand([step_of(STATED)]) == STATED
    reported = subscriptions_of(step_of(STATED.replace("a v0[t0]", "a v0[t0]=t0-2@-1")))
    assert reported["a"] == Subscription(("t0",), V0)
    assert reported["b"] == Subscription(("t0",), V1, (("t0", 0),))


def test_who_revokes_before_it_joins_owns_nothing_in_the_next_round() -> None:
    again = "draft again t0:2; a v0[t0]; b v1[t0]"
    history = history_of(
        reference(), Case("test", "kip-429", Role.LEADER, case(f"draft t0:2; a v0[t0]; b v0[t0] | {again}").steps)
    )
    assert [each["owned"] for each in history.ops[1].step["members"]] == [[], [["t0", 1]]]
    observed = history.ops[1].observation
    assert dict(observed.payload)["assignment"] == [  # type: ignore[union-attr]
        {"id": "a", "partitions": [], "userData": None, "error": 1},
        {"id": "b", "partitions": [["t0", 1]], "userData": None, "error": 0},
    ]


@pytest.mark.parametrize(
    ("law", "answer", "why"),
    [
        ("mixed/old-get-nothing", "a t0-2; b t0-0; c t0-1", "a is assigned t0-2, while others keep reading"),
        ("mixed/error", "a; b t0-0; c t0-1", "a gets no partition and no error"),
        ("mixed/new-keep", "a; b; c t0-1", "b owns t0-0 and reads it; it is assigned to no member"),
        ("mixed/rest-idle", "a; b t0-0; c t0-1 t1-0", "c is also assigned t1-0, which it does not own"),
    ],
)
def test_a_breach_is_told_in_few_words(law: str, answer: str, why: str) -> None:
    (reported,) = stated(law, answered(STATED, answer))
    assert reported.startswith(f"draft, step 1 (a of version 0, b and c of version 1): {why}")


@pytest.mark.parametrize(
    ("law", "asked", "answer", "why"),
    [
        ("mixed/all-old", "draft t0:1; a v0[t0]", "a", "t0-0 is not assigned, although all members have revoked"),
        ("mixed/all-new", "draft t0:1; a v1[t0]", "a", "t0-0 is not assigned, and no member has to give it up"),
        (
            "mixed/all-new",
            "draft t0:1; a v1[t0]=t0-0@-1; b v1[t0]",
            "a; b t0-0",
            "t0-0 is assigned to b, while a owns and reads it",
        ),
    ],
)
def test_so_is_one_among_members_of_one_version(law: str, asked: str, answer: str, why: str) -> None:
    (reported,) = stated(law, answered(asked, answer))
    assert why in reported
