"""name -> Target, as ``targets.toml`` lists them; ``NAME@VERSION`` is that release in an environment of its own.

``miniature/NAME`` are the deliberately broken ones; what begins with a prefix of ``PREFIXES`` is named in the words of
the module that makes it.
"""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module, metadata
from typing import Any, cast

from kipcheck.conformance.core.install import advice
from kipcheck.conformance.targets.protocol import Adapter, Target, Unavailable
from kipcheck.conformance.targets.target_entries import Entry, roll
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.toolchains import environments
from kipcheck.conformance.targets.transport.pipe import Command, own_python

MINIATURE = "miniature/"
PREFIXES: Mapping[str, str] = {
    "cmd": "kipcheck.conformance.targets.command",
    "drill": "kipcheck.conformance.targets.fault_injection",
    "java": "kipcheck.conformance.clients.java.target",
    "tcp": "kipcheck.conformance.targets.transport.tcp",
}
"""Prefix -> a module with ``target(name, rest, limits)``, whose errors are LookupError with what would do and
``Unavailable``, and ``rows()`` for the table of targets, of what is there without fetching anything.
"""
KINDS: Mapping[str, str] = {
    "go": "kipcheck.conformance.targets.toolchains.go",
    "node": "kipcheck.conformance.targets.toolchains.node",
}
"""Of an entry that is no Python client -> a module with ``target(name, entry, version, limits)``, where no version asks
for the default, and ``rows(name, entry)``; errors likewise.
"""


UNSHARED = ("tcp",)
"""Prefixes of targets of which there is one only, started by somebody else."""


def is_shared(name: str) -> bool:
    """Can several processes have one each?"""
    return name.partition(":")[0] not in UNSHARED


def is_steady(name: str) -> bool:
    """Does it do the same each time, as far as we know? Others stay out of the hash of a campaign."""
    prefix, colon, _ = name.partition(":")
    entry = roll().get(name.partition("@")[0])
    return not (colon and prefix in UNSHARED) and (entry is None or entry.steady)


def target(name: str, limits: Limits | None = None) -> Target:
    """Errors: LookupError that names the roll; ``Unavailable`` where what it needs cannot be had."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix in PREFIXES:
        return cast(Target, import_module(PREFIXES[prefix]).target(name, rest, limits))
    base, at, version = name.partition("@")
    entry = _entry(base)
    if at and not environments.RELEASE.fullmatch(version):
        raise LookupError(f"{version!r} is no release of {base}: {base}@2.3.0 would be one")
    if entry.kind in KINDS:
        return cast(Target, import_module(KINDS[entry.kind]).target(name, entry, version, limits))
    return _python(name, entry, version, limits)


def _python(name: str, entry: Entry, version: str, limits: Limits | None) -> Target:
    """A client in Python behind a supervised child: the one that is installed, or a release of its own."""
    base = name.partition("@")[0]
    if version:
        argv = environments.command(_released(base, entry, version), version, base)
        env = environments.surroundings()
    else:
        if entry.distribution is not None:
            installed(entry.distribution)
        argv = tuple(own_python("kipcheck.conformance.targets.transport.child", base))
        env = {**os.environ, **environments.SAME}
    return Testee(name, Command(argv, env, memory=entry.memory(limits)), limits)


def adapter(name: str) -> Adapter:
    """What the child runs: for what is installed where it runs. Errors: LookupError; ``Unavailable``."""
    if name.startswith(MINIATURE):
        return cast(Adapter, _mutants()[name.removeprefix(MINIATURE)].made())
    entry = _entry(name)
    module, _, made = _of_release(entry).partition(":")
    try:
        return cast(Adapter, getattr(import_module(module), made)())
    except (ImportError, AttributeError) as other:
        raise Unavailable(f"this release of {name} has not what the adapter needs: {other}") from None


def _mutants() -> Mapping[str, Any]:
    """By id. Mutants stand above targets, and are imported only where one is named."""
    return cast(Mapping[str, Any], import_module("kipcheck.conformance.mutants").VICES)


def installed(distribution: str) -> str:
    """Its version. Errors: ``Unavailable``."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise Unavailable(f"{distribution} is not installed ({advice('targets', distribution)})") from None


def targets_table() -> list[dict[str, Any]]:
    """``name``, ``version``, ``roles``, ``available`` and ``why`` not; the environments that are there come after
    their client. Imports no client.
    """
    return list(_rows())


def _rows() -> Iterator[dict[str, Any]]:
    made = sorted(environments.made())
    for name, entry in roll().items():
        if entry.kind in KINDS:
            yield from import_module(KINDS[entry.kind]).rows(name, entry)
            continue
        try:
            version, why = installed(entry.distribution or "kipcheck"), ""
        except Unavailable as missing:
            version, why = "", str(missing)
        row = {"name": name, "version": version, "roles": list(entry.roles), "available": not why, "why": why}
        yield row
        for distribution, release in made:
            if distribution == entry.distribution:
                yield {**row, "name": f"{name}@{release}", "version": release, "available": True, "why": ""}
    for module in PREFIXES.values():
        yield from import_module(module).rows()


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
    return entry.distribution


def _entry(name: str) -> Entry:
    if name.startswith(MINIATURE):
        if name.removeprefix(MINIATURE) in _mutants():
            return Entry()
    elif name in roll():
        return roll()[name]
    known = [*sorted(roll()), *(f"{prefix}:..." for prefix in PREFIXES)]
    raise LookupError(f"no target is called {name!r}; there are {', '.join(known)}")
