"""All orders of heartbeats in a consumer group, in small scopes: the machine of a release breaks no law, and each law
is broken by a planted defect."""

from collections.abc import Mapping
from typing import Any

import pytest

from kipcheck.conformance.machines.search import Search
from kipcheck.conformance.protocols.consumer_group import mutants
from kipcheck.conformance.protocols.consumer_group.laws import LAWS
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup, Member, State
from kipcheck.conformance.protocols.consumer_group.play import product
from kipcheck.conformance.protocols.consumer_group.rules import Rules
from kipcheck.conformance.protocols.reconciled.terms import Partitions
from kipcheck.conformance.tests.support.loops import for_each


def searched(group: ConsumerGroup, scope: Mapping[str, int | str]) -> Search[Any, Any, Any]:
    bounds = {"members": 2, "topics": "u", "static": 0, "epochs": 4, **scope}
    search: Search[Any, Any, Any] = Search(product(group, bounds))
    search.run(200_000)
    return search


@pytest.mark.parametrize(
    ("release", "scope", "states"),
    [
        ("4.0.2", {"epochs": 3}, 513),
        ("4.2.1", {"epochs": 3}, 595),
        ("4.3.1", {"epochs": 3}, 383),
        ("4.4.0", {"topics": "t"}, 936),
        ("4.0.2", {"static": 1}, 121),
        ("4.3.1", {"static": 1}, 161),
        ("4.4.0", {"static": 1}, 103),
        pytest.param("4.1.2", {"members": 3, "static": 1, "epochs": 3}, 2_513, marks=pytest.mark.integration),
        pytest.param("4.4.0", {"topics": "any", "epochs": 3}, 5_717, marks=pytest.mark.integration),
        pytest.param("4.2.1", {"members": 3, "epochs": 3}, 5_650, marks=pytest.mark.integration),
        pytest.param("4.1.2", {"topics": "any", "epochs": 3}, 20_194, marks=pytest.mark.long),
    ],
)
def test_no_order_of_heartbeats_breaks_a_law(release: str, scope: dict[str, int | str], states: int) -> None:
    search = searched(ConsumerGroup(rules=Rules.of(release)), scope)
    assert (search.complete, search.breach, search.states) == (True, None, states)


class StepsBack(ConsumerGroup):
    """The epoch of a member falls while it revokes."""

    def computed(self, state: State, member: Member, owned: Partitions | None, epoch: int) -> Member:
        found = super().computed(state, member, owned, epoch)
        return found._replace(epoch=epoch - 1) if found.pending else found


PLANTED: tuple[tuple[ConsumerGroup, Mapping[str, int | str], str], ...] = (
    (mutants.GivesWhatIsPending(), {}, "one-owner"),
    (mutants.GivesWhatIsOwned(), {}, "one-owner"),
    (mutants.TakesSilenceForConsent(), {}, "one-owner"),
    (StepsBack(), {}, "epochs-rise"),
    (mutants.CountsDown(), {}, "group-epoch-rises"),
    (mutants.GivesAnyTopic(), {"topics": "any"}, "co-subscription"),
    (mutants.ForgetsWhoWaits(), {}, "settles"),
    (mutants.KeepsTheTarget(), {}, "settles"),
    (mutants.NeverExpires(), {}, "silent-are-fenced"),
    (mutants.ExpiresAtOnce(), {}, "silent-are-fenced"),
    (mutants.WaitsForEver(), {}, "late-revokers-are-fenced"),
    (mutants.ReplacesLiveInstances(), {"static": 1}, "one-holder"),
    (mutants.FreesWhatIsAway(), {"static": 1}, "kept-while-away"),
    (mutants.ForgetsInstances(), {"static": 1}, "gets-it-back"),
    (mutants.RebalancesForSuccessors(), {"static": 1}, "takeover-without-rebalance"),
)


@for_each(PLANTED)
def test_a_planted_defect_is_found(group: ConsumerGroup, scope: Mapping[str, int | str], law: str) -> None:
    breach = searched(group, scope).breach
    assert breach is not None and breach.law == f"consumer-group/{law}", breach


def test_each_law_has_a_planted_defect() -> None:
    assert {law.id for law in LAWS} == {f"consumer-group/{law}" for _, _, law in PLANTED}
