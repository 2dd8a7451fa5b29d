"""KIP-429's draft: groups in which some members send subscriptions of version 0 and some of version 1."""

from collections.abc import Mapping

from conformance.models.assignment import Topic
from conformance.models.membership import V0, V1, Assigned, Subscription
from conformance.models.mixed_group import INCOMPATIBLE, draft_leader, old_leader

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
