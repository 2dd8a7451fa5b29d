"""Packages of protocols are found by themselves, in an order that stays."""

from kipcheck.conformance.checks import LISTED
from kipcheck.conformance.invariants.registry import all_invariants
from kipcheck.conformance.mutants import MUTANTS
from kipcheck.conformance.play import PLAYABLES
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.targets.protocol import PLAYED
from kipcheck.strategies.machine_conversations import CONVERSATIONS


def test_packages_have_the_places_that_they_always_had() -> None:
    assert {name: each.order for name, each in registry.packages().items()} == {"features": 50, "consumer_group": 80}


def test_the_kinds_of_checks_are_in_the_order_that_campaigns_draw_from() -> None:
    kinds = [*dict.fromkeys(each.id.partition("/")[0] for each in LISTED)]
    assert kinds == [
        "wire", "nodes", "assign", "features", "group", "member", "consumer-group", "bounce", "streams",
    ]  # fmt: skip


def test_every_part_of_a_package_is_found() -> None:
    for package in registry.packages().values():
        ids = {
            each.id for each in LISTED if each.family.role is package.role and each.id.startswith(f"{package.name}/")
        }
        assert {each.role for each in LISTED if each.id in ids} == {package.role}
        assert any(each.id.startswith(f"{package.name}/") for each in all_invariants(package.role))
        assert any(each.check in ids for each in MUTANTS.values())
        assert package.name in PLAYED[package.role]
        assert package.name in CONVERSATIONS
    assert "features" in PLAYABLES


def test_entries_of_packages_stand_between_the_others() -> None:
    found = registry.in_order({10: ("a",), 60: ("b", "c"), 90: ("d",)}, "checks", "CHECKS")
    assert [each if isinstance(each, str) else each.id.partition("/")[0] for each in found] == [
        "a", *["features"] * 3, "b", "c", *["consumer-group"] * 2, "d",
    ]  # fmt: skip
