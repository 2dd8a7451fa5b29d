"""name -> Target, as ``targets.toml`` lists them; ``miniature/NAME`` are the deliberately broken ones."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from importlib.resources import files
from typing import cast

from conformance.targets.pipe import Command, own_python
from conformance.targets.protocol import Adapter, Target, Unavailable
from conformance.targets.testee import Limits, Testee

MINIATURE = "miniature/"


@dataclass(frozen=True, slots=True)
class Entry:
    adapter: str
    distribution: str | None = None
    memory_mib: int = 1024


@cache
def roll() -> Mapping[str, Entry]:
    listed = tomllib.loads((files("conformance.targets") / "targets.toml").read_text("utf-8"))
    return {name: Entry(**entry) for name, entry in listed.items()}


def target(name: str, limits: Limits | None = None) -> Target:
    """Errors: LookupError that names the roll; ``Unavailable`` where its distribution is not installed."""
    entry = _entry(name)
    if entry.distribution is not None:
        installed(entry.distribution)
    command = Command(tuple(own_python("conformance.targets.child", name)), memory=entry.memory_mib << 20)
    return Testee(name, command, limits)


def adapter(name: str) -> Adapter:
    """What the child runs. Errors: LookupError; ``Unavailable``."""
    if name.startswith(MINIATURE):
        from conformance.targets.miniatures import VICES  # defects are loaded where they are asked for only

        return VICES[name.removeprefix(MINIATURE)].made()
    module, _, made = _entry(name).adapter.partition(":")
    return cast(Adapter, getattr(import_module(module), made)())


def installed(distribution: str) -> str:
    """Its version. Errors: ``Unavailable``."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise Unavailable(f"{distribution} is not installed (pip install {distribution})") from None


def _entry(name: str) -> Entry:
    if name.startswith(MINIATURE):
        from conformance.targets.miniatures import VICES

        if name.removeprefix(MINIATURE) in VICES:
            return Entry("")
    elif name in roll():
        return roll()[name]
    raise LookupError(f"no target is called {name!r}; there are {', '.join(sorted(roll()))}")
