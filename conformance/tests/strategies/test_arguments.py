"""A public strategy refuses a wrong argument when it is called, and names it."""

from collections.abc import Callable
from typing import Any

import pytest

from kipcheck import strategies
from kipcheck.strategies import public

OF_MEMBERS = (
    public.version_mixes,
    public.subscription_streams,
    public.assignment_streams,
    public.join_group_streams,
    public.api_versions_streams,
)
OF_BROKERS = (public.feature_fleets, public.feature_pictures, public.rolls)


@pytest.mark.parametrize("wrong", [0, 3, True, None, "24", (1,), (1, 2, 3), (2, "4"), (3, 1), (-1, 2)], ids=repr)
def test_a_number_of_members_or_brokers_is_the_least_and_the_most(wrong: Any) -> None:
    for argument, those in (("members", OF_MEMBERS), ("brokers", OF_BROKERS)):
        for strategy in those:
            with pytest.raises((TypeError, ValueError)) as refused:
                strategy(**{argument: wrong})
            assert str(refused.value).startswith(f"{argument} must be the least and the most number of {argument}")
            assert repr(wrong) in str(refused.value)


def test_one_number_is_answered_with_the_pair_to_write() -> None:
    with pytest.raises(TypeError, match=r"got 3: use members=\(3, 3\)$"):
        public.join_group_streams(members=3)  # type: ignore[arg-type]


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a roll without brokers": (lambda: public.rolls(brokers=(0, 2)), "with 1 <= least <= most, got (0, 2)"),
    "versions as text": (lambda: public.values("JoinGroupRequest", versions="3"), "versions must be numbers"),  # type: ignore[arg-type]
    "kinds as text": (
        lambda: strategies.damaged("JoinGroupRequest", kinds="unknown-tag"),
        "kinds must be several names, got 'unknown-tag': use kinds=['unknown-tag']",
    ),
    "features as text": (lambda: public.version_ranges(features="ab"), "use features=['ab']"),
    "levels out of order": (lambda: public.version_ranges(lowest=4, highest=1), "got lowest=4 and highest=1"),
    "a level as text": (lambda: public.version_ranges(highest="4"), "highest must be an integer, got '4'"),  # type: ignore[arg-type]
    "a taken name": (lambda: public.feature_update_requests(features=["unknown"]), "must not contain 'unknown'"),
    "no message": (lambda: public.version_mixes(()), "no message was given"),
    "no such version": (lambda: public.feature_pictures(version=99), "no version 99"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_wrong_arguments_are_named(name: str) -> None:
    call, complaint = WRONG[name]
    with pytest.raises((TypeError, ValueError, LookupError)) as refused:
        call()
    assert complaint in str(refused.value)


def test_a_repeated_name_counts_once() -> None:
    public.feature_update_requests(features=["a", "a"])
    public.damaged("JoinGroupRequest", kinds=["unknown-tag", "unknown-tag"])
