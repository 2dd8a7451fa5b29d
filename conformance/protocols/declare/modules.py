"""The modules of a part of a protocol: itself, or those of its folder."""

from importlib import import_module
from types import ModuleType


def modules_of(part: ModuleType) -> tuple[str, ...]:
    """Their full names, in order, after they were imported. A folder names its modules in ``MODULES``."""
    names = tuple(f"{part.__name__}.{each}" for each in getattr(part, "MODULES", ()))
    for each in names:
        import_module(each)
    return names or (part.__name__,)
