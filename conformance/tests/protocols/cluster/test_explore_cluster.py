"""Groups of consumers explored: as the readable search does, and with planted defects that break the laws."""

from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import APACHE, KIP_429, edition
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, Assignment, Group, Topic, range_
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE as INCREMENTAL, EAGER
from kipcheck.conformance.protocols.cluster.components import Scope
from kipcheck.conformance.protocols.cluster.kinds import COOPERATES, OLD
from kipcheck.conformance.protocols.cluster.laws import laws
from kipcheck.conformance.protocols.cluster.model import Cluster
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.rules import Assignor, Config, Rules as MemberRules
from kipcheck.conformance.protocols.playables import playable
from kipcheck.conformance.protocols.upgrade.model.upgrade import LARGE_GROUP, consumers, coordinator, for_old_brokers
from kipcheck.conformance.tests.machines.test_search import LetsSyncsLie, counted, searched

TOPIC = Topic("t", 2)
BOTH = (("t", 0), ("t", 1))


@pytest.mark.parametrize(
    ("model", "text", "scope"),
    [
        ("cluster", "apache@3.9.2", "members=2,partitions=2,crashes=0"),
        ("cluster", "kip-429", "members=1,partitions=1,crashes=0,losses=1"),
        ("bounce", "kip-429", "members=1,partitions=1,crashes=0"),
    ],
)
def test_the_packed_search_counts_what_the_readable_one_counts(model: str, text: str, scope: str) -> None:
    found = playable(model)
    world = found.world(edition(text), found.scope(scope, edition(text)))
    search = searched(world)
    assert search.complete
    assert (search.states, search.transitions, search.depth) == counted(world)


def hands_over_at_once(group: Group) -> Assignment:
    """As an eager assignor: what another still reads included."""
    return range_(group)


def forgets_one(group: Group) -> Assignment:
    return {member: tuple(each for each in given if each != ("t", 1)) for member, given in range_(group).items()}


def cluster(assign: Any, brokers: type[Coordinator] = Coordinator) -> Cluster:
    """Two cooperative members of an assignor of that name."""
    assignor = Assignor(COOPERATIVE, (INCREMENTAL, EAGER), assign)
    consumer = Consumer(Config(MemberRules.of("3.9.2"), (assignor,), topics=(TOPIC,)))
    made = brokers(Rules.of("3.9.2"), LARGE_GROUP)
    kinds = (COOPERATES, COOPERATES)
    return Cluster(made, {COOPERATES: consumer}, ("a", "b"), Scope(crashes=0), kinds, laws(BOTH))


@pytest.mark.parametrize(
    ("made", "law"),
    [
        (cluster(hands_over_at_once), "bounce/revoked-first"),
        (cluster(forgets_one), "bounce/all-owned"),
        (cluster(range_, LetsSyncsLie), "group/parked-answered"),
    ],
    ids=["hands over at once", "forgets one", "lets syncs lie"],
)
def test_a_planted_defect_breaks_a_law(made: Cluster, law: str) -> None:
    breach = searched(made).breach
    assert breach is not None
    assert breach.law == law


def swaps(group: Group) -> Assignment:
    """What the one owns the other shall have: nobody ever rests."""
    first, *rest = sorted(group.members, key=lambda each: each.id)
    if not rest:
        return {first.id: BOTH}
    result = set(first.owned)
    return {first.id: tuple(each for each in BOTH if each not in result), rest[0].id: tuple(sorted(result))}


def test_a_group_that_never_rests_is_found_out() -> None:
    made = cluster(swaps)
    made.laws = tuple(law for law in made.laws if law.id == "bounce/rests")
    breach = searched(made).breach
    assert breach is not None
    assert breach.law == "bounce/rests"


def test_an_old_leader_over_members_that_cooperate_gives_away_what_they_read() -> None:
    """The path that is skipped, under brokers as before the draft (429-06)."""
    topic, kinds = Topic("t", 2), (OLD, COOPERATES, COOPERATES)
    members = consumers(KIP_429, (topic,))
    before = coordinator(KIP_429, by_version=False)
    made = Cluster(before, members, ("a", "b", "c"), Scope(crashes=0), kinds, laws(BOTH), for_old_brokers)
    breach = searched(made).breach
    assert breach is not None
    assert breach.law == "bounce/revoked-first"


def test_only_the_draft_has_brokers_of_before() -> None:
    model = playable("bounce")
    with pytest.raises(LookupError, match="requires edition kip-429"):
        model.world(APACHE, model.scope("brokers=before", APACHE))
