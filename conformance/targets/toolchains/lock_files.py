"""Reads the lock files that come with kipcheck, which state the digests of all that package managers download for a
release. ``python -m kipcheck.golden.package_locks`` makes them.

| path below ``locks/`` | contents |
|---|---|
| ``jars.sha256`` | digests of jars (``jar_digests``) |
| ``python/NAME@VERSION.txt`` | a distribution and what it needs, as requirements with hashes |
| ``node/NAME@VERSION.json`` | a ``package-lock.json``; a ``/`` in the name is a ``+`` |
| ``go.sum`` | modules of all releases |
"""

import sys
from importlib.resources import files
from typing import Final

_reported: Final[set[str]] = set()


def lock(path: str) -> str | None:
    """The text of a file below ``locks/``; None if there is none."""
    found = files("kipcheck.conformance.targets.toolchains") / "locks" / path
    return found.read_text("utf-8") if found.is_file() else None


def of_python(distribution: str, version: str) -> str:
    return f"python/{distribution}@{version}.txt"


def of_node(package: str, version: str) -> str:
    return f"node/{package.replace('/', '+')}@{version}.json"


def warn(subject: object, why: str) -> None:
    """Once for each subject, to stderr."""
    if str(subject) not in _reported:
        _reported.add(str(subject))
        print(f"kipcheck: warning: {subject} {why}", file=sys.stderr)


def differs(subject: str, found: str, expected: str) -> str:
    """Why a download is refused."""
    return (
        f"the digest of {subject} is {found}, but kipcheck's lock file states {expected}: empty the cache of the "
        "package manager, or use another registry"
    )
