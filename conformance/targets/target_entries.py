"""The entries of ``targets.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TypeVar

from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.transport.pipe import half_of_memory


@dataclass(frozen=True, slots=True)
class Entry:
    adapter: str = ""
    """Of kind python: ``module:class``."""
    kind: str = "python"
    roles: tuple[str, ...] = ("codec",)
    """The roles of the newest release, so that a listing need not start the target."""
    default: str = ""
    """The release used where none is named, for kinds whose releases are not installed beside kipcheck."""
    distribution: str | None = None
    memory_mib: int = 1024
    before: Mapping[str, str] = field(default_factory=dict)
    """Major release -> the adapter of the releases before it."""
    roles_before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Major release -> the roles of the releases before it, where they are others."""
    omits: tuple[str, ...] = ()
    """Families of messages that the library has and that the target does not claim."""
    steady: bool = True
    """Whether the target gives the same results each time: not where threads or the order of hash tables matter."""

    def roles_of(self, release: str) -> tuple[str, ...]:
        return before(self.roles_before, release) or self.roles

    def memory(self, limits: Limits | None) -> int:
        """Bytes of address space."""
        usual = self.memory_mib << 20
        if limits is None or limits.memory_times <= 1:
            return usual
        return max(usual, min(int(usual * limits.memory_times), half_of_memory()))


T = TypeVar("T")


def before(by_major: Mapping[str, T], release: str) -> T | None:
    """The value for the first major release that is above this release."""
    major = release.partition(".")[0]
    return next((each for first, each in by_major.items() if major.isdigit() and int(major) < int(first)), None)


@cache
def target_entries() -> Mapping[str, Entry]:
    listed = tomllib.loads((files("kipcheck.conformance.targets") / "targets.toml").read_text("utf-8"))
    return {name: Entry(**entry) for name, entry in listed.items()}
