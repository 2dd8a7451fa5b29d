"""Finds targets by name: the entries of ``targets.toml``, and ``NAME@VERSION`` for a release in its own environment.

``miniature/NAME`` names a mutant; a name that begins with a prefix of ``PREFIXES`` is interpreted by the module of that
prefix.
"""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module, metadata
from typing import Any, cast

from kipcheck.conformance.core.files.install import advice
from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.targets.protocol import Adapter, Target, Unavailable
from kipcheck.conformance.targets.target_entries import Entry, before, target_entries
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.toolchains import environments
from kipcheck.conformance.targets.transport.pipe import Command, own_python

REFERENCE = "reference"
"""The target that plays kipcheck's own codec, assignors and machines."""
MUTANT_PREFIX = "miniature/"
PREFIXES: Mapping[str, str] = {
    "broker": "kipcheck.conformance.live.coordinator.target",
    "client": "kipcheck.conformance.live.client.target",
    "cmd": "kipcheck.conformance.targets.command",
    "drill": "kipcheck.conformance.targets.fault_injection",
    "java": "kipcheck.conformance.clients.java.target",
    "kafka": "kipcheck.conformance.live.coordinator.target",
    "kafka-features": "kipcheck.conformance.live.controller.tool",
    "tcp": "kipcheck.conformance.targets.transport.tcp",
    "consumers": "kipcheck.conformance.live.members.consumers",
    "kafka-streams": "kipcheck.conformance.live.members.streams",
}
"""Prefix -> a module with ``target(name, rest, limits)``, which raises LookupError with the valid forms or
``Unavailable``, and with ``rows()``, the rows for the table of targets, without downloads.
"""
KINDS: Mapping[str, str] = {
    "broker": "kipcheck.conformance.live.coordinator.compatible_brokers",
    "go": "kipcheck.conformance.targets.toolchains.go",
    "node": "kipcheck.conformance.targets.toolchains.node",
}
"""The kind of an entry that is not a Python client -> a module with ``target(name, entry, version, limits)``, where an
empty version stands for the default, and ``rows(name, entry)``; errors as above.
"""


UNSHARED = ("broker", "kafka", "tcp", "consumers", "kafka-streams")
"""Prefixes and kinds of targets that exist once: the user starts them, or one takes seconds to start."""
IN_REAL_TIME = ("broker", "client", "kafka", "kafka-features", "consumers", "kafka-streams")
"""Prefixes and kinds of targets whose results depend on time."""


def is_shared(name: str) -> bool:
    """Whether several processes can have one each."""
    return _kind(name) not in UNSHARED


def is_live(name: str) -> bool:
    """Whether each case takes real time, so that few are run for one failure, side by side, from a fresh state."""
    return _kind(name) in IN_REAL_TIME


def is_steady(name: str) -> bool:
    """Whether it is known to give the same results each time. Other targets are left out of the hash of a campaign."""
    entry = target_entries().get(name.partition("@")[0])
    return _kind(name) not in (*UNSHARED, *IN_REAL_TIME) and (entry is None or entry.steady)


def _kind(name: str) -> str:
    """The prefix of a target, or the kind of its entry; empty if there is neither."""
    prefix, colon, _ = name.partition(":")
    entry = target_entries().get(name.partition("@")[0])
    return prefix if colon else entry.kind if entry is not None else ""


def target(name: str, limits: Limits | None = None) -> Target:
    """Errors: LookupError with the known names; ``Unavailable`` where the target's requirements are missing."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix in PREFIXES:
        return cast(Target, import_module(PREFIXES[prefix]).target(name, rest, limits))
    base, at, version = name.partition("@")
    entry = _entry(base)
    if at and not environments.RELEASE.fullmatch(version):
        raise LookupError(f"invalid release {version!r} of {base}: use a form like {base}@2.3.0")
    if entry.kind in KINDS:
        return cast(Target, import_module(KINDS[entry.kind]).target(name, entry, version, limits))
    return _python(name, entry, version, limits)


def _python(name: str, entry: Entry, version: str, limits: Limits | None) -> Target:
    """A Python client in a supervised child: the installed release, or another in its own environment."""
    base = name.partition("@")[0]
    if version:
        argv = environments.command(_released(base, entry, version), version, base)
        env = environments.child_environment()
    else:
        if entry.distribution is not None:
            installed(entry.distribution)
        argv = tuple(own_python("kipcheck.conformance.targets.transport.child", base))
        env = {**os.environ, **environments.DETERMINISTIC}
    return Testee(name, Command(argv, env, memory=entry.memory(limits), renews=True), limits)


def adapter(name: str) -> Adapter:
    """The adapter that the child runs, for the installed release. Errors: LookupError; ``Unavailable``."""
    if name.startswith(MUTANT_PREFIX):
        short = name.removeprefix(MUTANT_PREFIX)
        return cast(Adapter, _mutants()[short].made() if short in _mutants() else _generic(short))
    entry = _entry(name)
    module, _, made = _of_release(entry).partition(":")
    try:
        return cast(Adapter, getattr(import_module(module), made)())
    except (ImportError, AttributeError) as other:
        raise Unavailable(f"this release of {name} lacks what the adapter needs: {other}") from None


def omitted(name: str) -> tuple[str, ...]:
    """Families of messages that the adapter does not claim: none for one that is not in the table."""
    entry = target_entries().get(name)
    return () if entry is None else entry.omits


def _mutants() -> Mapping[str, Any]:
    """By id. Mutants stand above targets, and are imported only where one is named."""
    return cast(Mapping[str, Any], import_module("kipcheck.conformance.protocols.mutants").MUTANTS)


def _generic(name: str) -> Adapter | None:
    """The mutant of this name that fits every machine."""
    return cast(Adapter | None, import_module("kipcheck.conformance.protocols.generic_mutants").generic(name))


def installed(distribution: str) -> str:
    """Its version. Errors: ``Unavailable``."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise Unavailable(f"{distribution} is not installed ({advice('targets', distribution)})") from None


def targets_table() -> list[dict[str, Any]]:
    """Rows with ``name``, ``version``, ``roles``, ``available`` and ``why`` (not available). Environments that exist
    follow their client. Imports no client.
    """
    return list(_rows())


def _rows() -> Iterator[dict[str, Any]]:
    made = sorted(environments.made())
    for name, entry in target_entries().items():
        if entry.kind in KINDS:
            yield from import_module(KINDS[entry.kind]).rows(name, entry)
            continue
        try:
            version, why = installed(entry.distribution or "kipcheck"), ""
        except Unavailable as missing:
            version, why = "", str(missing)
        roles = list(entry.roles_of(version))
        row = {"name": name, "version": version, "roles": roles, "available": not why, "why": why}
        yield row
        for distribution, release in made:
            if distribution == entry.distribution:
                roles = list(entry.roles_of(release))
                why = "" if roles else f"the adapter needs a later release; client:{name}@{release} consumes with it"
                yield {
                    "name": f"{name}@{release}", "version": release, "roles": roles, "available": not why, "why": why,
                }  # fmt: skip
    for module in PREFIXES.values():
        yield from import_module(module).rows()


def _of_release(entry: Entry) -> str:
    if entry.distribution is not None:
        return before(entry.before, installed(entry.distribution)) or entry.adapter
    return entry.adapter


def _released(name: str, entry: Entry, version: str) -> str:
    if entry.distribution is None:
        raise LookupError(f"{name} is part of kipcheck and has no releases: omit the version")
    return entry.distribution


def _entry(name: str) -> Entry:
    if name.startswith(MUTANT_PREFIX):
        short = name.removeprefix(MUTANT_PREFIX)
        if short in _mutants() or _generic(short) is not None:
            return Entry()
    elif name in target_entries():
        return target_entries()[name]
    known = [*sorted(target_entries()), *(f"{prefix}:..." for prefix in PREFIXES)]
    several = "; repeat --target for several targets" if "," in name else ""
    raise LookupError(f"unknown target {name!r}{several or hint(name, known)}; known: {', '.join(known)}")
