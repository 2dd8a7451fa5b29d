"""The programs under test, and how to talk to them.

Importing this package lets ``maven:`` editions fetch the jars of a release.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kipcheck.conformance.core.files import jars


def _fetched(coordinates: Sequence[str]) -> Mapping[str, Path | str]:
    from kipcheck.conformance.targets.toolchains import maven  # needs an HTTP client and XML: for these editions only

    return maven.fetched(coordinates)


jars.register(_fetched)
