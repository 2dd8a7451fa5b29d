"""The modules of a part of a protocol: itself, or those of its folder."""

import pkgutil
from importlib import import_module
from types import ModuleType


def modules_of(part: ModuleType) -> tuple[str, ...]:
    """Their full names, after they were imported.

    Of a folder, the modules that have a ``PLACE``, in this order; others are what these have in common. Errors:
    ValueError if two have the same place.
    """
    orders: dict[str, int] = {}
    for each in pkgutil.iter_modules(getattr(part, "__path__", ())):
        name = f"{part.__name__}.{each.name}"
        order = getattr(import_module(name), "PLACE", None)
        if order is not None:
            orders[name] = order
    if len({*orders.values()}) < len(orders):
        raise ValueError(f"{part.__name__}: two modules have the same PLACE: {orders}")
    return tuple(sorted(orders, key=orders.__getitem__)) or (part.__name__,)
