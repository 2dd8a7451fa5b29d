"""The target ``reference`` announces its machines without importing them."""

import subprocess
import sys

import pytest

from kipcheck.conformance.core.values.edition import EDITIONS, edition
from kipcheck.conformance.core.values.release import lines
from kipcheck.conformance.protocols.machine_targets import machine_adapters
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.protocols.registry import machines_of
from kipcheck.conformance.targets.protocol import ImportsByRole


@pytest.mark.parametrize("name", [*EDITIONS, *(f"apache@{release}" for release in lines())])
def test_the_machines_of_an_edition_are_those_that_are_made(name: str) -> None:
    assert machines_of(edition(name)) == tuple(machine_adapters(edition(name)))


def test_machines_are_imported_for_their_roles_only() -> None:
    program = """if True:
        import sys
        from kipcheck.conformance.protocols.reference import Reference
        from kipcheck.conformance.core.values.case import Role
        reference = Reference()
        assert reference.configure("apache") is None and "group" in reference.claims().machines
        for role in (Role.CODEC, Role.LEADER, Role.COORDINATOR):
            reference.import_for(role)
            print(role.value, "kipcheck.conformance.protocols.machine_targets" in sys.modules)
        """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["codec False", "leader False", "coordinator True", ""]
    assert isinstance(Reference(), ImportsByRole)
