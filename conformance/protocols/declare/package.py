"""Declares a protocol: its machines, and its place among the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.machine_target import MachineAdapter

AdapterOf: TypeAlias = Callable[[Edition], MachineAdapter[Any, Any, Any] | None]
"""The reference machine of an edition as an adapter; None for an edition that has none."""
Has: TypeAlias = Callable[[Edition], bool]
"""Whether an edition has a machine."""


@dataclass(frozen=True, slots=True)
class ProtocolPackage:
    """``PROTOCOL`` in ``protocols/NAME/protocol.py``. The other modules of the package are found by their names.

    ========== ============================================================================
    ops        ``OPERATIONS``: its operations, from which ``publish`` derives; a folder has a module for each machine
    target     ``ADAPTERS``: machine -> ``AdapterOf``
    checks     ``CHECKS``: its checks, in order
    strategies ``CONVERSATIONS``: machine -> edition -> the conversations that are drawn
    invariants, mutants  registered by their decorators; the modules of a folder have a ``PLACE``
    play       ``PLAYABLES``: what ``play`` and ``explore`` need
    ========== ============================================================================

    ``protocol`` itself imports none of them: the child process of the target ``reference`` announces its machines, and
    imports them only if it has to play one.
    """

    order: int
    """Its place in lists of checks, mutants and machines: packages are sorted by this number, each has its own.

    Random numbers index these lists, so it never changes. A new package takes a number above that of all others.
    """
    role: Role
    machines: Mapping[str, Has] = field(default_factory=dict)
    """Its machines by name: ``consumer-group``."""

    def __post_init__(self) -> None:
        for machine in self.machines:
            verb_registry.register_machine(machine, self.role)


def released(edition: Edition) -> bool:
    return edition.standing is Standing.RELEASED


def released_since(release: str) -> Has:
    """For machines that this release introduced."""

    def has(edition: Edition) -> bool:
        return released(edition) and Release.parse(edition.release) >= Release.parse(release)

    return has


def released_in(*spans: str) -> Has:
    """For machines of the releases in all of these spans: ``2.7.0-3.9.2``."""
    found = [releases(each) for each in spans]

    def has(edition: Edition) -> bool:
        return released(edition) and all(Release.parse(edition.release) in each for each in found)

    return has


def either(draft: Edition, has: Has) -> Has:
    """For machines that a draft has, too."""
    return lambda edition: edition == draft or has(edition)
