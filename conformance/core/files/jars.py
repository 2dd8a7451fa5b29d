"""Where ``maven:`` editions get the jars of a release from.

The module that fetches jars stands above the one that reads them, so it registers its function here.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

Source: TypeAlias = Callable[[Sequence[str]], Mapping[str, Path | str]]
"""``group:artifact:version`` of several jars -> for each of them its file, or the reason why it cannot be fetched."""

_sources: list[Source] = []


def register(source: Source) -> None:
    """From now on ``files_of`` calls ``source``, and no longer the one registered before."""
    _sources[:] = [source]


def files_of(coordinates: Sequence[str]) -> Mapping[str, Path | str]:
    """For each coordinate its file, or why there is none. Errors: LookupError where no source is registered."""
    if not _sources:
        raise LookupError("no source of jars is registered: import kipcheck.conformance.targets first")
    return _sources[0](coordinates)
