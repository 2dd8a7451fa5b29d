"""All orders of events of a group with members of both protocols, in small scopes: the machine breaks no law, and each
law is broken by a planted defect, and one by what releases do."""

from collections.abc import Mapping
from typing import Any

import pytest

from kipcheck.conformance.machines.search import Search
from kipcheck.conformance.protocols.consumer_group import model as consumer
from kipcheck.conformance.protocols.consumer_group.rules import CURRENT, Rules
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.protocols.migration.play import product
from kipcheck.conformance.protocols.migration.search_model import ReleasedGroup, untimed
from kipcheck.conformance.protocols.reconciled.terms import Partitions
from kipcheck.conformance.tests.support.loops import for_each


def searched(made: type[MixedGroup], scope: Mapping[str, int], rules: Rules = CURRENT) -> Search[Any, Any, Any]:
    bounds = {"classic": 1, "consumers": 1, "static": 0, "epochs": 5, **scope}
    search: Search[Any, Any, Any] = Search(product(untimed(made)(rules), bounds))
    search.run(100_000)
    return search


@for_each([({}, 350), ({"static": 1}, 260)])
def test_no_order_of_events_breaks_a_law(scope: dict[str, int], states: int) -> None:
    search = searched(MixedGroup, scope)
    assert (search.complete, search.breach, search.states) == (True, None, states)


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param({"consumers": 2}, marks=pytest.mark.integration),
        pytest.param({"classic": 2, "epochs": 4}, marks=pytest.mark.long),
        pytest.param({"classic": 2, "static": 1, "epochs": 4}, marks=pytest.mark.long),
    ],
)
def test_no_order_of_events_of_three_clients_breaks_a_law(scope: dict[str, int]) -> None:
    search = searched(MixedGroup, scope)
    assert (search.complete, search.breach) == (True, None)


class AnyConsent(MixedGroup):
    """A member of the classic protocol that joins again has given up what it should."""

    def reconciled(
        self, group: consumer.State, member: consumer.Member, owned: Partitions, changed: bool
    ) -> consumer.Member:
        return super().reconciled(group, member, (), changed)


class Restarting(MixedGroup):
    """A downgraded group begins with generation 1."""

    def first_generation(self, group: consumer.State) -> int:
        return 0


@for_each([(AnyConsent, "migration/one-owner"), (Restarting, "migration/generations-rise")])
def test_a_planted_defect_is_found(made: type[MixedGroup], law: str) -> None:
    breach = searched(made, {}).breach
    assert breach is not None and breach.law == law


@for_each(["4.0.2", "4.2.1", "4.4.0"])
def test_a_takeover_in_a_release_gives_a_partition_two_owners(release: str) -> None:
    search = searched(ReleasedGroup, {"classic": 2, "static": 1}, Rules.of(release))
    assert search.breach is not None and search.breach.law == "migration/one-owner"
    steps = [OPERATIONS.step_of(each.move) for each in search.breach.path]
    assert any(each.body.get("instance") for each in steps if each.verb == "classic-join")
