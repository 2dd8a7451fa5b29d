"""Packages of protocols are found by themselves, in an order that stays."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kipcheck.conformance import protocols
from kipcheck.conformance.checks import LISTED
from kipcheck.conformance.core.case import Role, step
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


MADE_UP = {
    "__init__.py": "",
    "ops.py": '''
from dataclasses import dataclass
from typing import Annotated
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.operations import Operations, about, operation, typical

@operation("lease", "client", "lease {ms}")
@dataclass(frozen=True, slots=True)
class Lease:
    """A client leases a partition."""
    ms: Annotated[int, about("milliseconds"), typical(1, 5)]

OPERATIONS = Operations("leases", Role.STORE, (Lease,))
''',
    "checks.py": 'CHECKS = ("leases/renewal",)\n',
    "protocol.py": """
from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from .ops import OPERATIONS

PROTOCOL = ProtocolPackage(65, OPERATIONS, lambda edition: None)
""",
}


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A protocol that is one more folder, and nothing else."""
    (tmp_path / "leases").mkdir()
    for name, text in MADE_UP.items():
        (tmp_path / "leases" / name).write_text(text)
    monkeypatch.setattr(protocols, "__path__", [*protocols.__path__, str(tmp_path)])
    registry.packages.cache_clear()
    registry.parts.cache_clear()
    yield
    monkeypatch.undo()
    registry.packages.cache_clear()
    registry.parts.cache_clear()
    for name in [each for each in sys.modules if each.startswith(f"{protocols.__name__}.leases")]:
        del sys.modules[name]


@pytest.mark.usefixtures("made_up")
def test_a_new_protocol_is_one_folder() -> None:
    assert [*registry.packages()] == ["features", "leases", "consumer_group"]
    found = registry.packages()["leases"]
    assert (found.name, found.role) == ("leases", Role.STORE)
    assert registry.in_order({60: ("a",), 70: ("b",)}, "checks", "CHECKS")[3:6] == ("a", "leases/renewal", "b")
    assert found.operations.parse_shorthand("lease 5") == (step("client", "lease", ms=5),)
    assert not {each.name for each in registry.parts("play")} & {"leases"}


@pytest.mark.usefixtures("made_up")
def test_two_protocols_with_one_place_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "leases" / "protocol.py"
    place.write_text(place.read_text().replace("65", "50"))
    with pytest.raises(ValueError, match="two protocols have the same place"):
        registry.packages()
