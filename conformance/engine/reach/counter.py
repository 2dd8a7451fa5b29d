"""Imports copies of the invariants that count which of their branches apply."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any, Final, TypeAlias

from kipcheck.conformance.engine.reach.places import HIT, Sources

PARTS: Final = 1

Named: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The places of one guard: those for which its conditions have to be true, have to be false, and the others."""


@dataclass(slots=True)
class Counter:
    """Collects the places that applied since it was last emptied. The copies call its methods."""

    applied: set[str] = field(default_factory=set)
    _last: int = 0

    def single(self, named: Named, value: Any) -> Any:
        for ids in named:
            self.applied.update(ids)
        return value

    def joined(self, named: Named, operator: str, *parts: Callable[[], Any]) -> Any:
        """The value of conditions that are joined. Those after the one that decides are evaluated for the count only,
        and an error means that there is nothing to compare."""
        ends, deciding, result = operator == "or", 0, None
        for number, part in enumerate(parts):
            if not deciding:
                result = part()
                deciding += bool(result) is ends
            elif deciding <= PARTS and number:
                deciding += _is(part, ends)
        self._note(named, operator, deciding <= PARTS)
        return result

    def part(self, number: int, value: Any) -> Any:
        self._last = number
        return value

    def whole(self, named: Named, operator: str, count: int, value: Any) -> Any:
        """As ``joined``, where a condition names a value for the next ones: the last one has to be evaluated."""
        self._note(named, operator, self._last == count - 1)
        return value

    def _note(self, named: Named, operator: str, close: bool) -> None:
        positive, negative, once = named
        self.applied.update(once)
        if close or operator != "and":
            self.applied.update(positive)
        if close or operator != "or":
            self.applied.update(negative)


def _is(part: Callable[[], Any], wanted: bool) -> bool:
    try:
        return bool(part()) is wanted
    except Exception:  # noqa: BLE001 - an earlier condition keeps it from being evaluated
        return True


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, sources: Sources, counter: Counter) -> None:
        super().__init__(name, path)
        self._sources, self._counter = sources, counter

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._sources.counting(fullname), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, HIT, self._counter)
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds counting copies of the modules that make violations."""

    def __init__(self, sources: Sources, counter: Counter) -> None:
        self._sources, self._counter = sources, counter

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._sources.counted:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and found.origin is not None:
            found.loader = _Loader(fullname, found.origin, self._sources, self._counter)
        return found


def install(sources: Sources) -> Counter:
    """Errors: RuntimeError if a module that makes violations was imported before."""
    early = [name for name in sources.counted if name in sys.modules]
    if early:
        raise RuntimeError(f"imported too early: {', '.join(early)}")
    counter = Counter()
    sys.meta_path.insert(0, Finder(sources, counter))
    return counter
