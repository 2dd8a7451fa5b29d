"""The entries of ``targets.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

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
    steady: bool = True
    """Whether the target gives the same results each time: not where threads or the order of hash tables matter."""

    def memory(self, limits: Limits | None) -> int:
        """Bytes of address space."""
        usual = self.memory_mib << 20
        if limits is None or limits.memory_times <= 1:
            return usual
        return max(usual, min(int(usual * limits.memory_times), half_of_memory()))


@cache
def target_entries() -> Mapping[str, Entry]:
    listed = tomllib.loads((files("kipcheck.conformance.targets") / "targets.toml").read_text("utf-8"))
    return {name: Entry(**entry) for name, entry in listed.items()}
