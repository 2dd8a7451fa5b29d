"""Finds the packages of protocols, and what is in them.

A package is found by its module ``protocol``. Its other modules are imported when a part of them is needed: the child
process of the target ``reference`` needs no checks.
"""

import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from types import ModuleType
from typing import Any, Final, TypeVar

from kipcheck.conformance import protocols
from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from kipcheck.conformance.targets.protocol import MACHINES

T = TypeVar("T")
ITSELF: Final = frozenset({"declare"})
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
def parts(module: str) -> Mapping[ProtocolPackage, ModuleType]:
    """The modules of this name, by protocol, in order; protocols without such a module are left out."""
    found = {}
    for name, package in packages().items():
        folder = import_module(f"{protocols.__name__}.{name}")
        if any(each.name == module for each in pkgutil.iter_modules(folder.__path__)):
            found[package] = import_module(f"{folder.__name__}.{module}")
    return found


def in_order(others: Mapping[int, Iterable[Any]], module: str, name: str) -> tuple[Any, ...]:
    """The entries of all protocols: ``name`` in ``module`` of each package, and ``others`` by their places."""
    ours = {package.order: getattr(each, name) for package, each in parts(module).items()}
    return tuple(chain.from_iterable(each for _, each in sorted({**others, **ours}.items())))


def by_machine(found: Mapping[str, T]) -> dict[str, T]:
    """The values by machine, in the order of all machines."""
    return {name: found[name] for name in (*MACHINES, *found) if name in found}
