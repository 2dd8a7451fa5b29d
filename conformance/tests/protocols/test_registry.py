"""Packages of protocols are found by themselves, in an order that stays."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kipcheck.conformance import protocols
from kipcheck.conformance.core.case import Role, step
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.checks import LISTED
from kipcheck.conformance.protocols.conversations import CONVERSATIONS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.machine_targets import MACHINE_ADAPTERS
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.playables import PLAYABLES
from kipcheck.conformance.targets.protocol import MACHINES, PLAYED


def test_packages_have_the_places_that_they_always_had() -> None:
    assert {name: each.order for name, each in registry.packages().items()} == {
        "codec": 10, "assignment": 30, "features": 50, "group": 60, "member": 70, "consumer_group": 80, "cluster": 85,
        "upgrade": 90, "streams": 100,
    }  # fmt: skip


def test_the_kinds_of_checks_are_in_the_order_that_campaigns_draw_from() -> None:
    kinds = [*dict.fromkeys(each.id.partition("/")[0] for each in LISTED)]
    assert kinds == [
        "wire", "nodes", "assign", "features", "group", "member", "consumer-group", "bounce", "streams",
    ]  # fmt: skip


def test_every_machine_of_a_package_has_its_parts() -> None:
    for package in registry.packages().values():
        for machine in package.machines:
            assert machine in PLAYED[package.role]
            assert machine in CONVERSATIONS
            assert any(each.family.role is package.role for each in LISTED)
    assert [*MACHINE_ADAPTERS] == [*CONVERSATIONS] == [*MACHINES]


def test_every_package_with_checks_has_invariants_and_mutants() -> None:
    for name, part in registry.parts("checks").items():
        ids = {each.id for each in part.CHECKS}
        roles = {each.role for each in part.CHECKS}
        folder = f"{protocols.__name__}.{name}."
        assert any(each.search.__module__.startswith(folder) for role in roles for each in all_invariants(role)), name
        assert any(each.check in ids for each in MUTANTS.values()), name


def test_every_model_is_found() -> None:
    assert {*PLAYABLES} == {"features", "group", "member", "cluster", "bounce", "streams"}


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

PROTOCOL = ProtocolPackage.of(65, OPERATIONS, lambda edition: None)
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
    assert [*registry.packages()][2:6] == ["features", "group", "leases", "member"]
    found = registry.packages()["leases"]
    assert ([*found.machines], found.role) == (["leases"], Role.STORE)
    checks = registry.all_of("checks", "CHECKS")
    (at,) = (at for at, each in enumerate(checks) if each == "leases/renewal")
    assert [checks[at - 1].id.partition("/")[0], checks[at + 1].id.partition("/")[0]] == ["group", "member"]
    assert found.operations is not None
    assert found.operations.parse_shorthand("lease 5") == (step("client", "lease", ms=5),)
    assert not {*registry.parts("play")} & {"leases"}


@pytest.mark.usefixtures("made_up")
def test_two_protocols_with_one_place_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "leases" / "protocol.py"
    place.write_text(place.read_text().replace("65", "50"))
    with pytest.raises(ValueError, match="two protocols have the same place"):
        registry.packages()
