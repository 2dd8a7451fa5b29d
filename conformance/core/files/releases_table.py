"""Reads ``data/releases.toml``: the releases of Kafka that the project knows, and what depends on their numbers."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table() -> Mapping[str, Any]:
    """The file as it is: its comments explain it."""
    return tomllib.loads((files("kipcheck.conformance.core") / "data" / "releases.toml").read_text("utf-8"))


@cache
def rule_laws() -> Mapping[str, Any]:
    """``data/rule_laws.toml``: by section and name, the invariants that read a rule, or why none does."""
    return tomllib.loads((files("kipcheck.conformance.core") / "data" / "rule_laws.toml").read_text("utf-8"))


def patches() -> tuple[str, ...]:
    """Every exact release, oldest first."""
    return tuple(patch for line in table()["line"] for patch in line["patches"])


def newest_patch(line: str) -> str:
    """``3.9`` is ``3.9.2``; what is no line stays as it is."""
    return next((each["patches"][-1] for each in table()["line"] if each["name"] == line), line)


def judges(part: str) -> tuple[str, ...]:
    """The releases whose jars of ``clients`` or ``streams`` judge golden vectors, oldest first."""
    return tuple(patch for line in table()["line"] for patch in line.get(part, ()))


def named(name: str) -> str:
    """An exact release. Errors: KeyError for an unknown name, as of the other functions."""
    found: str = table()["names"][name]
    return found


def listed(name: str) -> tuple[str, ...]:
    """Exact releases, in the order of the file."""
    return tuple(table()["lists"][name])


def jar(part: str) -> str:
    """The name of the jar on Maven Central, group aside."""
    found: str = table()["jars"][part]["name"]
    return found


def jars() -> Mapping[str, str]:
    """Part of Kafka -> the span of releases whose jar of it is on Maven Central."""
    return {part: each["releases"] for part, each in table()["jars"].items()}


def broker_jars() -> Mapping[str, str]:
    """Name of a jar with classes of brokers -> the span of releases in which they write what brokers persist."""
    found: Mapping[str, str] = table()["broker-jars"]
    return found


def span(name: str, of: str = "behaviours") -> str:
    """The releases with a behaviour, as ``releases`` reads them. ``of``: the section."""
    found: str = table()[of][name]
    return found


def since(name: str, of: str = "behaviours") -> str:
    """The first release with a behaviour. Errors: ValueError where the releases are not all from one on."""
    found = span(name, of)
    if not found.endswith("+") or "," in found:
        raise ValueError(f"{name} has no single first release: {found}")
    return found[:-1]


def plain_rocksdb(release: str) -> str | None:
    """The release of rocksdbjni of a release from before timestamped stores; None if kipcheck does not run its store.

    Errors: as ``rocksdb``.
    """
    return None if rocksdb(release) else _rocksdb("plain-rocksdb", release)


def rocksdb(release: str) -> str | None:
    """The release of rocksdbjni that this release of kafka-streams uses; None before timestamped stores.

    Errors: ValueError for a release that the file does not have.
    """
    return _rocksdb("rocksdb", release)


def _rocksdb(name: str, release: str) -> str | None:
    order = patches()
    found = [version for since, version in table()[name].items() if order.index(since) <= order.index(release)]
    return found[-1] if found else None
