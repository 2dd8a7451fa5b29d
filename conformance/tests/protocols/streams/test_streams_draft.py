"""Upgrades of Streams groups as the draft of KIP-268 has them."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import pytest

from kipcheck.conformance.core.values.edition import KIP_268, edition
from kipcheck.conformance.protocols.streams.model.group_model import process_of
from kipcheck.conformance.protocols.streams.model.members import (
    FUTURE,
    Fatal,
    Misconfigured,
    Settings,
)
from kipcheck.conformance.protocols.streams.model.release_members import binary
from kipcheck.conformance.protocols.streams.model.rules import NEWEST_VERSION, Rules
from kipcheck.conformance.protocols.streams.ops import STATELESS
from kipcheck.conformance.tests.support.streams_members import ALL, NEWEST, Group


def test_the_draft_ends_with_one_rebalance_that_its_leader_alone_triggers() -> None:
    """268-19, 268-21: where the leader is bounced last; else none is needed."""
    group = Group("a=own b=own c=own", KIP_268)
    group.rounds("c")
    for each in "ab":
        group.start(each, FUTURE)
        assert group.rounds("c") == 2
    group.start("c", FUTURE)
    reported = group.rebalance("a")
    assert {each: it.rejoin.when for each, it in reported.items()} == {"a": "again", "b": "never", "c": "never"}
    assert group.used == [4, 4, 4]
    assert group.rounds("b") == 1
    assert {info.used for info in group.told.values()} == {4}


def test_the_draft_needs_no_rebalance_where_another_member_is_bounced_last() -> None:
    group = Group("a=own b=own c=own", KIP_268)
    for each in "ab":
        group.start(each, FUTURE)
        group.rounds("c")
    assert group.rounds("a") == 1, "the leader knows more than c, and all who can use it do from the next one on"
    assert group.used == [4, 4, 3]
    sent = group.lead("a")
    assert {(each.used, each.supported) for each in sent.values()} == {(3, 4)}
    assert {group.receive(each).rejoin.when for each in "abc"} == {"never"}
    group.start("c", FUTURE)
    assert group.rounds("a") == 1
    assert {info.used for info in group.told.values()} == {4}


@pytest.mark.parametrize("bounces", [*permutations("abc")])
def test_the_draft_comes_through_every_order(bounces: Iterable[str]) -> None:
    """268-22, 268-24."""
    group = Group("a=own b=own c=own", KIP_268)
    leader = "a"
    for each in bounces:
        group.start(each, FUTURE)
        leader = leader if each != leader else "bca"["abc".index(each)]
        assert group.rounds(leader) <= 2
        assert group.active == ALL
    group.rebalance(leader)
    assert {info.used for info in group.told.values()} == {4}


@pytest.mark.parametrize(("old", "line"), [("0.10.0.1", "0.10.0"), ("0.10.2.2", "0.10.2"), ("1.1.1", "1.1")])
def test_the_draft_comes_from_before_it_in_two_bounces(old: str, line: str) -> None:
    """268-10, 268-13."""
    group = Group(f"a={old} b={old}", KIP_268)
    group.rounds("a")
    for suffix in (f"<{line}", ""):
        for each, leader in (("a", "b"), ("b", "a")):
            group.start(each, f"own{suffix}")
            assert group.rounds(leader) == 1
            assert group.active == ALL
    assert {info.used for info in group.told.values()} == {3}


def test_the_drafts_fix_release_of_0_10_1_came_never() -> None:
    """268-09, 268-41, 268-53."""
    fixed = Group("a=0.10.0.1 b=0.10.1.2<0.10.0", KIP_268)
    assert fixed.rounds("a") == fixed.rounds("b") == 1
    with pytest.raises(Misconfigured):
        Group("a=0.10.1.2<0.10.1", KIP_268)
    with pytest.raises(Fatal):
        Group("a=0.10.0.1 b=0.10.1.2<0.10.0", NEWEST).lead("a")


def test_the_draft_takes_no_setting_of_its_own_and_knows_nobody_after_it() -> None:
    for value in ("2.0", "1.2", "nonsense"):
        with pytest.raises(Misconfigured):
            Group(f"a=own<{value}", KIP_268)
    for release in ("2.0.0", "0.9.0.1", "nonsense"):
        with pytest.raises(LookupError):
            Group(f"a={release}", KIP_268)
    with pytest.raises(LookupError):
        Group("a=nonsense")


def test_the_drafts_leader_throws_where_it_cannot_assign() -> None:
    """Of errors that are told nothing is written before 2.1."""
    group = Group("a=own", KIP_268)
    group.topics = ()
    with pytest.raises(Fatal, match="missing source"):
        group.lead("a")


@pytest.mark.parametrize("where", ["apache@2.0.1", "apache@3.9.2", "apache@4.3.1"])
def test_the_simulated_future_has_one_version_more_and_the_protocols_of_its_time(where: str) -> None:
    """268-27."""
    over = edition(where)
    member = binary(Settings(FUTURE, STATELESS, process_of("a")), over)
    assert member.latest == NEWEST_VERSION + 1
    assert tuple(member.supports) == Rules.of(over.release).protocols
    assert member.initial().used == member.latest
    assert binary(replace(member.settings, upgrade_from="1.1"), over).initial().used == 2
    with pytest.raises(Misconfigured):
        binary(replace(member.settings, upgrade_from="nonsense"), over).initial()


def test_equal_settings_have_one_binary() -> None:
    settings = Settings("own", STATELESS, process_of("a"))
    assert binary(settings, NEWEST) is binary(settings, NEWEST)
    assert binary(settings, NEWEST).settings.release == NEWEST.release
    assert binary(settings, KIP_268).settings.release == KIP_268.name
