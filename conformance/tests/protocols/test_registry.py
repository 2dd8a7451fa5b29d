"""Packages of protocols are found by themselves, in an order that stays."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kipcheck.conformance import protocols
from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.checks import LISTED
from kipcheck.conformance.protocols.client.ops import CLIENT
from kipcheck.conformance.protocols.conversations import CONVERSATIONS
from kipcheck.conformance.protocols.damage.ops import DAMAGE
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.failover.ops import FAILOVER
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.machine_targets import MACHINE_ADAPTERS
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.playables import PLAYABLES

PLACES = {
    "codec": 10, "assignment": 30, "features": 50, "group": 60, "member": 70, "consumer_group": 80, "cluster": 85,
    "upgrade": 90, "streams": 100,
}  # fmt: skip
"""A new protocol needs no entry here."""


def in_order(known: Iterable[object], found: Iterable[object]) -> bool:
    """Whether all that is known is found in this order, whatever is between."""
    rest = iter(found)
    return all(each in rest for each in known)


def test_packages_have_the_places_that_they_always_had() -> None:
    orders = {name: each.order for name, each in registry.packages().items()}
    assert {name: orders[name] for name in PLACES} == PLACES
    assert in_order(PLACES, orders)


def test_the_kinds_of_checks_are_in_the_order_that_campaigns_draw_from() -> None:
    kinds = [*dict.fromkeys(each.id.partition("/")[0] for each in LISTED)]
    known = ("wire", "nodes", "assign", "features", "group", "member", "consumer-group", "bounce", "streams")
    assert in_order(known, kinds)


def test_every_machine_of_a_package_has_its_parts() -> None:
    for package in registry.packages().values():
        for machine in package.machines:
            assert verb_registry.role_of(machine) is package.role
            assert machine in CONVERSATIONS
            assert any(each.family.role is package.role for each in LISTED)
    assert [*CONVERSATIONS] == [*registry.machines()]
    alone = (CLIENT, DAMAGE, FAILOVER)
    assert [*MACHINE_ADAPTERS] == [each for each in registry.machines() if each not in alone], "programs play them"


def test_the_order_of_machines_stays() -> None:
    known = ("features", "group", "consumer-group", "member", "bounce", "streams", "streams-mixed")
    assert in_order(known, registry.machines())
    roles = (Role.CODEC, Role.LEADER, Role.CONTROLLER, Role.COORDINATOR, Role.MEMBER, Role.OPERATOR_TOOL)
    assert in_order(roles, registry.roles())


def test_every_package_with_checks_has_invariants_and_mutants() -> None:
    for name, part in registry.parts("checks").items():
        ids = {each.id for each in part.CHECKS}
        roles = {each.role for each in part.CHECKS}
        folder = f"{protocols.__name__}.{name}."
        assert any(each.search.__module__.startswith(folder) for role in roles for each in all_invariants(role)), name
        assert any(each.check in ids for each in MUTANTS.values()), name


def test_every_model_is_found() -> None:
    assert {*PLAYABLES} >= {"features", "group", "member", "cluster", "bounce", "streams"}


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The module that declares one more protocol; ``test_one_more_protocol`` has a whole one."""
    place = tmp_path / "made_up" / "protocol.py"
    place.parent.mkdir()
    (tmp_path / "made_up" / "__init__.py").touch()
    place.write_text("""
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL = ProtocolPackage(67, Role.BROKER)
""")
    monkeypatch.setattr(protocols, "__path__", [*protocols.__path__, str(tmp_path)])
    registry.packages.cache_clear()
    registry.parts.cache_clear()
    yield place
    monkeypatch.undo()
    registry.packages.cache_clear()
    registry.parts.cache_clear()
    for name in [each for each in sys.modules if each.startswith(f"{protocols.__name__}.made_up")]:
        del sys.modules[name]


def test_a_new_protocol_is_found_in_its_place(made_up: Path) -> None:
    assert in_order(["features", "group", "made_up", "member"], registry.packages())
    assert not {*registry.parts("play")} & {"made_up"}


def test_two_protocols_with_one_place_are_refused(made_up: Path) -> None:
    made_up.write_text(made_up.read_text().replace("67", "50"))
    with pytest.raises(ValueError, match="two protocols have the same place"):
        registry.packages()


def test_every_module_that_declares_something_has_a_place() -> None:
    declared = {each.search.__module__ for role in Role for each in all_invariants(role)}
    declared = {each for each in declared if each.startswith(protocols.__name__) and ".declare." not in each}
    assert declared <= {*registry.modules("invariants")}
    assert {each.made.__module__ for each in MUTANTS.values()} <= {*registry.modules("mutants")}


def test_modules_of_a_folder_are_found_in_their_places(made_up: Path) -> None:
    folder = made_up.with_name("invariants")
    folder.mkdir()
    for name, text in (("__init__", ""), ("first", "PLACE = 20"), ("a_second", "PLACE = 30"), ("common", "")):
        (folder / f"{name}.py").write_text(text)
    root = f"{protocols.__name__}.made_up.invariants"
    assert in_order([f"{root}.first", f"{root}.a_second"], registry.modules("invariants"))
    assert f"{root}.common" not in registry.modules("invariants")


def test_two_modules_with_one_place_are_refused(made_up: Path) -> None:
    folder = made_up.with_name("invariants")
    folder.mkdir()
    for name, text in (("__init__", ""), ("first", "PLACE = 20"), ("a_second", "PLACE = 20")):
        (folder / f"{name}.py").write_text(text)
    with pytest.raises(ValueError, match="two modules have the same PLACE"):
        registry.parts("invariants")


def test_a_check_has_the_invariants_that_name_it_whatever_was_imported_first() -> None:
    parts = registry.parts("invariants")
    leaders = invariants_of("group/newest-leads", parts["group"])
    assert leaders == ("group/newest-leads", "group/first-of-newest-leads")
    assert invariants_of("group/newest-leads", parts["group"], first=leaders[::-1]) == leaders[::-1]
    assert invariants_of("features/brokers") == invariants_of("features/brokers", parts["features"])
    for name, first in (("group/sings", ()), ("group/newest-leads", ("group/one-leader",))):
        with pytest.raises(LookupError, match=name):
            invariants_of(name, parts["group"], first)
