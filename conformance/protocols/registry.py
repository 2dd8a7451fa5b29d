"""Finds the packages of protocols, and what is in them.

A package is found by its module ``protocol``. Its other modules are imported when a part of them is needed: the child
process of the target ``reference`` needs no checks.
"""

import importlib.util
import pkgutil
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kipcheck.conformance import protocols
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.declare.modules import modules_of
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

if TYPE_CHECKING:
    from kipcheck.conformance.core.operations.declaration import Operations

T = TypeVar("T")
ITSELF: Final = frozenset({"declare", "reconciled"})
"""The packages here that are not protocols."""


@cache
def packages() -> Mapping[str, ProtocolPackage]:
    """Every protocol with a package, by the name of its folder, in order. Errors: ValueError if two have one place."""
    found: dict[str, ProtocolPackage] = {}
    for each in pkgutil.iter_modules(protocols.__path__):
        if each.ispkg and each.name not in ITSELF:
            found[each.name] = import_module(f"{protocols.__name__}.{each.name}.protocol").PROTOCOL
    orders = [each.order for each in found.values()]
    if len({*orders}) < len(orders):
        raise ValueError(f"two protocols have the same place: {sorted(orders)}")
    return dict(sorted(found.items(), key=lambda item: item[1].order))


@cache
def parts(name: str) -> Mapping[str, ModuleType]:
    """The modules of this name, by the folder of their protocol, in order; protocols without one are left out.

    Of a part that is a folder, its modules are imported, too.
    """
    found = {}
    for folder in packages():
        if importlib.util.find_spec(f"{protocols.__name__}.{folder}.{name}") is not None:
            found[folder] = import_module(f"{protocols.__name__}.{folder}.{name}")
            modules_of(found[folder])
    return found


def modules(name: str) -> tuple[str, ...]:
    """The full names of these modules, in order; of a folder, those of its modules."""
    return tuple(chain.from_iterable(map(modules_of, parts(name).values())))


def all_of(part: str, name: str) -> tuple[Any, ...]:
    """The entries of all protocols, in order: ``name`` in ``part`` of each."""
    return tuple(chain.from_iterable(getattr(each, name) for each in parts(part).values()))


def roles() -> tuple[Role, ...]:
    """The roles of all protocols, in the order of their first packages."""
    return (*dict.fromkeys(each.role for each in packages().values()),)


def machines() -> tuple[str, ...]:
    """All machines: those of a role stand together, and otherwise as their packages do."""
    return tuple(
        name for role in roles() for each in packages().values() if each.role is role for name in each.machines
    )


def machines_of(edition: Edition) -> tuple[str, ...]:
    """The machines that an edition has, without an import of them; in the order of all machines."""
    has = {name: each for package in packages().values() for name, each in package.machines.items()}
    return tuple(name for name in machines() if has[name](edition))


def operations() -> "Mapping[str, Operations[Any, Any]]":
    """The declared operations of all protocols, in order; protocols that declare none are left out.

    By folder; those of a part that is a folder, one module for each machine, by machine.
    """
    found: dict[str, Operations[Any, Any]] = {}
    for folder, part in parts("ops").items():
        for name in modules_of(part):
            each = getattr(sys.modules[name], "OPERATIONS", None)
            if each is not None:
                found[folder if name == part.__name__ else each.machine] = each
    return found


def by_machine(found: Mapping[str, T]) -> dict[str, T]:
    """The values by machine, in the order of all machines."""
    return {name: found[name] for name in machines() if name in found}
