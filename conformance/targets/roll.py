"""name -> Target, as ``targets.toml`` lists them; ``NAME@VERSION`` is that release in an environment of its own.

``miniature/NAME`` are the deliberately broken ones.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from importlib.resources import files
from typing import Any, cast

from conformance.targets import environments
from conformance.targets.pipe import Command, own_python
from conformance.targets.protocol import Adapter, Target, Unavailable
from conformance.targets.testee import Limits, Testee

MINIATURE = "miniature/"


@dataclass(frozen=True, slots=True)
class Entry:
    adapter: str
    distribution: str | None = None
    memory_mib: int = 1024
    before: Mapping[str, str] = field(default_factory=dict)
    """Major release -> the adapter of what came before it."""


@cache
def roll() -> Mapping[str, Entry]:
    listed = tomllib.loads((files("conformance.targets") / "targets.toml").read_text("utf-8"))
    return {name: Entry(**entry) for name, entry in listed.items()}


def target(name: str, limits: Limits | None = None) -> Target:
    """Errors: LookupError that names the roll; ``Unavailable`` where what it needs cannot be had."""
    base, at, version = name.partition("@")
    entry = _entry(base)
    if at:
        argv = environments.command(_released(base, entry, version), version, base)
    else:
        if entry.distribution is not None:
            installed(entry.distribution)
        argv = tuple(own_python("conformance.targets.child", base))
    return Testee(name, Command(argv, memory=entry.memory_mib << 20), limits)


def adapter(name: str) -> Adapter:
    """What the child runs: for what is installed where it runs. Errors: LookupError; ``Unavailable``."""
    if name.startswith(MINIATURE):
        from conformance.targets.miniatures import VICES  # defects are loaded where they are asked for only

        return VICES[name.removeprefix(MINIATURE)].made()
    entry = _entry(name)
    module, _, made = _of_release(entry).partition(":")
    try:
        return cast(Adapter, getattr(import_module(module), made)())
    except (ImportError, AttributeError) as other:
        raise Unavailable(f"this release of {name} has not what the adapter needs: {other}") from None


def installed(distribution: str) -> str:
    """Its version. Errors: ``Unavailable``."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise Unavailable(f"{distribution} is not installed (pip install {distribution})") from None


def targets_table() -> list[dict[str, Any]]:
    """``name``, ``version``, ``roles``, ``available`` and ``why`` not; the environments that are there come after
    their client. Imports no client.
    """
    return list(_rows())


def _rows() -> Iterator[dict[str, Any]]:
    made = sorted(environments.made())
    for name, entry in roll().items():
        try:
            version, why = installed(entry.distribution or "kipcheck"), ""
        except Unavailable as missing:
            version, why = "", str(missing)
        row = {"name": name, "version": version, "roles": ["codec"], "available": not why, "why": why}
        yield row
        for distribution, release in made:
            if distribution == entry.distribution:
                yield {**row, "name": f"{name}@{release}", "version": release, "available": True, "why": ""}


def _of_release(entry: Entry) -> str:
    if entry.distribution is not None:
        major = installed(entry.distribution).partition(".")[0]
        for release, earlier in entry.before.items():
            if major.isdigit() and int(major) < int(release):
                return earlier
    return entry.adapter


def _released(name: str, entry: Entry, version: str) -> str:
    if entry.distribution is None:
        raise LookupError(f"{name} is kipcheck's own, and has no releases to choose from")
    if not environments.RELEASE.fullmatch(version):
        raise LookupError(f"{version!r} is no release of {name}: {name}@2.3.0 would be one")
    return entry.distribution


def _entry(name: str) -> Entry:
    if name.startswith(MINIATURE):
        from conformance.targets.miniatures import VICES

        if name.removeprefix(MINIATURE) in VICES:
            return Entry("")
    elif name in roll():
        return roll()[name]
    raise LookupError(f"no target is called {name!r}; there are {', '.join(sorted(roll()))}")
