"""The entries of ``targets.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TypeVar

from kipcheck.conformance.core.values.release import version_numbers
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
    """Release -> the adapter of the releases before it; the oldest first."""
    roles_before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Release -> the roles of the releases before it, where they are others; the oldest first."""
    omits: tuple[str, ...] = ()
    """Families of messages that the library has and that the target does not claim."""
    steady: bool = True
    """Whether the target gives the same results each time: not where threads or the order of hash tables matter."""

    def roles_of(self, release: str) -> tuple[str, ...]:
        """Empty: the adapter plays nothing with the release."""
        found = before(self.roles_before, release)
        return self.roles if found is None else found

    def memory(self, limits: Limits | None) -> int:
        """Bytes of address space."""
        usual = self.memory_mib << 20
        if limits is None or limits.memory_times <= 1:
            return usual
        return max(usual, min(int(usual * limits.memory_times), half_of_memory()))


T = TypeVar("T")


def before(by_release: Mapping[str, T], release: str) -> T | None:
    """The value for the first release that is above this one."""
    mine = version_numbers(release)
    return next((each for first, each in by_release.items() if mine and mine < version_numbers(first)), None)


@cache
def target_entries() -> Mapping[str, Entry]:
    listed = tomllib.loads((files("kipcheck.conformance.targets") / "targets.toml").read_text("utf-8"))
    return {name: Entry(**entry) for name, entry in listed.items()}
